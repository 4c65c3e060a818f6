//! A session with an MCP server, through the adapter: sends requests and kills the server if a reply takes
//! too long.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use collieclaw_agent::config::{McpConnection, McpServerSettings};
use collieclaw_agent::estop;
use collieclaw_agent::tools::ToolResult;
use collieclaw_mcp_ipc::{
    AdapterLineReader, AdapterTask, AdapterToken, ListedMcpTool, McpServerReply, McpServerRequest, PinnedTool,
};
use collieclaw_providers::cancel::CancelFlag;
use serde_json::{Map, Value};
use ward_process::{OutputTarget, StdinSource};

use super::adapter::{ADAPTER_ENDED, ADAPTER_FAILED, McpAdapter};
use super::failure::McpFailure;
use super::reply_mailbox::{ConnectionEnd, ReplyMailbox, ReplyOutcome, UnsolicitedReply};
use super::server_process::{McpProcessControl, McpStartContext, start_server};
use super::stderr_capture::StderrCapture;

/// The reason why a call got no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpCallError {
    /// The emergency stop or the operator cancelled the call.
    Cancelled,
    /// The reply took too long, and the server was killed.
    TimedOut(Duration),
    /// The server had ended before the call.
    ServerEnded,
    /// The server or the connection failed, for this reason.
    Failed(McpFailure),
}

/// A session with a server, which is killed when the session is dropped.
pub struct McpSession {
    socket: Arc<UnixStream>,
    mailbox: Arc<ReplyMailbox>,
    /// Held during a request, because the mailbox holds a single reply.
    request_lock: Mutex<()>,
    processes: McpProcessControl,
    /// Raised by the emergency stop.
    stop: CancelFlag,
    /// The error output of a server that we started.
    stderr: Option<StderrCapture>,
    /// The sandbox level; `None` for a server that was running before.
    pub(super) sandbox: Option<String>,
}

impl McpSession {
    /// Starts a server, or connects to a running server. A server that fails later reports it in reply to the
    /// first request.
    ///
    /// # Errors
    /// Fails if the server can't be started.
    pub fn open(server: &McpServerSettings, context: McpStartContext<'_>) -> Result<Self, McpFailure> {
        let no_thread = |error: io::Error| format!("could not start a thread: {error}");
        let no_descriptor = |error: io::Error| format!("could not create a file descriptor: {error}");
        let stop = CancelFlag::new().map_err(no_descriptor)?;
        let watch = estop::EstopWatch::start(context.home, &stop).map_err(no_thread)?;
        let (adapter, stderr, sandbox) = match &server.connection {
            McpConnection::Program { .. } => {
                let started = start_server(&server.connection, context)?;
                let capture =
                    StderrCapture::start(started.stderr).map_err(|error| McpFailure::Other(no_thread(error)));
                let start_adapter = || {
                    let (input, output) =
                        (StdinSource::FromFd(started.output), OutputTarget::ToFd(started.input));
                    McpAdapter::start(AdapterTask::AskProgram, context.policy, input, output)
                };
                let (capture, adapter) = capture
                    .and_then(|capture| Ok((capture, start_adapter()?)))
                    .inspect_err(|_| started.processes.kill_all())?;
                adapter.processes.take_over(&started.processes);
                (adapter, Some(capture), Some(started.sandbox))
            }
            McpConnection::Http { url, token_env } => {
                let token = context.variables.get(token_env).cloned().map(AdapterToken::new);
                let task = AdapterTask::AskAddress { url: url.clone(), token };
                (McpAdapter::start(task, context.policy, StdinSource::Null, OutputTarget::Null)?, None, None)
            }
        };
        let McpAdapter { socket, processes } = adapter;
        // From here on, dropping the session kills everything that was started.
        let session = Self {
            socket: Arc::new(socket),
            mailbox: Arc::new(ReplyMailbox::new()),
            request_lock: Mutex::default(),
            processes,
            stop,
            stderr,
            sandbox,
        };
        session.processes.watch_memory().map_err(no_thread)?;
        let (at_stop, at_end) = (session.processes.clone(), session.processes.clone());
        let ends_with_estop = session.stop.on_cancel(move || at_stop.kill_all());
        let reader = AdapterLineReader::new(session.socket.try_clone().map_err(no_descriptor)?);
        let mailbox = Arc::clone(&session.mailbox);
        std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                mailbox.close(read_replies(reader, &mailbox));
                at_end.kill_all();
                // Without processes there is nothing left for the emergency stop to kill.
                drop((ends_with_estop, watch));
            })
            .map_err(no_thread)?;
        Ok(session)
    }

    /// Returns true if the session has ended or was unused for too long.
    pub(super) fn is_closed_or_idle(&self) -> bool {
        self.mailbox.is_closed_or_idle() || self.processes.has_ended()
    }

    /// Returns true if the server announced changed tools since the last call of this function.
    pub(super) fn take_tools_changed(&self) -> bool {
        self.mailbox.take_tools_changed()
    }

    /// Returns the server's tools.
    ///
    /// # Errors
    /// Fails if the server sends no usable list.
    pub fn list_tools(&self, cancel: &CancelFlag, time: Duration) -> Result<Vec<PinnedTool>, McpCallError> {
        match self.send_request(&McpServerRequest::List, cancel, time)? {
            McpServerReply::Tools(tools) => {
                ListedMcpTool::parse_all(tools).map_err(|why| McpCallError::Failed(why.into()))
            }
            other => Err(self.reply_error(other)),
        }
    }

    pub(super) fn call_tool(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &CancelFlag,
        time: Duration,
    ) -> Result<ToolResult, McpCallError> {
        let call = McpServerRequest::Call { tool: tool.to_owned(), arguments: arguments.clone() };
        match self.send_request(&call, cancel, time)? {
            McpServerReply::Told { text, worked: true } => Ok(ToolResult::done(text)),
            McpServerReply::Told { text, worked: false } => {
                Ok(ToolResult { output: text, ..ToolResult::failed("the server reported an error") })
            }
            other => Err(self.reply_error(other)),
        }
    }

    fn reply_error(&self, reply: McpServerReply) -> McpCallError {
        McpCallError::Failed(match reply {
            McpServerReply::Gone => return McpCallError::ServerEnded,
            McpServerReply::TooMuch => {
                McpFailure::Other("the server sent too much and was killed".to_owned())
            }
            McpServerReply::Failed(why) => McpFailure::Other(why),
            McpServerReply::NothingListens(why) => McpFailure::NothingListens(why),
            McpServerReply::WrongVersion(why) => McpFailure::AdapterUnusable(why),
            McpServerReply::Ended(why) => match &self.stderr {
                Some(capture) => capture.explain(why),
                None => McpFailure::Other(why),
            },
            McpServerReply::Tools(_) | McpServerReply::Told { .. } | McpServerReply::Changed => {
                McpFailure::Other("the server sent a reply of the wrong kind".to_owned())
            }
        })
    }

    fn send_request(
        &self,
        request: &McpServerRequest,
        cancel: &CancelFlag,
        time: Duration,
    ) -> Result<McpServerReply, McpCallError> {
        let _one_at_a_time = self.request_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + time;
        let number = self.mailbox.begin_request().map_err(|end| self.end_error(end, cancel))?;
        let (mailbox, socket) = (Arc::clone(&self.mailbox), Arc::clone(&self.socket));
        let _cancel_hook = cancel.on_cancel(move || {
            if mailbox.cancel(number) {
                // Closing the socket also ends a `send_line` that is still blocked.
                let _ = socket.shutdown(Shutdown::Both);
            }
        });
        let sent = collieclaw_mcp_ipc::send_line(&self.socket, request, deadline);
        let error = match self.mailbox.wait(deadline) {
            ReplyOutcome::Reply(reply) => return Ok(reply),
            ReplyOutcome::Cancelled => McpCallError::Cancelled,
            ReplyOutcome::TimedOut => McpCallError::TimedOut(time),
            // The server never received the whole request, so the caller may send it to a new server.
            ReplyOutcome::Closed(_) if sent.is_err() && number > 1 => {
                self.end_error(ConnectionEnd::Gone, cancel)
            }
            ReplyOutcome::Closed(end) => self.end_error(end, cancel),
        };
        self.processes.kill_all();
        Err(error)
    }

    /// Translates the end of a connection. After a cancel, the end is a consequence of the cancel and not an
    /// error.
    fn end_error(&self, end: ConnectionEnd, cancel: &CancelFlag) -> McpCallError {
        match end {
            _ if self.stop.reason().or(cancel.reason()).is_some() => McpCallError::Cancelled,
            ConnectionEnd::Gone => McpCallError::ServerEnded,
            ConnectionEnd::Broken(why) => McpCallError::Failed(why.into()),
        }
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        self.processes.kill_all();
        // A process that could not be killed must at least lose its connection to us.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Delivers replies until the connection ends, and returns the reason.
fn read_replies(mut reader: AdapterLineReader, mailbox: &ReplyMailbox) -> String {
    loop {
        let delivered = match reader.receive() {
            Ok(Some(reply)) => mailbox.deliver(reply),
            Ok(None) => return ADAPTER_ENDED.to_owned(),
            Err(error) => return format!("{ADAPTER_FAILED}: {error}"),
        };
        if let Err(UnsolicitedReply) = delivered {
            return format!("{ADAPTER_FAILED}: it sent a reply without a request");
        }
    }
}
