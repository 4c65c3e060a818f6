//! `cargo xtask package`: the Debian packages of both products, in `target/package`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::setup;
use crate::workspace::{CargoWorkspace, run_to_end};

/// The version of cargo-deb that is installed if there is none.
const CARGO_DEB_VERSION: &str = "3.8.0";

/// The profile of shipped programs.
const DIST: &str = "dist";

/// The choice of how to build the programs.
#[derive(Args)]
pub(crate) struct PackageOptions {
    /// Build profile; `dev` is quicker to build, for trying a change.
    #[arg(long, value_name = "NAME", default_value = DIST)]
    profile: String,
}

impl PackageOptions {
    /// Returns the folder into which cargo puts the programs.
    fn program_folder(&self, workspace: &CargoWorkspace) -> PathBuf {
        workspace.target.join(if self.profile == "dev" { "debug" } else { &self.profile })
    }
}

/// The files of the packages.
pub(crate) struct BuiltPackages {
    pub(crate) shepherd: PathBuf,
    /// The same package with a higher version, to try an upgrade.
    pub(crate) shepherd_upgrade: PathBuf,
    pub(crate) collieclaw: PathBuf,
    /// True if the programs are built as they are shipped, so that bars on their size hold.
    pub(crate) is_shipped: bool,
}

/// Builds the programs and packs them.
pub(crate) fn build(workspace: &CargoWorkspace, options: &PackageOptions) -> Result<BuiltPackages> {
    if setup::cargo_tool("cargo-deb").is_none() {
        let version = format!("cargo-deb@{CARGO_DEB_VERSION}");
        run_to_end(workspace.cargo_command().args(["install", "--locked", &version]))?;
    }
    let mut compile = workspace.cargo_command();
    compile.args(["build", "--locked", "--profile", &options.profile]);
    compile.args([
        "-p",
        "shepherdd",
        "-p",
        "shepherd-cli",
        "-p",
        "shepherd-notify",
        "-p",
        "collieclaw",
        "-p",
        "collieclaw-mcp-adapter",
    ]);
    run_to_end(&mut compile)?;
    let programs = options.program_folder(workspace);
    generate_documents(&programs)?;
    let pack = |package: &str, more: &[&str]| {
        pack(workspace, package, &[&["--profile", &options.profile], more].concat())
    };
    Ok(BuiltPackages {
        shepherd: pack("shepherdd", &[])?,
        shepherd_upgrade: pack("shepherdd", &["--deb-revision", "upgrade"])?,
        collieclaw: pack("collieclaw", &[])?,
        is_shipped: options.profile == DIST,
    })
}

/// Writes the manual pages and completions beside the programs, which generate them.
fn generate_documents(programs: &Path) -> Result<()> {
    for program in ["shepherd", "collieclaw"] {
        let path = programs.join(program);
        let target = programs.join("package").join(program);
        // Pages of commands that no longer exist must not stay.
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        fs::create_dir_all(target.join("completions"))?;
        let man = target.join("man");
        run_to_end(Command::new(&path).args(["man", "--dir"]).arg(&man))?;
        for (shell, file) in [
            ("bash", program.to_owned()),
            ("zsh", format!("_{program}")),
            ("fish", format!("{program}.fish")),
        ] {
            let script = Command::new(&path).args(["completions", shell]).output()?;
            ensure!(script.status.success(), "could not generate the completions of {program} for {shell}");
            fs::write(target.join("completions").join(file), script.stdout)?;
        }
    }
    Ok(())
}

/// Packs what was built, and returns the path of the package.
fn pack(workspace: &CargoWorkspace, package: &str, options: &[&str]) -> Result<PathBuf> {
    let mut command = workspace.cargo_command();
    command.args(["deb", "--no-build", "--locked", "-p", package]).args(options);
    let output = command
        .arg("--output")
        .arg(workspace.target.join("package"))
        .output()
        .context("could not start cargo-deb")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let path = printed.lines().map(str::trim).rfind(|line| line.ends_with(".deb"));
    let path = PathBuf::from(path.with_context(|| format!("cargo-deb named no package: {printed}"))?);
    println!("{}", workspace.relative(&path).display());
    Ok(path)
}
