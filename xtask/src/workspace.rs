//! The workspace as cargo describes it, and the commands that run inside it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The workspace as `cargo metadata --no-deps` describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct CargoWorkspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<CargoPackage>,
}

/// A member of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CargoPackage {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<CargoDependency>,
    pub(crate) targets: Vec<CargoTarget>,
}

/// An entry of a `[dependencies]` table, of any kind.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CargoDependency {
    pub(crate) name: String,
    /// The versions that are accepted; `*` is any.
    pub(crate) req: String,
    /// The folder, for a member of the workspace.
    pub(crate) path: Option<PathBuf>,
    /// `dev` or `build`; nothing for an ordinary one.
    pub(crate) kind: Option<String>,
}

/// A crate that cargo compiles.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CargoTarget {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl CargoTarget {
    /// Returns whether cargo builds this target as `kind`: `lib`, `bin`, `test`, `bench`, `custom-build`.
    pub(crate) fn has_kind(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }
}

impl CargoWorkspace {
    /// Asks cargo; works from any directory, because the workspace is the one this program belongs to.
    pub(crate) fn load() -> Result<Self> {
        let manifest = manifest_directory().join("Cargo.toml");
        let output = bare_cargo()
            .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
            .arg(&manifest)
            .output()
            .context("cargo metadata could not be started")?;
        if !output.status.success() {
            bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata gave something unexpected")
    }

    /// A cargo command that runs at the root of the workspace.
    pub(crate) fn cargo_command(&self) -> Command {
        let mut command = bare_cargo();
        command.current_dir(&self.root);
        command
    }

    /// `path` as seen from the root, which is how people read it.
    pub(crate) fn relative<'path>(&self, path: &'path Path) -> &'path Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// Returns the folder of xtask's manifest. `cargo run` sets it, so a moved checkout works.
fn manifest_directory() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The cargo that started us, without the variables that describe *this* package to a build.
fn bare_cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// Runs a command to its end with everything it says on our standard output, so that the order on the
/// screen is the order of events even in a pipe.
pub(crate) fn run_to_end(command: &mut Command) -> Result<()> {
    let shown = describe(command);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stdout()))
        .stderr(Stdio::from(io::stdout()))
        .status()
        .with_context(|| format!("`{shown}` could not be started"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// A command as a person would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
