//! `cargo xtask test`: every check there is, in order, each with its name and its time.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::workspace::{Workspace, run_to_end};
use crate::{documented, screen, setup, tidy, units, unprivileged};

/// Which steps to run.
#[derive(Args)]
pub(crate) struct Selection {
    /// Run only this step; may be given several times.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and stop.
    #[arg(long)]
    list: bool,
}

struct Step {
    name: &'static str,
    purpose: &'static str,
    failure: Failure,
    run: fn(&Workspace) -> Result<Outcome>,
}

/// What the failure of a step means for those after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// A quick check whose cure is quick too: nothing slow starts before it passes.
    StopsAll,
    /// The others still run, so that one round shows everything.
    IsReported,
}

/// How a step that did not fail ended.
pub(crate) enum Outcome {
    /// All of it was checked.
    Passed,
    /// It passed, but a part could not be checked here, for the reason given.
    PassedInPart(String),
}

const STEPS: &[Step] = &[
    Step {
        name: "setup",
        purpose: "what the tests need is installed",
        failure: Failure::StopsAll,
        run: set_up,
    },
    Step {
        name: "format",
        purpose: "rustfmt would change nothing",
        failure: Failure::StopsAll,
        run: |workspace| cargo(workspace, &["fmt", "--all", "--check"]),
    },
    Step {
        name: "tidy",
        purpose: "arrows, inheritance, orphans, links",
        failure: Failure::StopsAll,
        run: |workspace| tidy::run(workspace).map(|()| Outcome::Passed),
    },
    Step {
        name: "clippy",
        purpose: "no warning in any target, with and without the compositor module",
        failure: Failure::IsReported,
        run: |workspace| {
            const LINT: &[&str] = &["clippy", "--all-targets", "--locked"];
            const DENY: &[&str] = &["--", "--deny", "warnings"];
            cargo(workspace, &[LINT, &["--workspace", "--all-features"], DENY].concat())?;
            cargo(workspace, &[LINT, &["-p", "shepherd-host-linux", "--no-default-features"], DENY].concat())
        },
    },
    Step {
        name: "tests",
        purpose: "unit, property, integration and end-to-end tests",
        failure: Failure::IsReported,
        run: |workspace| cargo(workspace, &["nextest", "run", "--workspace", "--locked", "--profile", "ci"]),
    },
    Step {
        name: "unprivileged",
        purpose: "the same tests as an ordinary user",
        failure: Failure::IsReported,
        run: unprivileged::run,
    },
    Step {
        name: "units",
        purpose: "all units under a real systemd",
        failure: Failure::IsReported,
        run: units::run,
    },
    Step {
        name: "doctests",
        purpose: "examples in the documentation of the code",
        failure: Failure::IsReported,
        run: |workspace| cargo(workspace, &["test", "--doc", "--workspace", "--locked", "--quiet"]),
    },
    Step {
        name: "rustdoc",
        purpose: "the documentation builds without a warning",
        failure: Failure::IsReported,
        run: rustdoc,
    },
    Step {
        name: "documented",
        purpose: "commands in the README",
        failure: Failure::IsReported,
        run: |workspace| documented::run(workspace).map(|()| Outcome::Passed),
    },
    Step {
        name: "dependencies",
        purpose: "bans, licences, sources, advisories",
        failure: Failure::IsReported,
        run: dependencies,
    },
];

/// Runs the selected steps; the last words on the screen say what failed.
pub(crate) fn run(workspace: &Workspace, selection: &Selection) -> Result<()> {
    if selection.list {
        for step in STEPS {
            println!("{:<14}{}", step.name, step.purpose);
        }
        return Ok(());
    }
    let steps = select(&selection.only)?;
    let begin = Instant::now();
    let mut ended = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let title = format!("[{}/{}] {}: {}", index + 1, steps.len(), step.name, step.purpose);
        println!("\n{}", screen::strong(&title));
        let start = Instant::now();
        let result = (step.run)(workspace);
        let took = start.elapsed();
        println!("{}: {} in {}", step.name, verdict(&result), screen::seconds(took).trim_start());
        let failed = result.is_err();
        ended.push((*step, result, took));
        if failed && step.failure == Failure::StopsAll {
            break;
        }
    }
    summarise(&steps, &ended, begin.elapsed());
    conclude(&ended)
}

fn select(only: &[String]) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != *name)) {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("no step is called `{unknown}`\nhelp: the steps are {}", names.join(", "));
    }
    Ok(STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name)).collect())
}

type Ended = (&'static Step, Result<Outcome>, Duration);

fn verdict(result: &Result<Outcome>) -> String {
    match result {
        Ok(Outcome::Passed) => screen::good("passed"),
        Ok(Outcome::PassedInPart(_)) => screen::remark("passed in part"),
        Err(_) => screen::bad("FAILED"),
    }
}

fn summarise(steps: &[&'static Step], ended: &[Ended], total: Duration) {
    println!("\n{}", screen::strong("Summary"));
    for (step, result, took) in ended {
        println!("  {:<14}{}  {}", step.name, screen::seconds(*took), verdict(result));
        if let Ok(Outcome::PassedInPart(reason)) = result {
            println!("  {:<14}          {reason}", "");
        }
    }
    for step in steps.iter().skip(ended.len()) {
        println!("  {:<14}{:>8}  {}", step.name, "-", screen::remark("not run"));
    }
    println!("  {:<14}{}", "total", screen::seconds(total));
}

fn conclude(ended: &[Ended]) -> Result<()> {
    let failures: Vec<_> =
        ended.iter().filter_map(|(step, result, _)| Some((step, result.as_ref().err()?))).collect();
    if failures.is_empty() {
        let complete = ended.iter().all(|(_, result, _)| matches!(result, Ok(Outcome::Passed)));
        let words = if complete { "everything passed" } else { "everything that can be checked here passed" };
        println!("\n{}", screen::good(words));
        return Ok(());
    }
    let mut message = String::new();
    for (step, error) in &failures {
        message.push_str(&format!("\n{}: {error:#}", step.name));
    }
    let again: Vec<_> = failures.iter().map(|(step, _)| format!("--only {}", step.name)).collect();
    bail!(
        "{} failed{message}\nhelp: again with `cargo xtask test {}`",
        count(failures.len()),
        again.join(" ")
    );
}

fn count(steps: usize) -> String {
    if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") }
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<Outcome> {
    run_to_end(workspace.cargo().args(arguments)).map(|()| Outcome::Passed)
}

fn set_up(_: &Workspace) -> Result<Outcome> {
    setup::run().map(|()| Outcome::Passed)
}

fn rustdoc(workspace: &Workspace) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.args(["doc", "--no-deps", "--workspace", "--locked"]);
    run_to_end(command.env("RUSTDOCFLAGS", "--deny warnings")).map(|()| Outcome::Passed)
}

fn dependencies(workspace: &Workspace) -> Result<Outcome> {
    // The graph of every platform is judged, so the manifests of every platform must be here.
    run_to_end(workspace.cargo().args(["fetch", "--locked", "--quiet"]))?;
    cargo(workspace, &["deny", "--offline", "check", "bans", "licenses", "sources"])?;
    if setup::has_advisory_database() {
        return cargo(workspace, &["deny", "--offline", "check", "advisories"]);
    }
    let reason =
        "advisories were not checked: no advisory database here (`cargo deny fetch db` with a network)";
    Ok(Outcome::PassedInPart(reason.to_owned()))
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
            error.starts_with("no step is called `clipy`\nhelp: the steps are setup, format, tidy, clippy"),
            "{error}"
        );
    }

    #[test]
    fn one_failure_fails_the_whole_and_is_told_with_its_reason() {
        let steps = select(&["format".to_owned(), "tidy".to_owned()]).unwrap();
        let results = [Ok(Outcome::Passed), Err(anyhow::anyhow!("2 findings"))];
        let ended: Vec<_> =
            steps.into_iter().zip(results).map(|(step, result)| (step, result, Duration::ZERO)).collect();
        let error = conclude(&ended).unwrap_err().to_string();
        assert_eq!(error, "1 step failed\ntidy: 2 findings\nhelp: again with `cargo xtask test --only tidy`");
    }
}
