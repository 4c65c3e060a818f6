//! What begins with a slash.

use std::fmt::Write;

use collieclaw_gate::Bounds;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::channels::visible;
use crate::estop;
use crate::runtime::Runtime;
use crate::tools::Trial;

/// Every command, with what it is for.
const COMMANDS: [(&str, &str); 6] = [
    ("/exit", "leave"),
    ("/help", "this list"),
    ("/memory", "QUERY: search what was said before"),
    ("/new", "begin another conversation"),
    ("/policy", "what the agent may do, and where"),
    ("/tools", "the tools, and which of them the model is told of"),
];

/// What a line asks for.
pub(super) enum Asked<'l> {
    Nothing,
    Leave,
    NewConversation,
    Tell(What<'l>),
    Turn(&'l str),
}

/// What is to be told.
#[derive(Debug, Clone, Copy)]
pub(super) enum What<'l> {
    Help,
    Tools,
    Policy,
    Memory(&'l str),
    Unknown(&'l str),
}

pub(super) fn asked(line: &str) -> Asked<'_> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match command {
        "" => Asked::Nothing,
        "/exit" | "/quit" => Asked::Leave,
        "/new" => Asked::NewConversation,
        "/help" => Asked::Tell(What::Help),
        "/tools" => Asked::Tell(What::Tools),
        "/policy" => Asked::Tell(What::Policy),
        "/memory" => Asked::Tell(What::Memory(rest.trim())),
        unknown if unknown.starts_with('/') => Asked::Tell(What::Unknown(unknown)),
        _ => Asked::Turn(line),
    }
}

pub(super) fn told(what: What<'_>, runtime: &Runtime) -> String {
    match what {
        What::Help => COMMANDS
            .iter()
            .map(|(name, purpose)| format!("{name:<9} {purpose}"))
            .collect::<Vec<_>>()
            .join("\n"),
        What::Tools => tools(runtime),
        What::Policy => policy(runtime),
        What::Memory("") => "write what to search for: /memory QUERY".to_owned(),
        What::Memory(query) => memory(query, runtime),
        What::Unknown(command) => format!("there is no command {}; /help lists them", visible(command)),
    }
}

fn tools(runtime: &Runtime) -> String {
    let mut text = String::new();
    for tool in &runtime.door.rules.tools {
        let mark = if runtime.offered.contains(tool.name()) { '*' } else { ' ' };
        let _ = writeln!(text, "{mark} {:<14} {}", tool.name(), tool.description());
    }
    text.push_str("* the model is told of it (`tools_allow`)");
    text
}

fn policy(runtime: &Runtime) -> String {
    let policy = &runtime.door.rules.policy;
    let bounds = match policy.bounds {
        Bounds::Workspace => "nothing outside of it",
        Bounds::Anywhere => "paths outside of it weigh more",
    };
    let stop = if estop::is_set(&runtime.door.home) { "ACTIVE: no tool runs" } else { "not active" };
    let kept = runtime.door.receipts.borrow();
    let receipts = match (kept.are_written(), kept.are_signed()) {
        (false, _) => "OFF",
        (true, false) => "written, not signed",
        (true, true) => "written and signed",
    };
    let sandbox = match Trial::run(policy) {
        Ok(trial) => trial.level(),
        Err(why) => format!("NONE, so that no command runs: {why}"),
    };
    format!(
        "autonomy:  {}\nworkspace: {} ({bounds})\nforbidden: {}\nestop:     {stop}\nreceipts:  {receipts}\nsandbox:   {sandbox}",
        policy.autonomy,
        policy.workspace.display(),
        policy.forbidden_paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    )
}

/// As many as a screen holds.
const FOUND_SHOWN: usize = 10;

fn memory(query: &str, runtime: &Runtime) -> String {
    match runtime.door.memory.search(query, FOUND_SHOWN) {
        Err(error) => error.to_string(),
        Ok(found) if found.is_empty() => "nothing found".to_owned(),
        Ok(found) => {
            let line = |found: crate::memory::Found| {
                format!("{}  {}", visible(&found.conversation_id), visible(&found.excerpt))
            };
            found.into_iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Completes commands.
pub(super) struct Commands;

impl Helper for Commands {}
impl Highlighter for Commands {}
impl Validator for Commands {}
impl Hinter for Commands {
    type Hint = String;
}

impl Completer for Commands {
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
