//! A workspace with something around it: a home with secrets, a folder that is forbidden, CollieClaw's own home.

use std::path::{Path, PathBuf};

use collieclaw::security::{Access, Workspace};
use collieclaw_gate::{
    Autonomy, Bounds, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS,
    GatePolicy,
};
use tempfile::TempDir;

pub(crate) struct Workshop {
    _folder: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) workspace: Workspace,
    pub(crate) policy: GatePolicy,
}

pub(crate) const SECRET: &str = "the secret outside";

impl Workshop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        let path = home.join("workspace");
        for made in ["workspace", ".ssh", ".collieclaw", "other"] {
            std::fs::create_dir_all(home.join(made)).unwrap();
        }
        for secret in [".ssh/id", ".collieclaw/config.toml", "other/diary", "secret"] {
            std::fs::write(home.join(secret), SECRET).unwrap();
        }
        let workspace = Workspace::open(&path).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let policy = GatePolicy {
            autonomy: Autonomy::Supervised,
            workspace: path.clone(),
            bounds: Bounds::Workspace,
            user_home: home.clone(),
            own_home: home.join(".collieclaw"),
            forbidden_paths: DEFAULT_FORBIDDEN_PATHS
                .iter()
                .map(|path| match path.strip_prefix("~/") {
                    Some(below) => home.join(below),
                    None => path.into(),
                })
                .collect(),
            forbidden_commands: names(DEFAULT_FORBIDDEN_COMMANDS),
            allowed_commands: names(DEFAULT_ALLOWED_COMMANDS),
            allowed_domains: Vec::new(),
        };
        Self { _folder: folder, home, path, workspace, policy }
    }

    pub(crate) fn access(&self) -> Access<'_> {
        self.workspace.under(&self.policy)
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let place = self.path.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, text).unwrap();
        place
    }

    pub(crate) fn link(&self, to: impl AsRef<Path>, at: &str) -> PathBuf {
        std::os::unix::fs::symlink(to, self.path.join(at)).unwrap();
        self.path.join(at)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path.join(path)).unwrap()
    }
}
