//! A server that is talked to, through the program that speaks its protocol: asked, and left when it takes too long.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use ward_process::{Input, Output};

use super::complaint::Complaint;
use super::line::{self, Answer, Question, Task};
use super::pins::PinnedTool;
use super::speaker::{ENDED, Speaker};
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

/// What comes while an answer is waited for.
enum Heard {
    Answer(Answer),
    Cancelled,
    /// Nothing comes any more, and why.
    End(String),
}

/// Where answers come in.
struct Hearing {
    heard: Receiver<Heard>,
    /// Whether anything was ever asked.
    asked: bool,
}

/// See the module. Dropped, the server is ended.
pub struct Session {
    line: UnixStream,
    /// Whoever waits for an answer holds it: one question at a time.
    heard: Mutex<Hearing>,
    hears: Sender<Heard>,
    reins: Reins,
    changed: Arc<AtomicBool>,
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
        match &server.connection {
            McpConnection::Program { .. } => {
                let started = start(&server.connection, ground)?;
                let complaint = Complaint::listen(started.complaints).map_err(|error| no_thread(&error));
                let speak = || {
                    let (input, output) = (Input::From(started.output), Output::To(started.input));
                    Speaker::start(Task::AskProgram, ground.policy, input, output)
                };
                let (complaint, speaker) = complaint
                    .and_then(|complaint| Ok((complaint, speak()?)))
                    .inspect_err(|_| started.reins.end())?;
                speaker.reins.take_over(&started.reins);
                Self::with(speaker, ground, Some(complaint), Some(started.sandbox))
            }
            McpConnection::Http { url, token_env } => {
                let token = ground.variables.get(token_env).cloned();
                let task = Task::AskAddress { url: url.clone(), token };
                let speaker = Speaker::start(task, ground.policy, Input::Null, Output::Null)?;
                Self::with(speaker, ground, None, None)
            }
        }
    }

    fn with(
        speaker: Speaker,
        ground: Ground<'_>,
        complaint: Option<Complaint>,
        sandbox: Option<String>,
    ) -> Result<Self, String> {
        let Speaker { line, reins } = speaker;
        let (hears, heard) = channel();
        // From here on, what was started ends with this value.
        let heard = Mutex::new(Hearing { heard, asked: false });
        let session = Self { line, heard, hears, reins, changed: Arc::default(), complaint, sandbox };
        let no_descriptor = |error: io::Error| format!("no descriptor for it: {error}");
        let stop = Cancel::new().map_err(no_descriptor)?;
        let watch = estop::Watch::start(ground.home, &stop).map_err(|error| no_thread(&error))?;
        let (at_stop, at_end) = (session.reins.clone(), session.reins.clone());
        let ends_with_estop = stop.at_once(move || at_stop.end());
        let line = session.line.try_clone().map_err(no_descriptor)?;
        let (hears, changed) = (session.hears.clone(), Arc::clone(&session.changed));
        std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                listen(line, &hears, &changed);
                at_end.end();
                // Where nothing runs nobody looks.
                drop((ends_with_estop, watch));
            })
            .map_err(|error| no_thread(&error))?;
        Ok(session)
    }

    /// Whether it can't be asked any more.
    pub(super) fn is_over(&self) -> bool {
        self.reins.is_over()
    }

    /// Whether the server has said, since this was asked, that its tools are others now.
    pub(super) fn says_it_changed(&self) -> bool {
        self.changed.swap(false, Ordering::SeqCst)
    }

    /// Its tools.
    ///
    /// # Errors
    /// When it doesn't tell.
    pub fn list(&self, cancel: &Cancel, time: Duration) -> Result<Vec<PinnedTool>, Trouble> {
        match self.ask(&Question::List, cancel, time)? {
            Answer::Tools(tools) => Ok(tools),
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
            Answer::Failed(why) => Trouble::Failed(match &self.complaint {
                Some(complaint) => complaint.added_to(why),
                None => why,
            }),
            Answer::Tools(_) | Answer::Told { .. } | Answer::Changed => {
                Trouble::Failed("it answers something else than it was asked".to_owned())
            }
        }
    }

    fn ask(&self, question: &Question, cancel: &Cancel, time: Duration) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + time;
        let mut hearing = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let first = hearing.is_there()?;
        let cancelled = self.hears.clone();
        let _at_once = cancel.at_once(move || drop(cancelled.send(Heard::Cancelled)));
        if cancel.why().is_some() {
            return Err(Trouble::Cancelled);
        }
        let said = self.line.set_write_timeout(Some(time)).and_then(|()| line::say(&self.line, question));
        let answer = match said {
            Ok(()) => hearing.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            // Half a question asks nothing; of one that has ended at once we hear why.
            Err(_) if first => hearing.heard.recv_timeout(time).ok(),
            Err(_) => return Err(Trouble::Gone),
        };
        let trouble = match answer {
            Some(Heard::Answer(answer)) => return Ok(answer),
            // Whoever stops everything also ends what we listen to.
            Some(Heard::End(why)) if cancel.why().is_none() => Trouble::Failed(why),
            Some(Heard::Cancelled | Heard::End(_)) => Trouble::Cancelled,
            None => Trouble::TimedOut(time),
        };
        self.reins.end();
        Err(trouble)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reins.end();
    }
}

impl Hearing {
    /// Nothing of what was heard before is an answer to the next question. Whether it is the first.
    fn is_there(&mut self) -> Result<bool, Trouble> {
        let first = !std::mem::replace(&mut self.asked, true);
        loop {
            match self.heard.try_recv() {
                Ok(Heard::Cancelled) => {}
                // Another one would end as well.
                Ok(Heard::End(why)) if first => return Err(Trouble::Failed(why)),
                Ok(_) | Err(TryRecvError::Disconnected) => return Err(Trouble::Gone),
                Err(TryRecvError::Empty) => return Ok(first),
            }
        }
    }
}

/// Hears all that is said, until the end.
fn listen(line: UnixStream, hears: &Sender<Heard>, changed: &AtomicBool) {
    let mut line = BufReader::new(line);
    let end = loop {
        match line::hear(&mut line) {
            Ok(Some(Answer::Changed)) => changed.store(true, Ordering::SeqCst),
            Ok(Some(answer)) => drop(hears.send(Heard::Answer(answer))),
            Ok(None) => break ENDED.to_owned(),
            Err(error) => break format!("the program that speaks the protocol broke off: {error}"),
        }
    };
    let _ = hears.send(Heard::End(end));
}

fn no_thread(error: &io::Error) -> String {
    format!("no thread for it: {error}")
}
