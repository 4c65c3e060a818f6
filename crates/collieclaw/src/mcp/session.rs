//! A server that is talked to: a thread with a runtime of its own, asked from ours and left when it takes too long.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, PaginatedRequestParams};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ServiceError, serve_client};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::bounded::{Bounded, Budget};
use super::handler::Handler;
use super::http::Loopback;
use super::pins::PinnedTool;
use super::start::{Ground, Reins, Started, start};
use crate::cancel::Cancel;
use crate::config::{McpConnection, McpServer};
use crate::estop;
use crate::secret::Secret;
use crate::tools::shortened;

/// A server that nobody asks anything is ended. A person thinks for minutes between two messages, and a server may
/// have something open.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// Pages of a list of tools, and tools in all. More is no list that anyone has looked at.
const MOST_PAGES: usize = 32;
const MOST_TOOLS: usize = 512;

/// Of what a server complained of before it ended.
const COMPLAINT: usize = 500;

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

type Reply<T> = Sender<Result<T, Trouble>>;

enum Job {
    List(Reply<Vec<PinnedTool>>),
    Call(CallToolRequestParams, Reply<CallToolResult>),
}

/// See the module. Dropped, the server is ended.
pub struct Session {
    jobs: UnboundedSender<Job>,
    reins: Option<Reins>,
    changed: Arc<AtomicBool>,
    /// What of the sandbox is in force; `None` for a server that was there before.
    pub(super) sandbox: Option<String>,
    /// Dropped, it ends the thread, whatever that waits for.
    _alive: oneshot::Sender<()>,
}

impl Session {
    /// Starts a server, or begins to talk to one. It may still fail, which the first question tells.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn open(server: &McpServer, ground: Ground<'_>) -> Result<Self, String> {
        let stop = Cancel::new().map_err(|error| format!("no descriptor for it: {error}"))?;
        let watch =
            estop::Watch::start(ground.home, &stop).map_err(|error| format!("no thread for it: {error}"))?;
        let changed = Arc::new(AtomicBool::new(false));
        let (jobs, receiver) = unbounded_channel();
        let (alive, over) = oneshot::channel();
        let worker = Worker {
            changed: Arc::clone(&changed),
            budget: Arc::default(),
            complaint: Arc::default(),
            fault: Arc::default(),
        };
        let (reins, sandbox, way) = match &server.connection {
            McpConnection::Program { .. } => {
                let started = start(&server.connection, ground)?;
                (Some(started.reins.clone()), Some(started.sandbox.clone()), Way::Pipes(started))
            }
            McpConnection::Http { url, token_env } => {
                let token = ground.variables.get(token_env).map(|token| Secret::new(token.clone()));
                (None, None, Way::Address { url: url.clone(), token })
            }
        };
        let ended = reins.clone();
        let at_stop = reins.clone();
        let ends_with_estop = stop.at_once(move || at_stop.iter().for_each(Reins::end));
        std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                worker.run(way, receiver, over);
                ended.iter().for_each(Reins::end);
                // Where nothing runs nobody looks.
                drop((ends_with_estop, watch));
            })
            .map_err(|error| format!("no thread for it: {error}"))?;
        Ok(Self { jobs, reins, changed, sandbox, _alive: alive })
    }

    /// Whether it can't be asked any more.
    pub(super) fn is_over(&self) -> bool {
        self.jobs.is_closed() || self.reins.as_ref().is_some_and(Reins::is_over)
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
        self.ask(cancel, time, Job::List)
    }

    /// Calls one.
    pub(super) fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &Cancel,
        time: Duration,
    ) -> Result<CallToolResult, Trouble> {
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        self.ask(cancel, time, |reply| Job::Call(call, reply))
    }

    fn ask<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        time: Duration,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Result<T, Trouble> {
        let (sender, receiver): (Reply<T>, Receiver<_>) = channel();
        let cancelled = sender.clone();
        let _at_once = cancel.at_once(move || drop(cancelled.send(Err(Trouble::Cancelled))));
        self.jobs.send(job(sender)).map_err(|_| Trouble::Gone)?;
        // Our own copy for the cancel keeps the channel open: that nobody answers is told by the time.
        let answer = receiver.recv_timeout(time).unwrap_or(Err(Trouble::TimedOut(time)));
        if matches!(answer, Err(Trouble::TimedOut(_) | Trouble::Cancelled)) {
            self.end();
        }
        answer
    }

    fn end(&self) {
        self.reins.iter().for_each(Reins::end);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

enum Way {
    Pipes(Started),
    Address { url: String, token: Option<Secret> },
}

/// What the thread has.
struct Worker {
    changed: Arc<AtomicBool>,
    budget: Arc<Budget>,
    complaint: Arc<Mutex<Vec<u8>>>,
    /// What went wrong on the way to a server at an address.
    fault: Arc<Mutex<Option<String>>>,
}

type Connection = RunningService<RoleClient, Handler>;

impl Worker {
    fn run(self, way: Way, mut jobs: UnboundedReceiver<Job>, over: oneshot::Receiver<()>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                jobs.close();
                while let Ok(job) = jobs.try_recv() {
                    job.refuse(&Trouble::Failed(format!("no runtime: {error}")));
                }
                return;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.talk(way, &mut jobs) => {}
                _ = over => {}
            }
        });
        // Whatever waits in there waits for nobody.
        runtime.shutdown_background();
    }

    async fn talk(&self, way: Way, jobs: &mut UnboundedReceiver<Job>) {
        match self.connect(way).await {
            Ok(connection) => self.serve(connection, jobs).await,
            Err(why) => refuse_all(jobs, &Trouble::Failed(self.with_complaint(&why))).await,
        }
    }

    async fn connect(&self, way: Way) -> Result<Connection, String> {
        let handler = Handler { changed: Arc::clone(&self.changed) };
        let started = match way {
            Way::Pipes(started) => started,
            Way::Address { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url);
                // A new session may be one with another server, which nobody has compared; and a call is sent once.
                config.reinit_on_expired_session = false;
                config.auth_header = token.map(|token| token.reveal().to_owned());
                let (budget, fault) = (Arc::clone(&self.budget), Arc::clone(&self.fault));
                let client = Loopback { budget, fault };
                let way = StreamableHttpClientTransport::with_client(client, config);
                return serve_client(handler, way).await.map_err(|error| no_greeting(&error));
            }
        };
        let failed = |error: std::io::Error| format!("no way to it: {error}");
        let output = pipe::Receiver::from_owned_fd(started.output).map_err(failed)?;
        let input = pipe::Sender::from_owned_fd(started.input).map_err(failed)?;
        let complaints = pipe::Receiver::from_owned_fd(started.complaints).map_err(failed)?;
        tokio::spawn(listen(complaints, Arc::clone(&self.complaint)));
        let output = Bounded::new(output, Arc::clone(&self.budget));
        serve_client(handler, (output, input)).await.map_err(|error| no_greeting(&error))
    }

    async fn serve(&self, connection: Connection, jobs: &mut UnboundedReceiver<Job>) {
        while let Ok(Some(job)) = timeout(IDLE, jobs.recv()).await {
            if connection.is_transport_closed() {
                job.refuse(&Trouble::Gone);
                break;
            }
            self.budget.renew();
            self.known_fault();
            match job {
                Job::List(reply) => self.answer(reply, list(&connection)).await,
                Job::Call(call, reply) => self.answer(reply, once(&connection, call)).await,
            }
        }
        jobs.close();
        // One that was sent in this very moment is asked of another.
        while let Ok(job) = jobs.try_recv() {
            job.refuse(&Trouble::Gone);
        }
    }

    async fn answer<T>(&self, reply: Reply<T>, work: impl Future<Output = Result<T, String>>) {
        let answer = work.await;
        // Whoever listens no more has gone on already.
        let _ = reply.send(answer.map_err(|why| Trouble::Failed(self.with_complaint(&why))));
    }

    /// Told once.
    fn known_fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn with_complaint(&self, why: &str) -> String {
        if self.budget.is_exceeded() {
            return "the server sent too much and was ended".to_owned();
        }
        if let Some(fault) = self.known_fault() {
            return fault;
        }
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&complaint).trim() {
            "" => why.to_owned(),
            said => format!("{why}; it said: {}", shortened(said, COMPLAINT)),
        }
    }
}

/// Why there was no beginning, in our words: what the library shows is its own types.
fn no_greeting(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            "it ended before it had answered".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("the server refuses: {}", error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of the protocol that we do".to_owned()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => no_greeting(fallback),
        ClientInitializeError::Cancelled => "it was cancelled".to_owned(),
        _ => "it does not speak the protocol: its first answer is none to our question".to_owned(),
    }
}

/// Keeps the beginning of what a server complains of, and reads the rest, so that it never waits for us.
async fn listen(mut from: pipe::Receiver, into: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (4 * COMPLAINT).saturating_sub(kept.len());
        kept.extend(buffer.iter().take(count.min(room)));
    }
}

async fn list(connection: &Connection) -> Result<Vec<PinnedTool>, String> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = connection.list_tools(Some(page)).await.map_err(|error| fault(&error))?;
        tools.extend(page.tools.into_iter().map(|tool| PinnedTool {
            name: tool.name.into_owned(),
            description: tool.description.unwrap_or_default().into_owned(),
            schema: Value::Object((*tool.input_schema).clone()),
        }));
        if tools.len() > MOST_TOOLS {
            return Err(format!("it lists more than {MOST_TOOLS} tools"));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(format!("its list of tools has more than {MOST_PAGES} pages"))
}

async fn once(connection: &Connection, call: CallToolRequestParams) -> Result<CallToolResult, String> {
    match connection.peer().call_tool_once(call).await.map_err(|error| fault(&error))? {
        CallToolResponse::Complete(result) => Ok(result),
        CallToolResponse::InputRequired(_) => Err("it asks for more than its arguments".to_owned()),
        CallToolResponse::Task(_) => Err("it does not answer, but makes a task of it".to_owned()),
        _ => Err("it answers with something else".to_owned()),
    }
}

fn fault(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("the server refuses: {}", error.message),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => "the server has ended".to_owned(),
        ServiceError::UnexpectedResponse => "it answers something else than it was asked".to_owned(),
        other => other.to_string(),
    }
}

async fn refuse_all(jobs: &mut UnboundedReceiver<Job>, trouble: &Trouble) {
    while let Some(job) = jobs.recv().await {
        job.refuse(trouble);
    }
}

impl Job {
    fn refuse(self, trouble: &Trouble) {
        match self {
            Self::List(reply) => drop(reply.send(Err(trouble.clone()))),
            Self::Call(_, reply) => drop(reply.send(Err(trouble.clone()))),
        }
    }
}
