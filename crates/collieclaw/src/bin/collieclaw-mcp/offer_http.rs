//! The same over HTTP: a bearer token on every request, and no page from elsewhere.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener as Listener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use collieclaw::channels::Token;
use collieclaw::listen::{Peer, Places};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::net::TcpListener;

use crate::offer::{LONGEST_MESSAGE, Server};

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// Clients at once; for one more, the longest idle one gives way.
const MOST_CONNECTIONS: usize = 64;

/// Whoever takes longer to say what they want wants something else.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Pages of this machine.
const OWN_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

type Body = BoxBody<Bytes, Infallible>;
type Service = StreamableHttpService<Server, LocalSessionManager>;

pub(crate) async fn serve(server: Server, token: Token) -> io::Result<()> {
    let listener = Listener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    // Only loopback names pass as `Host`, and only pages from there as `Origin`; they, too, need the token.
    let config = StreamableHttpServerConfig::default().with_allowed_origins(OWN_ORIGINS);
    let service: Service =
        StreamableHttpService::new(move || Ok(server.clone()), LocalSessionManager::default().into(), config);
    let token = Arc::new(token);
    let connection = |peer| connection(peer, service.clone(), Arc::clone(&token));
    Places::new(MOST_CONNECTIONS).serve(&listener, connection).await;
    Ok(())
}

async fn connection(peer: Peer, service: Service, token: Arc<Token>) {
    let answer = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.caller());
        let (at_work, answer) = (peer.at_work(), answer(request, service.clone(), Arc::clone(&token)));
        async move {
            // A stream of events is work until its end.
            let keep = move |frame| {
                let _kept = &at_work;
                frame
            };
            answer.await.map(|response| response.map(|body| body.map_frame(keep).boxed()))
        }
    });
    let mut builder = http1::Builder::new();
    // A call looks for itself whether its client is still there.
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).half_close(true);
    // What goes wrong on a connection is the client's to notice.
    let _ = builder.serve_connection(TokioIo::new(peer.clone()), answer).await;
}

async fn answer(
    request: Request<Incoming>,
    service: Service,
    token: Arc<Token>,
) -> Result<Response<Body>, Infallible> {
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

/// Strangers hold no connection longer than it takes to answer.
fn refusal(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
