//! Plugins to install, and a builder that installs them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::TestAgent;

/// The settings of a tool in the manifest, besides name and description.
pub(crate) const PLAIN: &str = r#"command = "./run"
schema = { type = "object", properties = { city = { type = "string" } } }"#;

/// Returns a manifest with one tool, `NAME_now`.
pub(crate) fn manifest(name: &str, tool: &str) -> String {
    format!(
        "name = \"{name}\"\nversion = \"1.0.0\"\ncapabilities = [\"tool\"]\n\n[[tools]]\nname = \"{name}_now\"\n\
         description = \"Tells the {name}.\"\n{tool}\n"
    )
}

impl TestAgent {
    /// Creates a folder outside of the home with these files; `run` is executable.
    pub(crate) fn write_plugin_folder(&self, folder: &str, files: &[(&str, &str)]) -> PathBuf {
        let place = self.path().join("plugins").join(folder);
        for (path, text) in files {
            let file = place.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            let mode = if path.ends_with("run") { 0o755 } else { 0o644 };
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        place
    }

    /// Installs a plugin whose `run` is this program, with these tool settings.
    pub(crate) fn with_plugin(self, name: &str, tool: &str, program: &str) -> Self {
        let folder =
            self.write_plugin_folder(name, &[("manifest.toml", &manifest(name, tool)), ("run", program)]);
        let done = self.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
        assert_eq!(done.code, 0, "{done:?}");
        self
    }
}
