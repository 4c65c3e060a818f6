//! Descriptors of our own in the loop, memory and the kernel's clock: the one place with `unsafe`.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor for something to read. It must not block.
#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor that only its owner can give")]
pub(crate) fn register_readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is a valid descriptor, the `AsyncFd` owns it from here on, and nobody replaces or closes
    // it before the registration is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }
        .map_err(|error| error.into_parts().1)
}

/// Gives the system what is free. Reading a policy takes many times what a policy is, and the allocator would keep it
/// for the next one, which may be months away.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a function of the C library"))]
pub(crate) fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes its own locks, and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns whether the kernel says that time synchronisation keeps the wall clock right (`adjtimex(2)`). The kernel
/// takes that back when somebody sets the clock by hand, and only root can say it.
#[expect(unsafe_code, reason = "no safe crate of ours reads the kernel's view of the clock")]
pub(crate) fn is_clock_synchronised() -> bool {
    // SAFETY: the structure is plain numbers, for which zero is a value. Zero in `modes` changes nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of ours, which outlives the call.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    state != -1 && state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0
}
