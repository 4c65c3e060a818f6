//! `cargo xtask test`: runs all checks in order, and prints the name and duration of each.

use std::num::NonZero;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::background::BackgroundCommand;
use crate::workspace::{CargoWorkspace, run_to_end};
use crate::{dependencies, readme_commands, setup, terminal, tidy, units, unprivileged};

/// The choice of steps to run.
#[derive(Args)]
pub(crate) struct TestSelection {
    /// Run only this step; can be given several times.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the steps and exit.
    #[arg(long)]
    list: bool,
}

struct TestStep {
    name: &'static str,
    purpose: &'static str,
    failure: FailureMode,
    needs: StepNeeds,
    run: fn(&CargoWorkspace) -> Result<StepOutcome>,
}

/// The programs that a step needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepNeeds {
    /// Only the toolchain, so the step can run while `setup` installs the other programs.
    Toolchain,
    /// The programs that `setup` installs.
    Everything,
}

/// The effect of a failed step on the steps after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailureMode {
    /// Stop, because the check is quick and easy to fix, and the slow steps would waste time.
    StopsAll,
    /// Continue with the other steps, so that one run shows every failure.
    IsReported,
}

/// The result of a step that didn't fail.
pub(crate) enum StepOutcome {
    /// Everything was checked.
    Passed,
    /// The step passed, but a part could not be checked on this machine, for the given reason.
    PassedInPart(String),
    /// The step goes on beside the next ones.
    Continues(BackgroundCommand),
}

/// Crates whose tests don't depend on the user. They are skipped in the run as an ordinary user, and `cargo xtask
/// quick` runs all of their tests.
pub(crate) const USER_INDEPENDENT_CRATES: &[&str] = &[
    "collieclaw-gate",
    "shepherd-api",
    "shepherd-config",
    "shepherd-core",
    "shepherd-util",
    "ward-bench",
    "ward-cli",
    "ward-diag",
    "ward-fuzz",
    "ward-terminal",
    "xtask",
];

const STEPS: &[TestStep] = &[
    TestStep {
        name: "setup",
        purpose: "install the programs that the tests need",
        failure: FailureMode::StopsAll,
        needs: StepNeeds::Toolchain,
        run: set_up,
    },
    TestStep {
        name: "format",
        purpose: "check the format",
        failure: FailureMode::StopsAll,
        needs: StepNeeds::Toolchain,
        run: |workspace| run_cargo(workspace, &["fmt", "--all", "--check"]),
    },
    TestStep {
        name: "tidy",
        purpose: "check crate dependencies, orphaned files, links, requirements",
        failure: FailureMode::StopsAll,
        needs: StepNeeds::Toolchain,
        run: |workspace| tidy::run(workspace).map(|()| StepOutcome::Passed),
    },
    TestStep {
        name: "build",
        purpose: "compile and lint all targets, with and without the compositor module",
        failure: FailureMode::StopsAll,
        needs: StepNeeds::Toolchain,
        run: |workspace| {
            run_linting(workspace, &["build", "--workspace", "--all-targets", "--locked"])?;
            let without_compositor = ["--package", "shepherd-host-linux", "--no-default-features"];
            run_linting(
                workspace,
                &[&["check", "--all-targets", "--locked"], &without_compositor[..]].concat(),
            )
        },
    },
    TestStep {
        name: "tests",
        purpose: "run unit, property, integration and end-to-end tests",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: |workspace| {
            let mut command = workspace.linting_command();
            command.args(["nextest", "run", "--workspace", "--locked"]).args(runner_arguments());
            run_to_end(&mut command).map(|()| StepOutcome::Passed)
        },
    },
    TestStep {
        name: "unprivileged",
        purpose: "run the tests that depend on the user as an ordinary user",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: unprivileged::run,
    },
    TestStep {
        name: "units",
        purpose: "run all units under a real systemd",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: units::run,
    },
    TestStep {
        name: "doctests",
        purpose: "run the examples in the code documentation",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: |workspace| run_linting(workspace, &["test", "--doc", "--workspace", "--locked", "--quiet"]),
    },
    TestStep {
        name: "rustdoc",
        purpose: "build the documentation without warnings",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: rustdoc,
    },
    TestStep {
        name: "documented",
        purpose: "run the commands in the README",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: |workspace| readme_commands::run(workspace).map(|()| StepOutcome::Passed),
    },
    TestStep {
        name: "dependencies",
        purpose: "check bans, licences, sources, advisories",
        failure: FailureMode::IsReported,
        needs: StepNeeds::Everything,
        run: dependencies::run,
    },
];

/// Runs the selected steps and prints a summary.
pub(crate) fn run(workspace: &CargoWorkspace, selection: &TestSelection) -> Result<()> {
    if selection.list {
        for step in STEPS {
            println!("{:<14}{}", step.name, step.purpose);
        }
        return Ok(());
    }
    let steps = select(&selection.only)?;
    let begin = Instant::now();
    let mut ended: Vec<FinishedStep> = Vec::new();
    let mut continuing = None;
    for (index, step) in steps.iter().enumerate() {
        if step.needs == StepNeeds::Everything {
            ended.extend(continuing.take().map(finish));
        }
        if ended.iter().any(stops_all) {
            break;
        }
        let title = format!("[{}/{}] {}: {}", index + 1, steps.len(), step.name, step.purpose);
        println!("\n{}", terminal::heading(&title));
        let start = Instant::now();
        match (step.run)(workspace) {
            Ok(StepOutcome::Continues(command)) => {
                println!("{}: goes on beside the next steps, which don't need it", step.name);
                continuing = Some((*step, command));
            }
            result => ended.push(announce(step, result, start.elapsed())),
        }
    }
    if let Some((step, _)) = continuing.as_ref().filter(|_| ended.iter().any(stops_all)) {
        println!("waiting for {}: an installation that is interrupted has to be repaired by hand", step.name);
    }
    ended.extend(continuing.map(finish));
    summarise(&steps, &ended, begin.elapsed());
    report_failures(&ended)
}

/// Waits for a step that ran beside others, and prints its output.
fn finish((step, command): (&'static TestStep, BackgroundCommand)) -> FinishedStep {
    println!("\n{}", terminal::heading(&format!("{}: {}, beside other steps", step.name, step.purpose)));
    let (result, took) = command.finish();
    announce(step, result.map(|()| StepOutcome::Passed), took)
}

fn announce(step: &'static TestStep, result: Result<StepOutcome>, took: Duration) -> FinishedStep {
    println!("{}: {} in {}", step.name, verdict(&result), terminal::seconds(took).trim_start());
    // The summary comes only when the steps beside this one have ended.
    if let Err(error) = &result {
        println!("{error:#}");
    }
    (step, result, took)
}

fn stops_all((step, result, _): &FinishedStep) -> bool {
    result.is_err() && step.failure == FailureMode::StopsAll
}

fn select(only: &[String]) -> Result<Vec<&'static TestStep>> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != *name)) {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("no such step `{unknown}`\nhelp: the steps are {}", names.join(", "));
    }
    Ok(STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name)).collect())
}

type FinishedStep = (&'static TestStep, Result<StepOutcome>, Duration);

fn verdict(result: &Result<StepOutcome>) -> String {
    match result {
        Ok(StepOutcome::Passed) => terminal::success("passed"),
        Ok(StepOutcome::PassedInPart(_)) => terminal::warning("passed in part"),
        Ok(StepOutcome::Continues(_)) => "not finished".to_owned(),
        Err(_) => terminal::failure("FAILED"),
    }
}

fn summarise(steps: &[&'static TestStep], ended: &[FinishedStep], total: Duration) {
    println!("\n{}", terminal::heading("Summary"));
    for (step, result, took) in ended {
        println!("  {:<14}{}  {}", step.name, terminal::seconds(*took), verdict(result));
        if let Ok(StepOutcome::PassedInPart(reason)) = result {
            println!("  {:<14}          {reason}", "");
        }
    }
    for step in steps.iter().filter(|step| ended.iter().all(|(other, ..)| other.name != step.name)) {
        println!("  {:<14}{:>8}  {}", step.name, "-", terminal::warning("not run"));
    }
    println!("  {:<14}{}", "total", terminal::seconds(total));
}

fn report_failures(ended: &[FinishedStep]) -> Result<()> {
    let failures: Vec<_> =
        ended.iter().filter_map(|(step, result, _)| Some((step, result.as_ref().err()?))).collect();
    if failures.is_empty() {
        let complete = ended.iter().all(|(_, result, _)| matches!(result, Ok(StepOutcome::Passed)));
        let words = if complete { "everything passed" } else { "everything that can be checked here passed" };
        println!("\n{}", terminal::success(words));
        return Ok(());
    }
    let mut message = String::new();
    for (step, error) in &failures {
        message.push_str(&format!("\n{}: {error:#}", step.name));
    }
    let again: Vec<_> = failures.iter().map(|(step, _)| format!("--only {}", step.name)).collect();
    bail!(
        "{} failed{message}\nhelp: run it again with `cargo xtask test {}`",
        count(failures.len()),
        again.join(" ")
    );
}

fn count(steps: usize) -> String {
    if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") }
}

fn run_cargo(workspace: &CargoWorkspace, arguments: &[&str]) -> Result<StepOutcome> {
    run_to_end(workspace.cargo_command().args(arguments)).map(|()| StepOutcome::Passed)
}

fn run_linting(workspace: &CargoWorkspace, arguments: &[&str]) -> Result<StepOutcome> {
    run_to_end(workspace.linting_command().args(arguments)).map(|()| StepOutcome::Passed)
}

/// The arguments of nextest that all runs of tests have in common. `.config/nextest.toml` says which tests need more
/// than one of the threads.
pub(crate) fn runner_arguments() -> [String; 4] {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    ["--profile".to_owned(), "ci".to_owned(), "--test-threads".to_owned(), (cores * 8).to_string()]
}

/// Installs missing parts of the toolchain at once, and everything else beside the steps that compile, because
/// installing mostly waits for the network and the disk.
fn set_up(workspace: &CargoWorkspace) -> Result<StepOutcome> {
    setup::install_toolchain()?;
    if setup::is_complete(workspace) {
        println!("nothing is missing");
        return Ok(StepOutcome::Passed);
    }
    let mut command = Command::new(std::env::current_exe()?);
    BackgroundCommand::start(command.arg("setup")).map(StepOutcome::Continues)
}

fn rustdoc(workspace: &CargoWorkspace) -> Result<StepOutcome> {
    let mut command = workspace.linting_command();
    command.args(["doc", "--no-deps", "--workspace", "--all-features", "--locked", "--lib", "--bins"]);
    run_to_end(command.env("RUSTDOCFLAGS", "--deny warnings")).map(|()| StepOutcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_choice_every_step_runs_in_order() {
        let names: Vec<_> = select(&[]).unwrap().iter().map(|step| step.name).collect();
        assert_eq!(names.first(), Some(&"setup"));
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_names_of_the_known() {
        let error = select(&["clipy".to_owned()]).err().unwrap().to_string();
        assert!(
            error.starts_with("no such step `clipy`\nhelp: the steps are setup, format, tidy, build"),
            "{error}"
        );
    }

    #[test]
    fn one_failure_fails_the_whole_and_is_told_with_its_reason() {
        let steps = select(&["format".to_owned(), "tidy".to_owned()]).unwrap();
        let results = [Ok(StepOutcome::Passed), Err(anyhow::anyhow!("2 findings"))];
        let ended: Vec<_> =
            steps.into_iter().zip(results).map(|(step, result)| (step, result, Duration::ZERO)).collect();
        let error = report_failures(&ended).unwrap_err().to_string();
        assert_eq!(
            error,
            "1 step failed\ntidy: 2 findings\nhelp: run it again with `cargo xtask test --only tidy`"
        );
    }
}
