//! The prompt: line editing, history, commands, and turns that Ctrl-C ends without ending the program (C5.2).

mod commands;
mod history;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use collieclaw_agent::channel::{Channel, emit_channel_started};
use collieclaw_agent::estop;
use collieclaw_agent::events::{AgentEvent, EventFormat};
use collieclaw_agent::ids;
use collieclaw_agent::runtime::{AgentRuntime, CallOutcome, Operator, OperatorContext, TurnError};
use collieclaw_providers::cancel::CancelFlag;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, Config as EditorConfig, Editor};
use serde_json::{Map, Value};

use super::ReplError;
use super::streaming_operator::StreamingOperator;
use commands::{CommandCompleter, ReplInput};
use history::HistoryFile;
use ward_terminal::escape_lines;

/// The channel `cli`.
pub struct Repl<'r> {
    /// The conversation that is spoken in.
    pub conversation: String,
    /// For whoever chooses a provider.
    pub metadata: Map<String, Value>,
    /// What was typed before.
    pub history_file: PathBuf,
    /// Tells where a turn's cancelling flag is, so that a signal can find it.
    pub on_turn: &'r dyn Fn(Option<CancelFlag>),
    /// Where answers go.
    pub out: Box<dyn Write>,
    /// Where all else goes.
    pub err: fn() -> Box<dyn Write>,
    /// Who is asked in a turn, and told of it.
    pub make_operator: &'r dyn Fn(&CancelFlag) -> Box<dyn Operator>,
    /// The outcomes of the calls of all turns.
    pub call_outcomes: Vec<CallOutcome>,
    /// The last turn that had no answer.
    pub last_error: Option<TurnError>,
}

/// What follows a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplControl {
    Continue,
    Exit,
}

type LineEditor = Editor<CommandCompleter, FileHistory>;

/// As many lines are remembered.
const HISTORY_LINES: usize = 1_000;

impl Repl<'_> {
    fn serve(&mut self, runtime: &AgentRuntime) -> Result<(), ReplError> {
        // Where answers go into a file, the prompt is for whoever types.
        let elsewhere = std::io::stdin().is_terminal() && !std::io::stdout().is_terminal();
        let behavior = if elsewhere { Behavior::PreferTerm } else { Behavior::Stdio };
        let settings = EditorConfig::builder().max_history_size(HISTORY_LINES)?.behavior(behavior).build();
        let mut editor: LineEditor = Editor::with_config(settings)?;
        editor.set_helper(Some(CommandCompleter));
        let mut typed = HistoryFile::load(&self.history_file, &mut editor);
        self.read_loop(runtime, &mut editor, &mut typed)
    }

    fn read_loop(
        &mut self,
        runtime: &AgentRuntime,
        editor: &mut LineEditor,
        typed: &mut HistoryFile,
    ) -> Result<(), ReplError> {
        loop {
            match editor.readline("collieclaw> ") {
                Ok(line) => {
                    typed.append(&line, editor);
                    if self.handle_line(runtime, line.trim())? == ReplControl::Exit {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    self.print_remark(runtime, "(Ctrl-C cancels; /exit or Ctrl-D leaves)");
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn handle_line(&mut self, runtime: &AgentRuntime, line: &str) -> Result<ReplControl, ReplError> {
        match commands::parse_line(line) {
            ReplInput::Empty => {}
            ReplInput::Exit => return Ok(ReplControl::Exit),
            ReplInput::NewConversation => {
                self.conversation = ids::random_id("conversation");
                runtime
                    .tool_gateway
                    .events
                    .emit(AgentEvent::ConversationStarted { conversation: &self.conversation });
                self.print_remark(runtime, "(a new conversation)");
            }
            ReplInput::ShowInfo(what) => {
                let text = commands::run_info_command(what, runtime);
                self.send("", &text);
            }
            ReplInput::Message(message) => self.run_turn(runtime, message)?,
        }
        Ok(ReplControl::Continue)
    }

    fn run_turn(&mut self, runtime: &AgentRuntime, message: &str) -> Result<(), ReplError> {
        let cancel = CancelFlag::new()?;
        (self.on_turn)(Some(cancel.clone()));
        let watched = self.supports_draft_updates();
        let mut operator =
            StreamingOperator::new((self.make_operator)(&cancel), &mut *self.out, self.err, watched);
        let mut attended = OperatorContext { operator: &mut operator, cancel: &cancel };
        let report = runtime.run_turn(&self.metadata, &self.conversation, message, &mut attended);
        let shown = operator.into_shown();
        (self.on_turn)(None);
        self.call_outcomes.extend(report.call_outcomes);
        match report.answer {
            Ok(text) => {
                let conversation = self.conversation.clone();
                // What was shown as it came is not shown twice.
                self.send(&conversation, text.strip_prefix(&shown).unwrap_or(&text));
            }
            Err(TurnError::Cancelled) => self.print_remark(runtime, "(cancelled)"),
            // Whoever can't write down what happens must not go on.
            Err(error @ (TurnError::Receipt(_) | TurnError::Memory(_))) => return Err(error.into()),
            Err(error) => {
                self.print_remark(
                    runtime,
                    &format!("\x1b[31merror\x1b[0m: {}", escape_lines(&error.to_string())),
                );
                self.last_error = Some(error);
            }
        }
        report.persisted.map_err(|error| TurnError::from(error).into())
    }

    fn print_remark(&self, runtime: &AgentRuntime, text: &str) {
        let events = &runtime.tool_gateway.events;
        match events.format() {
            EventFormat::Json => {
                events.emit(AgentEvent::Remark { what: &anstream::adapter::strip_str(text).to_string() });
            }
            EventFormat::Human => drop(writeln!((self.err)(), "{text}")),
        }
    }
}

impl Channel for Repl<'_> {
    fn name(&self) -> &'static str {
        "cli"
    }

    type Error = ReplError;

    fn start(&mut self, runtime: AgentRuntime) -> Result<(), ReplError> {
        emit_channel_started(self, &runtime);
        self.print_remark(&runtime, "Type a message, or /help. Ctrl-C cancels a turn, Ctrl-D leaves.");
        if estop::is_set(&runtime.tool_gateway.home) {
            self.print_remark(
                &runtime,
                "All tools are stopped; `collieclaw estop --clear` lets them run again.",
            );
        }
        self.serve(&runtime)
    }

    fn send(&mut self, _: &str, message: &str) {
        let _ = writeln!(self.out, "{}", escape_lines(message)).and_then(|()| self.out.flush());
    }

    /// Whoever reads from a pipe waits for the answer.
    fn supports_draft_updates(&self) -> bool {
        std::io::stdout().is_terminal()
    }
}
