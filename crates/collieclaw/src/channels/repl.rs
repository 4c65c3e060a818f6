//! The prompt: line editing, history, commands, and turns that Ctrl-C ends without ending the program (C5.2).

mod commands;
mod typed;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, Config as EditorConfig, Editor};
use serde_json::{Map, Value};

use super::live::Live;
use super::{Channel, ChannelError, tell_started, visible_lines};
use crate::cancel::Cancel;
use crate::estop;
use crate::events::{Event, Form};
use crate::ids;
use crate::runtime::{Attended, Fate, Operator, Runtime, TurnError};
use commands::{Asked, Commands};
use typed::Typed;

/// The channel `cli`.
pub struct Repl<'r> {
    /// The conversation that is spoken in.
    pub conversation: String,
    /// For whoever chooses a provider.
    pub metadata: Map<String, Value>,
    /// What was typed before.
    pub history: PathBuf,
    /// Tells where a turn's cancelling flag is, so that a signal can find it.
    pub on_turn: &'r dyn Fn(Option<Cancel>),
    /// Where answers go.
    pub out: Box<dyn Write>,
    /// Where all else goes.
    pub err: fn() -> Box<dyn Write>,
    /// Who is asked in a turn, and told of it.
    pub operator: &'r dyn Fn(&Cancel) -> Box<dyn Operator>,
    /// How the calls of all turns ended.
    pub fates: Vec<Fate>,
    /// The last turn that had no answer.
    pub failed: Option<TurnError>,
}

/// What follows a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Leave,
}

type LineEditor = Editor<Commands, FileHistory>;

/// As many lines are remembered.
const HISTORY_LINES: usize = 1_000;

impl Repl<'_> {
    fn serve(&mut self, runtime: &Runtime) -> Result<(), ChannelError> {
        // Where answers go into a file, the prompt is for whoever types.
        let elsewhere = std::io::stdin().is_terminal() && !std::io::stdout().is_terminal();
        let behavior = if elsewhere { Behavior::PreferTerm } else { Behavior::Stdio };
        let settings = EditorConfig::builder().max_history_size(HISTORY_LINES)?.behavior(behavior).build();
        let mut editor: LineEditor = Editor::with_config(settings)?;
        editor.set_helper(Some(Commands));
        let mut typed = Typed::load(&self.history, &mut editor);
        self.lines(runtime, &mut editor, &mut typed)
    }

    fn lines(
        &mut self,
        runtime: &Runtime,
        editor: &mut LineEditor,
        typed: &mut Typed,
    ) -> Result<(), ChannelError> {
        loop {
            match editor.readline("collieclaw> ") {
                Ok(line) => {
                    typed.keep(&line, editor);
                    if self.line(runtime, line.trim())? == Then::Leave {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    self.remark(runtime, "(Ctrl-C cancels; /exit or Ctrl-D leaves)");
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn line(&mut self, runtime: &Runtime, line: &str) -> Result<Then, ChannelError> {
        match commands::asked(line) {
            Asked::Nothing => {}
            Asked::Leave => return Ok(Then::Leave),
            Asked::NewConversation => {
                self.conversation = ids::fresh("conversation");
                runtime.door.events.tell(Event::ConversationStarted { conversation: &self.conversation });
                self.remark(runtime, "(a new conversation)");
            }
            Asked::Tell(what) => {
                let text = commands::told(what, runtime);
                self.send("", &text);
            }
            Asked::Turn(message) => self.turn(runtime, message)?,
        }
        Ok(Then::GoOn)
    }

    fn turn(&mut self, runtime: &Runtime, message: &str) -> Result<(), ChannelError> {
        let cancel = Cancel::new()?;
        (self.on_turn)(Some(cancel.clone()));
        let watched = self.supports_draft_updates();
        let mut operator = Live::new((self.operator)(&cancel), &mut *self.out, self.err, watched);
        let mut attended = Attended { operator: &mut operator, cancel: &cancel };
        let report = runtime.turn_with(&self.metadata, &self.conversation, message, &mut attended);
        let shown = operator.end();
        (self.on_turn)(None);
        self.fates.extend(report.fates);
        match report.answer {
            Ok(text) => {
                let conversation = self.conversation.clone();
                // What was shown as it came is not shown twice.
                self.send(&conversation, text.strip_prefix(&shown).unwrap_or(&text));
            }
            Err(TurnError::Cancelled) => self.remark(runtime, "(cancelled)"),
            // Whoever can't write down what happens must not go on.
            Err(error @ (TurnError::Receipt(_) | TurnError::Memory(_))) => return Err(error.into()),
            Err(error) => {
                self.remark(runtime, &format!("\x1b[31merror\x1b[0m: {}", visible_lines(&error.to_string())));
                self.failed = Some(error);
            }
        }
        report.kept.map_err(|error| TurnError::from(error).into())
    }

    fn remark(&self, runtime: &Runtime, text: &str) {
        let events = &runtime.door.events;
        match events.form() {
            Form::Json => {
                events.tell(Event::Remark { what: &anstream::adapter::strip_str(text).to_string() });
            }
            Form::Human => drop(writeln!((self.err)(), "{text}")),
        }
    }
}

impl Channel for Repl<'_> {
    fn name(&self) -> &'static str {
        "cli"
    }

    fn start(&mut self, runtime: Runtime) -> Result<(), ChannelError> {
        tell_started(self, &runtime);
        self.remark(&runtime, "Type a message, or /help. Ctrl-C cancels a turn, Ctrl-D leaves.");
        if estop::is_set(&runtime.door.home) {
            self.remark(&runtime, "All tools are stopped; `collieclaw estop --clear` lets them run again.");
        }
        self.serve(&runtime)
    }

    fn send(&mut self, _: &str, message: &str) {
        let _ = writeln!(self.out, "{}", visible_lines(message)).and_then(|()| self.out.flush());
    }

    /// Whoever reads from a pipe waits for the answer.
    fn supports_draft_updates(&self) -> bool {
        std::io::stdout().is_terminal()
    }
}
