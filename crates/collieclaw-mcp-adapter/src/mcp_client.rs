//! Connects to an MCP server and forwards requests from `collieclaw` to it.

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
use crate::http_client::{LoopbackClient, ServerFault};
use crate::parent_line::{ParentLineReader, ParentLineSender};
use crate::receive_budget::{BoundedReader, ReceiveBudget};

/// Limits for a list of tools. Nobody would read a longer list before approving it.
const MOST_PAGES: usize = 32;
const MOST_TOOLS: usize = 512;

/// The connection to a server.
pub(crate) enum ServerTransport {
    /// The other ends of our standard input and output.
    Pipes,
    /// An HTTP server on a loopback address.
    Address { url: String, token: Option<AdapterToken> },
}

/// Forwards requests and replies until either side ends. If `transport` is an error, the versions differ, and
/// every request gets that error.
pub(crate) async fn relay_requests(
    transport: Result<ServerTransport, String>,
    mut reader: ParentLineReader,
    sender: &ParentLineSender,
) {
    let (queue, mut requests) = unbounded_channel();
    let read_requests = async {
        while let Some(request) = reader.receive().await {
            if queue.send(request).is_err() {
                break;
            }
        }
    };
    let conversation = ServerConversation { sender, budget: Arc::default(), fault: Arc::default() };
    tokio::select! {
        () = conversation.run(transport, &mut requests) => {}
        () = read_requests => {}
    }
}

/// A connection to a server, and the connection to `collieclaw`.
struct ServerConversation<'v> {
    sender: &'v ParentLineSender,
    budget: Arc<ReceiveBudget>,
    /// The latest failure of a server at an address.
    fault: Arc<Mutex<Option<ServerFault>>>,
}

type ServerConnection = RunningService<RoleClient, RefusingHandler>;

impl ServerConversation<'_> {
    async fn run(
        &self,
        transport: Result<ServerTransport, String>,
        requests: &mut UnboundedReceiver<McpServerRequest>,
    ) {
        match self.connect(transport).await {
            Ok(connection) => self.relay(connection, requests).await,
            Err(reply) => {
                let reply = self.take_fault().map_or(reply, |fault| fault.into_reply(McpServerReply::Ended));
                while requests.recv().await.is_some() {
                    self.send_reply(&reply);
                }
            }
        }
    }

    async fn connect(
        &self,
        transport: Result<ServerTransport, String>,
    ) -> Result<ServerConnection, McpServerReply> {
        let handler = RefusingHandler { sender: self.sender.clone() };
        let connected = match transport.map_err(McpServerReply::WrongVersion)? {
            ServerTransport::Address { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url);
                // A new session may reach another server whose tools were not compared, and a call must be
                // sent only once.
                config.reinit_on_expired_session = false;
                config.auth_header = token.map(|token| token.0.reveal().to_owned());
                let client =
                    LoopbackClient { budget: Arc::clone(&self.budget), fault: Arc::clone(&self.fault) };
                serve_client(handler, StreamableHttpClientTransport::with_client(client, config)).await
            }
            ServerTransport::Pipes => {
                let failed = |error| McpServerReply::Ended(format!("could not open the pipes: {error}"));
                let (output, input) = pipes().map_err(failed)?;
                serve_client(handler, (BoundedReader::new(output, Arc::clone(&self.budget)), input)).await
            }
        };
        connected.map_err(|error| McpServerReply::Ended(describe_connect_error(&error)))
    }

    async fn relay(&self, connection: ServerConnection, requests: &mut UnboundedReceiver<McpServerRequest>) {
        while let Ok(Some(request)) = timeout(IDLE_TIMEOUT, requests.recv()).await {
            if connection.is_transport_closed() {
                break;
            }
            self.budget.reset();
            self.take_fault();
            let answer = match request {
                McpServerRequest::List => list_tools(&connection).await.map(McpServerReply::Tools),
                McpServerRequest::Call { tool, arguments } => {
                    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
                    call_tool(&connection, call).await
                }
            };
            self.send_reply(&answer.unwrap_or_else(|failure| {
                self.take_fault().map_or(failure, |fault| fault.into_reply(McpServerReply::Failed))
            }));
        }
        // A request that arrives now is answered with `Gone` as well, and `collieclaw` sends it to a new
        // server.
        self.send_reply(&McpServerReply::Gone);
    }

    fn send_reply(&self, answer: &McpServerReply) {
        let fits = match answer {
            McpServerReply::Failed(_) | McpServerReply::Ended(_) | McpServerReply::NothingListens(_) => {
                !self.budget.is_exceeded()
            }
            _ => true,
        };
        if !(fits && self.sender.send(answer)) {
            self.sender.send(&McpServerReply::TooMuch);
        }
    }

    /// Returns the latest failure and clears it.
    fn take_fault(&self) -> Option<ServerFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns pipes for the server's output and input.
fn pipes() -> io::Result<(pipe::Receiver, pipe::Sender)> {
    let output = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let input = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    Ok((output, input))
}

/// Describes a failed handshake in our words, because the library's messages name its own types.
fn describe_connect_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            "the server ended before it answered".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => format!("the server refused: {}", error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "the server supports no MCP version that CollieClaw supports".to_owned()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe_connect_error(fallback),
        ClientInitializeError::Cancelled => "cancelled".to_owned(),
        _ => "the server does not speak MCP: its first message doesn't answer ours".to_owned(),
    }
}

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
            return Err(McpServerReply::Failed(format!("the server lists more than {MOST_TOOLS} tools")));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(McpServerReply::Failed(format!("its list of tools has more than {MOST_PAGES} pages")))
}

/// Calls a tool and returns the formatted result, or a reply that says why there is none.
async fn call_tool(
    connection: &ServerConnection,
    call: CallToolRequestParams,
) -> Result<McpServerReply, McpServerReply> {
    let failed = |why: &str| Err(McpServerReply::Failed(why.to_owned()));
    match connection.peer().call_tool_once(call).await.map_err(|error| error_reply(&error))? {
        CallToolResponse::Complete(result) => Ok(format_result(&result)),
        CallToolResponse::InputRequired(_) => {
            failed("the server asks for more input, which is not supported")
        }
        CallToolResponse::Task(_) => failed("the server started a background task, which is not supported"),
        _ => failed("the server sent an unsupported kind of reply"),
    }
}

fn error_reply(error: &ServiceError) -> McpServerReply {
    match error {
        ServiceError::McpError(error) => {
            McpServerReply::Failed(format!("the server refused: {}", error.message))
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            McpServerReply::Ended("the server has ended".to_owned())
        }
        ServiceError::UnexpectedResponse => {
            McpServerReply::Failed("the server sent a reply of the wrong kind".to_owned())
        }
        other => McpServerReply::Failed(other.to_string()),
    }
}
