//! A plugin's tool, on its way through the door.

use std::rc::Rc;
use std::time::Duration;

use collieclaw_gate::plan::{Act, PlannedCommand, PlannedRedirection, To};
use collieclaw_gate::{Call, Facts, Foreign, Reaches, Risk};
use serde_json::{Value, json};
use ward_process::Exit;
use ward_process::sandbox::Network;

use super::installed::Installed;
use super::manifest::PluginTool;
use super::{Plugins, answer};
use crate::config::PluginSettings;
use crate::runtime::Granted;
use crate::security::SystemFacts;
use crate::tools::room::{Ground, Reach, Room};
use crate::tools::shell::{Carrier, LineEnd, Ran, code};
use crate::tools::{Context, ForeignTool, Prepared, Tool, ToolResult, shortened};

/// Of what a plugin printed to standard error: enough to see what went wrong.
const COMPLAINT: usize = 2000;

impl Plugins {
    /// Their tools, under the operator's settings.
    pub fn tools(&self, settings: impl Fn(&str) -> PluginSettings) -> Vec<Box<dyn Tool>> {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        for plugin in &self.installed {
            let settings = settings(&plugin.manifest.name);
            for tool in &plugin.manifest.tools {
                let bound = Rc::new(Bound {
                    origin: format!("the plugin `{}`", plugin.manifest.name),
                    risk: settings.risks.get(&tool.name).copied().unwrap_or(tool.risk),
                    network: if tool.network && settings.network { Network::On } else { Network::Off },
                    plugin: Rc::clone(plugin),
                    tool: tool.clone(),
                });
                tools.push(Box::new(ForeignTool {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    schema: tool.schema.clone(),
                    call: Box::new(move |arguments| {
                        Box::new(Wanted { bound: Rc::clone(&bound), arguments: arguments.clone() })
                    }),
                }));
            }
        }
        tools
    }
}

/// A tool with what is settled about it.
struct Bound {
    plugin: Rc<Installed>,
    tool: PluginTool,
    origin: String,
    risk: Risk,
    network: Network,
}

struct Wanted {
    bound: Rc<Bound>,
    arguments: Value,
}

impl Prepared for Wanted {
    fn call(&self) -> Call<'_> {
        let bound = &self.bound;
        Call::Foreign(Foreign {
            name: &bound.tool.name,
            origin: &bound.origin,
            risk: bound.risk,
            writes: bound.tool.workspace.writes(),
            network: match bound.network {
                Network::On => Reaches::Network,
                Network::Off => Reaches::Nothing,
            },
        })
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        match self.run(context) {
            Ok(ran) => told(ran, context.bounds.max_response_bytes),
            Err(why) => ToolResult::failed(format!("nothing was run: {why}")),
        }
    }
}

impl Wanted {
    fn run(&self, context: &Context<'_>) -> Result<Ran, String> {
        let Bound { plugin, tool, .. } = &*self.bound;
        if let Some(changed) = plugin.changed() {
            let name = &plugin.manifest.name;
            return Err(format!(
                "the plugin `{name}` is not as it was installed: {changed}; if you trust it as it is now, install it again \
                 (`collieclaw plugin install FOLDER`), else `collieclaw plugin remove {name}`"
            ));
        }
        let time = tool.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let reach = Reach {
            workspace: tool.workspace.at(context.policy.autonomy).into(),
            network: self.bound.network,
            own: Some(plugin.folder.clone()),
            programs: Vec::new(),
            time,
        };
        let room = Room::new(&reach, context.policy)?;
        let workspace = (reach.workspace != Ground::Closed).then(|| context.workspace.path());
        let asked = json!({ "tool": tool.name, "arguments": self.arguments, "workspace": workspace });
        let asked = PlannedRedirection { descriptor: 0, to: To::Text(format!("{asked}\n")) };
        let command = PlannedCommand {
            act: act(plugin, tool)?,
            folder: plugin.folder.clone(),
            redirections: vec![asked],
        };
        Ok(Carrier::new(context, room, time)?.run(command))
    }
}

/// A file of the plugin, or else a program of the system.
fn act(plugin: &Installed, tool: &PluginTool) -> Result<Act, String> {
    let first = tool.command.first().map(String::as_str).unwrap_or_default();
    let file = first.strip_prefix("./").unwrap_or(first);
    let program = if plugin.pins.contains_key(file) {
        plugin.folder.join(file)
    } else {
        SystemFacts.program(first).ok_or_else(|| format!("there is no program `{first}` on this machine"))?
    };
    Ok(Act::Run { program, words: tool.command.clone(), variables: Vec::new() })
}

fn told(ran: Ran, most: usize) -> ToolResult {
    let complaint = shortened(String::from_utf8_lossy(&ran.stderr.bytes).trim(), COMPLAINT);
    let failed = |error: String| match complaint.as_str() {
        "" => ToolResult::failed(error),
        complaint => ToolResult { output: format!("[stderr]\n{complaint}\n"), ..ToolResult::failed(error) },
    };
    let result = match ran.end {
        Err(why) => ToolResult::failed(why),
        Ok(LineEnd::Cancelled) => ToolResult::cancelled(),
        Ok(LineEnd::TimedOut(time)) => {
            failed(format!("the plugin took longer than {} s and was ended", time.as_secs_f64()))
                .with("timed_out", true)
        }
        Ok(LineEnd::TooMany(most)) => {
            failed(format!("the plugin had more than {most} processes at once and was ended"))
        }
        Ok(LineEnd::Ran(Exit::Signal(signal))) => failed(format!("the plugin was ended by signal {signal}")),
        Ok(LineEnd::Ran(exit)) if code(exit) != 0 => {
            failed(format!("the plugin ended with exit code {}", code(exit)))
        }
        Ok(LineEnd::Ran(_)) if ran.stdout.total > most as u64 => {
            failed(format!("the plugin answered more than {most} bytes"))
        }
        Ok(LineEnd::Ran(_)) => answer::read(&ran.stdout.bytes).map_or_else(failed, ToolResult::done),
    };
    ToolResult { sandbox: ran.sandbox, ..result }
}
