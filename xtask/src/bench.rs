//! `cargo xtask bench`: every benchmark of the workspace in one table.
//!
//! A benchmark reports its rows as JSON lines on standard output and its progress on standard error.

mod machine;
mod table;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use ward_bench::BenchmarkRow;

use crate::terminal;
use crate::workspace::CargoWorkspace;

use self::machine::BenchMachine;

/// The results file, in a folder that `.gitignore` lists.
const RESULTS: &str = "bench-results/bench.json";

#[derive(Serialize)]
struct BenchReport<'rows> {
    machine: BenchMachine,
    rows: Vec<BenchResult<'rows>>,
}

/// A row of the results file, with its ratio and whether its bar is met.
#[derive(Serialize)]
struct BenchResult<'row> {
    #[serde(flatten)]
    row: &'row BenchmarkRow,
    ratio: Option<f64>,
    met: bool,
}

/// Runs the benchmarks whose name contains `filter`. Fails if a benchmark fails or misses its bar.
pub(crate) fn run(workspace: &CargoWorkspace, filter: Option<&str>) -> Result<()> {
    let benchmarks = select(workspace, filter);
    if benchmarks.is_empty() {
        bail!(
            "no benchmark matches\nhelp: benchmarks are the files `benches/*.rs` of the workspace's crates"
        );
    }
    let mut rows = Vec::new();
    let mut broken = Vec::new();
    for (package, name) in benchmarks {
        eprintln!("{}", terminal::heading(&format!("{package}/{name}")));
        match run_benchmark(workspace, package, name) {
            Ok(found) => rows.extend(found),
            Err(error) => broken.push(format!("{package}/{name}: {error:#}")),
        }
    }
    if !rows.is_empty() {
        println!("\n{}", table::draw(&rows));
    }
    write_results(workspace, &rows)?;
    println!("results written to {RESULTS}");
    let missed: Vec<_> = rows.iter().filter(|row| !row.is_met()).map(|row| row.bench.as_str()).collect();
    if !missed.is_empty() {
        broken.push(format!("{} of {} bars missed: {}", missed.len(), rows.len(), missed.join(", ")));
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    Ok(())
}

fn select<'workspace>(
    workspace: &'workspace CargoWorkspace,
    filter: Option<&str>,
) -> Vec<(&'workspace str, &'workspace str)> {
    let mut benchmarks: Vec<_> = workspace
        .packages
        .iter()
        .flat_map(|package| package.targets.iter().map(move |target| (package, target)))
        .filter(|(_, target)| target.has_kind("bench"))
        .map(|(package, target)| (package.name.as_str(), target.name.as_str()))
        .filter(|(package, name)| filter.is_none_or(|filter| format!("{package}/{name}").contains(filter)))
        .collect();
    benchmarks.sort_unstable();
    benchmarks
}

fn run_benchmark(workspace: &CargoWorkspace, package: &str, name: &str) -> Result<Vec<BenchmarkRow>> {
    let mut child = workspace
        .cargo_command()
        .args(["bench", "--locked", "--quiet", "--package", package, "--bench", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start cargo bench")?;
    let stdout = child.stdout.take().context("the benchmark has no standard output")?;
    let rows = read_rows(BufReader::new(stdout));
    let status = child.wait()?;
    if !status.success() {
        bail!("the benchmark failed ({status})");
    }
    let rows = rows?;
    if rows.is_empty() {
        bail!("the benchmark reported nothing");
    }
    Ok(rows)
}

/// Returns the rows among the lines of a benchmark's output, and prints all other lines.
fn read_rows(lines: impl BufRead) -> Result<Vec<BenchmarkRow>> {
    let mut rows = Vec::new();
    for line in lines.lines() {
        let line = line?;
        if line.starts_with('{') {
            rows.push(serde_json::from_str(&line).with_context(|| format!("invalid row: {line}"))?);
        } else if !line.trim().is_empty() {
            eprintln!("{line}");
        }
    }
    Ok(rows)
}

fn write_results(workspace: &CargoWorkspace, rows: &[BenchmarkRow]) -> Result<()> {
    let rows = rows.iter().map(|row| BenchResult { row, ratio: row.ratio(), met: row.is_met() }).collect();
    let path = workspace.root.join(RESULTS);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let report = BenchReport { machine: BenchMachine::detect(&workspace.root), rows };
    fs::write(&path, serde_json::to_string_pretty(&report)? + "\n")
        .with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_among_talk() {
        let row = r#"{"bench":"b","unit":"ms","figure":2.0,"baseline":null,"bar":{"at_most":3.0}}"#;
        let rows = read_rows(format!("warming up\n\n{row}\ndone\n").as_bytes()).unwrap();
        assert_eq!(rows.iter().map(|row| row.bench.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_broken_row_is_an_error_and_not_talk() {
        let error = read_rows("{\"bench\":\n".as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("invalid row"), "{error:#}");
    }
}
