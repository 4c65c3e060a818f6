//! `shell`: a command line in the workspace, in a sandbox (C7.3b, C7.6).
//!
//! What the gate has planned is carried out from the plan, argument by argument; no shell reads the line again. Only a
//! line beyond the plan's grammar, which the gate lets pass in `full` alone, is handed to a real shell, in the same
//! sandbox.

mod carry_out;
mod collect;
mod steering;
mod streams;
mod told;
mod trial;

use collieclaw_gate::{Autonomy, Call, Risk};
use schemars::JsonSchema;
use serde::Deserialize;

use ward_process::sandbox::Network;

use super::room::{Ground, Reach, Room};
use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::runtime::Granted;
pub(crate) use carry_out::{Carrier, Ran, next_id};
use steering::Steering;
pub(crate) use told::{LineEnd, code, level};
pub use trial::Trial;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Shell {
    /// The command line. It runs in the workspace: programs, pipes, `&&`, `||`, `;`, redirections and patterns.
    command: String,
}

impl BuiltIn for Shell {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = "Runs a command line in the workspace, without network. Variables, substitutions and loops are mostly refused: \
     write plain commands.";
}

impl Prepared for Shell {
    fn call(&self) -> Call<'_> {
        Call::Shell(&self.command)
    }

    fn invoke(self: Box<Self>, granted: Granted, context: &Context<'_>) -> ToolResult {
        run(&self.command, &granted, context)
    }
}

/// Runs a line that was granted.
fn run(line: &str, granted: &Granted, context: &Context<'_>) -> ToolResult {
    let carrier = fit(granted.risk(), context)
        .and_then(|()| Room::new(&reach(context), context.policy))
        .and_then(|room| Carrier::new(context, room, context.bounds.shell_timeout));
    let carrier = match carrier {
        Ok(carrier) => carrier,
        Err(why) => return ToolResult::failed(format!("nothing was run: {why}")),
    };
    // Where a command can't write, whatever comes is the operator's own.
    let writes = context.policy.autonomy != Autonomy::ReadOnly;
    let steering = writes.then(|| Steering::look(context.workspace.path()));
    let mut result = match granted.plan() {
        Some(plan) => carrier.carry_out(plan, granted.risk()),
        None => carrier.hand_over(line),
    };
    for told in steering.into_iter().flat_map(Steering::set_aside) {
        result.output.push_str(&format!("\n{told}\n"));
    }
    result
}

/// The workspace as far as the level allows, and no network.
fn reach(context: &Context<'_>) -> Reach {
    let workspace = match context.policy.autonomy {
        Autonomy::ReadOnly => Ground::Read,
        Autonomy::Supervised => Ground::Write,
        // A program of its own making: only here may one be named.
        Autonomy::Full => Ground::Run,
    };
    let time = context.bounds.shell_timeout;
    Reach { workspace, network: Network::Off, own: None, programs: Vec::new(), time }
}

/// Whether a line may run here and now. The error says why not.
fn fit(risk: Risk, context: &Context<'_>) -> Result<(), String> {
    let workspace = context.workspace;
    if !workspace.is_in_place() {
        return Err(format!("another folder is where the workspace was, {}", workspace.path().display()));
    }
    // What is not there can't be closed. Of what is not high the gate knows where it writes.
    let missing = |path: &&std::path::PathBuf| {
        let not_there =
            path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        path.starts_with(workspace.path()) && not_there
    };
    match context.policy.forbidden_paths.iter().find(missing) {
        Some(path) if risk == Risk::High => Err(format!(
            "{} is forbidden but not there, so that it can't be closed to a line of this risk; make it, or an empty \
             folder of its name",
            path.display()
        )),
        _ => Ok(()),
    }
}
