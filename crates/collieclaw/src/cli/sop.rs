//! `sop`: validates and runs written procedures, and manages their runs.

mod cleanup;
mod files;
mod report;

use clap::Subcommand;
use collieclaw_agent::runtime::{AgentRuntime, TurnControl};
use collieclaw_agent::sop::{
    DryRunResult, OnInterrupted, Sop, SopEngine, SopRun, SopRunHalt, SopRunState, SopRunStore, SopStep,
    StepAction, StepStatus,
};
use collieclaw_agent::tools::Tool;
use collieclaw_gate::GateDecision;
use collieclaw_providers::cancel::CancelFlag;
use serde_json::{Value, json};
use ward_diag::{ReportStyle, SourceText};
use ward_terminal::escape_line;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::interrupt::InterruptHandler;
use super::output::OutputPrinter;
use super::tool;
use super::wiring::{self, LoadedSetup};
use files::{SopFile, SopLoadError};

#[derive(Subcommand)]
pub(crate) enum SopCommand {
    /// List procedures.
    #[command(after_help = "Examples:\n  collieclaw sop list\n  collieclaw sop list --output json")]
    List,
    /// Check one procedure or all of them, and report every error.
    #[command(after_help = "Examples:\n  collieclaw sop validate\n  collieclaw sop validate weekly-notes")]
    Validate {
        /// Name of the procedure (default: all)
        name: Option<String>,
    },
    /// Run a procedure.
    #[command(
        after_help = "Examples:\n  collieclaw sop run weekly-notes --dry-run\n  collieclaw sop run weekly-notes\n\nThe exit code is 5 if the run waits for an approval, or if a call needs one and no operator is available."
    )]
    Run {
        /// Name of the procedure
        name: String,
        /// Show what the gate decides about each step, and run nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Show the state of all runs, or the steps of one run.
    #[command(after_help = "Examples:\n  collieclaw sop status\n  collieclaw sop status run-0123")]
    Status {
        /// Id of the run; a unique prefix is enough
        run: Option<String>,
    },
    /// Approve the step that a run waits at, and continue.
    #[command(
        after_help = "Examples:\n  collieclaw sop approve run-0123\n  collieclaw sop approve run-0123 --step look"
    )]
    Approve {
        /// Id of the run; a unique prefix is enough
        run: String,
        /// Approve only if the run waits at this step
        #[arg(long, value_name = "ID")]
        step: Option<String>,
    },
    /// Resume a run that was stopped or interrupted.
    #[command(
        after_help = "Examples:\n  collieclaw sop resume run-0123\n  collieclaw sop resume run-0123 --rerun-interrupted"
    )]
    Resume {
        /// Id of the run; a unique prefix is enough
        run: String,
        /// Run an interrupted step again. Check first how far it got
        #[arg(long)]
        rerun_interrupted: bool,
        /// Treat an interrupted step as done, without output for later steps. Check first how far it got
        #[arg(long, conflicts_with = "rerun_interrupted")]
        skip_interrupted: bool,
    },
    /// Cancel a run for good.
    #[command(after_help = "Example:\n  collieclaw sop cancel run-0123")]
    Cancel {
        /// Id of the run; a unique prefix is enough
        run: String,
    },
    /// Remove a finished run and the output of its steps. Receipts stay.
    #[command(after_help = "Example:\n  collieclaw sop remove run-0123")]
    Remove {
        /// Id of the run; a unique prefix is enough
        run: String,
    },
}

pub(crate) fn run(
    sop: &SopCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let setup = wiring::load_setup(environment)?;
    let runs = SopRunStore::new(environment.home.sop_runs());
    match sop {
        SopCommand::List => report::print_sops(
            &files::load_all(&available_tools(&setup, environment)?, environment)?,
            environment,
            screen,
        ),
        SopCommand::Validate { name } => {
            validate(name.as_deref(), &available_tools(&setup, environment)?, environment, screen)
        }
        SopCommand::Run { name, dry_run: true } => {
            let found = files::load(name, environment)?;
            let runtime = wiring::open_runtime(&setup, environment)?;
            show_dry_run(&parse_procedure(&found, &runtime)?, &runtime, screen)
        }
        SopCommand::Run { name, dry_run: false } => {
            let found = files::load(name, environment)?;
            let runtime = wiring::open_runtime(&setup, environment)?;
            let procedure = parse_procedure(&found, &runtime)?;
            let run = runs.begin(name, &found.text)?;
            run_procedure(run, &procedure, OnInterrupted::Ask, &runtime, screen)
        }
        SopCommand::Status { run: None } => {
            report::print_runs(&runs, &available_tools(&setup, environment)?, environment, screen)
        }
        SopCommand::Status { run: Some(run) } => {
            report::print_run(&runs, run, &available_tools(&setup, environment)?, environment, screen)
        }
        SopCommand::Approve { run, step } => {
            let runtime = wiring::open_runtime(&setup, environment)?;
            let mut run = runs.open_locked(run)?;
            let procedure = parse_procedure(&started_copy(&run), &runtime)?;
            let engine = SopEngine { runtime: &runtime, sop: &procedure };
            approve(&mut run, step.as_deref(), &engine)?;
            run_procedure(run, &procedure, OnInterrupted::Ask, &runtime, screen)
        }
        SopCommand::Resume { run, rerun_interrupted, skip_interrupted } => {
            let runtime = wiring::open_runtime(&setup, environment)?;
            let run = runs.open_locked(run)?;
            let procedure = parse_procedure(&started_copy(&run), &runtime)?;
            if let state @ (SopRunState::Failed { .. } | SopRunState::Cancelled) = run.state(&procedure) {
                return Err(cleanup::already_ended_error(&run, &state));
            }
            let interrupted = match (rerun_interrupted, skip_interrupted) {
                (true, _) => OnInterrupted::Rerun,
                (false, true) => OnInterrupted::Skip,
                (false, false) => OnInterrupted::Ask,
            };
            run_procedure(run, &procedure, interrupted, &runtime, screen)
        }
        SopCommand::Cancel { run } => {
            cleanup::cancel(&runs, run, &wiring::open_tool_gateway(&setup, environment)?, screen)
        }
        SopCommand::Remove { run } => {
            cleanup::remove(&runs, run, &available_tools(&setup, environment)?, screen)
        }
    }
}

/// Returns every tool that a step can name.
fn available_tools(
    setup: &LoadedSetup,
    environment: &CliEnvironment,
) -> Result<Vec<Box<dyn Tool>>, CommandFailure> {
    Ok(wiring::build_rules(setup, &wiring::open_workspace(&setup.config)?, environment)?.tools)
}

/// Returns the procedure as it was when the run started, even if the file has changed since.
fn started_copy(run: &SopRun) -> SopFile {
    let header = &run.header;
    SopFile {
        name: header.sop.clone(),
        display_name: format!("{} (as it was when the run started)", header.run),
        text: header.text.clone(),
    }
}

fn parse_procedure(found: &SopFile, runtime: &AgentRuntime) -> Result<Sop, CommandFailure> {
    let source = SourceText::new(found.display_name.clone(), &found.text);
    collieclaw_agent::sop::read_sop(source, &found.name, &runtime.tool_gateway.rules.tools)
        .map_err(|report| CommandFailure::Sop { report: Box::new(report) })
}

fn validate(
    name: Option<&str>,
    tools: &[Box<dyn Tool>],
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let all = match name {
        Some(name) => vec![files::parse(files::load(name, environment)?, tools)],
        None => files::load_all(tools, environment)?,
    };
    report::print_sops(&all, environment, screen)?;
    let mut faulty = 0;
    for (name, unfit) in all.iter().filter_map(|(name, read)| Some((name, read.as_ref().err()?))) {
        faulty += 1;
        screen.print_remark(&match unfit {
            SopLoadError::Faults(report) => report.render(ReportStyle::Plain),
            SopLoadError::Unreadable(why) => format!("{}: {}", escape_line(name), escape_line(why)),
        });
    }
    if faulty == 0 { Ok(()) } else { Err(CommandFailure::InvalidSops { faulty }) }
}

fn show_dry_run(sop: &Sop, runtime: &AgentRuntime, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let results = SopEngine { runtime, sop }.dry_run();
    let denied = results.iter().any(|(_, said)| match said {
        DryRunResult::Judged(verdict) => verdict.decision == GateDecision::Deny,
        DryRunResult::InvalidArguments(_) => true,
        DryRunResult::AsksModel | DryRunResult::AwaitsApproval => false,
    });
    report::print_dry_run(&results, screen);
    if denied { Err(CommandFailure::CallDenied) } else { Ok(()) }
}

/// Checks that the run waits at the step that the operator approves.
fn approve(run: &mut SopRun, expected: Option<&str>, engine: &SopEngine<'_>) -> Result<(), CommandFailure> {
    let wrong = |what: String| CommandFailure::InvalidInput {
        what,
        cure: "run `collieclaw sop status RUN` to see its state",
    };
    let SopRunState::Waiting { step, prompt } = run.state(engine.sop) else {
        return Err(wrong(format!("{} is not waiting for an approval", run.header.run)));
    };
    if expected.is_some_and(|expected| expected != step) {
        return Err(wrong(format!("{} is waiting at step `{step}`", run.header.run)));
    }
    Ok(engine.approve(run, &step, &prompt)?)
}

fn run_procedure(
    mut run: SopRun,
    sop: &Sop,
    interrupted: OnInterrupted,
    runtime: &AgentRuntime,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let cancel = CancelFlag::new().map_err(CommandFailure::io("set up cancelling"))?;
    let interrupt = InterruptHandler::install().map_err(CommandFailure::io("listen for Ctrl-C"))?;
    interrupt.set_turn(Some(cancel.clone()));
    screen.print_remark(&format!("{}: {}", run.header.run, escape_line(&sop.description)));
    let mut operator = tool::terminal_operator(&cancel);
    let mut control = TurnControl { operator: &mut *operator, cancel: &cancel };
    let halt = SopEngine { runtime, sop }.run_until_halt(&mut run, interrupted, &mut control);
    drop(operator);
    let halt = halt?;
    report::print_halt(&run, sop, &halt, screen)?;
    check_outcome(&run, sop, halt)
}

/// Maps the outcome of a run to the exit code. A run in which a call was denied fails, even if later steps succeeded.
fn check_outcome(run: &SopRun, sop: &Sop, halt: SopRunHalt) -> Result<(), CommandFailure> {
    let name = run.header.run.clone();
    let end = |step: &str| run.ended_step(step).map(|ended| ended.end);
    match halt {
        SopRunHalt::Waiting { step, .. } => Err(CommandFailure::WaitingForApproval { run: name, step }),
        SopRunHalt::Interrupted { step, .. } => Err(CommandFailure::Interrupted { run: name, step }),
        SopRunHalt::NoOperator { step } => Err(CommandFailure::NoOperatorAtStep { run: name, step }),
        SopRunHalt::Stopped { by, .. } => Err(by.into()),
        SopRunHalt::Over(SopRunState::Failed { step }) => Err(match end(&step) {
            Some(StepStatus::Denied) => CommandFailure::CallDenied,
            Some(StepStatus::Done | StepStatus::Failed) | None => CommandFailure::CallFailed,
        }),
        SopRunHalt::Over(state @ SopRunState::Cancelled) => Err(cleanup::already_ended_error(run, &state)),
        SopRunHalt::Over(_) if sop.steps.iter().any(|step| end(&step.id) == Some(StepStatus::Denied)) => {
            Err(CommandFailure::CallDenied)
        }
        SopRunHalt::Over(_) => Ok(()),
    }
}

fn step_kind(step: &SopStep) -> String {
    match &step.action {
        StepAction::Tool { tool, .. } => tool.clone(),
        StepAction::Agent { .. } => "agent".to_owned(),
        StepAction::Approval { .. } => "approval".to_owned(),
    }
}

/// Returns the steps of a run as JSON.
fn steps_json(run: &SopRun, sop: &Sop) -> Vec<Value> {
    let step = |step: &SopStep| {
        let mut value = json!({ "id": step.id, "kind": step_kind(step), "approved": run.is_approved(&step.id),
            "skipped": run.is_skipped(&step.id) });
        if let (Some(ended), Value::Object(members)) = (run.ended_step(&step.id), &mut value) {
            members.insert("end".to_owned(), json!(ended.end));
            members.insert("output".to_owned(), json!(ended.output));
            members.insert("receipt_id".to_owned(), json!(ended.receipt_id));
            members.insert("at".to_owned(), json!(ended.at));
        }
        value
    };
    sop.steps.iter().map(step).collect()
}
