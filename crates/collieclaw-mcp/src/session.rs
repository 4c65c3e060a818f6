//! A server that is talked to, through the program that speaks its protocol: asked, and left when it takes too long.

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

use super::adapter::{ADAPTER_ENDED, BROKE_OFF, McpAdapter};
use super::reply_mailbox::{ConnectionEnd, ReplyMailbox, ReplyOutcome, UnsolicitedReply};
use super::server_process::{McpProcessControl, McpStartContext, start_server};
use super::stderr_capture::StderrCapture;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpCallError {
    /// The emergency stop, or the operator.
    Cancelled,
    /// It took too long, and the server was ended.
    TimedOut(Duration),
    /// The server had ended before it was asked.
    ServerEnded,
    /// The server, or the way to it, for this reason.
    Failed(String),
}

/// See the module. Dropped, the server is ended.
pub struct McpSession {
    socket: Arc<UnixStream>,
    mailbox: Arc<ReplyMailbox>,
    /// Held by whoever asks.
    request_lock: Mutex<()>,
    processes: McpProcessControl,
    /// Raised by the emergency stop.
    stop: CancelFlag,
    /// Of a server that we started.
    stderr: Option<StderrCapture>,
    /// What of the sandbox is in force; `None` for a server that was there before.
    pub(super) sandbox: Option<String>,
}

impl McpSession {
    /// Starts a server, or begins to talk to one. It may still fail, which the first question tells.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn open(server: &McpServerSettings, ground: McpStartContext<'_>) -> Result<Self, String> {
        let no_thread = |error: io::Error| format!("no thread for it: {error}");
        let no_descriptor = |error: io::Error| format!("no descriptor for it: {error}");
        let stop = CancelFlag::new().map_err(no_descriptor)?;
        let watch = estop::EstopWatch::start(ground.home, &stop).map_err(no_thread)?;
        let (speaker, complaint, sandbox) = match &server.connection {
            McpConnection::Program { .. } => {
                let started = start_server(&server.connection, ground)?;
                let complaint = StderrCapture::start(started.stderr).map_err(no_thread);
                let speak = || {
                    let (input, output) =
                        (StdinSource::FromFd(started.output), OutputTarget::ToFd(started.input));
                    McpAdapter::start(AdapterTask::AskProgram, ground.policy, input, output)
                };
                let (complaint, speaker) = complaint
                    .and_then(|complaint| Ok((complaint, speak()?)))
                    .inspect_err(|_| started.processes.kill_all())?;
                speaker.processes.take_over(&started.processes);
                (speaker, Some(complaint), Some(started.sandbox))
            }
            McpConnection::Http { url, token_env } => {
                let token = ground.variables.get(token_env).cloned().map(AdapterToken::new);
                let task = AdapterTask::AskAddress { url: url.clone(), token };
                (McpAdapter::start(task, ground.policy, StdinSource::Null, OutputTarget::Null)?, None, None)
            }
        };
        let McpAdapter { socket: line, processes: reins } = speaker;
        // From here on, what was started ends with this value.
        let session = Self {
            socket: Arc::new(line),
            mailbox: Arc::new(ReplyMailbox::new()),
            request_lock: Mutex::default(),
            processes: reins,
            stop,
            stderr: complaint,
            sandbox,
        };
        let (at_stop, at_end) = (session.processes.clone(), session.processes.clone());
        let ends_with_estop = session.stop.on_cancel(move || at_stop.kill_all());
        let ear = AdapterLineReader::new(session.socket.try_clone().map_err(no_descriptor)?);
        let hearing = Arc::clone(&session.mailbox);
        std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                hearing.close(read_replies(ear, &hearing));
                at_end.kill_all();
                // Where nothing runs nobody looks.
                drop((ends_with_estop, watch));
            })
            .map_err(no_thread)?;
        Ok(session)
    }

    /// Whether it can't be asked any more.
    pub(super) fn is_closed_or_idle(&self) -> bool {
        self.mailbox.is_closed_or_idle() || self.processes.has_ended()
    }

    /// Whether the server has said, since this was asked, that its tools are others now.
    pub(super) fn take_tools_changed(&self) -> bool {
        self.mailbox.take_tools_changed()
    }

    /// Its tools.
    ///
    /// # Errors
    /// When it doesn't tell.
    pub fn list_tools(&self, cancel: &CancelFlag, time: Duration) -> Result<Vec<PinnedTool>, McpCallError> {
        match self.send_request(&McpServerRequest::List, cancel, time)? {
            McpServerReply::Tools(tools) => ListedMcpTool::parse_all(tools).map_err(McpCallError::Failed),
            other => Err(self.reply_error(other)),
        }
    }

    /// Calls one.
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
                Ok(ToolResult { output: text, ..ToolResult::failed("the server says that it did not work") })
            }
            other => Err(self.reply_error(other)),
        }
    }

    fn reply_error(&self, answer: McpServerReply) -> McpCallError {
        match answer {
            McpServerReply::Gone => McpCallError::ServerEnded,
            McpServerReply::TooMuch => {
                McpCallError::Failed("the server sent too much and was ended".to_owned())
            }
            McpServerReply::Failed(why) => McpCallError::Failed(why),
            McpServerReply::Ended(why) => McpCallError::Failed(match &self.stderr {
                Some(complaint) => complaint.append_to(why),
                None => why,
            }),
            McpServerReply::Tools(_) | McpServerReply::Told { .. } | McpServerReply::Changed => {
                McpCallError::Failed("it answers something else than it was asked".to_owned())
            }
        }
    }

    fn send_request(
        &self,
        question: &McpServerRequest,
        cancel: &CancelFlag,
        time: Duration,
    ) -> Result<McpServerReply, McpCallError> {
        let _turn = self.request_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + time;
        let number = self.mailbox.begin_request().map_err(|end| self.end_error(end, cancel))?;
        let (hearing, line) = (Arc::clone(&self.mailbox), Arc::clone(&self.socket));
        let _at_once = cancel.on_cancel(move || {
            if hearing.cancel(number) {
                // Also whoever is still asking goes on.
                let _ = line.shutdown(Shutdown::Both);
            }
        });
        let said = collieclaw_mcp_ipc::send_line(&self.socket, question, deadline);
        let trouble = match self.mailbox.wait(deadline) {
            ReplyOutcome::Reply(answer) => return Ok(answer),
            ReplyOutcome::Cancelled => McpCallError::Cancelled,
            ReplyOutcome::TimedOut => McpCallError::TimedOut(time),
            // Half a question asks nothing.
            ReplyOutcome::Closed(_) if said.is_err() && number > 1 => {
                self.end_error(ConnectionEnd::Gone, cancel)
            }
            ReplyOutcome::Closed(end) => self.end_error(end, cancel),
        };
        self.processes.kill_all();
        Err(trouble)
    }

    /// Whoever stops everything also ends what we listen to.
    fn end_error(&self, end: ConnectionEnd, cancel: &CancelFlag) -> McpCallError {
        match end {
            _ if self.stop.reason().or(cancel.reason()).is_some() => McpCallError::Cancelled,
            ConnectionEnd::Gone => McpCallError::ServerEnded,
            ConnectionEnd::Broken(why) => McpCallError::Failed(why),
        }
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        self.processes.kill_all();
        // Whatever could not be ended: nobody listens to it.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Hears all that is said, until the end: why it is.
fn read_replies(mut ear: AdapterLineReader, hearing: &ReplyMailbox) -> String {
    loop {
        let heard = match ear.receive() {
            Ok(Some(answer)) => hearing.deliver(answer),
            Ok(None) => return ADAPTER_ENDED.to_owned(),
            Err(error) => return format!("{BROKE_OFF}: {error}"),
        };
        if let Err(UnsolicitedReply) = heard {
            return format!("{BROKE_OFF}: it says what nobody has asked for");
        }
    }
}
