//! Descriptors of our own in the loop, memory and the kernel's clock: the one place with `unsafe`.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a non-blocking descriptor with the event loop.
#[expect(unsafe_code, reason = "tokio can't check that the descriptor stays valid")]
pub(crate) fn register_readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is a valid descriptor, the `AsyncFd` owns it from here on, and no other code replaces or
    // closes it before the registration is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }
        .map_err(|error| error.into_parts().1)
}

/// Returns free memory to the system. Reading a policy takes many times the memory of the policy itself, and the
/// allocator would keep that memory until the next reload, which may be months away.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a function of the C library"))]
pub(crate) fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes its own locks and releases only free memory.
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
