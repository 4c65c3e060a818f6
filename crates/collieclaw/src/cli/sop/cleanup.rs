//! Cancels runs, and removes runs that have ended.

use collieclaw_agent::runtime::ToolGateway;
use collieclaw_agent::sop::{SopRun, SopRunState, SopRunStore};
use collieclaw_agent::tools::Tool;
use serde_json::json;

use super::{files, started_copy};
use crate::cli::failure::CommandFailure;
use crate::cli::output::OutputPrinter;

pub(super) fn cancel(
    runs: &SopRunStore,
    name: &str,
    tool_gateway: &ToolGateway,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let mut run = runs.open_locked(name)?;
    if let Some(state) = final_state(&run, &tool_gateway.rules.tools) {
        return Err(already_ended_error(&run, &state));
    }
    run.cancel(tool_gateway)?;
    let name = &run.header.run;
    screen.print_answer(&json!({ "run": name, "state": "cancelled" }), || format!("{name} is cancelled."));
    Ok(())
}

pub(super) fn remove(
    runs: &SopRunStore,
    name: &str,
    tools: &[Box<dyn Tool>],
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let run = runs.open_locked(name)?;
    let name = &run.header.run;
    if final_state(&run, tools).is_none() {
        return Err(CommandFailure::InvalidInput {
            what: format!("{name} is still unfinished"),
            cure: "cancel it with `collieclaw sop cancel RUN`",
        });
    }
    runs.remove(&run)?;
    screen.print_answer(&json!({ "run": name, "removed": true }), || format!("removed {name}"));
    Ok(())
}

/// Returns the error for a run that can't be continued.
pub(super) fn already_ended_error(run: &SopRun, state: &SopRunState) -> CommandFailure {
    let name = &run.header.run;
    let what = match state {
        SopRunState::Failed { step } => format!("{name} has ended: it failed at step `{step}`"),
        SopRunState::Cancelled => format!("{name} has ended: it was cancelled"),
        _ => format!("{name} has ended"),
    };
    CommandFailure::InvalidInput {
        what,
        cure: "start a new run; `collieclaw sop status RUN` shows the steps of this one",
    }
}

/// Returns how a run ended, if it has. Runs whose procedure no longer fits the installed tools can be cancelled as well.
fn final_state(run: &SopRun, tools: &[Box<dyn Tool>]) -> Option<SopRunState> {
    if run.is_cancelled() {
        return Some(SopRunState::Cancelled);
    }
    let (_, sop) = files::parse(started_copy(run), tools);
    sop.ok().map(|sop| run.state(&sop)).filter(SopRunState::is_over)
}
