//! Asking a server.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use collieclaw::mcp::line::{Answer, Bearer, IDLE, Listed, Question};
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ServiceError, serve_client};
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::bounded::{Bounded, Budget};
use crate::content::told;
use crate::handler::Handler;
use crate::http::Loopback;
use crate::voice::{Ear, Voice};

/// Pages of a list of tools, and tools in all. More is no list that anyone has looked at.
const MOST_PAGES: usize = 32;
const MOST_TOOLS: usize = 512;

/// Where the server is.
pub(crate) enum Way {
    /// At the other ends of our standard input and output.
    Pipes,
    /// At an address.
    Address { url: String, token: Option<Bearer> },
}

/// Passes on questions and answers, until there is nobody left on one of the sides. Where there is no way, that is the answer.
pub(crate) async fn ask(way: Result<Way, String>, mut ear: Ear, voice: &Voice) {
    let (sender, mut questions) = unbounded_channel();
    let listen = async {
        while let Some(question) = ear.hear().await {
            if sender.send(question).is_err() {
                break;
            }
        }
    };
    let talk = Talk { voice, budget: Arc::default(), fault: Arc::default() };
    tokio::select! {
        () = talk.talk(way, &mut questions) => {}
        () = listen => {}
    }
}

/// A conversation with a server.
struct Talk<'v> {
    voice: &'v Voice,
    budget: Arc<Budget>,
    /// What went wrong on the way to a server at an address.
    fault: Arc<Mutex<Option<String>>>,
}

type Connection = RunningService<RoleClient, Handler>;

impl Talk<'_> {
    async fn talk(&self, way: Result<Way, String>, questions: &mut UnboundedReceiver<Question>) {
        match self.connect(way).await {
            Ok(connection) => self.serve(connection, questions).await,
            Err(why) => {
                let why = self.known_fault().unwrap_or(why);
                while questions.recv().await.is_some() {
                    self.answer(&Answer::Ended(why.clone()));
                }
            }
        }
    }

    async fn connect(&self, way: Result<Way, String>) -> Result<Connection, String> {
        let handler = Handler { voice: self.voice.clone() };
        let connected = match way? {
            Way::Address { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url);
                // A new session may be one with another server, which nobody has compared; and a call is sent once.
                config.reinit_on_expired_session = false;
                config.auth_header = token.map(|token| token.0.reveal().to_owned());
                let client = Loopback { budget: Arc::clone(&self.budget), fault: Arc::clone(&self.fault) };
                serve_client(handler, StreamableHttpClientTransport::with_client(client, config)).await
            }
            Way::Pipes => {
                let (output, input) = pipes().map_err(|error| format!("no way to it: {error}"))?;
                serve_client(handler, (Bounded::new(output, Arc::clone(&self.budget)), input)).await
            }
        };
        connected.map_err(|error| no_greeting(&error))
    }

    async fn serve(&self, connection: Connection, questions: &mut UnboundedReceiver<Question>) {
        while let Ok(Some(question)) = timeout(IDLE, questions.recv()).await {
            if connection.is_transport_closed() {
                break;
            }
            self.budget.renew();
            self.known_fault();
            let answer = match question {
                Question::List => list(&connection).await.map(Answer::Tools),
                Question::Call { tool, arguments } => {
                    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
                    once(&connection, call).await
                }
            };
            self.answer(&answer.unwrap_or_else(|none| self.known_fault().map_or(none, Answer::Failed)));
        }
        // Also to a question that comes in this very moment: it is asked of another.
        self.answer(&Answer::Gone);
    }

    fn answer(&self, answer: &Answer) {
        let fits = match answer {
            Answer::Failed(_) | Answer::Ended(_) => !self.budget.is_exceeded(),
            _ => true,
        };
        if !(fits && self.voice.say(answer)) {
            self.voice.say(&Answer::TooMuch);
        }
    }

    /// Told once.
    fn known_fault(&self) -> Option<String> {
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

/// Its tools, or why there is no list.
async fn list(connection: &Connection) -> Result<Vec<Listed>, Answer> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = connection.list_tools(Some(page)).await.map_err(|error| fault(&error))?;
        for tool in page.tools {
            let schema = serde_json::to_string(&tool.input_schema);
            let schema = schema.map_err(|error| Answer::Failed(error.to_string()))?;
            let description = tool.description.unwrap_or_default().into_owned();
            tools.push(Listed { name: tool.name.into_owned(), description, schema });
        }
        if tools.len() > MOST_TOOLS {
            return Err(Answer::Failed(format!("it lists more than {MOST_TOOLS} tools")));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(Answer::Failed(format!("its list of tools has more than {MOST_PAGES} pages")))
}

/// What came of a call, or why nothing did.
async fn once(connection: &Connection, call: CallToolRequestParams) -> Result<Answer, Answer> {
    let none = |why: &str| Err(Answer::Failed(why.to_owned()));
    match connection.peer().call_tool_once(call).await.map_err(|error| fault(&error))? {
        CallToolResponse::Complete(result) => Ok(told(&result)),
        CallToolResponse::InputRequired(_) => none("it asks for more than its arguments"),
        CallToolResponse::Task(_) => none("it does not answer, but makes a task of it"),
        _ => none("it answers with something else"),
    }
}

fn fault(error: &ServiceError) -> Answer {
    match error {
        ServiceError::McpError(error) => Answer::Failed(format!("the server refuses: {}", error.message)),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            Answer::Ended("the server has ended".to_owned())
        }
        ServiceError::UnexpectedResponse => {
            Answer::Failed("it answers something else than it was asked".to_owned())
        }
        other => Answer::Failed(other.to_string()),
    }
}
