//! The same over HTTP, on a loopback address: a bearer token on every request, and no page from elsewhere.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::server::Server;
use super::{LONGEST_MESSAGE, ServeError};
use crate::channels::Token;

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// Clients at once; each has a descriptor.
const MOST_CONNECTIONS: usize = 64;

/// Whoever takes longer to say what they want wants something else.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Pages of this machine.
const OWN_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

type Service = StreamableHttpService<Server, LocalSessionManager>;

pub(super) async fn serve(
    server: Server,
    port: u16,
    token: Token,
    listening: Box<dyn FnOnce(SocketAddr) + Send>,
) -> Result<(), ServeError> {
    let listen = |source| ServeError::Io { what: "listen", source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(listen)?;
    listening(listener.local_addr().map_err(listen)?);
    // Only loopback names pass as `Host`, and only pages from there as `Origin`; they, too, need the token.
    let config = StreamableHttpServerConfig::default().with_allowed_origins(OWN_ORIGINS);
    let service: Service =
        StreamableHttpService::new(move || Ok(server.clone()), LocalSessionManager::default().into(), config);
    let token = Arc::new(token);
    let seats = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: others give some back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (service, token) = (service.clone(), Arc::clone(&token));
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, service.clone(), Arc::clone(&token)));
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
            // What goes wrong on a connection is the client's to notice.
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            drop(seat);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    service: Service,
    token: Arc<Token>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(refusal(StatusCode::NOT_FOUND));
    }
    let given =
        request.headers().get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if !given.is_some_and(|given| token.is(given)) {
        let mut refusal = refusal(StatusCode::UNAUTHORIZED);
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Ok(refusal);
    }
    let request = request.map(|body| Limited::new(body, LONGEST_MESSAGE));
    Ok(service.handle(request).await)
}

fn refusal(status: StatusCode) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = status;
    response
}
