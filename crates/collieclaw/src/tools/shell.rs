//! `shell`: a command line in the workspace, in a sandbox (C7.3b, C7.6).
//!
//! What the gate has planned is carried out from the plan, argument by argument; no shell reads the line again. Only a
//! line beyond the plan's grammar, which the gate lets pass in `full` alone, is handed to a real shell, in the same
//! sandbox.

mod carry_out;
mod collect;
mod room;
mod streams;
mod told;

use collieclaw_gate::Call;
use collieclaw_gate::plan::Plan;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::runtime::Granted;
use carry_out::Carrier;
use room::Room;

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
        run(&self.command, granted.plan(), context)
    }
}

/// Runs a line that was granted.
fn run(line: &str, plan: Option<&Plan>, context: &Context<'_>) -> ToolResult {
    let carrier = Room::new(context).and_then(|room| Carrier::new(context, room));
    match carrier {
        Ok(carrier) => match plan {
            Some(plan) => carrier.carry_out(plan),
            None => carrier.hand_over(line),
        },
        Err(why) => ToolResult::failed(format!("nothing was run: {why}")),
    }
}
