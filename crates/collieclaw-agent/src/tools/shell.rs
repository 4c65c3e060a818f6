//! The tool `shell`, which runs a command line in the workspace, in a sandbox (C7.3b, C7.6).
//!
//! A line that the gate has planned is run from the plan, argument by argument; no shell parses it again.
//! Lines outside the plan's grammar are passed to bash in the same sandbox. Each program that bash starts is
//! judged before its first instruction (C17), and so are the programs that a planned program may start.

mod exec_judge;
mod execution_output;
mod executor;
mod output_capture;
mod pipeline_member;
mod probe;
mod report;
mod repository_guard;
mod streams;
mod vcs_guard;

use collieclaw_gate::plan::ShellPlan;
use collieclaw_gate::{AutonomyLevel, CommandNetwork, GateRequest, RiskLevel, can_start_programs};
use schemars::JsonSchema;
use serde::Deserialize;

use ward_process::sandbox::SandboxNetwork;

use super::tool_sandbox::{PROXY_PORT, SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::exec_judging_fault;
pub(crate) use execution_output::ExecutionOutput;
pub(crate) use executor::PlanExecutor;
pub use executor::next_tree_id;
pub use probe::SandboxProbe;
pub use report::sandbox_level;
pub(crate) use report::{LineEnd, exit_code};
use repository_guard::RepositoryGuard;
pub(super) use repository_guard::guard_repositories;
use vcs_guard::VcsConfigGuard;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellCall {
    /// The command line, which runs in the workspace. The whole language of bash is supported.
    command: String,
}

impl BuiltInTool for ShellCall {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = "Runs a bash command line in the workspace: pipes, variables, loops, functions, substitutions and \
     here-documents work. Each program that it starts is judged before it runs; a program that isn't allowed ends the line, \
     and the result names it. Plain commands need fewer approvals. A server that a line starts ends with the line, and only \
     this line reaches it on localhost.";
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
    let tracing = ExecTracing::of_line(granted.plan(), granted.risk());
    let executor = check_preconditions(granted, context)
        .and_then(|()| ToolSandbox::new(&sandbox_access(context, tracing), context.policy))
        .and_then(|sandbox| PlanExecutor::new(context, sandbox, context.bounds.shell_timeout));
    let executor = match (executor, tracing) {
        (Ok(executor), ExecTracing::On) => executor.judging_executions(),
        (Ok(executor), ExecTracing::Off) => executor,
        (Err(error), _) => return ToolResult::failed(format!("nothing was run: {error}")),
    };
    // At the level `readonly` commands can't write, so new files come from the operator.
    let writes = context.policy.autonomy != AutonomyLevel::ReadOnly;
    let vcs_guard = writes.then(|| VcsConfigGuard::snapshot(context.workspace.path()));
    // Lines of low risk only read, so they don't have to wait for the search.
    let repository_guard = (writes && granted.risk() != RiskLevel::Low)
        .then(|| RepositoryGuard::snapshot(context.workspace.path()));
    let mut result = match granted.plan() {
        Some(plan) => executor.run_plan(plan, granted.risk()),
        None => executor.run_in_bash(line, granted.risk()),
    };
    let of_settings = vcs_guard.into_iter().flat_map(VcsConfigGuard::set_aside_new_files);
    let of_repositories = repository_guard.into_iter().flat_map(RepositoryGuard::set_aside_harmful_settings);
    for notice in of_settings.chain(of_repositories) {
        result.output.push_str(&format!("\n{notice}\n"));
    }
    result
}

/// Whether the programs of a line are judged when they are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExecTracing {
    On,
    Off,
}

impl ExecTracing {
    /// Lines that a shell runs, and plans with programs that start others, have all their programs judged.
    fn of_line(plan: Option<&ShellPlan>, risk: RiskLevel) -> Self {
        if may_start_programs(plan, risk) && exec_judging_fault().is_none() { Self::On } else { Self::Off }
    }
}

/// Returns true if a line may start programs that its plan doesn't name.
fn may_start_programs(plan: Option<&ShellPlan>, risk: RiskLevel) -> bool {
    plan.is_none_or(|plan| {
        let pipelines = plan.lists().iter().flat_map(|list| {
            std::iter::once(&list.first).chain(list.rest.iter().map(|(_, pipeline)| pipeline))
        });
        pipelines
            .flat_map(|pipeline| &pipeline.commands)
            .any(|command| can_start_programs(&command.action, risk))
    })
}

/// Returns access to the workspace as far as the autonomy level allows, and to the network as far as the policy
/// allows. Without a network, the programs of a command can still talk to each other.
fn sandbox_access(context: &ToolContext<'_>, tracing: ExecTracing) -> SandboxAccess {
    let workspace = match context.policy.autonomy {
        AutonomyLevel::ReadOnly => WorkspaceAccess::Read,
        // Programs of the workspace run only where they are judged: those that a listed program starts, such as a test
        // that `cargo` has built, and those that the line names if the operator allows it.
        AutonomyLevel::Supervised if tracing == ExecTracing::On => WorkspaceAccess::Execute,
        AutonomyLevel::Supervised => WorkspaceAccess::Write,
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
fn check_preconditions(granted: &CallGrant, context: &ToolContext<'_>) -> Result<(), String> {
    let workspace = context.workspace;
    if !workspace.is_still_at_path() {
        return Err(format!("the workspace {} was moved or replaced", workspace.path().display()));
    }
    // The sandbox can't block a path that doesn't exist. The gate knows all paths that a plan writes to, unless its
    // programs start others.
    let missing = |path: &&std::path::PathBuf| {
        let is_missing =
            path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        path.starts_with(workspace.path()) && is_missing
    };
    match context.policy.forbidden_paths.iter().find(missing) {
        Some(path) if may_start_programs(granted.plan(), granted.risk()) => Err(format!(
            "the forbidden path {} doesn't exist, so the sandbox can't block it for a line that may start any program; create it as an \
             empty folder",
            path.display()
        )),
        _ => Ok(()),
    }
}
