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

use collieclaw_agent::ids;
use collieclaw_agent::receipts::ReceiptError;
use collieclaw_agent::runtime::{
    AbsentOperator, OperatorContext, ToolGateway, ToolOffer, ToolRequest,
};
use collieclaw_listen::AccessToken;
use collieclaw_mcp_ipc::{
    AdapterLineReader, AdapterTask, AdapterToken, McpCallOutcome, McpCallReply, McpClientRequest, PinnedTool,
    ServingEnd,
};
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use serde_json::Value;
use thiserror::Error;
use ward_process::{OutputTarget, StdinSource};

use super::adapter::{ADAPTER_ENDED, BROKE_OFF, McpAdapter};
use super::server_process::McpProcessControl;

/// Calls that wait for the one before them.
const MAX_QUEUED_CALLS: usize = 16;

/// For an answer to be taken from us. The speaker does nothing else.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// For the last answer to reach its client, when no more can be given.
const FINAL_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

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
    Adapter(String),
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
pub enum ServeTransport {
    /// One, on standard input and output, which nothing else may use.
    Stdio,
    /// Any number, on a loopback address, each with the token.
    Http {
        /// The port; 0 for any that is free.
        port: u16,
        /// What every request must carry.
        token: AccessToken,
        /// Told where it is, once it listens.
        on_listening: Box<dyn FnOnce(SocketAddr) + Send>,
    },
}

/// Serves until the client is gone. `listed` are the tools that are offered.
///
/// # Errors
/// When it can't begin, or a receipt can't be written.
pub fn serve(door: &ToolGateway, listed: &BTreeSet<String>, way: ServeTransport) -> Result<(), ServeError> {
    let tools = offered_tools(door, listed);
    let start = |task, input, output| {
        McpAdapter::start(task, &door.rules.policy, input, output).map_err(ServeError::Adapter)
    };
    let McpAdapter { socket: line, processes: reins } = match way {
        ServeTransport::Stdio => {
            start(AdapterTask::OfferToOne { tools }, StdinSource::Inherit, OutputTarget::Inherit)?
        }
        ServeTransport::Http { port, token, on_listening: listening } => {
            let listen = ServeError::io("listen");
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(&listen)?;
            let address = listener.local_addr().map_err(&listen)?;
            let task =
                AdapterTask::OfferToMany { tools, token: AdapterToken::new(token.reveal().to_owned()) };
            let speaker = start(task, StdinSource::FromFd(listener.into()), OutputTarget::Null)?;
            listening(address);
            speaker
        }
    };
    relay_calls(door, listed, line, &reins)
}

/// The tools of the door that are listed.
fn offered_tools(door: &ToolGateway, listed: &BTreeSet<String>) -> Vec<PinnedTool> {
    let tools = door.rules.tools.iter().filter(|tool| listed.contains(tool.name()));
    let told = tools.map(|tool| PinnedTool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        schema: tool.parameters_schema(),
    });
    told.collect()
}

/// A call on its way to the door.
struct QueuedCall {
    number: u64,
    tool: String,
    arguments: String,
    cancel: CancelFlag,
}

/// The clients hear of their calls here, and cancel them there, while the door is at work.
fn relay_calls(
    door: &ToolGateway,
    listed: &BTreeSet<String>,
    line: UnixStream,
    reins: &McpProcessControl,
) -> Result<(), ServeError> {
    let (sender, asked) = sync_channel(MAX_QUEUED_CALLS);
    let ear = AdapterLineReader::new(line.try_clone().map_err(ServeError::io("keep the line"))?);
    let calls = ServedCalls {
        line: Arc::new(Mutex::new(line)),
        in_progress: Arc::default(),
        processes: reins.clone(),
    };
    let listening = calls.clone();
    let thread = std::thread::Builder::new()
        .name("mcp-serve".to_owned())
        .spawn(move || listening.read_requests(ear, &sender))
        .map_err(ServeError::io("start a thread"))?;
    let answered = run_calls(door, listed, &asked, &calls);
    // What was said last is still passed on.
    calls.close_writes();
    let patience = Instant::now() + FINAL_ANSWER_TIMEOUT;
    while !thread.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    reins.kill_all();
    let end = thread.join();
    answered?;
    end.unwrap_or_else(|_| Err(ServeError::Adapter("our own thread broke off".to_owned())))
}

/// One call after the other, on this thread: the door is here.
fn run_calls(
    door: &ToolGateway,
    listed: &BTreeSet<String>,
    asked: &Receiver<QueuedCall>,
    calls: &ServedCalls,
) -> Result<(), ReceiptError> {
    let conversation_id = ids::random_id("mcp");
    for QueuedCall { number, tool, arguments, cancel } in asked {
        // What is no value fits no tool.
        let arguments = serde_json::from_str(&arguments).unwrap_or(Value::Null);
        let offer = if listed.contains(&tool) { ToolOffer::Listed } else { ToolOffer::Unlisted };
        let wish =
            ToolRequest { conversation_id: &conversation_id, tool: &tool, arguments: &arguments, offer };
        let finished =
            door.call(wish, &mut OperatorContext { operator: &mut AbsentOperator, cancel: &cancel });
        calls.answer(
            number,
            match &finished {
                Ok(call) => Ok(McpCallOutcome {
                    worked: call.outcome.is_completed(),
                    text: call.text.clone(),
                    receipt: call.receipt_id.clone(),
                }),
                Err(_) => Err("its receipt can't be written".to_owned()),
            },
        );
        finished?;
    }
    Ok(())
}

/// The calls that are not answered yet, and the line on which they are.
#[derive(Clone)]
struct ServedCalls {
    line: Arc<Mutex<UnixStream>>,
    in_progress: Arc<Mutex<BTreeMap<u64, CancelFlag>>>,
    /// For a speaker that does not listen any more.
    processes: McpProcessControl,
}

impl ServedCalls {
    /// Takes calls until the clients are gone; with them go their calls.
    fn read_requests(
        &self,
        mut ear: AdapterLineReader,
        to: &SyncSender<QueuedCall>,
    ) -> Result<(), ServeError> {
        let end = loop {
            match ear.receive() {
                Ok(Some(McpClientRequest::Call { number, .. }))
                    if self.in_progress().contains_key(&number) =>
                {
                    break Err(ServeError::Adapter(format!("{BROKE_OFF}: one number for two calls")));
                }
                Ok(Some(McpClientRequest::Call { number, tool, arguments })) => {
                    self.queue_call(number, tool, arguments, to);
                }
                Ok(Some(McpClientRequest::Cancel { number })) => {
                    let cancel = self.in_progress().get(&number).cloned();
                    cancel.iter().for_each(|cancel| cancel.raise(CancelReason::Operator));
                }
                Ok(Some(McpClientRequest::Over(ServingEnd::Left))) => break Ok(()),
                Ok(Some(McpClientRequest::Over(ServingEnd::NoProtocol(why)))) => {
                    break Err(ServeError::Protocol(why));
                }
                Ok(Some(McpClientRequest::Over(ServingEnd::Fault(why)))) => {
                    break Err(ServeError::Adapter(why));
                }
                Ok(None) => break Err(ServeError::Adapter(ADAPTER_ENDED.to_owned())),
                Err(error) => break Err(ServeError::Adapter(format!("{BROKE_OFF}: {error}"))),
            }
        };
        let left: Vec<CancelFlag> = self.in_progress().values().cloned().collect();
        left.iter().for_each(|cancel| cancel.raise(CancelReason::Operator));
        end
    }

    fn queue_call(&self, number: u64, tool: String, arguments: String, to: &SyncSender<QueuedCall>) {
        let Ok(cancel) = CancelFlag::new() else {
            return self.answer(number, Err("out of descriptors".to_owned()));
        };
        self.in_progress().insert(number, cancel.clone());
        let asked = QueuedCall { number, tool, arguments, cancel };
        if to.try_send(asked).is_err() {
            self.answer(number, Err("too many calls wait already".to_owned()));
        }
    }

    /// A client that is gone hears nothing; the receipt is there.
    fn answer(&self, number: u64, outcome: Result<McpCallOutcome, String>) {
        self.in_progress().remove(&number);
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let said = collieclaw_mcp_ipc::send_line(
            &line,
            &McpCallReply { number, outcome },
            Instant::now() + ANSWER_TIMEOUT,
        );
        if said.is_err() {
            self.processes.kill_all();
        }
    }

    fn close_writes(&self) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = line.shutdown(Shutdown::Write);
    }

    fn in_progress(&self) -> MutexGuard<'_, BTreeMap<u64, CancelFlag>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
