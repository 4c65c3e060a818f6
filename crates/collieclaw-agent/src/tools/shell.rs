//! The tool `shell`, which runs a command line in the workspace, in a sandbox (C7.3b, C7.6).
//!
//! A line that the gate has planned is run from the plan, argument by argument; no shell parses it again.
//! Lines outside the plan's grammar, which the gate allows at the level `full` only, are passed to bash in
//! the same sandbox.

mod executor;
mod output_capture;
mod probe;
mod report;
mod streams;
mod vcs_guard;

use collieclaw_gate::{AutonomyLevel, CommandNetwork, GateRequest, RiskLevel};
use schemars::JsonSchema;
use serde::Deserialize;

use ward_process::sandbox::SandboxNetwork;

use super::tool_sandbox::{PROXY_PORT, SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
pub use executor::next_tree_id;
pub(crate) use executor::{ExecutionOutput, PlanExecutor};
pub use probe::SandboxProbe;
pub use report::sandbox_level;
pub(crate) use report::{LineEnd, exit_code};
use vcs_guard::VcsConfigGuard;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellCall {
    /// The command line, which runs in the workspace. Programs, pipes, `&&`, `||`, `;`, redirections and
    /// patterns are supported.
    command: String,
}

impl BuiltInTool for ShellCall {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = "Runs a command line in the workspace, without network access. Use plain commands: most variables, \
     substitutions and loops are denied.";
}

impl PreparedCall for ShellCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::Shell(&self.command)
    }

    fn invoke(self: Box<Self>, granted: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        run_line(&self.command, &granted, context)
    }
}

/// Runs a granted command line.
fn run_line(line: &str, granted: &CallGrant, context: &ToolContext<'_>) -> ToolResult {
    let executor = check_preconditions(granted.risk(), context)
        .and_then(|()| ToolSandbox::new(&sandbox_access(context), context.policy))
        .and_then(|sandbox| PlanExecutor::new(context, sandbox, context.bounds.shell_timeout));
    let executor = match executor {
        Ok(executor) => executor,
        Err(error) => return ToolResult::failed(format!("nothing was run: {error}")),
    };
    // At the level `readonly` commands can't write, so new files come from the operator.
    let writes = context.policy.autonomy != AutonomyLevel::ReadOnly;
    let vcs_guard = writes.then(|| VcsConfigGuard::snapshot(context.workspace.path()));
    let mut result = match granted.plan() {
        Some(plan) => executor.run_plan(plan, granted.risk()),
        None => executor.run_in_bash(line),
    };
    for notice in vcs_guard.into_iter().flat_map(VcsConfigGuard::set_aside_new_files) {
        result.output.push_str(&format!("\n{notice}\n"));
    }
    result
}

/// Returns access to the workspace as far as the autonomy level allows, and to the network as far as the policy
/// allows. Without a network, the programs of a command can still talk to each other.
fn sandbox_access(context: &ToolContext<'_>) -> SandboxAccess {
    let workspace = match context.policy.autonomy {
        AutonomyLevel::ReadOnly => WorkspaceAccess::Read,
        AutonomyLevel::Supervised => WorkspaceAccess::Write,
        // Only at this level may a command run a program that it has created itself.
        AutonomyLevel::Full => WorkspaceAccess::Execute,
    };
    let time = context.bounds.shell_timeout;
    let network = match context.policy.command_network {
        CommandNetwork::None => SandboxNetwork::Loopback,
        CommandNetwork::Listed => SandboxNetwork::LoopbackWithListener { port: PROXY_PORT },
    };
    SandboxAccess {
        workspace,
        network,
        own_program: None,
        programs: Vec::new(),
        toolchain: context.toolchain.clone(),
        timeout: time,
    }
}

/// Checks that a line may run now. The error says why not.
fn check_preconditions(risk: RiskLevel, context: &ToolContext<'_>) -> Result<(), String> {
    let workspace = context.workspace;
    if !workspace.is_still_at_path() {
        return Err(format!("the workspace {} was moved or replaced", workspace.path().display()));
    }
    // The sandbox can't block a path that doesn't exist. For lines below high risk, the gate knows all paths
    // they write to.
    let missing = |path: &&std::path::PathBuf| {
        let is_missing =
            path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        path.starts_with(workspace.path()) && is_missing
    };
    match context.policy.forbidden_paths.iter().find(missing) {
        Some(path) if risk == RiskLevel::High => Err(format!(
            "the forbidden path {} doesn't exist, so the sandbox can't block it for a high-risk line; create it as an \
             empty folder",
            path.display()
        )),
        _ => Ok(()),
    }
}
