//! The slash commands of the prompt.

use std::fmt::Write;

use collieclaw_gate::{CommandNetwork, PathBounds};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use collieclaw_agent::estop;
use collieclaw_agent::runtime::AgentRuntime;
use collieclaw_agent::tools::SandboxProbe;
use ward_terminal::escape_line;

/// Every slash command with its description.
const COMMANDS: [(&str, &str); 6] = [
    ("/exit", "quit"),
    ("/help", "show this list"),
    ("/memory", "QUERY: search past conversations"),
    ("/new", "start a new conversation"),
    ("/policy", "show what the agent may do, and where"),
    ("/tools", "list tools, and which of them the model can call"),
];

/// The meaning of an input line.
pub(super) enum ReplInput<'l> {
    Empty,
    Exit,
    NewConversation,
    ShowInfo(InfoCommand<'l>),
    Message(&'l str),
}

/// A command that only prints information.
#[derive(Debug, Clone, Copy)]
pub(super) enum InfoCommand<'l> {
    Help,
    Tools,
    Policy,
    Memory(&'l str),
    Unknown(&'l str),
}

pub(super) fn parse_line(line: &str) -> ReplInput<'_> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match command {
        "" => ReplInput::Empty,
        "/exit" | "/quit" => ReplInput::Exit,
        "/new" => ReplInput::NewConversation,
        "/help" => ReplInput::ShowInfo(InfoCommand::Help),
        "/tools" => ReplInput::ShowInfo(InfoCommand::Tools),
        "/policy" => ReplInput::ShowInfo(InfoCommand::Policy),
        "/memory" => ReplInput::ShowInfo(InfoCommand::Memory(rest.trim())),
        unknown if unknown.starts_with('/') => ReplInput::ShowInfo(InfoCommand::Unknown(unknown)),
        _ => ReplInput::Message(line),
    }
}

pub(super) fn run_info_command(what: InfoCommand<'_>, runtime: &AgentRuntime) -> String {
    match what {
        InfoCommand::Help => COMMANDS
            .iter()
            .map(|(name, purpose)| format!("{name:<9} {purpose}"))
            .collect::<Vec<_>>()
            .join("\n"),
        InfoCommand::Tools => format_tools(runtime),
        InfoCommand::Policy => format_policy(runtime),
        InfoCommand::Memory("") => "missing search words: /memory QUERY".to_owned(),
        InfoCommand::Memory(query) => search_memory(query, runtime),
        InfoCommand::Unknown(command) => {
            format!("no such command {}; /help lists the commands", escape_line(command))
        }
    }
}

fn format_tools(runtime: &AgentRuntime) -> String {
    let mut text = String::new();
    for tool in &runtime.tool_gateway.rules.tools {
        let mark = if runtime.offered_tools.contains(tool.name()) { '*' } else { ' ' };
        let _ = writeln!(text, "{mark} {:<14} {}", tool.name(), tool.description());
    }
    text.push_str("* the model can call this tool (`tools_allow`)");
    text
}

fn format_policy(runtime: &AgentRuntime) -> String {
    let policy = &runtime.tool_gateway.rules.policy;
    let bounds = match policy.bounds {
        PathBounds::Workspace => "no access outside",
        PathBounds::Anywhere => "paths outside have a higher risk",
    };
    let stop = if estop::is_set(&runtime.tool_gateway.home) { "ACTIVE: no tool runs" } else { "not active" };
    let kept = runtime.tool_gateway.receipts.borrow();
    let receipts = match (kept.is_enabled(), kept.is_signed()) {
        (false, _) => "OFF",
        (true, false) => "written, not signed",
        (true, true) => "written and signed",
    };
    let sandbox = match SandboxProbe::run(policy) {
        Ok(trial) => trial.sandbox_level(),
        Err(why) => format!("NOT AVAILABLE, so no command can run: {why}"),
    };
    let mut text = format!(
        "autonomy:  {}\nworkspace: {} ({bounds})\nforbidden: {}\nestop:     {stop}\nreceipts:  {receipts}\nsandbox:   {sandbox}\nnetwork:   {}",
        policy.autonomy,
        policy.workspace.display(),
        format_paths(&policy.forbidden_paths),
        match policy.command_network {
            CommandNetwork::None => "none",
            CommandNetwork::Listed => "only the allowed domains",
        },
    );
    if !policy.pinned_programs.is_empty() {
        let pinned = policy.pinned_programs.iter();
        let pinned: Vec<String> = pinned.map(|(name, path)| format!("{name} = {}", path.display())).collect();
        let _ = write!(text, "\nprograms:  {}", pinned.join(", "));
    }
    let toolchain = &runtime.tool_gateway.toolchain.read;
    if !toolchain.is_empty() {
        let _ = write!(text, "\nreadable:  {}", format_paths(toolchain));
    }
    text
}

fn format_paths(paths: &[std::path::PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// About as many search results as fit on a screen.
const MAX_HITS_SHOWN: usize = 10;

fn search_memory(query: &str, runtime: &AgentRuntime) -> String {
    match runtime.tool_gateway.memory.search(query, MAX_HITS_SHOWN) {
        Err(error) => error.to_string(),
        Ok(found) if found.is_empty() => "nothing found".to_owned(),
        Ok(found) => {
            let line = |found: collieclaw_agent::memory::FoundTurn| {
                format!("{}  {}", escape_line(&found.conversation_id), escape_line(&found.excerpt))
            };
            found.into_iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The completer of slash commands at the prompt.
pub(super) struct CommandCompleter;

impl Helper for CommandCompleter {}
impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}
impl Hinter for CommandCompleter {
    type Hint = String;
}

impl Completer for CommandCompleter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or_default();
        let pair = |name: &str| Pair { display: name.to_owned(), replacement: format!("{name} ") };
        let fitting = COMMANDS.iter().filter(|(name, _)| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, fitting.map(|(name, _)| pair(name)).collect()))
    }
}
