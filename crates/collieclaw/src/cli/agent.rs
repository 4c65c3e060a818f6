//! `agent`: the interactive prompt, or a single turn.

use std::cell::{Cell, RefCell};
use std::time::SystemTime;

use clap::Args;
use collieclaw::channels::Repl;
use collieclaw_agent::channel::Channel;
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::ids;
use collieclaw_agent::runtime::{AgentRuntime, TurnControl};
use collieclaw_agent::sop::is_run_name;
use collieclaw_gateway::{ConfigFileStamp, check_not_truncated};
use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::hint_metadata;
use serde_json::{Map, Value, json};
use ward_diag::ErrorChain;

use super::environment::CliEnvironment;
use super::failure::{CommandFailure, check_call_outcomes};
use super::gateway::describe_failure;
use super::interrupt::InterruptHandler;
use super::output::OutputPrinter;
use super::tool;
use super::wiring::{self, LoadedSetup, TrustMode, WorkspaceAllower, WorkspaceArgs, WorkspaceChoice};
use super::workspace::escape_path;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw agent\n  collieclaw agent -m \"what is in this folder?\"\n  collieclaw agent -c -m \"and in the folder above?\"\n  collieclaw agent -w ~/project"
)]
pub(crate) struct AgentArgs {
    /// Send one message; only the answer goes to standard output
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Continue the last conversation
    #[arg(short, long = "continue", conflicts_with = "conversation")]
    continue_last: bool,
    /// Continue this conversation, or start one with this name
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Use this provider instead of `default_provider`
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Pass this hint, such as `fast`, to a provider of kind `router`
    #[arg(long, value_name = "WORD")]
    hint: Option<String>,
    /// Use this model instead of the provider's default
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// The maximum length of a conversation name.
const MAX_ID_BYTES: usize = 128;

pub(crate) fn run(
    agent: &AgentArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    if agent.message.is_none() && screen.is_json() {
        return Err(CommandFailure::InvalidInput {
            what: "`--output json` can't be used with the prompt".to_owned(),
            cure: "pass a message with `-m`, or use `collieclaw gateway`",
        });
    }
    let choice = wiring::choose_workspace(&agent.workspace, TrustMode::Ask, environment, screen)?;
    let stamp = ConfigFileStamp::read(&environment.home);
    let setup = wiring::load_setup_in(&choice, environment)?;
    if !setup.config.channels.cli.enabled {
        return Err(CommandFailure::CliChannelDisabled);
    }
    wiring::emit_startup_events(&setup.config, environment)?;
    let runtime = open_agent_runtime(agent, &setup, environment)?;
    let conversation = choose_conversation(agent, &runtime)?;
    runtime.tool_gateway.events.emit(AgentEvent::ConversationStarted { conversation: &conversation });
    let metadata = hint_metadata(agent.hint.as_deref());
    let interrupt = InterruptHandler::install().map_err(CommandFailure::io("listen for Ctrl-C"))?;
    match &agent.message {
        Some(message) => {
            runtime.tool_gateway.events.emit(AgentEvent::ChannelStarted { channel: "cli", drafts: false });
            run_single_turn(message, &metadata, &conversation, &runtime, &interrupt, screen)
        }
        None => {
            if let WorkspaceChoice::Trusted(path) = &choice {
                screen.print_remark(&format!("Working in {}.", escape_path(path)));
            }
            let text = wiring::read_trusted_file(environment.home.folder(), &environment.home.config())?;
            let (stamp, text) = (Cell::new(stamp), RefCell::new(text));
            let reload = RuntimeReload { agent, choice: &choice, environment, stamp, text };
            run_prompt(conversation, metadata, runtime, &reload, &interrupt)
        }
    }
}

fn open_agent_runtime(
    agent: &AgentArgs,
    setup: &LoadedSetup,
    environment: &CliEnvironment,
) -> Result<AgentRuntime, CommandFailure> {
    let config = &setup.config;
    let mut tool_gateway = wiring::open_tool_gateway(setup, environment)?;
    let workspace = tool_gateway.workspace.path().to_owned();
    tool_gateway.rule_updates = WorkspaceAllower::rule_updates(setup, workspace, environment);
    let name = agent.provider.as_ref().unwrap_or(&config.default_provider);
    let provider = wiring::build_provider(name, config, environment, &tool_gateway.events)?;
    let usual = wiring::model_for(name, config);
    let model = agent.model.as_deref().unwrap_or(usual).to_owned();
    tool_gateway.events.emit(AgentEvent::ProviderSelected { provider: name, model: &model });
    Ok(AgentRuntime::new(tool_gateway, provider, model, config))
}

/// Opens the agent again when the configuration or the rules of the workspace have changed.
struct RuntimeReload<'r> {
    agent: &'r AgentArgs,
    choice: &'r WorkspaceChoice,
    environment: &'r CliEnvironment,
    /// The state of the files that are in force.
    stamp: Cell<Option<ConfigFileStamp>>,
    /// The text of the configuration in force.
    text: RefCell<Vec<u8>>,
}

impl RuntimeReload<'_> {
    /// Returns a new agent if a file has changed. A file that can't be used changes nothing until it is corrected.
    fn reload(&self) -> Option<Result<AgentRuntime, String>> {
        let home = &self.environment.home;
        let mut now = ConfigFileStamp::read(home);
        if now == self.stamp.get() {
            return None;
        }
        // Half of a file may allow more than the whole, so the editor gets the time to write all of it.
        if let Some(rest) =
            now.map(|stamp| stamp.time_to_settle(SystemTime::now())).filter(|rest| !rest.is_zero())
        {
            std::thread::sleep(rest);
            now = ConfigFileStamp::read(home);
        }
        self.stamp.set(now);
        let failed = |failure: CommandFailure| describe_failure(&failure);
        let opened =
            wiring::read_trusted_file(home.folder(), &home.config()).map_err(failed).and_then(|text| {
                check_not_truncated(&self.text.borrow(), &text)?;
                let setup = wiring::load_setup_in(self.choice, self.environment).map_err(failed)?;
                let runtime = open_agent_runtime(self.agent, &setup, self.environment).map_err(failed)?;
                *self.text.borrow_mut() = text;
                Ok(runtime)
            });
        Some(opened)
    }
}

fn choose_conversation(agent: &AgentArgs, runtime: &AgentRuntime) -> Result<String, CommandFailure> {
    if let Some(id) = &agent.conversation {
        if is_run_name(id) {
            return Err(CommandFailure::InvalidInput {
                what: "invalid conversation name: names that start with `run-` are reserved for procedures"
                    .to_owned(),
                cure: "run `collieclaw memory show RUN` to see the conversation of a run",
            });
        }
        let fits = !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control);
        let wrong = || CommandFailure::InvalidInput {
            what: "invalid conversation name".to_owned(),
            cure: "run `collieclaw memory list` to see the conversations",
        };
        return fits.then(|| id.clone()).ok_or_else(wrong);
    }
    let last = if agent.continue_last { runtime.tool_gateway.memory.latest_conversation()? } else { None };
    Ok(last.unwrap_or_else(|| ids::random_id("conversation")))
}

fn run_single_turn(
    message: &str,
    metadata: &Map<String, Value>,
    conversation: &str,
    runtime: &AgentRuntime,
    interrupt: &InterruptHandler,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let cancel = CancelFlag::new().map_err(CommandFailure::io("set up cancelling"))?;
    interrupt.set_turn(Some(cancel.clone()));
    let mut operator = tool::terminal_operator(&cancel);
    let mut control = TurnControl { operator: &mut *operator, cancel: &cancel };
    let report = runtime.run_turn(metadata, conversation, message, &mut control);
    drop(operator);
    if let (Err(_), Err(error)) = (&report.answer, &report.persisted) {
        screen.print_remark(&format!("warning: this turn is not remembered: {}", ErrorChain(error)));
    }
    let text = report.answer.map_err(CommandFailure::Turn)?;
    if screen.is_json() {
        screen.print_answer(&json!({ "conversation_id": conversation, "answer": text }), String::new);
    } else {
        screen.print_untrusted(&text)?;
    }
    report.persisted?;
    check_call_outcomes(&report.call_outcomes)
}

fn run_prompt(
    conversation: String,
    metadata: Map<String, Value>,
    runtime: AgentRuntime,
    reload: &RuntimeReload<'_>,
    interrupt: &InterruptHandler,
) -> Result<(), CommandFailure> {
    let mut repl = Repl {
        conversation,
        metadata,
        history_file: reload.environment.home.history(),
        reload: &|| reload.reload(),
        on_turn: &|turn| interrupt.set_turn(turn),
        out: Box::new(anstream::stdout()),
        err: wiring::stderr,
        make_operator: &tool::terminal_operator,
        call_outcomes: Vec::new(),
        last_error: None,
    };
    repl.start(runtime)?;
    // A person has seen the denial on the screen; a script only has the exit code.
    let headless = !std::io::IsTerminal::is_terminal(&std::io::stdin());
    match repl.last_error {
        _ if !headless => Ok(()),
        Some(error) => Err(CommandFailure::Turn(error)),
        None => check_call_outcomes(&repl.call_outcomes),
    }
}
