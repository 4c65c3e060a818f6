//! `cargo xtask mutants`: how much the tests of the deciding crates notice.
//!
//! cargo-mutants changes one expression at a time and runs the crate's tests. A mutant that no test notices is a rule
//! that nothing checks. cargo-mutants lists the survivors at the end.

use anyhow::Result;
use clap::Args;

use crate::setup;
use crate::workspace::{CargoWorkspace, run_to_end};

/// The crates whose decisions everything else relies on.
const DECIDING_CRATES: &[&str] = &["shepherd-core", "collieclaw-gate", "ward-ledger"];

/// The version that is installed if there is none.
const VERSION: &str = "27.1.0";

#[derive(Args)]
pub(crate) struct MutantsOptions {
    /// Test the mutants of this crate; all deciding crates if none is named.
    package: Option<String>,
    /// Test one part of the mutants, such as `2/8`, so that a long run can be divided.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Test only mutants in files that match this pattern.
    #[arg(long, value_name = "GLOB")]
    file: Option<String>,
}

/// Runs cargo-mutants, and installs it first where it is missing.
pub(crate) fn run(workspace: &CargoWorkspace, options: &MutantsOptions) -> Result<()> {
    if setup::cargo_tool("cargo-mutants").is_none() {
        let version = format!("cargo-mutants@{VERSION}");
        run_to_end(workspace.cargo_command().args(["install", "--locked", &version]))?;
    }
    let packages = options.package.as_deref().map_or(DECIDING_CRATES.to_vec(), |package| vec![package]);
    let mut command = workspace.cargo_command();
    command.args(["mutants", "--test-tool=nextest", "--baseline=run"]);
    command.arg("--output").arg(&workspace.target);
    for package in packages {
        command.args(["--package", package]);
    }
    if let Some(shard) = &options.shard {
        command.args(["--shard", shard]);
    }
    if let Some(file) = &options.file {
        command.args(["--file", file]);
    }
    run_to_end(&mut command)
}
