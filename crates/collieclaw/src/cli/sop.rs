//! `sop`: procedures that you have written down, and the times they were carried out.

mod found;
mod over;
mod told;

use clap::Subcommand;
use collieclaw::cancel::Cancel;
use collieclaw::channels::visible;
use collieclaw::runtime::{Attended, Fate, Runtime};
use collieclaw::sop::{
    Action, End, Engine, Halt, OnInterrupted, Rehearsed, Run, Runs, Sop as Procedure, State, Step,
};
use collieclaw::tools::Tool;
use collieclaw_gate::Decision;
use serde_json::{Value, json};
use ward_diag::{Source, Style};

use super::environment::Environment;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::open::{self, Setup};
use super::screen::Screen;
use super::tool;
use found::{Found, Unfit};

#[derive(Subcommand)]
pub(crate) enum Sop {
    /// The procedures there are.
    #[command(after_help = "Examples:\n  collieclaw sop list\n  collieclaw sop list --output json")]
    List,
    /// Finds every fault of one, or of all.
    #[command(after_help = "Examples:\n  collieclaw sop validate\n  collieclaw sop validate weekly-notes")]
    Validate {
        /// Which.
        name: Option<String>,
    },
    /// Carries one out.
    #[command(
        after_help = "Examples:\n  collieclaw sop run weekly-notes --dry-run\n  collieclaw sop run weekly-notes\n\nExit codes beside the usual ones: 5 also when it waits for an approval or stops because nobody is there to ask."
    )]
    Run {
        /// Which.
        name: String,
        /// Shows what the gate says of each step, and runs nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Where runs stand: all of them, or one with its steps.
    #[command(after_help = "Examples:\n  collieclaw sop status\n  collieclaw sop status run-0123")]
    Status {
        /// Which; the beginning of its name is enough.
        run: Option<String>,
    },
    /// Says yes to the step that a run waits at, and goes on.
    #[command(
        after_help = "Examples:\n  collieclaw sop approve run-0123\n  collieclaw sop approve run-0123 --step look"
    )]
    Approve {
        /// Which run.
        run: String,
        /// Only if it waits at this step.
        #[arg(long, value_name = "ID")]
        step: Option<String>,
    },
    /// Goes on with a run that was stopped or interrupted.
    #[command(
        after_help = "Examples:\n  collieclaw sop resume run-0123\n  collieclaw sop resume run-0123 --rerun-interrupted"
    )]
    Resume {
        /// Which run.
        run: String,
        /// Runs a step once more of which nobody knows how far it came. Look first.
        #[arg(long)]
        rerun_interrupted: bool,
        /// Takes such a step as done; it gives nothing to later ones. Look first.
        #[arg(long, conflicts_with = "rerun_interrupted")]
        skip_interrupted: bool,
    },
    /// Ends a run for good.
    #[command(after_help = "Example:\n  collieclaw sop cancel run-0123")]
    Cancel {
        /// Which run.
        run: String,
    },
    /// Removes a run that is over, with all that its steps gave. Receipts stay.
    #[command(after_help = "Example:\n  collieclaw sop remove run-0123")]
    Remove {
        /// Which run.
        run: String,
    },
}

pub(crate) fn run(sop: &Sop, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let setup = open::setup(environment)?;
    let runs = Runs::new(environment.home.sop_runs());
    match sop {
        Sop::List => told::list(&found::all(&tools(&setup, environment)?, environment)?, environment, screen),
        Sop::Validate { name } => {
            validate(name.as_deref(), &tools(&setup, environment)?, environment, screen)
        }
        Sop::Run { name, dry_run: true } => {
            let found = found::one(name, environment)?;
            let runtime = open::runtime(&setup, environment)?;
            rehearse(&procedure(&found, &runtime)?, &runtime, screen)
        }
        Sop::Run { name, dry_run: false } => {
            let found = found::one(name, environment)?;
            let runtime = open::runtime(&setup, environment)?;
            let procedure = procedure(&found, &runtime)?;
            let run = runs.begin(name, &found.text)?;
            go(run, &procedure, OnInterrupted::Ask, &runtime, screen)
        }
        Sop::Status { run: None } => told::runs(&runs, &tools(&setup, environment)?, environment, screen),
        Sop::Status { run: Some(run) } => {
            told::run(&runs, run, &tools(&setup, environment)?, environment, screen)
        }
        Sop::Approve { run, step } => {
            let runtime = open::runtime(&setup, environment)?;
            let mut run = runs.hold(run)?;
            let procedure = procedure(&copy(&run), &runtime)?;
            let engine = Engine { runtime: &runtime, sop: &procedure };
            approve(&mut run, step.as_deref(), &engine)?;
            go(run, &procedure, OnInterrupted::Ask, &runtime, screen)
        }
        Sop::Resume { run, rerun_interrupted, skip_interrupted } => {
            let runtime = open::runtime(&setup, environment)?;
            let run = runs.hold(run)?;
            let procedure = procedure(&copy(&run), &runtime)?;
            if let state @ (State::Failed { .. } | State::Cancelled) = run.state(&procedure) {
                return Err(over::over(&run, &state));
            }
            let interrupted = match (rerun_interrupted, skip_interrupted) {
                (true, _) => OnInterrupted::Rerun,
                (false, true) => OnInterrupted::Skip,
                (false, false) => OnInterrupted::Ask,
            };
            go(run, &procedure, interrupted, &runtime, screen)
        }
        Sop::Cancel { run } => over::cancel(&runs, run, &open::door(&setup, environment)?, screen),
        Sop::Remove { run } => over::remove(&runs, run, &tools(&setup, environment)?, screen),
    }
}

/// Every tool that a step can name.
fn tools(setup: &Setup, environment: &Environment) -> Result<Vec<Box<dyn Tool>>, Failure> {
    Ok(open::rules(setup, &open::workspace(&setup.config)?, environment)?.tools)
}

/// What a run was begun with, whatever has become of the file.
fn copy(run: &Run) -> Found {
    let header = &run.header;
    Found {
        name: header.sop.clone(),
        shown: format!("{} (as it was begun)", header.run),
        text: header.text.clone(),
    }
}

fn procedure(found: &Found, runtime: &Runtime) -> Result<Procedure, Failure> {
    let source = Source::new(found.shown.clone(), &found.text);
    collieclaw::sop::read(source, &found.name, &runtime.door.rules.tools)
        .map_err(|report| Failure::Sop { report: Box::new(report) })
}

fn validate(
    name: Option<&str>,
    tools: &[Box<dyn Tool>],
    environment: &Environment,
    screen: &Screen,
) -> Result<(), Failure> {
    let all = match name {
        Some(name) => vec![found::read(found::one(name, environment)?, tools)],
        None => found::all(tools, environment)?,
    };
    told::list(&all, environment, screen)?;
    let mut faulty = 0;
    for (name, unfit) in all.iter().filter_map(|(name, read)| Some((name, read.as_ref().err()?))) {
        faulty += 1;
        screen.remark(&match unfit {
            Unfit::Faults(report) => report.render(Style::Plain),
            Unfit::Unread(why) => format!("{}: {}", visible(name), visible(why)),
        });
    }
    if faulty == 0 { Ok(()) } else { Err(Failure::FaultySops { faulty }) }
}

fn rehearse(sop: &Procedure, runtime: &Runtime, screen: &Screen) -> Result<(), Failure> {
    let rehearsed = Engine { runtime, sop }.rehearse();
    let denied = rehearsed.iter().any(|(_, said)| match said {
        Rehearsed::Judged(verdict) => verdict.decision == Decision::Deny,
        Rehearsed::Bad(_) => true,
        Rehearsed::Model | Rehearsed::Waits => false,
    });
    told::rehearsal(&rehearsed, screen);
    if denied { Err(Failure::Call(Fate::Denied)) } else { Ok(()) }
}

/// A yes is to the step that was seen.
fn approve(run: &mut Run, expected: Option<&str>, engine: &Engine<'_>) -> Result<(), Failure> {
    let wrong =
        |what: String| Failure::Wrong { what, cure: "`collieclaw sop status RUN` shows where it stands" };
    let State::Waiting { step, prompt } = run.state(engine.sop) else {
        return Err(wrong(format!("{} does not wait for an approval", run.header.run)));
    };
    if expected.is_some_and(|expected| expected != step) {
        return Err(wrong(format!("{} waits at the step `{step}`", run.header.run)));
    }
    Ok(engine.approve(run, &step, &prompt)?)
}

fn go(
    mut run: Run,
    sop: &Procedure,
    interrupted: OnInterrupted,
    runtime: &Runtime,
    screen: &Screen,
) -> Result<(), Failure> {
    let cancel = Cancel::new().map_err(Failure::io("set up cancelling"))?;
    let interrupt = Interrupt::listen().map_err(Failure::io("listen for Ctrl-C"))?;
    interrupt.set(Some(cancel.clone()));
    screen.remark(&format!("{}: {}", run.header.run, visible(&sop.description)));
    let mut operator = tool::operator(&cancel);
    let mut attended = Attended { operator: &mut *operator, cancel: &cancel };
    let halt = Engine { runtime, sop }.go(&mut run, interrupted, &mut attended);
    drop(operator);
    let halt = halt?;
    told::halt(&run, sop, &halt, screen)?;
    ended(&run, sop, halt)
}

/// The exit code: a run that was denied something never ends well, also where the next step was next.
fn ended(run: &Run, sop: &Procedure, halt: Halt) -> Result<(), Failure> {
    let name = run.header.run.clone();
    let end = |step: &str| run.ended(step).map(|ended| ended.end);
    match halt {
        Halt::Waiting { step, .. } => Err(Failure::Waits { run: name, step }),
        Halt::Interrupted { step, .. } => Err(Failure::Interrupted { run: name, step }),
        Halt::Stopped { step, fate: Fate::NobodyToAsk } => Err(Failure::NobodyAtStep { run: name, step }),
        Halt::Stopped { fate, .. } => Err(Failure::Call(fate)),
        Halt::Over(State::Failed { step }) => Err(Failure::Call(match end(&step) {
            Some(End::Denied) => Fate::Denied,
            _ => Fate::Failed,
        })),
        Halt::Over(state @ State::Cancelled) => Err(over::over(run, &state)),
        Halt::Over(_) if sop.steps.iter().any(|step| end(&step.id) == Some(End::Denied)) => {
            Err(Failure::Call(Fate::Denied))
        }
        Halt::Over(_) => Ok(()),
    }
}

fn kind(step: &Step) -> String {
    match &step.action {
        Action::Tool { tool, .. } => tool.clone(),
        Action::Agent { .. } => "agent".to_owned(),
        Action::Approval { .. } => "approval".to_owned(),
    }
}

/// The steps of a run, for programs.
fn steps(run: &Run, sop: &Procedure) -> Vec<Value> {
    let step = |step: &Step| {
        let mut value = json!({ "id": step.id, "kind": kind(step), "approved": run.is_approved(&step.id),
            "skipped": run.is_skipped(&step.id) });
        if let (Some(ended), Value::Object(members)) = (run.ended(&step.id), &mut value) {
            members.insert("end".to_owned(), json!(ended.end));
            members.insert("output".to_owned(), json!(ended.output));
            members.insert("receipt_id".to_owned(), json!(ended.receipt_id));
            members.insert("at".to_owned(), json!(ended.at));
        }
        value
    };
    sop.steps.iter().map(step).collect()
}
