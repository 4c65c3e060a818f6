//! Descriptors of our own in the loop: the one place with `unsafe`.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a non-blocking descriptor with the event loop.
#[expect(unsafe_code, reason = "tokio can't check that the descriptor stays valid")]
pub(crate) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is a valid descriptor, the `AsyncFd` owns it from here on, and no other code replaces or
    // closes it before the registration is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(|error| error.into_parts().1)
}
