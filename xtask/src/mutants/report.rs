//! The results of a run: figures, survivors, and whether the crate passes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::mutant::{Mutant, MutantName};
use super::test_suite::MutantVerdict;
use crate::terminal;

/// The share of viable mutants that the tests must catch.
const REQUIRED_PERCENT: f64 = 95.0;

/// The outcome for one mutant, as it is kept for the next run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MutantOutcome {
    #[serde(flatten)]
    pub(crate) name: MutantName,
    pub(crate) line: usize,
    pub(crate) verdict: MutantVerdict,
}

impl MutantOutcome {
    pub(crate) fn new(mutant: &Mutant, verdict: MutantVerdict) -> Self {
        Self { name: mutant.name.clone(), line: mutant.line, verdict }
    }

    /// Returns whether no test notices the mutant.
    pub(crate) fn is_survivor(&self) -> bool {
        !self.verdict.is_caught()
    }
}

/// Writes the outcomes to a file, which keeps the earlier outcomes of other viable mutants.
pub(crate) fn save(outcomes: &[MutantOutcome], viable: &[&Mutant], path: &Path) -> Result<()> {
    let viable: BTreeSet<&MutantName> = viable.iter().map(|mutant| &mutant.name).collect();
    let earlier = if path.exists() { load(path)? } else { Vec::new() };
    let all = earlier.iter().filter(|outcome| viable.contains(&outcome.name)).chain(outcomes);
    let by_name: BTreeMap<&MutantName, &MutantOutcome> =
        all.map(|outcome| (&outcome.name, outcome)).collect();
    let text = serde_json::to_string_pretty(&by_name.values().collect::<Vec<_>>())?;
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

/// Reads the outcomes of the last run.
pub(crate) fn load(path: &Path) -> Result<Vec<MutantOutcome>> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("could not read {}\nhelp: run all mutants first", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("could not parse {}", path.display()))
}

/// The part of the mutants that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunExtent {
    Whole,
    Part,
}

/// Prints a mutant that the tests didn't catch by failing, unless the crate accepts it.
pub(crate) fn print_uncaught(
    Mutant { name, line, .. }: &Mutant,
    verdict: MutantVerdict,
    accepted: &BTreeSet<MutantName>,
) {
    let shown = match verdict {
        MutantVerdict::TimedOut => terminal::warning("timed out"),
        MutantVerdict::Survived => terminal::failure("survived"),
        MutantVerdict::Unreached => terminal::failure("not reached"),
        MutantVerdict::Caught => return,
    };
    if !accepted.contains(name) {
        println!("  {shown} {}:{line} {}: {}", name.file, name.function, name.change);
    }
}

/// Prints the figures. Returns the faults that make the run fail.
pub(crate) fn print(
    outcomes: &[MutantOutcome],
    accepted: &BTreeSet<MutantName>,
    extent: RunExtent,
) -> Vec<String> {
    let survivors: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_survivor()).collect();
    let (known, new): (Vec<&MutantOutcome>, Vec<&MutantOutcome>) =
        survivors.iter().copied().partition(|outcome: &&MutantOutcome| accepted.contains(&outcome.name));
    let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
    let (caught, timed_out) = (count(MutantVerdict::Caught), count(MutantVerdict::TimedOut));
    let percent = percentage(caught + timed_out, outcomes.len());
    println!(
        "  {} mutants: {caught} caught, {timed_out} timed out, {} survived ({} accepted), {percent:.1} % caught",
        outcomes.len(),
        survivors.len(),
        known.len(),
    );
    let mut faults = Vec::new();
    if !new.is_empty() {
        faults.push(format!("{} mutants survived without a reason", new.len()));
    }
    if extent == RunExtent::Whole {
        faults.extend(stale_entries(&survivors, accepted));
        if percent < REQUIRED_PERCENT {
            faults.push(format!(
                "{percent:.1} % of the mutants are caught, but {REQUIRED_PERCENT} % are required"
            ));
        }
    }
    faults
}

fn stale_entries(survivors: &[&MutantOutcome], accepted: &BTreeSet<MutantName>) -> Vec<String> {
    let surviving: BTreeSet<&MutantName> = survivors.iter().map(|outcome| &outcome.name).collect();
    let stale = accepted.iter().filter(|name| !surviving.contains(name));
    stale
        .map(|name| format!("{} {}: accepted, but no survivor: {}", name.file, name.function, name.change))
        .collect()
}

/// Returns the share in percent; all of nothing is everything.
fn percentage(part: usize, whole: usize) -> f64 {
    let number = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
    if whole == 0 { 100.0 } else { 100.0 * number(part) / number(whole) }
}
