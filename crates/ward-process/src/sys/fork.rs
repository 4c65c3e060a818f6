//! `clone3` used as a fork that also returns a pidfd and can be born in a cgroup or in namespaces.

use std::convert::Infallible;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::last_error;
use rustix::io::Errno;
use rustix::process::Pid;

/// A child that was just made.
pub(crate) struct Forked {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// What the child is born into, besides a copy of this process.
#[derive(Clone, Copy, Default)]
pub(crate) struct Birth<'fd> {
    /// `CLONE_NEW…` flags.
    pub(crate) namespaces: u64,
    /// Directory of the cgroup it is in from its first instruction.
    pub(crate) cgroup: Option<BorrowedFd<'fd>>,
}

/// Makes a child that runs `life` with every signal blocked.
///
/// # Safety
/// `life` runs in a copy of a possibly threaded process: it may only make system calls and use what
/// was prepared before. No allocation, no lock, no panic, no use of thread-local destructors.
pub(crate) unsafe fn fork(birth: Birth<'_>, life: impl FnOnce() -> Infallible) -> Result<Forked, Errno> {
    let mut pidfd: RawFd = -1;
    let mut arguments = CloneArguments {
        flags: libc::CLONE_PIDFD.cast_unsigned().into(),
        pidfd: std::ptr::from_mut(&mut pidfd).addr() as u64,
        exit_signal: libc::SIGCHLD.cast_unsigned().into(),
        ..CloneArguments::default()
    };
    arguments.flags |= birth.namespaces;
    if let Some(cgroup) = birth.cgroup {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    let before = block_every_signal();
    // SAFETY: the structure is what clone3 expects, outlives the call, and without CLONE_VM the child
    // has its own copy of this stack.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<CloneArguments>()) };
    if result == 0 {
        life();
    }
    let error = last_error();
    restore_signals(&before);
    let pid = i32::try_from(result).ok().and_then(Pid::from_raw).ok_or(error)?;
    // SAFETY: the kernel has just put a new descriptor there, and it is nobody else's.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked { pid, pidfd })
}

/// The structure of `clone3(2)`, to the version that knows cgroups.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A handler of ours must never run in the child, where it would find only half of the process.
fn block_every_signal() -> libc::sigset_t {
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are live, writable memory of the right type; a zeroed sigset_t is valid.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set is one that the kernel gave us.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Ends this child at once, without running anything that belongs to the parent.
pub(crate) fn leave(code: i32) -> Infallible {
    loop {
        // SAFETY: exit_group takes no memory.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}
