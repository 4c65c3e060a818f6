//! From a name to numbers, on a thread of its own: the system's resolver can't be told to stop.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc;

use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::deadline::{CancellableDeadline, WaitError};

/// More numbers than this are not tried.
pub(super) const MAX_ADDRESSES: usize = 16;

/// Knows which numbers a name stands for.
pub trait NameResolver {
    /// The numbers, the best first.
    ///
    /// # Errors
    /// When there are none, or the time is over.
    fn resolve(&self, name: &str, patience: &CancellableDeadline) -> Result<Vec<IpAddr>, ResolveError>;
}

/// Why there are no numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Nobody knows the name, or nobody can be asked.
    #[error("`{name}` can't be found: {detail}")]
    NotFound {
        /// The name.
        name: String,
        /// What the system said.
        detail: String,
    },
    /// The waiting is over.
    #[error("{0}")]
    Stopped(WaitError),
}

/// The system's own resolver: `/etc/hosts`, then the network.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, name: &str, patience: &CancellableDeadline) -> Result<Vec<IpAddr>, ResolveError> {
        patience.remaining().map_err(ResolveError::Stopped)?;
        let not_found = |detail: String| ResolveError::NotFound { name: name.to_owned(), detail };
        let done = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| not_found(error.to_string()))?;
        let ready = done.try_clone().map_err(|error| not_found(error.to_string()))?;
        let (sender, receiver) = mpsc::channel();
        let asked = name.to_owned();
        // Left behind when the waiting is over; it ends with the resolver's own time-out and harms nobody.
        let thread = std::thread::Builder::new().name("lookup".to_owned()).spawn(move || {
            let found = (asked.as_str(), 0_u16).to_socket_addrs();
            let _ =
                sender.send(found.map(|found| found.map(|socket| socket.ip()).take(MAX_ADDRESSES).collect()));
            let _ = rustix::io::write(&ready, &1_u64.to_ne_bytes());
        });
        thread.map_err(|error| not_found(error.to_string()))?;
        patience.wait_until_ready(&done, PollFlags::IN).map_err(ResolveError::Stopped)?;
        match receiver.try_recv() {
            Ok(Ok(numbers)) => Ok(numbers),
            Ok(Err(error)) => Err(not_found(error.to_string())),
            Err(_) => Err(not_found("the resolver gave up".to_owned())),
        }
    }
}
