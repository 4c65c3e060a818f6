//! `agent`: at a prompt, or one turn.

use clap::Args;
use collieclaw::cancel::Cancel;
use collieclaw::channels::{Channel, Repl};
use collieclaw::events::Event;
use collieclaw::ids;
use collieclaw::providers::hinted;
use collieclaw::runtime::{Attended, Runtime};
use collieclaw::sop::is_run_name;
use serde_json::{Map, Value, json};
use ward_diag::Chain;

use super::environment::Environment;
use super::failure::{Failure, worst};
use super::interrupt::Interrupt;
use super::open::{self, Setup};
use super::screen::Screen;
use super::tool;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw agent\n  collieclaw agent -m \"what is in this folder?\"\n  collieclaw agent -c -m \"and in the folder above?\""
)]
pub(crate) struct Agent {
    /// One message; the answer goes to standard output, and nothing else does.
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Goes on with the last conversation.
    #[arg(short, long = "continue", conflicts_with = "conversation")]
    continue_last: bool,
    /// Goes on with this conversation, or begins one with this name.
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Another provider than `default_provider`.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// A hint for a provider of kind `router`, such as `fast`.
    #[arg(long, value_name = "WORD")]
    hint: Option<String>,
    /// Another model than the provider's.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

/// A name that is longer than this is a mistake.
const LONGEST_ID: usize = 128;

pub(crate) fn run(agent: &Agent, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    if agent.message.is_none() && screen.is_for_programs() {
        return Err(Failure::Wrong {
            what: "`--output json` is of one answer, and a prompt has many".to_owned(),
            cure: "say what you ask with `-m`, or talk to `collieclaw gateway`",
        });
    }
    let setup = open::setup(environment)?;
    if !setup.config.channels.cli.enabled {
        return Err(Failure::ChannelOff);
    }
    let runtime = runtime(agent, &setup, environment)?;
    let conversation = conversation(agent, &runtime)?;
    runtime.door.events.tell(Event::ConversationStarted { conversation: &conversation });
    let metadata = hinted(agent.hint.as_deref());
    let interrupt = Interrupt::listen().map_err(Failure::io("listen for Ctrl-C"))?;
    match &agent.message {
        Some(message) => {
            runtime.door.events.tell(Event::ChannelStarted { channel: "cli", drafts: false });
            once(message, &metadata, &conversation, &runtime, &interrupt, screen)
        }
        None => talk(conversation, metadata, runtime, environment, &interrupt),
    }
}

fn runtime(agent: &Agent, setup: &Setup, environment: &Environment) -> Result<Runtime, Failure> {
    let config = &setup.config;
    open::announce(config, environment)?;
    let door = open::door(setup, environment)?;
    let name = agent.provider.as_ref().unwrap_or(&config.default_provider);
    let provider = open::provider(name, config, environment, &door.events)?;
    let usual = open::model_of(name, config);
    let model = agent.model.as_deref().unwrap_or(usual).to_owned();
    door.events.tell(Event::ProviderSelected { provider: name, model: &model });
    Ok(Runtime::new(door, provider, model, config))
}

fn conversation(agent: &Agent, runtime: &Runtime) -> Result<String, Failure> {
    if let Some(id) = &agent.conversation {
        if is_run_name(id) {
            return Err(Failure::Wrong {
                what: "this can't be the name of a conversation: what begins with `run-` is a procedure's"
                    .to_owned(),
                cure: "`collieclaw memory show RUN` shows what was said in a run",
            });
        }
        let fits = !id.is_empty() && id.len() <= LONGEST_ID && !id.chars().any(char::is_control);
        let wrong = || Failure::Wrong {
            what: "this can't be the name of a conversation".to_owned(),
            cure: "`collieclaw memory list` shows them",
        };
        return fits.then(|| id.clone()).ok_or_else(wrong);
    }
    let last = if agent.continue_last { runtime.door.memory.latest_conversation()? } else { None };
    Ok(last.unwrap_or_else(|| ids::fresh("conversation")))
}

fn once(
    message: &str,
    metadata: &Map<String, Value>,
    conversation: &str,
    runtime: &Runtime,
    interrupt: &Interrupt,
    screen: &Screen,
) -> Result<(), Failure> {
    let cancel = Cancel::new().map_err(Failure::io("set up cancelling"))?;
    interrupt.set(Some(cancel.clone()));
    let mut operator = tool::operator(&cancel);
    let mut attended = Attended { operator: &mut *operator, cancel: &cancel };
    let report = runtime.turn_with(metadata, conversation, message, &mut attended);
    drop(operator);
    if let (Err(_), Err(error)) = (&report.answer, &report.kept) {
        screen.remark(&format!("warning: this turn is not remembered: {}", Chain(error)));
    }
    let text = report.answer.map_err(Failure::Turn)?;
    if screen.is_for_programs() {
        screen.answer(&json!({ "conversation_id": conversation, "answer": text }), String::new);
    } else {
        screen.foreign(&text)?;
    }
    report.kept?;
    worst(&report.fates)
}

fn talk(
    conversation: String,
    metadata: Map<String, Value>,
    runtime: Runtime,
    environment: &Environment,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mut repl = Repl {
        conversation,
        metadata,
        history: environment.home.history(),
        on_turn: &|turn| interrupt.set(turn),
        out: Box::new(anstream::stdout()),
        err: open::stderr,
        operator: &tool::operator,
        fates: Vec::new(),
        failed: None,
    };
    repl.start(runtime)?;
    // A person has seen what was denied; a script has only the code.
    let headless = !std::io::IsTerminal::is_terminal(&std::io::stdin());
    match repl.failed {
        _ if !headless => Ok(()),
        Some(error) => Err(Failure::Turn(error)),
        None => worst(&repl.fates),
    }
}
