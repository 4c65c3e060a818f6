//! The workspace as cargo describes it, and the commands that run inside it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::setup;

/// The arguments of clippy itself. Its driver reads them from a variable, with a separator behind each.
const CLIPPY_FLAGS: [&str; 2] = ["--deny", "warnings"];

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
    /// The accepted versions; `*` means any.
    pub(crate) req: String,
    /// The folder of a dependency that is a member of the workspace.
    pub(crate) path: Option<PathBuf>,
    /// `dev` or `build`; `None` for a normal dependency.
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
    /// Loads the workspace that this program belongs to, from any directory.
    pub(crate) fn load() -> Result<Self> {
        let manifest = manifest_directory().join("Cargo.toml");
        let output = bare_cargo()
            .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
            .arg(&manifest)
            .output()
            .context("could not start cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        serde_json::from_slice(&output.stdout).context("could not parse the output of cargo metadata")
    }

    /// Returns a cargo command that runs at the root of the workspace.
    pub(crate) fn cargo_command(&self) -> Command {
        let mut command = bare_cargo();
        command.current_dir(&self.root);
        command
    }

    /// Returns a cargo command that lints every crate of the workspace while it compiles it.
    pub(crate) fn linting_command(&self) -> Command {
        let mut command = self.cargo_command();
        lint_while_compiling(&mut command);
        command
    }

    /// Returns a path relative to the root, for messages.
    pub(crate) fn relative<'path>(&self, path: &'path Path) -> &'path Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// Makes cargo compile the crates of the workspace with clippy's driver, which is the compiler with more lints, and refuse
/// warnings. One build then serves the lints and the tests; `cargo clippy` would compile every library a second time.
/// Cargo keeps the results of different compilers apart, so all commands that share a build need this.
pub(crate) fn lint_while_compiling(cargo: &mut Command) {
    if let Some(driver) = setup::toolchain_program("clippy-driver") {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
        cargo.env("CLIPPY_ARGS", CLIPPY_FLAGS.map(|flag| format!("{flag}__CLIPPY_HACKERY__")).concat());
    }
}

/// Returns the folder of xtask's manifest. `cargo run` sets it, so a moved checkout works.
fn manifest_directory() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Returns a command for the cargo that started this program, without the environment variables that describe *this*
/// package to a build.
pub(crate) fn bare_cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// Runs a command and waits for it. All of its output goes to our standard output, so that the order is kept even in a
/// pipe.
pub(crate) fn run_to_end(command: &mut Command) -> Result<()> {
    let shown = describe(command);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stdout()))
        .stderr(Stdio::from(io::stdout()))
        .status()
        .with_context(|| format!("could not start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Returns the output of a command, or `None` if it fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Formats a command as a person would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
