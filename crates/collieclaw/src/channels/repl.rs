//! The interactive prompt: line editing, history, slash commands, and turns that Ctrl-C cancels without ending the
//! program (C5.2).

mod commands;
mod history;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use collieclaw_agent::channel::{Channel, emit_channel_started};
use collieclaw_agent::estop;
use collieclaw_agent::events::{AgentEvent, EventFormat};
use collieclaw_agent::ids;
use collieclaw_agent::runtime::{AgentRuntime, CallOutcome, Operator, TurnControl, TurnError};
use collieclaw_providers::cancel::CancelFlag;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, Config as EditorConfig, Editor};
use serde_json::{Map, Value};
use ward_terminal::{TextTone, escape_lines, paint};

use super::ReplError;
use super::streaming_operator::StreamingOperator;
use commands::{CommandCompleter, ReplInput};
use history::HistoryFile;

/// The channel `cli`.
pub struct Repl<'r> {
    /// The id of the current conversation.
    pub conversation: String,
    /// Hints for a provider of kind `router`.
    pub metadata: Map<String, Value>,
    pub history_file: PathBuf,
    /// Returns a new agent if the configuration or the rules of the workspace have changed, or the reason why the
    /// changed ones can't be used.
    pub reload: &'r dyn Fn() -> Option<Result<AgentRuntime, String>>,
    /// Publishes the cancel flag of the current turn to the signal handler.
    pub on_turn: &'r dyn Fn(Option<CancelFlag>),
    /// The output for answers.
    pub out: Box<dyn Write>,
    /// The output for everything except answers.
    pub err: fn() -> Box<dyn Write>,
    /// The operator who approves calls and sees the progress of a turn.
    pub make_operator: &'r dyn Fn(&CancelFlag) -> Box<dyn Operator>,
    /// The outcomes of the tool calls of all turns.
    pub call_outcomes: Vec<CallOutcome>,
    /// The last turn that failed.
    pub last_error: Option<TurnError>,
}

/// The action after an input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplControl {
    Continue,
    Exit,
}

type LineEditor = Editor<CommandCompleter, FileHistory>;

/// The number of lines kept in the history.
const HISTORY_LINES: usize = 1_000;

impl Repl<'_> {
    fn serve(&mut self, runtime: AgentRuntime) -> Result<(), ReplError> {
        // If answers go to a file, the prompt goes to standard error, where the user sees it.
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
        mut runtime: AgentRuntime,
        editor: &mut LineEditor,
        typed: &mut HistoryFile,
    ) -> Result<(), ReplError> {
        loop {
            match editor.readline("collieclaw> ") {
                Ok(line) => {
                    typed.append(&line, editor);
                    self.take_changed_rules(&mut runtime);
                    if self.handle_line(&runtime, line.trim())? == ReplControl::Exit {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    self.print_remark(&runtime, "(Ctrl-C cancels a turn; /exit or Ctrl-D quits)");
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes a changed configuration before the next line is handled. One that can't be used changes nothing.
    fn take_changed_rules(&self, runtime: &mut AgentRuntime) {
        match (self.reload)() {
            None => {}
            Some(Ok(reloaded)) => {
                let changed = reloaded.tool_gateway.policy_hash() != runtime.tool_gateway.policy_hash();
                *runtime = reloaded;
                if changed {
                    self.print_remark(runtime, "(the rules have changed; /policy shows them)");
                }
            }
            Some(Err(why)) => {
                let what = format!(
                    "{}: the changed rules can't be used, so the old ones stay in force: {}",
                    paint(TextTone::Bad, "error"),
                    escape_lines(&why)
                );
                self.print_remark(runtime, &what);
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
                self.print_remark(runtime, "(new conversation)");
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
        let mut control = TurnControl { operator: &mut operator, cancel: &cancel };
        let report = runtime.run_turn(&self.metadata, &self.conversation, message, &mut control);
        let shown = operator.into_shown();
        (self.on_turn)(None);
        self.call_outcomes.extend(report.call_outcomes);
        match report.answer {
            Ok(text) => {
                let conversation = self.conversation.clone();
                // A streamed answer is already on the screen.
                self.send(&conversation, text.strip_prefix(&shown).unwrap_or(&text));
            }
            Err(TurnError::Cancelled) => self.print_remark(runtime, "(cancelled)"),
            // A failure to write receipts or memory ends the session.
            Err(error @ (TurnError::Receipt(_) | TurnError::Memory(_))) => return Err(error.into()),
            Err(error) => {
                self.print_remark(
                    runtime,
                    &format!("{}: {}", paint(TextTone::Bad, "error"), escape_lines(&error.to_string())),
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
        self.print_remark(&runtime, "Type a message, or /help. Ctrl-C cancels a turn, Ctrl-D quits.");
        if estop::is_set(&runtime.tool_gateway.home) {
            self.print_remark(
                &runtime,
                "All tools are stopped; `collieclaw estop --clear` lets them run again.",
            );
        }
        self.serve(runtime)
    }

    fn send(&mut self, _: &str, message: &str) {
        let _ = writeln!(self.out, "{}", escape_lines(message)).and_then(|()| self.out.flush());
    }

    /// Streams answers only to a terminal: the reader of a pipe gets the whole answer at once.
    fn supports_draft_updates(&self) -> bool {
        std::io::stdout().is_terminal()
    }
}
