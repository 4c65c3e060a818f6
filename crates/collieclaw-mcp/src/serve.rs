//! Serves our tools to other agents over MCP. Every call goes through the tool gateway.
//!
//! A call that needs the operator's approval is denied: only the client could be asked, and a client must not
//! approve its own calls.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collieclaw_agent::ids;
use collieclaw_agent::receipts::ReceiptError;
use collieclaw_agent::runtime::{AbsentOperator, ToolGateway, ToolOffer, ToolRequest, TurnControl};
use collieclaw_listen::AccessToken;
use collieclaw_mcp_ipc::{
    AdapterLineReader, AdapterTask, AdapterToken, McpCallOutcome, McpCallReply, McpClientRequest, PinnedTool,
    ServingEnd,
};
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use serde_json::Value;
use thiserror::Error;
use ward_process::{OutputTarget, StdinSource};

use super::adapter::{ADAPTER_ENDED, ADAPTER_FAILED, McpAdapter};
use super::failure::McpFailure;
use super::server_process::McpProcessControl;

/// The most calls that wait for an earlier call. Further calls are rejected.
const MAX_QUEUED_CALLS: usize = 16;

/// The most rejected calls that wait for their receipts. A client that sends even more has to wait as well.
const MAX_REJECTED_CALLS: usize = 240;

/// The time for the adapter to read an answer; it has nothing else to do.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for the last answer to reach its client before the adapter is killed.
const FINAL_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why serving our tools failed.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A receipt could not be written, so no further call runs.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    #[error("could not {what}")]
    Io { what: &'static str, source: io::Error },
    /// The adapter could not be started, or failed.
    #[error("could not offer tools: {0}")]
    Adapter(McpFailure),
    #[error("the client does not speak MCP: {0}")]
    Protocol(String),
}

impl ServeError {
    fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

fn adapter_failure(why: impl Into<String>) -> ServeError {
    ServeError::Adapter(McpFailure::Other(why.into()))
}

/// The transport that clients connect with.
pub enum ServeTransport {
    /// A single client on standard input and output, which nothing else may use.
    Stdio,
    /// Any number of clients on a loopback address, each with the token.
    Http {
        /// The port; 0 for any free port.
        port: u16,
        /// The bearer token that every request must carry.
        token: AccessToken,
        /// Called with the address once the server listens.
        on_listening: Box<dyn FnOnce(SocketAddr) + Send>,
    },
}

/// Serves the tools named in `listed` until the client disconnects.
///
/// # Errors
/// Fails if serving can't start, or if a receipt can't be written.
pub fn serve(
    gateway: &ToolGateway,
    listed: &BTreeSet<String>,
    transport: ServeTransport,
) -> Result<(), ServeError> {
    let tools = offered_tools(gateway, listed);
    let start = |task, input, output| {
        McpAdapter::start(task, &gateway.rules.policy, input, output).map_err(ServeError::Adapter)
    };
    let McpAdapter { socket, processes } = match transport {
        ServeTransport::Stdio => {
            start(AdapterTask::OfferToOne { tools }, StdinSource::Inherit, OutputTarget::Inherit)?
        }
        ServeTransport::Http { port, token, on_listening } => {
            let listen = ServeError::io("listen");
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(&listen)?;
            let address = listener.local_addr().map_err(&listen)?;
            let task =
                AdapterTask::OfferToMany { tools, token: AdapterToken::new(token.reveal().to_owned()) };
            let adapter = start(task, StdinSource::FromFd(listener.into()), OutputTarget::Null)?;
            on_listening(address);
            adapter
        }
    };
    relay_calls(gateway, listed, socket, &processes)
}

/// Returns the gateway's tools that are named in `listed`.
fn offered_tools(gateway: &ToolGateway, listed: &BTreeSet<String>) -> Vec<PinnedTool> {
    let tools = gateway.rules.tools.iter().filter(|tool| listed.contains(tool.name()));
    let offered = tools.map(|tool| PinnedTool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        schema: tool.parameters_schema(),
    });
    offered.collect()
}

/// A client's call that waits for its turn.
struct QueuedCall {
    number: u64,
    tool: String,
    arguments: String,
    cancel: CancelFlag,
    admission: CallAdmission,
}

/// The decision about a call at its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallAdmission {
    Admitted,
    /// Too many calls were waiting. The call only gets its receipt.
    Rejected,
}

/// Runs calls on this thread while another thread reads new calls and cancels.
fn relay_calls(
    gateway: &ToolGateway,
    listed: &BTreeSet<String>,
    socket: UnixStream,
    processes: &McpProcessControl,
) -> Result<(), ServeError> {
    let (sender, queue) = sync_channel(MAX_QUEUED_CALLS + MAX_REJECTED_CALLS);
    let reader = AdapterLineReader::new(socket.try_clone().map_err(ServeError::io("duplicate the socket"))?);
    let calls = ServedCalls {
        socket: Arc::new(Mutex::new(socket)),
        in_progress: Arc::default(),
        admitted: Arc::default(),
        processes: processes.clone(),
    };
    let reading = calls.clone();
    let thread = std::thread::Builder::new()
        .name("mcp-serve".to_owned())
        .spawn(move || reading.read_requests(reader, &sender))
        .map_err(ServeError::io("start a thread"))?;
    let ran = run_calls(gateway, listed, &queue, &calls);
    // The adapter still delivers the last answers to the clients.
    calls.close_writes();
    let deadline = Instant::now() + FINAL_ANSWER_TIMEOUT;
    while !thread.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    processes.kill_all();
    let end = thread.join();
    ran?;
    end.unwrap_or_else(|_| Err(adapter_failure("the reading thread panicked")))
}

/// Runs one call after the other, on the thread that owns the gateway.
fn run_calls(
    gateway: &ToolGateway,
    listed: &BTreeSet<String>,
    queue: &Receiver<QueuedCall>,
    calls: &ServedCalls,
) -> Result<(), ReceiptError> {
    let conversation_id = ids::random_id("mcp");
    for QueuedCall { number, tool, arguments, cancel, admission } in queue {
        // `null` matches no tool's schema, so invalid JSON is rejected there.
        let arguments = serde_json::from_str(&arguments).unwrap_or(Value::Null);
        let offer = if listed.contains(&tool) { ToolOffer::Listed } else { ToolOffer::Unlisted };
        let request =
            ToolRequest { conversation_id: &conversation_id, tool: &tool, arguments: &arguments, offer };
        let finished = match admission {
            CallAdmission::Rejected => gateway.reject(request),
            CallAdmission::Admitted => {
                calls.admitted.fetch_sub(1, Ordering::SeqCst);
                gateway.call(request, &mut TurnControl { operator: &mut AbsentOperator, cancel: &cancel })
            }
        };
        calls.answer(
            number,
            match &finished {
                Ok(call) => Ok(McpCallOutcome {
                    worked: call.outcome.is_completed(),
                    text: call.text.clone(),
                    receipt: call.receipt_id.clone(),
                }),
                Err(_) => Err("could not write the receipt of the call".to_owned()),
            },
        );
        finished?;
    }
    Ok(())
}

/// The unanswered calls, and the socket to the adapter.
#[derive(Clone)]
struct ServedCalls {
    socket: Arc<Mutex<UnixStream>>,
    in_progress: Arc<Mutex<BTreeMap<u64, CancelFlag>>>,
    /// The number of calls that wait to be run.
    admitted: Arc<AtomicUsize>,
    /// Kills an adapter that no longer reads.
    processes: McpProcessControl,
}

impl ServedCalls {
    /// Reads calls until the clients are gone, then cancels the calls that are left.
    fn read_requests(
        &self,
        mut reader: AdapterLineReader,
        to: &SyncSender<QueuedCall>,
    ) -> Result<(), ServeError> {
        let end = loop {
            match reader.receive() {
                Ok(Some(McpClientRequest::Call { number, .. }))
                    if self.in_progress().contains_key(&number) =>
                {
                    break Err(adapter_failure(format!("{ADAPTER_FAILED}: two calls have the same number")));
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
                    break Err(adapter_failure(why));
                }
                Ok(Some(McpClientRequest::Over(ServingEnd::WrongVersion(why)))) => {
                    break Err(ServeError::Adapter(McpFailure::AdapterUnusable(why)));
                }
                Ok(None) => break Err(adapter_failure(ADAPTER_ENDED)),
                Err(error) => break Err(adapter_failure(format!("{ADAPTER_FAILED}: {error}"))),
            }
        };
        let left: Vec<CancelFlag> = self.in_progress().values().cloned().collect();
        left.iter().for_each(|cancel| cancel.raise(CancelReason::Operator));
        end
    }

    fn queue_call(&self, number: u64, tool: String, arguments: String, to: &SyncSender<QueuedCall>) {
        let Ok(cancel) = CancelFlag::new() else {
            return self.answer(number, Err("out of file descriptors".to_owned()));
        };
        self.in_progress().insert(number, cancel.clone());
        let free = |waiting| (waiting < MAX_QUEUED_CALLS).then_some(waiting + 1);
        let admission = match self.admitted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, free) {
            Ok(_) => CallAdmission::Admitted,
            Err(_) => CallAdmission::Rejected,
        };
        let call = QueuedCall { number, tool, arguments, cancel, admission };
        if to.send(call).is_err() {
            self.answer(number, Err("no further call is run".to_owned()));
        }
    }

    /// Sends an outcome to the client. If the client is gone, only the receipt remains.
    fn answer(&self, number: u64, outcome: Result<McpCallOutcome, String>) {
        self.in_progress().remove(&number);
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = collieclaw_mcp_ipc::send_line(
            &socket,
            &McpCallReply { number, outcome },
            Instant::now() + ANSWER_TIMEOUT,
        );
        if sent.is_err() {
            self.processes.kill_all();
        }
    }

    fn close_writes(&self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.shutdown(Shutdown::Write);
    }

    fn in_progress(&self) -> MutexGuard<'_, BTreeMap<u64, CancelFlag>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
