//! Offers tools over HTTP. Every request needs a bearer token, and pages from other origins are rejected.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener as StdTcpListener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use collieclaw_listen::AccessToken;
use collieclaw_listen::{ConnectionPool, TcpPeer};
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

use crate::mcp_server::{LONGEST_MESSAGE, ToolServer};

const PATH: &str = "/mcp";

/// The most clients at a time. Another client replaces the client that has been idle longest.
const MOST_CONNECTIONS: usize = 64;

/// A client that takes longer to send its headers is disconnected.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Origins of pages that this machine serves.
const OWN_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

type ResponseBody = BoxBody<Bytes, Infallible>;
type McpHttpService = StreamableHttpService<ToolServer, LocalSessionManager>;

pub(crate) async fn serve(server: ToolServer, token: AccessToken) -> io::Result<()> {
    let listener = StdTcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    // The config accepts only loopback names as `Host` and loopback pages as `Origin`; both still need the
    // token.
    let config = StreamableHttpServerConfig::default().with_allowed_origins(OWN_ORIGINS);
    let service: McpHttpService =
        StreamableHttpService::new(move || Ok(server.clone()), LocalSessionManager::default().into(), config);
    let token = Arc::new(token);
    let connection = |peer| serve_connection(peer, service.clone(), Arc::clone(&token));
    ConnectionPool::new(MOST_CONNECTIONS).serve(&listener, connection).await;
    Ok(())
}

async fn serve_connection(peer: TcpPeer, service: McpHttpService, token: Arc<AccessToken>) {
    let handler = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.downgrade());
        let (activity, response) =
            (peer.mark_active(), handle_request(request, service.clone(), Arc::clone(&token)));
        async move {
            // A stream of events counts as activity until its end.
            let keep = move |frame| {
                let _kept = &activity;
                frame
            };
            response.await.map(|response| response.map(|body| body.map_frame(keep).boxed()))
        }
    });
    let mut builder = http1::Builder::new();
    // `half_close` keeps a request running when its client closes its sending side; `wait_for_cancel` notices
    // that.
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).half_close(true);
    // Connection errors are not reported, because the client sees them itself.
    let _ = builder.serve_connection(TokioIo::new(peer.clone()), handler).await;
}

async fn handle_request(
    request: Request<Incoming>,
    service: McpHttpService,
    token: Arc<AccessToken>,
) -> Result<Response<ResponseBody>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(refusal(StatusCode::NOT_FOUND));
    }
    let given =
        request.headers().get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if !given.is_some_and(|given| token.matches(given)) {
        let mut refusal = refusal(StatusCode::UNAUTHORIZED);
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Ok(refusal);
    }
    let request = request.map(|body| Limited::new(body, LONGEST_MESSAGE));
    Ok(service.handle(request).await)
}

/// Returns an empty error response that closes the connection, so clients without a token can't hold it open.
fn refusal(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
