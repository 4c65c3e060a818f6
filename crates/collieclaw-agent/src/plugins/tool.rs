//! Tools of installed plugins.

use std::rc::Rc;
use std::time::Duration;

use collieclaw_gate::plan::{PlannedAction, PlannedCommand, PlannedRedirection, PlannedTarget};
use collieclaw_gate::{ForeignToolAccess, GateRequest, MachineFacts, NetworkReach, RiskLevel};
use serde_json::{Value, json};
use ward_process::ProcessExit;
use ward_process::sandbox::SandboxNetwork;

use super::installed::InstalledPlugin;
use super::manifest::PluginTool;
use super::{PluginRegistry, output};
use crate::config::PluginSettings;
use crate::runtime::CallGrant;
use crate::security::SystemFacts;
use crate::tools::memory_watch::describe_exceeded_memory;
use crate::tools::shell::{ExecutionOutput, LineEnd, PlanExecutor, exit_code};
use crate::tools::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use crate::tools::{
    ForeignTool, PreparedCall, Tool, ToolContext, ToolResult, ToolchainAccess, truncate_text,
};

/// The maximum length of a plugin's standard error in a result.
const MAX_STDERR_CHARS: usize = 2000;

impl PluginRegistry {
    /// Returns the tools of all installed plugins, with the operator's settings.
    pub fn tools(&self, settings: impl Fn(&str) -> PluginSettings) -> Vec<Box<dyn Tool>> {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        for plugin in &self.installed {
            let settings = settings(&plugin.manifest.name);
            for tool in &plugin.manifest.tools {
                let bound = Rc::new(PluginToolBinding {
                    origin: format!("the plugin `{}`", plugin.manifest.name),
                    risk: settings.risks.get(&tool.name).copied().unwrap_or(tool.risk),
                    network: if tool.network && settings.network {
                        SandboxNetwork::On
                    } else {
                        SandboxNetwork::Off
                    },
                    plugin: Rc::clone(plugin),
                    tool: tool.clone(),
                });
                tools.push(Box::new(ForeignTool {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    schema: tool.schema.clone(),
                    make_call: Box::new(move |arguments| {
                        Box::new(PreparedPluginCall {
                            bound: Rc::clone(&bound),
                            arguments: arguments.clone(),
                        })
                    }),
                }));
            }
        }
        tools
    }
}

/// A plugin's tool with the settings that apply to it.
struct PluginToolBinding {
    plugin: Rc<InstalledPlugin>,
    tool: PluginTool,
    origin: String,
    risk: RiskLevel,
    network: SandboxNetwork,
}

struct PreparedPluginCall {
    bound: Rc<PluginToolBinding>,
    arguments: Value,
}

impl PreparedCall for PreparedPluginCall {
    fn call(&self) -> GateRequest<'_> {
        let bound = &self.bound;
        GateRequest::ForeignTool(ForeignToolAccess {
            name: &bound.tool.name,
            origin: &bound.origin,
            risk: bound.risk,
            writes: bound.tool.workspace.writes(),
            network: match bound.network {
                SandboxNetwork::On => NetworkReach::Full,
                SandboxNetwork::Off
                | SandboxNetwork::Loopback
                | SandboxNetwork::LoopbackWithListener { .. } => NetworkReach::None,
            },
        })
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        match self.run(context) {
            Ok(output) => format_result(output, context.bounds.max_response_bytes),
            Err(error) => ToolResult::failed(format!("nothing was run: {error}")),
        }
    }
}

impl PreparedPluginCall {
    fn run(&self, context: &ToolContext<'_>) -> Result<ExecutionOutput, String> {
        let PluginToolBinding { plugin, tool, .. } = &*self.bound;
        if let Some(changed) = plugin.find_change() {
            let name = &plugin.manifest.name;
            return Err(format!(
                "the plugin `{name}` has changed since it was installed: {changed}; if you trust it, install it again \
                 (`collieclaw plugin install FOLDER`), otherwise run `collieclaw plugin remove {name}`"
            ));
        }
        let time = tool.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let access = SandboxAccess {
            workspace: tool.workspace.limited_by(context.policy.autonomy).into(),
            network: self.bound.network,
            own_program: Some(plugin.folder.clone()),
            programs: Vec::new(),
            toolchain: ToolchainAccess::default(),
            timeout: time,
        };
        let sandbox = ToolSandbox::new(&access, context.policy)?;
        let workspace = (access.workspace != WorkspaceAccess::Closed).then(|| context.workspace.path());
        let input = json!({ "tool": tool.name, "arguments": self.arguments, "workspace": workspace });
        let input = PlannedRedirection { descriptor: 0, target: PlannedTarget::Text(format!("{input}\n")) };
        let command = PlannedCommand {
            action: plan_program(plugin, tool)?,
            folder: plugin.folder.clone(),
            redirections: vec![input],
        };
        Ok(PlanExecutor::new(context, sandbox, time)?.run_command(command))
    }
}

/// Plans to run a file of the plugin, or else a program of the system.
fn plan_program(plugin: &InstalledPlugin, tool: &PluginTool) -> Result<PlannedAction, String> {
    let first = tool.command.first().map(String::as_str).unwrap_or_default();
    let file = first.strip_prefix("./").unwrap_or(first);
    let program = if plugin.pins.contains_key(file) {
        plugin.folder.join(file)
    } else {
        SystemFacts.find_program(first).ok_or_else(|| format!("the program `{first}` is not installed"))?
    };
    Ok(PlannedAction::Run { program, words: tool.command.clone(), variables: Vec::new() })
}

fn format_result(executed: ExecutionOutput, max_bytes: usize) -> ToolResult {
    let stderr = truncate_text(String::from_utf8_lossy(&executed.stderr.bytes).trim(), MAX_STDERR_CHARS);
    let failed = |error: String| match stderr.as_str() {
        "" => ToolResult::failed(error),
        stderr => ToolResult { output: format!("[stderr]\n{stderr}\n"), ..ToolResult::failed(error) },
    };
    let result = match executed.end {
        Err(error) => ToolResult::failed(error),
        Ok(LineEnd::Cancelled) => ToolResult::cancelled(),
        Ok(LineEnd::TimedOut(time)) => {
            failed(format!("the plugin took longer than {} s and was killed", time.as_secs_f64()))
                .with_metadata("timed_out", true)
        }
        Ok(LineEnd::TooManyProcesses(limit)) => {
            failed(format!("the plugin had more than {limit} processes at once and was killed"))
        }
        Ok(LineEnd::TooMuchMemory(limit)) => failed(describe_exceeded_memory("the plugin", limit)),
        Ok(LineEnd::Exited(ProcessExit::Signal(signal))) => {
            failed(format!("the plugin was killed by signal {signal}"))
        }
        Ok(LineEnd::Exited(exit)) if exit_code(exit) != 0 => {
            failed(format!("the plugin failed with exit code {}", exit_code(exit)))
        }
        Ok(LineEnd::Exited(_)) if executed.stdout.total > max_bytes as u64 => {
            failed(format!("the plugin returned more than {max_bytes} bytes"))
        }
        Ok(LineEnd::Exited(_)) => {
            output::parse_output(&executed.stdout.bytes).map_or_else(failed, ToolResult::done)
        }
    };
    ToolResult { sandbox: executed.sandbox, ..result }
}
