//! Ends runs, and removes those that have ended.

use collieclaw::runtime::Door;
use collieclaw::sop::{Run, Runs, State};
use collieclaw::tools::Tool;
use serde_json::json;

use super::{copy, found};
use crate::cli::failure::Failure;
use crate::cli::screen::Screen;

pub(super) fn cancel(runs: &Runs, name: &str, door: &Door, screen: &Screen) -> Result<(), Failure> {
    let mut run = runs.hold(name)?;
    if let Some(state) = end(&run, &door.rules.tools) {
        return Err(over(&run, &state));
    }
    run.cancel(door)?;
    let name = &run.header.run;
    screen.answer(&json!({ "run": name, "state": "cancelled" }), || format!("{name} is over."));
    Ok(())
}

pub(super) fn remove(
    runs: &Runs,
    name: &str,
    tools: &[Box<dyn Tool>],
    screen: &Screen,
) -> Result<(), Failure> {
    let run = runs.hold(name)?;
    let name = &run.header.run;
    if end(&run, tools).is_none() {
        return Err(Failure::Wrong {
            what: format!("{name} is not over"),
            cure: "`collieclaw sop cancel RUN` ends it",
        });
    }
    runs.remove(&run)?;
    screen.answer(&json!({ "run": name, "removed": true }), || format!("removed {name}"));
    Ok(())
}

/// What can't go on from here.
pub(super) fn over(run: &Run, state: &State) -> Failure {
    let name = &run.header.run;
    let what = match state {
        State::Failed { step } => format!("{name} is over: it failed at the step `{step}`"),
        State::Cancelled => format!("{name} is over: it was cancelled"),
        _ => format!("{name} is over"),
    };
    Failure::Wrong {
        what,
        cure: "begin a new run; `collieclaw sop status RUN` shows what became of this one",
    }
}

/// How it ended, if it has. One whose procedure no longer fits the tools there are can be cancelled, too.
fn end(run: &Run, tools: &[Box<dyn Tool>]) -> Option<State> {
    if run.is_cancelled() {
        return Some(State::Cancelled);
    }
    let (_, sop) = found::read(copy(run), tools);
    sop.ok().map(|sop| run.state(&sop)).filter(State::is_over)
}
