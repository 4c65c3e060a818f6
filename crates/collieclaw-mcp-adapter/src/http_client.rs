//! The HTTP client for a server that already runs on a loopback address. It never connects to other addresses,
//! even if the server redirects it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use collieclaw_mcp_ipc::McpServerReply;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;
use thiserror::Error;
use tokio::net::TcpStream;

use crate::receive_budget::ReceiveBudget;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// The reason why a request failed.
#[derive(Debug, Error)]
pub(crate) enum LoopbackHttpError {
    #[error("{0} is not an address of this machine")]
    NotLoopback(String),
    #[error("{}", connect_message(.uri, .error))]
    Connect { uri: String, error: std::io::Error },
    #[error("{}", protocol_message(.0))]
    Protocol(#[from] hyper::Error),
    #[error("could not build the request: {0}")]
    Request(String),
    #[error("the server sent too much")]
    TooMuch,
}

impl LoopbackHttpError {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Connect { error, .. } if error.kind() == std::io::ErrorKind::ConnectionRefused)
    }
}

type LoopbackResult<T> = Result<T, StreamableHttpError<LoopbackHttpError>>;

/// An HTTP client for loopback addresses that counts every received byte.
#[derive(Clone)]
pub(crate) struct LoopbackClient {
    pub(crate) budget: Arc<ReceiveBudget>,
    /// The latest failure in our own words, because the MCP library's messages are meant for its authors.
    pub(crate) fault: Arc<Mutex<Option<ServerFault>>>,
}

/// The failure of a server at an address, as a message.
pub(crate) enum ServerFault {
    NothingListens(String),
    Other(String),
}

impl ServerFault {
    /// Returns the reply for a request that failed like this. `other` is the kind of reply for faults without
    /// their own kind.
    pub(crate) fn into_reply(self, other: impl FnOnce(String) -> McpServerReply) -> McpServerReply {
        match self {
            Self::NothingListens(message) => McpServerReply::NothingListens(message),
            Self::Other(message) => other(message),
        }
    }
}

/// The headers of a request.
struct LoopbackRequestHeaders {
    session_id: Option<Arc<str>>,
    token: Option<String>,
    custom: HashMap<HeaderName, HeaderValue>,
}

impl LoopbackClient {
    fn record_fault(&self, error: &StreamableHttpError<LoopbackHttpError>) {
        let message = match error {
            StreamableHttpError::Client(error) if error.is_refused() => {
                return self.set_fault(ServerFault::NothingListens(error.to_string()));
            }
            StreamableHttpError::Client(error) => error.to_string(),
            StreamableHttpError::UnexpectedServerResponse(message) => message.clone().into_owned(),
            StreamableHttpError::UnexpectedContentType(kind) => {
                let kind =
                    kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("content of unknown type");
                format!("the server does not speak MCP: it answers with {kind}")
            }
            StreamableHttpError::Deserialize(error) => {
                format!("the server does not speak MCP: could not parse its answer ({error})")
            }
            StreamableHttpError::SessionExpired => {
                "the session has expired, so it is unknown if the call ran; the next call starts a new session"
                    .to_owned()
            }
            // Other errors are a normal part of a session.
            _ => return,
        };
        self.set_fault(ServerFault::Other(message));
    }

    fn set_fault(&self, fault: ServerFault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Sends a request on a new connection. Requests are rare, so no connection is kept.
    async fn send(
        &self,
        method: Method,
        uri: &str,
        headers: LoopbackRequestHeaders,
        body: Option<Bytes>,
    ) -> Result<Response<CountedBody>, LoopbackHttpError> {
        let uri: Uri = uri.parse().map_err(|_| LoopbackHttpError::NotLoopback(uri.to_owned()))?;
        let stream = connect(&uri).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The task ends with the response, or with the runtime.
        tokio::spawn(connection);
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let host = uri.authority().map_or("localhost", |authority| authority.as_str());
        let mut request = Request::builder().method(method).uri(target).header(HOST, host);
        request = request.header(ACCEPT, format!("{JSON}, {EVENTS}"));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        for (name, value) in headers.custom {
            request = request.header(name, value);
        }
        if let Some(token) = headers.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(session_id) = headers.session_id {
            request = request.header(SESSION, &*session_id);
        }
        let request = request.body(Full::new(body.unwrap_or_default()));
        let request = request.map_err(|error| LoopbackHttpError::Request(error.to_string()))?;
        let answer = sender.send_request(request).await?;
        Ok(answer.map(|body| CountedBody { body, budget: Arc::clone(&self.budget), line: 0 }))
    }

    async fn post(
        &self,
        uri: &str,
        message: ClientJsonRpcMessage,
        headers: LoopbackRequestHeaders,
    ) -> LoopbackResult<StreamableHttpPostResponse> {
        let body = serde_json::to_vec(&message)?;
        let in_session = headers.session_id.is_some();
        let answer = self.send(Method::POST, uri, headers, Some(body.into())).await.map_err(client_error)?;
        match answer.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if in_session => return Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => return Err(status_error(status)),
            _ => {}
        }
        let word =
            |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (kind, session) = (word(CONTENT_TYPE.as_str()).unwrap_or_default(), word(SESSION));
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(event_stream(answer), session));
        }
        let body = answer.into_body().collect().await.map_err(client_error)?.to_bytes();
        // A notification has no answer, so a body in reply to one is ignored.
        if !matches!(message, ClientJsonRpcMessage::Request(_)) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !kind.starts_with(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        Ok(StreamableHttpPostResponse::Json(serde_json::from_slice(&body)?, session))
    }
}

impl StreamableHttpClient for LoopbackClient {
    type Error = LoopbackHttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> LoopbackResult<StreamableHttpPostResponse> {
        let headers = LoopbackRequestHeaders { session_id, token: auth_header, custom: custom_headers };
        let answer = self.post(&uri, message, headers).await;
        answer.inspect_err(|error| self.record_fault(error))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> LoopbackResult<()> {
        let headers = LoopbackRequestHeaders {
            session_id: Some(session_id),
            token: auth_header,
            custom: custom_headers,
        };
        let answer = self.send(Method::DELETE, &uri, headers, None).await.map_err(client_error)?;
        match answer.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            status if !status.is_success() => Err(status_error(status)),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> LoopbackResult<BoxedSseResponse> {
        if let Some(value) = last_event_id.and_then(|id| id.parse().ok()) {
            custom_headers.insert(HeaderName::from_static(LAST_EVENT), value);
        }
        let headers = LoopbackRequestHeaders { session_id, token: auth_header, custom: custom_headers };
        let answer = self.send(Method::GET, &uri, headers, None).await.map_err(client_error)?;
        match answer.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(status_error(status)),
            _ => Ok(event_stream(answer)),
        }
    }
}

fn client_error(error: LoopbackHttpError) -> StreamableHttpError<LoopbackHttpError> {
    StreamableHttpError::Client(error)
}

fn status_error(status: StatusCode) -> StreamableHttpError<LoopbackHttpError> {
    let number = status.as_u16();
    let message = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!(
                "the server denied access (status {number}): `token_env` names the variable that holds its token"
            )
        }
        StatusCode::NOT_FOUND => {
            format!("no MCP server at this path (status {number}): check the end of `url`")
        }
        _ => format!("the server answered with status {number}"),
    };
    StreamableHttpError::UnexpectedServerResponse(message.into())
}

fn protocol_message(error: &hyper::Error) -> String {
    if error.is_parse() {
        return "the server does not speak MCP: its answer is not HTTP".to_owned();
    }
    format!("connection closed: {error}")
}

fn connect_message(uri: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => format!("nothing listens at {uri}"),
        _ => format!("could not reach {uri}: {error}"),
    }
}

fn event_stream(answer: Response<CountedBody>) -> BoxedSseResponse {
    Box::pin(SseStream::new(answer.into_body()))
}

/// Connects to a loopback address. `localhost` is not resolved, so no name server can redirect it.
async fn connect(uri: &Uri) -> Result<TcpStream, LoopbackHttpError> {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(80);
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let stream = match ip {
        Ok(ip) if ip.is_loopback() => TcpStream::connect((ip, port)).await,
        Err(_) if host == "localhost" => match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Ok(stream) => Ok(stream),
            Err(_) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await,
        },
        _ => return Err(LoopbackHttpError::NotLoopback(host.to_owned())),
    };
    stream.map_err(|error| LoopbackHttpError::Connect { uri: uri.to_string(), error })
}

/// A response body that counts every byte against the budget.
pub(crate) struct CountedBody {
    body: Incoming,
    budget: Arc<ReceiveBudget>,
    line: u64,
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = LoopbackHttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, LoopbackHttpError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let Self { budget, line, .. } = &mut *self;
        Poll::Ready(match frame {
            None => None,
            Some(Err(error)) => Some(Err(error.into())),
            Some(Ok(frame)) => match frame.data_ref().is_none_or(|bytes| budget.consume(bytes, line)) {
                true => Some(Ok(frame)),
                false => Some(Err(LoopbackHttpError::TooMuch)),
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
