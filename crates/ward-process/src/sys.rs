//! The one place that talks to the kernel without a safety net.
//!
//! What runs between `clone3` and `execve`, and in the keeper and recorder that never `execve`, is
//! the copy of a possibly threaded process: it may not allocate, lock or panic. Everything it needs
//! is therefore prepared by the parent, and it only makes system calls.
#![expect(unsafe_code, reason = "raw system calls; each block says why it is sound")]

pub(crate) mod barrier;
pub(crate) mod child;
pub(crate) mod confinement;
pub(crate) mod descendants;
pub(crate) mod fork;
pub(crate) mod keeper;
pub(crate) mod procfs;
pub(crate) mod recorder;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod wait;

/// Why the last call of the C library failed; to be asked right after it.
fn last_error() -> rustix::io::Errno {
    // SAFETY: the address is this thread's own, always valid.
    match unsafe { *libc::__errno_location() } {
        number @ 1..4096 => rustix::io::Errno::from_raw_os_error(number),
        _ => rustix::io::Errno::IO,
    }
}
