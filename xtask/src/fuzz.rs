//! `cargo xtask fuzz`: runs the fuzz targets for longer than the normal tests do, with another seed each time.
//!
//! A target is a test in a module called `fuzz` of a crate that uses `ward-fuzz`.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::terminal;
use crate::workspace::{CargoWorkspace, run_to_end};

/// The crate that runs the targets, and the environment variables that control it.
const ENGINE: &str = "ward-fuzz";
const SECONDS: &str = "WARD_FUZZ_SECONDS";
const SEED: &str = "WARD_FUZZ_SEED";

/// The options of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// Run only targets whose `package fuzz::test` contains this text.
    target: Option<String>,
    /// Run each target for this many seconds.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
    /// Repeat an earlier run by its seed.
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the targets in parallel. Fails with the input on which a target failed.
pub(crate) fn run(workspace: &CargoWorkspace, choice: &FuzzOptions) -> Result<()> {
    let packages = fuzzed_packages(workspace);
    if packages.is_empty() {
        bail!(
            "no crate has fuzz targets\nhelp: a crate with fuzz targets has `{ENGINE}` among its dev-dependencies"
        );
    }
    let seed = match choice.seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs(),
    };
    println!("{}", terminal::heading(&format!("{} s for each target, seed {seed}", choice.seconds)));
    let mut command = workspace.cargo_command();
    command.args(["nextest", "run", "--locked", "--profile", "fuzz"]);
    for package in packages {
        command.args(["--package", package]);
    }
    command.args(["--filterset", &filterset(choice.target.as_deref())?]);
    run_to_end(command.env(SECONDS, choice.seconds.to_string()).env(SEED, seed.to_string()))
        .with_context(|| format!("repeat this run with `cargo xtask fuzz --seed {seed}`"))
}

fn fuzzed_packages(workspace: &CargoWorkspace) -> Vec<&str> {
    let uses = |name: &str| name == ENGINE;
    let packages = workspace.packages.iter();
    packages
        .filter(|package| package.dependencies.iter().any(|dependency| uses(&dependency.name)))
        .map(|package| package.name.as_str())
        .collect()
}

/// Returns nextest's filter expression for the targets; `target` is a part of the name of a crate or a test.
fn filterset(target: Option<&str>) -> Result<String> {
    let targets = "kind(test) & test(/^fuzz::/)";
    let Some(target) = target else { return Ok(targets.to_owned()) };
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_:".contains(character);
    if target.is_empty() || !target.chars().all(is_plain) {
        bail!("`{target}` can't be part of a name\nhelp: name a crate or a test, such as `shepherd-api`");
    }
    Ok(format!("{targets} & (package(~{target}) | test(~{target}))"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_narrows_the_choice_to_a_crate_or_a_test() {
        assert_eq!(filterset(None).unwrap(), "kind(test) & test(/^fuzz::/)");
        assert_eq!(
            filterset(Some("shepherd-api")).unwrap(),
            "kind(test) & test(/^fuzz::/) & (package(~shepherd-api) | test(~shepherd-api))"
        );
    }

    #[test]
    fn what_is_no_name_does_not_reach_the_filter() {
        let error = filterset(Some("a) | all(")).unwrap_err().to_string();
        assert!(error.starts_with("`a) | all(` can't be part of a name\nhelp:"), "{error}");
    }
}
