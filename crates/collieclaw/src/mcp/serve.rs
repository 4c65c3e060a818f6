//! Our own tools for other agents: whoever speaks the protocol calls them, and every call goes through the door.
//!
//! Nobody is asked: the only one who could be is the client, and it is the client whom the gate is there for. What needs
//! a yes is denied.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use thiserror::Error;
use ward_process::{Input, Output};

use super::line::{self, Bearer, Ear, Given, Outcome, Over, Task, Wanted};
use super::pins::PinnedTool;
use super::speaker::{BROKE_OFF, ENDED, Speaker};
use super::start::Reins;
use crate::cancel::{Cancel, Why};
use crate::channels::{Nobody, Token};
use crate::ids;
use crate::receipts::ReceiptError;
use crate::runtime::{Attended, Door, Fate, Offer, Wish};

/// Calls that wait for the one before them.
const MOST_WAITING: usize = 16;

/// For an answer to be taken from us. The speaker does nothing else.
const PATIENCE: Duration = Duration::from_secs(10);

/// For the last answer to reach its client, when no more can be given.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// Why our tools can't be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A receipt can't be written: nothing more is run.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The machine says no.
    #[error("could not {what}")]
    Io {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The program that speaks the protocol can't be started.
    #[error("tools can't be offered: {0}")]
    Speaker(String),
    /// The client does not speak the protocol.
    #[error("the client does not speak the protocol: {0}")]
    Protocol(String),
}

impl ServeError {
    fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// How clients come to us.
pub enum Way {
    /// One, on standard input and output, which nothing else may use.
    Stdio,
    /// Any number, on a loopback address, each with the token.
    Http {
        /// The port; 0 for any that is free.
        port: u16,
        /// What every request must carry.
        token: Token,
        /// Told where it is, once it listens.
        listening: Box<dyn FnOnce(SocketAddr) + Send>,
    },
}

/// Serves until the client is gone. `listed` are the tools that are offered.
///
/// # Errors
/// When it can't begin, or a receipt can't be written.
pub fn serve(door: &Door, listed: &BTreeSet<String>, way: Way) -> Result<(), ServeError> {
    let tools = offered(door, listed);
    let start = |task, input, output| {
        Speaker::start(task, &door.rules.policy, input, output).map_err(ServeError::Speaker)
    };
    let Speaker { line, reins } = match way {
        Way::Stdio => start(Task::OfferToOne { tools }, Input::Inherit, Output::Inherit)?,
        Way::Http { port, token, listening } => {
            let listen = ServeError::io("listen");
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(&listen)?;
            let address = listener.local_addr().map_err(&listen)?;
            let task = Task::OfferToMany { tools, token: Bearer::new(token.reveal().to_owned()) };
            let speaker = start(task, Input::From(listener.into()), Output::Null)?;
            listening(address);
            speaker
        }
    };
    between(door, listed, line, &reins)
}

/// The tools of the door that are listed.
fn offered(door: &Door, listed: &BTreeSet<String>) -> Vec<PinnedTool> {
    let tools = door.rules.tools.iter().filter(|tool| listed.contains(tool.name()));
    let told = tools.map(|tool| PinnedTool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        schema: tool.parameters_schema(),
    });
    told.collect()
}

/// A call on its way to the door.
struct Asked {
    number: u64,
    tool: String,
    arguments: String,
    cancel: Cancel,
}

/// The clients hear of their calls here, and cancel them there, while the door is at work.
fn between(
    door: &Door,
    listed: &BTreeSet<String>,
    line: UnixStream,
    reins: &Reins,
) -> Result<(), ServeError> {
    let (sender, asked) = sync_channel(MOST_WAITING);
    let ear = Ear::new(line.try_clone().map_err(ServeError::io("keep the line"))?);
    let calls = Calls { line: Arc::new(Mutex::new(line)), going: Arc::default(), reins: reins.clone() };
    let listening = calls.clone();
    let thread = std::thread::Builder::new()
        .name("mcp-serve".to_owned())
        .spawn(move || listening.listen(ear, &sender))
        .map_err(ServeError::io("start a thread"))?;
    let answered = answer_all(door, listed, &asked, &calls);
    // What was said last is still passed on.
    calls.hang_up();
    let patience = Instant::now() + LAST_ANSWER;
    while !thread.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    reins.end();
    let end = thread.join();
    answered?;
    end.unwrap_or_else(|_| Err(ServeError::Speaker("our own thread broke off".to_owned())))
}

/// One call after the other, on this thread: the door is here.
fn answer_all(
    door: &Door,
    listed: &BTreeSet<String>,
    asked: &Receiver<Asked>,
    calls: &Calls,
) -> Result<(), ReceiptError> {
    let conversation_id = ids::fresh("mcp");
    for Asked { number, tool, arguments, cancel } in asked {
        // What is no value fits no tool.
        let arguments = serde_json::from_str(&arguments).unwrap_or(Value::Null);
        let offer = if listed.contains(&tool) { Offer::Listed } else { Offer::Unlisted };
        let wish = Wish { conversation_id: &conversation_id, tool: &tool, arguments: &arguments, offer };
        let outcome = door.call(wish, &mut Attended { operator: &mut Nobody, cancel: &cancel });
        calls.answer(
            number,
            match &outcome {
                Ok(outcome) => Ok(Outcome {
                    worked: outcome.fate == Fate::Done,
                    text: outcome.text.clone(),
                    receipt: outcome.receipt_id.clone(),
                }),
                Err(_) => Err("its receipt can't be written".to_owned()),
            },
        );
        outcome?;
    }
    Ok(())
}

/// The calls that are not answered yet, and the line on which they are.
#[derive(Clone)]
struct Calls {
    line: Arc<Mutex<UnixStream>>,
    going: Arc<Mutex<BTreeMap<u64, Cancel>>>,
    /// For a speaker that does not listen any more.
    reins: Reins,
}

impl Calls {
    /// Takes calls until the clients are gone; with them go their calls.
    fn listen(&self, mut ear: Ear, to: &SyncSender<Asked>) -> Result<(), ServeError> {
        let end = loop {
            match ear.hear() {
                Ok(Some(Wanted::Call { number, .. })) if self.going().contains_key(&number) => {
                    break Err(ServeError::Speaker(format!("{BROKE_OFF}: one number for two calls")));
                }
                Ok(Some(Wanted::Call { number, tool, arguments })) => self.begin(number, tool, arguments, to),
                Ok(Some(Wanted::Cancel { number })) => {
                    let cancel = self.going().get(&number).cloned();
                    cancel.iter().for_each(|cancel| cancel.raise(Why::Operator));
                }
                Ok(Some(Wanted::Over(Over::Left))) => break Ok(()),
                Ok(Some(Wanted::Over(Over::NoProtocol(why)))) => break Err(ServeError::Protocol(why)),
                Ok(Some(Wanted::Over(Over::Fault(why)))) => break Err(ServeError::Speaker(why)),
                Ok(None) => break Err(ServeError::Speaker(ENDED.to_owned())),
                Err(error) => break Err(ServeError::Speaker(format!("{BROKE_OFF}: {error}"))),
            }
        };
        let left: Vec<Cancel> = self.going().values().cloned().collect();
        left.iter().for_each(|cancel| cancel.raise(Why::Operator));
        end
    }

    fn begin(&self, number: u64, tool: String, arguments: String, to: &SyncSender<Asked>) {
        let Ok(cancel) = Cancel::new() else {
            return self.answer(number, Err("out of descriptors".to_owned()));
        };
        self.going().insert(number, cancel.clone());
        let asked = Asked { number, tool, arguments, cancel };
        if to.try_send(asked).is_err() {
            self.answer(number, Err("too many calls wait already".to_owned()));
        }
    }

    /// A client that is gone hears nothing; the receipt is there.
    fn answer(&self, number: u64, outcome: Result<Outcome, String>) {
        self.going().remove(&number);
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let said = line::say(&line, &Given { number, outcome }, Instant::now() + PATIENCE);
        if said.is_err() {
            self.reins.end();
        }
    }

    fn hang_up(&self) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = line.shutdown(Shutdown::Write);
    }

    fn going(&self) -> MutexGuard<'_, BTreeMap<u64, Cancel>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
