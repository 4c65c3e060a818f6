//! Name resolution on a separate thread, because the system's resolver can't be cancelled.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc;

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::deadline::{CancellableDeadline, WaitError};

pub(super) const MAX_ADDRESSES: usize = 16;

/// Resolves host names to IP addresses.
pub trait NameResolver {
    /// Returns the addresses, the preferred address first.
    ///
    /// # Errors
    /// Fails if the name has no address or the deadline passes.
    fn resolve(&self, name: &str, deadline: &CancellableDeadline) -> Result<Vec<IpAddr>, ResolveError>;
}

/// The reason why a name could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name is unknown, or no name server can be reached.
    #[error("could not resolve `{name}`: {detail}")]
    NotFound {
        name: String,
        /// The system's message.
        detail: String,
    },
    #[error("{0}")]
    Stopped(WaitError),
}

/// The system's resolver: `/etc/hosts`, then DNS.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, name: &str, deadline: &CancellableDeadline) -> Result<Vec<IpAddr>, ResolveError> {
        deadline.remaining().map_err(ResolveError::Stopped)?;
        let not_found = |detail: String| ResolveError::NotFound { name: name.to_owned(), detail };
        let done = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| not_found(error.to_string()))?;
        let ready = done.try_clone().map_err(|error| not_found(error.to_string()))?;
        let (sender, receiver) = mpsc::channel();
        let asked = name.to_owned();
        // After a cancel the thread is abandoned. It ends with the resolver's own timeout.
        let thread = std::thread::Builder::new().name("lookup".to_owned()).spawn(move || {
            let found = (asked.as_str(), 0_u16).to_socket_addrs();
            let _ =
                sender.send(found.map(|found| found.map(|socket| socket.ip()).take(MAX_ADDRESSES).collect()));
            let _ = rustix::io::write(&ready, &1_u64.to_ne_bytes());
        });
        thread.map_err(|error| not_found(error.to_string()))?;
        deadline.wait_until_ready(&done, PollFlags::IN).map_err(ResolveError::Stopped)?;
        match receiver.try_recv() {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(not_found(error.to_string())),
            Err(_) => Err(not_found("the resolver thread ended".to_owned())),
        }
    }
}
