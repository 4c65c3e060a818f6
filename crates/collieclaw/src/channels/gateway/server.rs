//! Takes connections, serves each with patience that ends, and leaves in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
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

use super::desk::Desk;
use super::readers::MOST_THREADS;
use super::running::Running;
use super::{Gateway, GatewayError, routes};
use crate::channels::tell_started;
use crate::listen::{Peer, Places};
use crate::runtime::Runtime;

/// For one more, the longest idle one gives way. Each costs some kilobytes.
const MOST_CONNECTIONS: usize = 512;

/// For the head of a request, and for the next one on a connection that is kept.
const HEAD_TIME: Duration = Duration::from_secs(5);

const LARGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// For turns that were cancelled to end, and be kept as such.
const CLOSING_TIME: Duration = Duration::from_secs(10);

/// One thread for everybody, and some for files.
pub(super) fn tasks() -> std::io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(MOST_THREADS).build()
}

/// What a crash has left is settled, and a set-up that can't work was told, by whoever opened the runtime.
pub(super) fn serve(gateway: &Gateway, runtime: Runtime) -> Result<(), GatewayError> {
    let tasks = tasks()?;
    let served = tasks.block_on(async {
        let parts = &gateway.parts;
        let channel = &parts.found.config.channels.gateway;
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
    let mut places = Places::new(MOST_CONNECTIONS);
    tokio::select! {
        () = places.serve(&open.listener, |peer| connection(peer, router.clone(), desk.closing())) => {}
        _ = ends.terminate.recv() => {}
        _ = ends.interrupt.recv() => {}
    }
    drop(open);
    desk.close();
    let _ = tokio::time::timeout(CLOSING_TIME, async {
        desk.quiet().await;
        places.empty().await;
    })
    .await;
}

async fn connection(peer: Peer, router: Router, mut closing: watch::Receiver<bool>) {
    let router = TowerToHyperService::new(router);
    let answer = |mut request: Request<Incoming>| {
        let at_work = peer.at_work();
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
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        // Whoever has closed only its own side still hears what became of its request; a turn looks for itself.
        .half_close(true)
        .serve_connection(TokioIo::new(peer.clone()), service_fn(answer));
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // What goes wrong on a connection is the client's to see.
        _ = serving.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}
