//! What a person sees of a server's tools: every word of them, and nothing that moves the cursor.

use std::collections::BTreeSet;

use collieclaw::channels::{visible, visible_lines};
use collieclaw::config::McpServer;
use collieclaw::mcp::{Change, PinnedTool, offered_name};
use collieclaw::tools::unsound_schema;

/// The tools that can be used, and why others can't.
pub(crate) fn usable(
    server: &str,
    settings: &McpServer,
    found: Vec<PinnedTool>,
) -> (Vec<PinnedTool>, Vec<String>) {
    let mut names = BTreeSet::new();
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for tool in found.into_iter().filter(|tool| settings.wants(&tool.name)) {
        let name = &tool.name;
        if let Some(fault) = unsound_schema(&tool.schema) {
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

/// A tool, whole.
pub(crate) fn tool(server: &str, tool: &PinnedTool, settings: &McpServer) -> String {
    let risk = settings.risks.get(&tool.name).unwrap_or(&settings.risk);
    let used = if settings.wants(&tool.name) { "" } else { " (not used: `tools` in the configuration)" };
    let name = offered_name(server, &tool.name);
    let (own, description) = (visible(&tool.name), indented(&tool.description));
    format!(
        "{name}, risk {risk}{used}\n  tool: {own}\n  {description}\n  takes: {}\n\n",
        visible(&tool.schema.to_string())
    )
}

/// What is not as it was approved, line by line.
pub(crate) fn changes(server: &str, changes: &[Change]) -> String {
    if changes.is_empty() {
        return format!("The tools of {} are as they were approved.\n", visible(server));
    }
    let lines = |mark: char, tool: &PinnedTool| {
        let text = format!("{}\n{}", visible_lines(&tool.description), visible(&tool.schema.to_string()));
        text.lines().map(|line| format!("  {mark} {line}\n")).collect::<String>()
    };
    let told = |change: &Change| match change {
        Change::New(now) => format!("{} is new\n{}\n", visible(&now.name), lines('+', now)),
        Change::Gone(before) => format!("{} is gone\n{}\n", visible(&before.name), lines('-', before)),
        Change::Changed { before, now } => {
            format!("{} is another now\n{}{}\n", visible(&now.name), lines('-', before), lines('+', now))
        }
    };
    changes.iter().map(told).collect()
}

fn indented(text: &str) -> String {
    visible_lines(text).replace('\n', "\n  ")
}
