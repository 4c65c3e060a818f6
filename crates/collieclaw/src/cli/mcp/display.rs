//! Displays the tools of an MCP server in full, with escape sequences made visible.

use std::collections::BTreeSet;

use collieclaw_agent::config::McpServerSettings;
use collieclaw_agent::tools::schema_fault;
use collieclaw_mcp::{PinnedTool, PinnedToolChange, offered_name};
use ward_terminal::{escape_line, escape_lines};

/// Returns the usable tools, and the reasons why others can't be used.
pub(crate) fn split_usable(
    server: &str,
    settings: &McpServerSettings,
    found: Vec<PinnedTool>,
) -> (Vec<PinnedTool>, Vec<String>) {
    let mut names = BTreeSet::new();
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for tool in found.into_iter().filter(|tool| settings.enables_tool(&tool.name)) {
        let name = &tool.name;
        if let Some(fault) = schema_fault(&tool.schema) {
            left_out.push(format!("`{name}` can't be used: {fault}"));
        } else if !names.insert(offered_name(server, name)) {
            left_out.push(format!(
                "`{name}` can't be used: another tool is called `{}`",
                offered_name(server, name)
            ));
        } else {
            tools.push(tool);
        }
    }
    (tools, left_out)
}

/// Formats a tool with its whole description and schema.
pub(crate) fn format_tool(server: &str, tool: &PinnedTool, settings: &McpServerSettings) -> String {
    let risk = settings.risks.get(&tool.name).unwrap_or(&settings.risk);
    let used =
        if settings.enables_tool(&tool.name) { "" } else { " (not used: `tools` in the configuration)" };
    let name = offered_name(server, &tool.name);
    let (own, description) = (escape_line(&tool.name), indent(&tool.description));
    format!(
        "{name}, risk {risk}{used}\n  tool: {own}\n  {description}\n  parameters: {}\n\n",
        escape_line(&tool.schema.to_string())
    )
}

/// Formats the differences from the approved tools, line by line.
pub(crate) fn format_changes(server: &str, changes: &[PinnedToolChange]) -> String {
    if changes.is_empty() {
        return format!("The tools of {} have not changed since the approval.\n", escape_line(server));
    }
    let lines = |mark: char, tool: &PinnedTool| {
        let text = format!("{}\n{}", escape_lines(&tool.description), escape_line(&tool.schema.to_string()));
        text.lines().map(|line| format!("  {mark} {line}\n")).collect::<String>()
    };
    let format_change = |change: &PinnedToolChange| match change {
        PinnedToolChange::Added(now) => format!("{} is new\n{}\n", escape_line(&now.name), lines('+', now)),
        PinnedToolChange::Removed(before) => {
            format!("{} was removed\n{}\n", escape_line(&before.name), lines('-', before))
        }
        PinnedToolChange::Changed { before, now } => {
            format!("{} has changed\n{}{}\n", escape_line(&now.name), lines('-', before), lines('+', now))
        }
    };
    changes.iter().map(format_change).collect()
}

fn indent(text: &str) -> String {
    escape_lines(text).replace('\n', "\n  ")
}
