//! A plugin's tool, on its way through the door.

use std::rc::Rc;
use std::time::Duration;

use collieclaw_gate::plan::{PlannedAction, PlannedCommand, PlannedRedirection, PlannedTarget};
use collieclaw_gate::{ForeignToolInfo, GateRequest, MachineFacts, NetworkReach, RiskLevel};
use serde_json::{Value, json};
use ward_process::ProcessExit;
use ward_process::sandbox::SandboxNetwork;

use super::installed::InstalledPlugin;
use super::manifest::PluginTool;
use super::{PluginRegistry, output};
use crate::config::PluginSettings;
use crate::runtime::CallGrant;
use crate::security::SystemFacts;
use crate::tools::shell::{ExecutionOutput, LineEnd, PlanExecutor, exit_code};
use crate::tools::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use crate::tools::{ForeignTool, PreparedCall, Tool, ToolContext, ToolResult, truncate_text};

/// Of what a plugin printed to standard error: enough to see what went wrong.
const MAX_STDERR_CHARS: usize = 2000;

impl PluginRegistry {
    /// Their tools, under the operator's settings.
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

/// A tool with what is settled about it.
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
        GateRequest::ForeignTool(ForeignToolInfo {
            name: &bound.tool.name,
            origin: &bound.origin,
            risk: bound.risk,
            writes: bound.tool.workspace.writes(),
            network: match bound.network {
                SandboxNetwork::On => NetworkReach::Full,
                SandboxNetwork::Off => NetworkReach::None,
            },
        })
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        match self.run(context) {
            Ok(ran) => format_result(ran, context.bounds.max_response_bytes),
            Err(why) => ToolResult::failed(format!("nothing was run: {why}")),
        }
    }
}

impl PreparedPluginCall {
    fn run(&self, context: &ToolContext<'_>) -> Result<ExecutionOutput, String> {
        let PluginToolBinding { plugin, tool, .. } = &*self.bound;
        if let Some(changed) = plugin.find_change() {
            let name = &plugin.manifest.name;
            return Err(format!(
                "the plugin `{name}` is not as it was installed: {changed}; if you trust it as it is now, install it again \
                 (`collieclaw plugin install FOLDER`), else `collieclaw plugin remove {name}`"
            ));
        }
        let time = tool.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let reach = SandboxAccess {
            workspace: tool.workspace.limited_by(context.policy.autonomy).into(),
            network: self.bound.network,
            own_program: Some(plugin.folder.clone()),
            programs: Vec::new(),
            timeout: time,
        };
        let room = ToolSandbox::new(&reach, context.policy)?;
        let workspace = (reach.workspace != WorkspaceAccess::Closed).then(|| context.workspace.path());
        let asked = json!({ "tool": tool.name, "arguments": self.arguments, "workspace": workspace });
        let asked = PlannedRedirection { descriptor: 0, target: PlannedTarget::Text(format!("{asked}\n")) };
        let command = PlannedCommand {
            action: plan_program(plugin, tool)?,
            folder: plugin.folder.clone(),
            redirections: vec![asked],
        };
        Ok(PlanExecutor::new(context, room, time)?.run_command(command))
    }
}

/// A file of the plugin, or else a program of the system.
fn plan_program(plugin: &InstalledPlugin, tool: &PluginTool) -> Result<PlannedAction, String> {
    let first = tool.command.first().map(String::as_str).unwrap_or_default();
    let file = first.strip_prefix("./").unwrap_or(first);
    let program = if plugin.pins.contains_key(file) {
        plugin.folder.join(file)
    } else {
        SystemFacts
            .find_program(first)
            .ok_or_else(|| format!("there is no program `{first}` on this machine"))?
    };
    Ok(PlannedAction::Run { program, words: tool.command.clone(), variables: Vec::new() })
}

fn format_result(ran: ExecutionOutput, most: usize) -> ToolResult {
    let complaint = truncate_text(String::from_utf8_lossy(&ran.stderr.bytes).trim(), MAX_STDERR_CHARS);
    let failed = |error: String| match complaint.as_str() {
        "" => ToolResult::failed(error),
        complaint => ToolResult { output: format!("[stderr]\n{complaint}\n"), ..ToolResult::failed(error) },
    };
    let result = match ran.end {
        Err(why) => ToolResult::failed(why),
        Ok(LineEnd::Cancelled) => ToolResult::cancelled(),
        Ok(LineEnd::TimedOut(time)) => {
            failed(format!("the plugin took longer than {} s and was ended", time.as_secs_f64()))
                .with_metadata("timed_out", true)
        }
        Ok(LineEnd::TooManyProcesses(most)) => {
            failed(format!("the plugin had more than {most} processes at once and was ended"))
        }
        Ok(LineEnd::Exited(ProcessExit::Signal(signal))) => {
            failed(format!("the plugin was ended by signal {signal}"))
        }
        Ok(LineEnd::Exited(exit)) if exit_code(exit) != 0 => {
            failed(format!("the plugin ended with exit code {}", exit_code(exit)))
        }
        Ok(LineEnd::Exited(_)) if ran.stdout.total > most as u64 => {
            failed(format!("the plugin answered more than {most} bytes"))
        }
        Ok(LineEnd::Exited(_)) => {
            output::parse_output(&ran.stdout.bytes).map_or_else(failed, ToolResult::done)
        }
    };
    ToolResult { sandbox: ran.sandbox, ..result }
}
