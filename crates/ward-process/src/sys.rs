//! Raw system calls, and all unsafe code of the crate.
//!
//! The code that runs between `clone3` and `execve`, and the keeper and recorder processes, which never call
//! `execve`, run in a copy of a possibly multi-threaded process. Such a copy must not allocate, lock or panic
//! (see `signal-safety(7)`). The parent therefore prepares everything, and the child only makes system calls.
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
pub(crate) mod trace;
pub(crate) mod wait;

/// Returns the `errno` of the last C library call. To be called right after that call.
fn last_error() -> rustix::io::Errno {
    // SAFETY: the address belongs to this thread and is always valid.
    match unsafe { *libc::__errno_location() } {
        number @ 1..4096 => rustix::io::Errno::from_raw_os_error(number),
        _ => rustix::io::Errno::IO,
    }
}
