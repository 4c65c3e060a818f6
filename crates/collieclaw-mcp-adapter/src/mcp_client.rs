//! Asking a server.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use collieclaw_mcp_ipc::{AdapterToken, IDLE_TIMEOUT, ListedMcpTool, McpServerReply, McpServerRequest};
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ServiceError, serve_client};
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::client_handler::RefusingHandler;
use crate::content::format_result;
use crate::http_client::LoopbackClient;
use crate::parent_line::{ParentLineReader, ParentLineSender};
use crate::receive_budget::{BoundedReader, ReceiveBudget};

/// Pages of a list of tools, and tools in all. More is no list that anyone has looked at.
const MOST_PAGES: usize = 32;
const MOST_TOOLS: usize = 512;

/// Where the server is.
pub(crate) enum ServerTransport {
    /// At the other ends of our standard input and output.
    Pipes,
    /// At an address.
    Address { url: String, token: Option<AdapterToken> },
}

/// Passes on questions and answers, until there is nobody left on one of the sides. Where there is no way, that is the answer.
pub(crate) async fn relay_requests(
    way: Result<ServerTransport, String>,
    mut ear: ParentLineReader,
    voice: &ParentLineSender,
) {
    let (sender, mut questions) = unbounded_channel();
    let listen = async {
        while let Some(question) = ear.receive().await {
            if sender.send(question).is_err() {
                break;
            }
        }
    };
    let talk = ServerConversation { sender: voice, budget: Arc::default(), fault: Arc::default() };
    tokio::select! {
        () = talk.run(way, &mut questions) => {}
        () = listen => {}
    }
}

/// A conversation with a server.
struct ServerConversation<'v> {
    sender: &'v ParentLineSender,
    budget: Arc<ReceiveBudget>,
    /// What went wrong on the way to a server at an address.
    fault: Arc<Mutex<Option<String>>>,
}

type ServerConnection = RunningService<RoleClient, RefusingHandler>;

impl ServerConversation<'_> {
    async fn run(
        &self,
        way: Result<ServerTransport, String>,
        questions: &mut UnboundedReceiver<McpServerRequest>,
    ) {
        match self.connect(way).await {
            Ok(connection) => self.relay(connection, questions).await,
            Err(why) => {
                let why = self.take_fault().unwrap_or(why);
                while questions.recv().await.is_some() {
                    self.send_reply(&McpServerReply::Ended(why.clone()));
                }
            }
        }
    }

    async fn connect(&self, way: Result<ServerTransport, String>) -> Result<ServerConnection, String> {
        let handler = RefusingHandler { sender: self.sender.clone() };
        let connected = match way? {
            ServerTransport::Address { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url);
                // A new session may be one with another server, which nobody has compared; and a call is sent once.
                config.reinit_on_expired_session = false;
                config.auth_header = token.map(|token| token.0.reveal().to_owned());
                let client =
                    LoopbackClient { budget: Arc::clone(&self.budget), fault: Arc::clone(&self.fault) };
                serve_client(handler, StreamableHttpClientTransport::with_client(client, config)).await
            }
            ServerTransport::Pipes => {
                let (output, input) = pipes().map_err(|error| format!("no way to it: {error}"))?;
                serve_client(handler, (BoundedReader::new(output, Arc::clone(&self.budget)), input)).await
            }
        };
        connected.map_err(|error| describe_connect_error(&error))
    }

    async fn relay(&self, connection: ServerConnection, questions: &mut UnboundedReceiver<McpServerRequest>) {
        while let Ok(Some(question)) = timeout(IDLE_TIMEOUT, questions.recv()).await {
            if connection.is_transport_closed() {
                break;
            }
            self.budget.reset();
            self.take_fault();
            let answer = match question {
                McpServerRequest::List => list_tools(&connection).await.map(McpServerReply::Tools),
                McpServerRequest::Call { tool, arguments } => {
                    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
                    call_tool(&connection, call).await
                }
            };
            self.send_reply(
                &answer.unwrap_or_else(|none| self.take_fault().map_or(none, McpServerReply::Failed)),
            );
        }
        // Also to a question that comes in this very moment: it is asked of another.
        self.send_reply(&McpServerReply::Gone);
    }

    fn send_reply(&self, answer: &McpServerReply) {
        let fits = match answer {
            McpServerReply::Failed(_) | McpServerReply::Ended(_) => !self.budget.is_exceeded(),
            _ => true,
        };
        if !(fits && self.sender.send(answer)) {
            self.sender.send(&McpServerReply::TooMuch);
        }
    }

    /// Told once.
    fn take_fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What the server writes and what it reads.
fn pipes() -> io::Result<(pipe::Receiver, pipe::Sender)> {
    let output = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let input = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    Ok((output, input))
}

/// Why there was no beginning, in our words: what the library shows is its own types.
fn describe_connect_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            "it ended before it had answered".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("the server refuses: {}", error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of the protocol that we do".to_owned()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe_connect_error(fallback),
        ClientInitializeError::Cancelled => "it was cancelled".to_owned(),
        _ => "it does not speak the protocol: its first answer is none to our question".to_owned(),
    }
}

/// Its tools, or why there is no list.
async fn list_tools(connection: &ServerConnection) -> Result<Vec<ListedMcpTool>, McpServerReply> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = connection.list_tools(Some(page)).await.map_err(|error| error_reply(&error))?;
        for tool in page.tools {
            let schema = serde_json::to_string(&tool.input_schema);
            let schema = schema.map_err(|error| McpServerReply::Failed(error.to_string()))?;
            let description = tool.description.unwrap_or_default().into_owned();
            tools.push(ListedMcpTool { name: tool.name.into_owned(), description, schema });
        }
        if tools.len() > MOST_TOOLS {
            return Err(McpServerReply::Failed(format!("it lists more than {MOST_TOOLS} tools")));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(McpServerReply::Failed(format!("its list of tools has more than {MOST_PAGES} pages")))
}

/// What came of a call, or why nothing did.
async fn call_tool(
    connection: &ServerConnection,
    call: CallToolRequestParams,
) -> Result<McpServerReply, McpServerReply> {
    let none = |why: &str| Err(McpServerReply::Failed(why.to_owned()));
    match connection.peer().call_tool_once(call).await.map_err(|error| error_reply(&error))? {
        CallToolResponse::Complete(result) => Ok(format_result(&result)),
        CallToolResponse::InputRequired(_) => none("it asks for more than its arguments"),
        CallToolResponse::Task(_) => none("it does not answer, but makes a task of it"),
        _ => none("it answers with something else"),
    }
}

fn error_reply(error: &ServiceError) -> McpServerReply {
    match error {
        ServiceError::McpError(error) => {
            McpServerReply::Failed(format!("the server refuses: {}", error.message))
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            McpServerReply::Ended("the server has ended".to_owned())
        }
        ServiceError::UnexpectedResponse => {
            McpServerReply::Failed("it answers something else than it was asked".to_owned())
        }
        other => McpServerReply::Failed(other.to_string()),
    }
}
