//! The HTTP server: accepts connections, limits their number and time, and shuts down in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use collieclaw_agent::channel::emit_channel_started;
use collieclaw_agent::runtime::AgentRuntime;
use collieclaw_listen::{ConnectionPool, TcpPeer};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::blocking_io::MAX_BLOCKING_THREADS;
use super::run_file::RunFile;
use super::state::GatewayState;
use super::{GatewayError, HttpGateway, routes};

/// The maximum number of connections. For a new one, the longest idle connection is closed. Each costs some kilobytes.
const MAX_CONNECTIONS: usize = 512;

/// The time limit for the head of a request, and for the next request on a kept connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

const MAX_HEADER_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// The time that cancelled turns have to end and be recorded.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the server on one thread, with additional threads for files.
pub(super) fn build_async_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(MAX_BLOCKING_THREADS).build()
}

/// Serves requests. The caller has opened a runtime before, which recovers after a crash and reports an invalid set-up.
pub(super) fn serve(gateway: &HttpGateway, runtime: AgentRuntime) -> Result<(), GatewayError> {
    let tasks = build_async_runtime()?;
    let served = tasks.block_on(async {
        let parts = &gateway.parts;
        let channel = &parts.initial_config.config.channels.gateway;
        let address = SocketAddr::new(channel.address, channel.port);
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| GatewayError::Listen { address, source })?;
        let ends = ShutdownSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        let address = listener.local_addr()?;
        emit_channel_started(gateway, &runtime);
        drop(runtime);
        let open = BoundListener { _run_file: RunFile::create(&parts.home, address)?, listener };
        (parts.on_listening)(address);
        serve_until_signal(open, Arc::new(GatewayState::new(gateway, address)), ends).await;
        Ok(())
    });
    // Reads that are still running are abandoned.
    tasks.shutdown_background();
    served
}

/// The listener with its run file. The file is dropped first, so that it never names a closed port.
struct BoundListener {
    _run_file: RunFile,
    listener: TcpListener,
}

/// The signals that end the gateway.
struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

async fn serve_until_signal(open: BoundListener, gateway: Arc<GatewayState>, mut ends: ShutdownSignals) {
    let router = routes::router(&gateway);
    let mut places = ConnectionPool::new(MAX_CONNECTIONS);
    tokio::select! {
        () = places.serve(&open.listener, |peer| serve_connection(peer, router.clone(), gateway.subscribe_shutdown())) => {}
        _ = ends.terminate.recv() => {}
        _ = ends.interrupt.recv() => {}
    }
    drop(open);
    gateway.shut_down();
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, async {
        gateway.wait_for_turns().await;
        places.wait_until_empty().await;
    })
    .await;
}

async fn serve_connection(peer: TcpPeer, router: Router, mut closing: watch::Receiver<bool>) {
    let router = TowerToHyperService::new(router);
    let answer = |mut request: Request<Incoming>| {
        let at_work = peer.mark_active();
        request.extensions_mut().insert(peer.clone());
        let answer = router.call(request);
        async move {
            let answer = answer.await;
            drop(at_work);
            answer
        }
    };
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        // A client that closed only its sending side still gets its answer; turns detect a disconnect themselves.
        .half_close(true)
        .serve_connection(TokioIo::new(peer.clone()), service_fn(answer));
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // Connection errors are not reported, because the client sees them itself.
        _ = serving.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}
