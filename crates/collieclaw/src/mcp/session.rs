//! A server that is talked to, through the program that speaks its protocol: asked, and left when it takes too long.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use ward_process::{Input, Output};

use super::complaint::Complaint;
use super::hearing::{End, Heard, Hearing, Unasked};
use super::line::{self, Answer, Bearer, Ear, Listed, Question, Task};
use super::pins::PinnedTool;
use super::speaker::{BROKE_OFF, ENDED, Speaker};
use super::start::{Ground, Reins, start};
use crate::cancel::Cancel;
use crate::config::{McpConnection, McpServer};
use crate::estop;
use crate::tools::ToolResult;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The emergency stop, or the operator.
    Cancelled,
    /// It took too long, and the server was ended.
    TimedOut(Duration),
    /// The server had ended before it was asked.
    Gone,
    /// The server, or the way to it, for this reason.
    Failed(String),
}

/// See the module. Dropped, the server is ended.
pub struct Session {
    line: Arc<UnixStream>,
    hearing: Arc<Hearing>,
    /// Held by whoever asks.
    turn: Mutex<()>,
    reins: Reins,
    /// Raised by the emergency stop.
    stop: Cancel,
    /// Of a server that we started.
    complaint: Option<Complaint>,
    /// What of the sandbox is in force; `None` for a server that was there before.
    pub(super) sandbox: Option<String>,
}

impl Session {
    /// Starts a server, or begins to talk to one. It may still fail, which the first question tells.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn open(server: &McpServer, ground: Ground<'_>) -> Result<Self, String> {
        let no_thread = |error: io::Error| format!("no thread for it: {error}");
        let no_descriptor = |error: io::Error| format!("no descriptor for it: {error}");
        let stop = Cancel::new().map_err(no_descriptor)?;
        let watch = estop::Watch::start(ground.home, &stop).map_err(no_thread)?;
        let (speaker, complaint, sandbox) = match &server.connection {
            McpConnection::Program { .. } => {
                let started = start(&server.connection, ground)?;
                let complaint = Complaint::listen(started.complaints).map_err(no_thread);
                let speak = || {
                    let (input, output) = (Input::From(started.output), Output::To(started.input));
                    Speaker::start(Task::AskProgram, ground.policy, input, output)
                };
                let (complaint, speaker) = complaint
                    .and_then(|complaint| Ok((complaint, speak()?)))
                    .inspect_err(|_| started.reins.end())?;
                speaker.reins.take_over(&started.reins);
                (speaker, Some(complaint), Some(started.sandbox))
            }
            McpConnection::Http { url, token_env } => {
                let token = ground.variables.get(token_env).cloned().map(Bearer::new);
                let task = Task::AskAddress { url: url.clone(), token };
                (Speaker::start(task, ground.policy, Input::Null, Output::Null)?, None, None)
            }
        };
        let Speaker { line, reins } = speaker;
        // From here on, what was started ends with this value.
        let session = Self {
            line: Arc::new(line),
            hearing: Arc::new(Hearing::new()),
            turn: Mutex::default(),
            reins,
            stop,
            complaint,
            sandbox,
        };
        let (at_stop, at_end) = (session.reins.clone(), session.reins.clone());
        let ends_with_estop = session.stop.at_once(move || at_stop.end());
        let ear = Ear::new(session.line.try_clone().map_err(no_descriptor)?);
        let hearing = Arc::clone(&session.hearing);
        std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                hearing.end(listen(ear, &hearing));
                at_end.end();
                // Where nothing runs nobody looks.
                drop((ends_with_estop, watch));
            })
            .map_err(no_thread)?;
        Ok(session)
    }

    /// Whether it can't be asked any more.
    pub(super) fn is_over(&self) -> bool {
        self.hearing.is_over() || self.reins.is_over()
    }

    /// Whether the server has said, since this was asked, that its tools are others now.
    pub(super) fn says_it_changed(&self) -> bool {
        self.hearing.says_it_changed()
    }

    /// Its tools.
    ///
    /// # Errors
    /// When it doesn't tell.
    pub fn list(&self, cancel: &Cancel, time: Duration) -> Result<Vec<PinnedTool>, Trouble> {
        match self.ask(&Question::List, cancel, time)? {
            Answer::Tools(tools) => Listed::read_all(tools).map_err(Trouble::Failed),
            other => Err(self.trouble(other)),
        }
    }

    /// Calls one.
    pub(super) fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &Cancel,
        time: Duration,
    ) -> Result<ToolResult, Trouble> {
        let call = Question::Call { tool: tool.to_owned(), arguments: arguments.clone() };
        match self.ask(&call, cancel, time)? {
            Answer::Told { text, worked: true } => Ok(ToolResult::done(text)),
            Answer::Told { text, worked: false } => {
                Ok(ToolResult { output: text, ..ToolResult::failed("the server says that it did not work") })
            }
            other => Err(self.trouble(other)),
        }
    }

    fn trouble(&self, answer: Answer) -> Trouble {
        match answer {
            Answer::Gone => Trouble::Gone,
            Answer::TooMuch => Trouble::Failed("the server sent too much and was ended".to_owned()),
            Answer::Failed(why) => Trouble::Failed(why),
            Answer::Ended(why) => Trouble::Failed(match &self.complaint {
                Some(complaint) => complaint.added_to(why),
                None => why,
            }),
            Answer::Tools(_) | Answer::Told { .. } | Answer::Changed => {
                Trouble::Failed("it answers something else than it was asked".to_owned())
            }
        }
    }

    fn ask(&self, question: &Question, cancel: &Cancel, time: Duration) -> Result<Answer, Trouble> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + time;
        let number = self.hearing.begin().map_err(|end| self.ended(end, cancel))?;
        let (hearing, line) = (Arc::clone(&self.hearing), Arc::clone(&self.line));
        let _at_once = cancel.at_once(move || {
            if hearing.cancel(number) {
                // Also whoever is still asking goes on.
                let _ = line.shutdown(Shutdown::Both);
            }
        });
        let said = line::say(&self.line, question, deadline);
        let trouble = match self.hearing.wait(deadline) {
            Heard::Answer(answer) => return Ok(answer),
            Heard::Cancelled => Trouble::Cancelled,
            Heard::TimedOut => Trouble::TimedOut(time),
            // Half a question asks nothing.
            Heard::End(_) if said.is_err() && number > 1 => self.ended(End::Gone, cancel),
            Heard::End(end) => self.ended(end, cancel),
        };
        self.reins.end();
        Err(trouble)
    }

    /// Whoever stops everything also ends what we listen to.
    fn ended(&self, end: End, cancel: &Cancel) -> Trouble {
        match end {
            _ if self.stop.why().or(cancel.why()).is_some() => Trouble::Cancelled,
            End::Gone => Trouble::Gone,
            End::Broken(why) => Trouble::Failed(why),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reins.end();
        // Whatever could not be ended: nobody listens to it.
        let _ = self.line.shutdown(Shutdown::Both);
    }
}

/// Hears all that is said, until the end: why it is.
fn listen(mut ear: Ear, hearing: &Hearing) -> String {
    loop {
        let heard = match ear.hear() {
            Ok(Some(answer)) => hearing.hear(answer),
            Ok(None) => return ENDED.to_owned(),
            Err(error) => return format!("{BROKE_OFF}: {error}"),
        };
        if let Err(Unasked) = heard {
            return format!("{BROKE_OFF}: it says what nobody has asked for");
        }
    }
}
