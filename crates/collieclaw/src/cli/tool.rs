//! `tool`: what there is, and one by hand.

use std::io::IsTerminal;

use clap::Subcommand;
use collieclaw::cancel::Cancel;
use collieclaw::channels::{Detail, Nobody, Terminal, visible};
use collieclaw::runtime::{Attended, Fate, Offer, Operator, Wish};
use collieclaw::tools;
use serde_json::{Value, json};

use super::environment::Environment;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::open;
use super::screen::{Screen, table};

#[derive(Subcommand)]
pub(crate) enum Tool {
    /// Every tool, and whether the model is told of it.
    #[command(after_help = "Examples:\n  collieclaw tool list\n  collieclaw tool list --output json")]
    List,
    /// Runs one, through the same gate, approval and receipts as a call of the model.
    #[command(
        after_help = "Examples:\n  collieclaw tool run time --json '{}'\n  collieclaw tool run file_read --json '{\"path\":\"notes.txt\"}'"
    )]
    Run {
        /// Which.
        name: String,
        /// Its arguments, a JSON object.
        #[arg(long, value_name = "ARGS", default_value = "{}")]
        json: String,
    },
}

/// In receipts of calls that a person made by hand.
const BY_HAND: &str = "by-hand";

pub(crate) fn run(tool: &Tool, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    match tool {
        Tool::List => {
            let setup = open::setup(environment)?;
            let offered = |name: &str| setup.config.channels.cli.tools_allow.iter().any(|tool| tool == name);
            let tools::Gathered { tools, troubles, .. } = setup.gather(environment);
            troubles.iter().for_each(|trouble| screen.remark(&visible(trouble)));
            let value: Vec<Value> = tools
                .iter()
                .map(|tool| {
                    json!({ "name": tool.name(), "description": tool.description(), "offered": offered(tool.name()),
                        "parameters": tool.parameters_schema() })
                })
                .collect();
            screen.answer(&value, || {
                let row = |tool: &dyn tools::Tool| {
                    let mark = if offered(tool.name()) { "*" } else { " " };
                    vec![format!("{mark} {}", tool.name()), visible(tool.description())]
                };
                let rows: Vec<Vec<String>> = tools.iter().map(|tool| row(&**tool)).collect();
                format!("{}\n\n* the model is told of it (`channels.cli.tools_allow`)", table(&rows))
            });
            Ok(())
        }
        Tool::Run { name, json } => call(name, &arguments(json)?, environment, screen),
    }
}

/// What was given after `--json`.
pub(crate) fn arguments(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Wrong {
        what: format!("the arguments are not JSON: {error}"),
        cure: "write them like --json '{\"path\": \".\"}'",
    })
}

fn call(name: &str, arguments: &Value, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let setup = open::setup(environment)?;
    open::announce(&setup.config, environment)?;
    let door = open::door(&setup, environment)?;
    let cancel = Cancel::new().map_err(Failure::io("set up cancelling"))?;
    let interrupt = Interrupt::listen().map_err(Failure::io("listen for Ctrl-C"))?;
    interrupt.set(Some(cancel.clone()));
    let wish = Wish { conversation_id: BY_HAND, tool: name, arguments, offer: Offer::Listed };
    let mut operator = operator(&cancel);
    let mut attended = Attended { operator: &mut *operator, cancel: &cancel };
    let outcome = door.call(wish, &mut attended)?;
    let fate = outcome.fate;
    let error = (fate != Fate::Done).then(|| outcome.text.strip_prefix("error: ").unwrap_or(&outcome.text));
    let value = json!({
        "tool": name,
        "success": fate == Fate::Done,
        "output": outcome.text,
        "error": error,
        "metadata": outcome.metadata,
        "receipt_id": outcome.receipt_id,
    });
    if screen.is_for_programs() {
        screen.answer(&value, String::new);
    } else if fate == Fate::Done {
        screen.foreign(&outcome.text)?;
    } else if !shows_calls() || outcome.text.trim_end().lines().count() > 1 {
        screen.remark(&collieclaw::channels::visible_lines(&outcome.text));
    }
    if fate == Fate::Done { Ok(()) } else { Err(Failure::Call(fate)) }
}

/// Whether whoever sits there is told of calls as they happen, each with the first line of what came of it.
fn shows_calls() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whoever sits at the terminal, for one call or turn.
pub(crate) fn operator(cancel: &Cancel) -> Box<dyn Operator> {
    if !std::io::stdin().is_terminal() {
        return Box::new(Nobody);
    }
    if shows_calls() {
        return Box::new(Terminal::new(open::stderr(), cancel.clone(), Detail::Everything));
    }
    // Standard error goes elsewhere, and a question must be seen.
    match std::fs::OpenOptions::new().write(true).open("/dev/tty") {
        Ok(terminal) => Box::new(Terminal::new(Box::new(terminal), cancel.clone(), Detail::Questions)),
        Err(_) => Box::new(Nobody),
    }
}
