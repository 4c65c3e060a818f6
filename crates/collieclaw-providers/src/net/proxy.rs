//! The proxy that sandboxed commands reach the network through (C19.4).
//!
//! A command's sandbox has no route to any network. It only has a socket on its own loopback interface, which
//! this proxy serves from outside. The proxy accepts `CONNECT` and plain HTTP requests, judges each target as
//! the tool `http` does, resolves names itself, checks the addresses, and connects to a checked address. It
//! doesn't decrypt anything; it compares the server name of the TLS handshake with the judged host.
//!
//! Every connection has limits, and all of them end when the command ends or is cancelled.

mod client_hello;
mod connection;
mod records;
mod relay;
mod request;
mod target;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use collieclaw_gate::GatePolicy;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::resolver::NameResolver;
use crate::cancel::{CancelFlag, CancelHookGuard, CancelReason};
use records::ConnectionLog;
pub use records::{ProxyRecord, ProxyReport};

/// The maximum number of connections at once. Package managers open up to twenty; more wait in the queue of
/// the socket.
const MAX_CONNECTIONS: usize = 64;

/// The maximum number of bytes of a line in both directions together, more than a large project downloads.
const MAX_TOTAL_BYTES: u64 = 2 << 30;

/// The interval at which a proxy tries again that has no free place or no free descriptor.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The time that connections get to notice that the proxy has stopped.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// The rules and the lifetime of a proxy.
pub struct ProxySettings {
    /// The policy whose `allowed_domains` may be reached.
    pub policy: GatePolicy,
    pub resolver: Arc<dyn NameResolver + Send + Sync>,
    /// The time after which every connection ends.
    pub lifetime: Duration,
}

/// A running proxy. Dropping it ends all connections.
pub struct CommandProxy {
    state: Arc<ProxyState>,
    acceptors: Mutex<Vec<JoinHandle<()>>>,
    _cancel_hook: CancelHookGuard,
}

/// The state that all threads of a proxy share.
struct ProxyState {
    settings: ProxySettings,
    /// Raised when the proxy ends.
    stop: CancelFlag,
    active: Mutex<usize>,
    became_idle: Condvar,
    total_bytes: AtomicU64,
    log: Mutex<ConnectionLog>,
}

impl CommandProxy {
    /// Starts a proxy that ends at once when `cancel` is raised.
    ///
    /// # Errors
    /// Fails if the kernel provides no descriptor.
    pub fn start(settings: ProxySettings, cancel: &CancelFlag) -> io::Result<Self> {
        let stop = CancelFlag::new()?;
        let stopped = stop.clone();
        let hook = cancel.on_cancel(move || stopped.raise(CancelReason::Operator));
        let state = Arc::new(ProxyState {
            settings,
            stop,
            active: Mutex::new(0),
            became_idle: Condvar::new(),
            total_bytes: AtomicU64::new(0),
            log: Mutex::default(),
        });
        Ok(Self { state, acceptors: Mutex::default(), _cancel_hook: hook })
    }

    /// Serves a listening socket until the proxy ends, or until `ended` is readable: a descriptor that says
    /// that the programs behind the socket have ended.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn serve(&self, listener: OwnedFd, ended: Option<OwnedFd>) -> io::Result<()> {
        let listener = TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let state = Arc::clone(&self.state);
        let thread = std::thread::Builder::new().name("proxy-accept".to_owned());
        let thread = thread.spawn(move || state.accept_until_ended(&listener, ended.as_ref()))?;
        let mut acceptors = lock(&self.acceptors);
        acceptors.retain(|acceptor| !acceptor.is_finished());
        acceptors.push(thread);
        Ok(())
    }

    /// Ends all connections and returns the record of them.
    #[must_use]
    pub fn finish(self) -> ProxyReport {
        self.end();
        lock(&self.state.log).report()
    }

    fn end(&self) {
        self.state.stop.raise(CancelReason::Operator);
        for acceptor in std::mem::take(&mut *lock(&self.acceptors)) {
            // A thread that panicked has nothing left to stop.
            let _ = acceptor.join();
        }
        let active = lock(&self.state.active);
        let patience = self.state.became_idle.wait_timeout_while(active, STOP_PATIENCE, |active| *active > 0);
        drop(patience);
    }
}

impl Drop for CommandProxy {
    fn drop(&mut self) {
        self.end();
    }
}

impl ProxyState {
    fn accept_until_ended(self: &Arc<Self>, listener: &TcpListener, ended: Option<&OwnedFd>) {
        while self.wait_for_connection(listener, ended) {
            let Some(place) = self.take_place() else {
                self.pause();
                continue;
            };
            match listener.accept() {
                Ok((stream, _)) => self.start_connection(stream, place),
                // Without a free descriptor, the connection stays in the queue, and the next wait would return at once.
                Err(_) => self.pause(),
            }
        }
    }

    /// Waits for a moment, or until the proxy ends.
    fn pause(&self) {
        let _ = poll(&mut [PollFd::new(&self.stop, PollFlags::IN)], timespec(RETRY_INTERVAL).as_ref());
    }

    /// Waits for a connection. Returns false if the socket is no longer served.
    fn wait_for_connection(&self, listener: &TcpListener, ended: Option<&OwnedFd>) -> bool {
        loop {
            let mut fds = vec![PollFd::new(&self.stop, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            fds.extend(ended.map(|ended| PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)));
            let polled = poll(&mut fds, None);
            let is_ready = |place: usize| fds.get(place).is_some_and(|fd| !fd.revents().is_empty());
            match polled {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
                Ok(_) if is_ready(0) || is_ready(2) => return false,
                Ok(_) if is_ready(1) => return true,
                Ok(_) => {}
            }
        }
    }

    fn start_connection(self: &Arc<Self>, stream: TcpStream, place: ConnectionPlace) {
        let state = Arc::clone(self);
        let thread = std::thread::Builder::new().name("proxy".to_owned());
        // If no thread can be started, the connection is closed.
        let _ = thread.spawn(move || {
            connection::serve_connection(&state, stream);
            drop(place);
        });
    }

    fn take_place(self: &Arc<Self>) -> Option<ConnectionPlace> {
        let mut active = lock(&self.active);
        if *active >= MAX_CONNECTIONS {
            return None;
        }
        *active += 1;
        Some(ConnectionPlace(Arc::clone(self)))
    }

    /// Counts transferred bytes. Returns false if the limit of the line is exceeded.
    fn count_bytes(&self, bytes: u64) -> bool {
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= MAX_TOTAL_BYTES
    }
}

/// One of the places for connections, which is free again when this is dropped.
struct ConnectionPlace(Arc<ProxyState>);

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        *lock(&self.0.active) -= 1;
        self.0.became_idle.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timespec(time: Duration) -> Option<Timespec> {
    Timespec::try_from(time).ok()
}

#[cfg(test)]
mod tests;
