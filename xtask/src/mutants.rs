//! `cargo xtask mutants`: how much the tests of the deciding crates notice.
//!
//! A mutant is a small change to the source, such as `<` for `<=`. A mutant that no test notices is a rule that nothing
//! checks. All mutants of a crate are compiled into one program, and an environment variable switches one of them on,
//! so that a crate is built once and not once for each of its thousand mutants. Only tests that reach a mutant are run
//! with it. Start at [`mutant_crate`], which rewrites and builds the crate, and [`test_suite`], which runs the tests.

mod accepted;
mod compiler;
mod enumerate;
mod mutant;
mod mutant_crate;
mod operators;
mod report;
mod return_values;
mod rewrite;
mod run_progress;
mod source_tree;
mod switch;
mod syntax;
mod test_process;
mod test_suite;
mod workspace_copy;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use tempfile::TempDir;

use self::mutant::{Mutant, MutantName};
use self::mutant_crate::MutantCrate;
use self::report::{MutantOutcome, RunExtent};
use self::run_progress::RunProgress;
use self::test_suite::{MutantTestSuite, TestChoice};
use crate::terminal;
use crate::workspace::{CargoPackage, CargoWorkspace};

/// The crates whose decisions everything else relies on.
const DECIDING_CRATES: &[&str] = &["shepherd-core", "collieclaw-gate", "ward-ledger"];

/// The options of `cargo xtask mutants`.
#[derive(Args)]
pub(crate) struct MutantsOptions {
    /// Test the mutants of this crate; all deciding crates if none is named.
    package: Option<String>,
    /// Test only mutants in files whose path contains this text, or one of several such texts.
    #[arg(long, value_name = "TEXT")]
    file: Vec<String>,
    /// Test only the mutants that survived the last run.
    #[arg(long)]
    survivors: bool,
    /// Leave out tests that take longer than two seconds; they may catch some of the mutants that then survive.
    #[arg(long)]
    quick: bool,
}

/// Tests the mutants of the crates. Fails if a mutant survives that the crate's `mutants.toml` doesn't list, if a listed
/// one doesn't survive, or if fewer than 95 % are caught.
pub(crate) fn run(workspace: &CargoWorkspace, options: &MutantsOptions) -> Result<()> {
    let names = options.package.as_deref().map_or(DECIDING_CRATES.to_vec(), |package| vec![package]);
    let mut faults = Vec::new();
    for name in names {
        let package = workspace.packages.iter().find(|package| package.name == name);
        let package = package.with_context(|| format!("no such crate `{name}`"))?;
        println!("{}", terminal::heading(name));
        faults.extend(
            test_crate(workspace, package, options)?.into_iter().map(|fault| format!("{name}: {fault}")),
        );
    }
    if !faults.is_empty() {
        bail!(
            "{}\nhelp: write a test that fails with the mutant, or give the reason in the crate's `{}`",
            faults.join("\n"),
            accepted::FILE
        );
    }
    Ok(())
}

fn test_crate(
    workspace: &CargoWorkspace,
    package: &CargoPackage,
    options: &MutantsOptions,
) -> Result<Vec<String>> {
    let folder = package.manifest_path.parent().context("a manifest has a folder")?;
    let accepted = accepted::load(folder)?;
    let results = workspace.target.join("mutants").join(&package.name);
    let outcomes_file = results.join("outcomes.json");
    let mut mutated = MutantCrate::prepare(workspace, package)?;
    let programs = mutated.build()?;
    let viable: Vec<&Mutant> = mutated.viable().collect();
    println!(
        "  {} mutants compile, {} don't, {} are in constants and can't be switched on",
        viable.len(),
        mutated.rejected_count(),
        mutated.constant().count()
    );
    let chosen = choose(&viable, options, &outcomes_file)?;
    test_process::limit_resources()?;
    let temporary = temporary_folder()?;
    let tests = test_process::list_tests(&programs)?;
    println!("  running {} tests once, to see which mutants they reach", tests.len());
    let choice = if options.quick { TestChoice::Quick } else { TestChoice::All };
    let test_suite = MutantTestSuite::measure(&tests, choice, [&mutated.folder, temporary.path()])?;
    let progress = RunProgress::open(&results.join("progress.jsonl"), &programs, choice)?;
    let verdicts = test_suite.try_mutants(&chosen, &progress, |mutant, verdict| {
        report::print_uncaught(mutant, verdict, &accepted);
    })?;
    let outcomes: Vec<_> =
        chosen.iter().zip(verdicts).map(|(mutant, verdict)| MutantOutcome::new(mutant, verdict)).collect();
    let extent = if options.file.is_empty() && !options.survivors && !options.quick {
        RunExtent::Whole
    } else {
        RunExtent::Part
    };
    report::save(&outcomes, &viable, &outcomes_file)?;
    if extent == RunExtent::Whole {
        progress.clear()?;
    }
    Ok(report::print(&outcomes, &accepted, extent))
}

/// Creates the folder for the files of the tests, in memory if possible: many tests wait for the disk.
fn temporary_folder() -> Result<TempDir> {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).context("could not create a temporary folder")
}

/// Returns the mutants that the options ask for.
fn choose<'m>(viable: &[&'m Mutant], options: &MutantsOptions, last: &Path) -> Result<Vec<&'m Mutant>> {
    let mut chosen = viable.to_vec();
    if !options.file.is_empty() {
        chosen.retain(|mutant| options.file.iter().any(|text| mutant.name.file.contains(text.as_str())));
    }
    if options.survivors {
        let outcomes = report::load(last)?;
        let survivors: BTreeSet<MutantName> =
            outcomes.into_iter().filter(MutantOutcome::is_survivor).map(|outcome| outcome.name).collect();
        chosen.retain(|mutant| survivors.contains(&mutant.name));
    }
    Ok(chosen)
}
