//! Descriptors of our own in the loop: the one place with `unsafe`.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor for something to read. It must not block.
#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor that only its owner can give")]
pub(crate) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is a valid descriptor, the `AsyncFd` owns it from here on, and nobody replaces or closes
    // it before the registration is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }
        .map_err(|error| error.into_parts().1)
}
