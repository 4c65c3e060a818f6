//! `cargo xtask quick`: checks format, structure, lints and pure tests of the crates that changed, for use during
//! development.
//!
//! A crate has changed if git lists one of its files as changed or new; in a clean checkout the last commit counts.
//! Of crates that start processes or open sockets only the unit tests run here: `cargo xtask test` runs the rest.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::test::USER_INDEPENDENT_CRATES;
use crate::workspace::{CargoWorkspace, run_to_end};
use crate::{terminal, tidy};

/// Runs the quick checks, and stops at the first failure.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    run_to_end(workspace.cargo_command().args(["fmt", "--all", "--check"]))?;
    tidy::run(workspace)?;
    let packages = packages_of(&changed_files(workspace)?, workspace);
    if packages.is_empty() {
        println!("{}", terminal::success("no crate has changed"));
        return Ok(());
    }
    println!("{}", terminal::heading(&format!("changed: {}", packages.join(", "))));
    let named: Vec<&str> = packages.iter().flat_map(|package| ["--package", package]).collect();
    run_to_end(workspace.linting_command().args(["build", "--all-targets", "--locked"]).args(&named))?;
    let mut tests = workspace.linting_command();
    tests.args(["nextest", "run", "--locked", "--no-tests=pass"]).args(&named);
    run_to_end(tests.args(["--filterset", &pure_tests()]))?;
    println!("{}", terminal::success("the quick checks passed; `cargo xtask test` runs all of them"));
    Ok(())
}

fn changed_files(workspace: &CargoWorkspace) -> Result<String> {
    let changed = git(workspace, &["diff", "--name-only", "HEAD"])?;
    let new = git(workspace, &["ls-files", "--others", "--exclude-standard"])?;
    let files = changed + &new;
    if files.is_empty() { git(workspace, &["diff", "--name-only", "HEAD~1", "HEAD"]) } else { Ok(files) }
}

fn git(workspace: &CargoWorkspace, arguments: &[&str]) -> Result<String> {
    let mut command = std::process::Command::new("git");
    let output = command.current_dir(&workspace.root).args(arguments).output();
    let output = output.context("could not start git")?;
    if !output.status.success() {
        bail!("git {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn packages_of<'w>(files: &str, workspace: &'w CargoWorkspace) -> Vec<&'w str> {
    let owner = |file: &str| {
        workspace.packages.iter().find(|package| {
            let folder = package.manifest_path.parent().unwrap_or(Path::new(""));
            workspace.root.join(file).starts_with(folder)
        })
    };
    let names: BTreeSet<_> = files.lines().filter_map(owner).map(|package| package.name.as_str()).collect();
    names.into_iter().collect()
}

/// Returns nextest's filter expression for the tests that need no process, socket or user.
fn pure_tests() -> String {
    let pure = USER_INDEPENDENT_CRATES.iter().map(|name| format!("package({name})"));
    let unit_tests = ["kind(lib)".to_owned(), "kind(bin)".to_owned()];
    unit_tests.into_iter().chain(pure).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::CargoPackage;

    #[test]
    fn a_changed_file_belongs_to_the_crate_around_it() {
        let package = |name: &str| CargoPackage {
            name: name.to_owned(),
            manifest_path: format!("/w/crates/{name}/Cargo.toml").into(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        let workspace = CargoWorkspace {
            root: "/w".into(),
            target: "/w/target".into(),
            packages: vec![package("ward-a"), package("ward-ab")],
        };
        let files = "crates/ward-ab/src/lib.rs\nREADME.md\ncrates/ward-ab/Cargo.toml\n";
        assert_eq!(packages_of(files, &workspace), ["ward-ab"]);
        assert_eq!(packages_of("README.md\n", &workspace), [""; 0]);
    }
}
