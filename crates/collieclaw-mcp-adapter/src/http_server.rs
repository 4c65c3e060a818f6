//! The same over HTTP: a bearer token on every request, and no page from elsewhere.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener as Listener;
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

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// Clients at once; for one more, the longest idle one gives way.
const MOST_CONNECTIONS: usize = 64;

/// Whoever takes longer to say what they want wants something else.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Pages of this machine.
const OWN_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

type ResponseBody = BoxBody<Bytes, Infallible>;
type McpHttpService = StreamableHttpService<ToolServer, LocalSessionManager>;

pub(crate) async fn serve(server: ToolServer, token: AccessToken) -> io::Result<()> {
    let listener = Listener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    // Only loopback names pass as `Host`, and only pages from there as `RunOrigin`; they, too, need the token.
    let config = StreamableHttpServerConfig::default().with_allowed_origins(OWN_ORIGINS);
    let service: McpHttpService =
        StreamableHttpService::new(move || Ok(server.clone()), LocalSessionManager::default().into(), config);
    let token = Arc::new(token);
    let connection = |peer| serve_connection(peer, service.clone(), Arc::clone(&token));
    ConnectionPool::new(MOST_CONNECTIONS).serve(&listener, connection).await;
    Ok(())
}

async fn serve_connection(peer: TcpPeer, service: McpHttpService, token: Arc<AccessToken>) {
    let answer = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.downgrade());
        let (at_work, answer) =
            (peer.mark_active(), handle_request(request, service.clone(), Arc::clone(&token)));
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

/// Strangers hold no connection longer than it takes to answer.
fn refusal(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
