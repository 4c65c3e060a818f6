//! Takes connections, serves each with patience that ends, and leaves in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::desk::Desk;
use super::readers::MOST_THREADS;
use super::running::Running;
use super::{Gateway, GatewayError, routes};
use crate::channels::tell_started;
use crate::runtime::Runtime;

/// More wait outside. Each costs some kilobytes.
const MOST_CONNECTIONS: usize = 512;

/// For the head of a request, and for the next one on a connection that is kept.
const HEAD_TIME: Duration = Duration::from_secs(5);

const LARGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// How long a client may leave what it was sent unread.
const UNREAD_TIME: Duration = Duration::from_secs(30);

/// For turns that were cancelled to end, and be kept as such.
const CLOSING_TIME: Duration = Duration::from_secs(10);

/// When the machine has no descriptor left.
const BREATH: Duration = Duration::from_millis(50);

/// One thread for everybody, and some for files.
pub(super) fn tasks() -> std::io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(MOST_THREADS).build()
}

/// What a crash has left is settled, and a set-up that can't work was told, by whoever opened the runtime.
pub(super) fn serve(gateway: &Gateway, runtime: Runtime) -> Result<(), GatewayError> {
    let tasks = tasks()?;
    let served = tasks.block_on(async {
        let parts = &gateway.parts;
        let channel = &parts.config.channels.gateway;
        let address = SocketAddr::new(channel.address, channel.port);
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| GatewayError::Listen { address, source })?;
        let ends =
            Ends { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
        let address = listener.local_addr()?;
        tell_started(gateway, &runtime);
        drop(runtime);
        let open = Listening { _running: Running::note(&parts.home, address)?, listener };
        (parts.listening)(address);
        until_told(open, Arc::new(Desk::new(gateway, address)), ends).await;
        Ok(())
    });
    // Whoever still reads a file reads it for nobody.
    tasks.shutdown_background();
    served
}

/// Where requests are taken. The note goes first: nobody is sent to a port that is closed.
struct Listening {
    _running: Running,
    listener: TcpListener,
}

/// The signals that end it.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

async fn until_told(open: Listening, desk: Arc<Desk>, mut ends: Ends) {
    let router = routes::router(&desk);
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&open.listener, &router, &desk, &mut connections) => {}
        _ = ends.terminate.recv() => {}
        _ = ends.interrupt.recv() => {}
    }
    drop(open);
    desk.close();
    let _ = tokio::time::timeout(CLOSING_TIME, async {
        desk.quiet().await;
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn accept(listener: &TcpListener, router: &Router, desk: &Arc<Desk>, connections: &mut JoinSet<()>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Nobody closes the semaphore.
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let (router, closing) = (router.clone(), desk.closing());
        connections.spawn(async move {
            connection(stream, router, closing).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, router: Router, mut closing: watch::Receiver<bool>) {
    let patience = u32::try_from(UNREAD_TIME.as_millis()).unwrap_or(u32::MAX);
    // Without them it is slower, or waits longer; it is served all the same.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience);
    let _ = stream.set_nodelay(true);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // What goes wrong on a connection is the client's to see.
        _ = serving.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}
