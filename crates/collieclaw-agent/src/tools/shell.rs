//! `shell`: a command line in the workspace, in a sandbox (C7.3b, C7.6).
//!
//! What the gate has planned is carried out from the plan, argument by argument; no shell reads the line again. Only a
//! line beyond the plan's grammar, which the gate lets pass in `full` alone, is handed to a real shell, in the same
//! sandbox.

mod executor;
mod output_capture;
mod probe;
mod report;
mod streams;
mod vcs_guard;

use collieclaw_gate::{AutonomyLevel, GateRequest, RiskLevel};
use schemars::JsonSchema;
use serde::Deserialize;

use ward_process::sandbox::SandboxNetwork;

use super::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
pub use executor::next_tree_id;
pub(crate) use executor::{ExecutionOutput, PlanExecutor};
pub use probe::SandboxProbe;
pub use report::sandbox_level;
pub(crate) use report::{LineEnd, exit_code};
use vcs_guard::VcsConfigGuard;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellCall {
    /// The command line. It runs in the workspace: programs, pipes, `&&`, `||`, `;`, redirections and patterns.
    command: String,
}

impl BuiltInTool for ShellCall {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = "Runs a command line in the workspace, without network. Variables, substitutions and loops are mostly refused: \
     write plain commands.";
}

impl PreparedCall for ShellCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::Shell(&self.command)
    }

    fn invoke(self: Box<Self>, granted: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        run_line(&self.command, &granted, context)
    }
}

/// Runs a line that was granted.
fn run_line(line: &str, granted: &CallGrant, context: &ToolContext<'_>) -> ToolResult {
    let carrier = check_preconditions(granted.risk(), context)
        .and_then(|()| ToolSandbox::new(&sandbox_access(context), context.policy))
        .and_then(|room| PlanExecutor::new(context, room, context.bounds.shell_timeout));
    let carrier = match carrier {
        Ok(carrier) => carrier,
        Err(why) => return ToolResult::failed(format!("nothing was run: {why}")),
    };
    // Where a command can't write, whatever comes is the operator's own.
    let writes = context.policy.autonomy != AutonomyLevel::ReadOnly;
    let steering = writes.then(|| VcsConfigGuard::snapshot(context.workspace.path()));
    let mut result = match granted.plan() {
        Some(plan) => carrier.run_plan(plan, granted.risk()),
        None => carrier.run_in_bash(line),
    };
    for told in steering.into_iter().flat_map(VcsConfigGuard::set_aside_new_files) {
        result.output.push_str(&format!("\n{told}\n"));
    }
    result
}

/// The workspace as far as the level allows, and no network.
fn sandbox_access(context: &ToolContext<'_>) -> SandboxAccess {
    let workspace = match context.policy.autonomy {
        AutonomyLevel::ReadOnly => WorkspaceAccess::Read,
        AutonomyLevel::Supervised => WorkspaceAccess::Write,
        // A program of its own making: only here may one be named.
        AutonomyLevel::Full => WorkspaceAccess::Execute,
    };
    let time = context.bounds.shell_timeout;
    SandboxAccess {
        workspace,
        network: SandboxNetwork::Off,
        own_program: None,
        programs: Vec::new(),
        timeout: time,
    }
}

/// Whether a line may run here and now. The error says why not.
fn check_preconditions(risk: RiskLevel, context: &ToolContext<'_>) -> Result<(), String> {
    let workspace = context.workspace;
    if !workspace.is_still_at_path() {
        return Err(format!("another folder is where the workspace was, {}", workspace.path().display()));
    }
    // What is not there can't be closed. Of what is not high the gate knows where it writes.
    let missing = |path: &&std::path::PathBuf| {
        let not_there =
            path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        path.starts_with(workspace.path()) && not_there
    };
    match context.policy.forbidden_paths.iter().find(missing) {
        Some(path) if risk == RiskLevel::High => Err(format!(
            "{} is forbidden but not there, so that it can't be closed to a line of this risk; make it, or an empty \
             folder of its name",
            path.display()
        )),
        _ => Ok(()),
    }
}
