//! Resets inherited signal dispositions in a child, and signals a whole process group by a pidfd.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::last_error;

/// The kernel's `struct sigaction`: handler, flags, restorer, mask. All zeros is the default action.
type KernelAction = [u64; 4];
const DEFAULT_ACTION: KernelAction = [0; 4];
const MASK_BYTES: usize = 8;
const MAX_SIGNAL: libc::c_int = 64;

/// Signals the process group that the process behind a pidfd leads or has led. Signal 0 only checks that the
/// group has members, including zombies. The pidfd protects against reused pids. Needs Linux 6.9; older
/// kernels fail with `EINVAL`. See `PIDFD_SIGNAL_PROCESS_GROUP` in `pidfd_send_signal(2)`.
pub(crate) fn send_to_group(leader: BorrowedFd<'_>, signal: libc::c_int) -> Result<(), Errno> {
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the call takes only numbers and a null siginfo, for which the kernel fills in its own.
    match unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, leader.as_raw_fd(), signal, none, PROCESS_GROUP)
    } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// The set of signals that this process ignores. `execve` resets handlers, but ignored signals stay ignored.
///
/// The set is read by raw system calls, because the C library hides the two signals that it uses for threads,
/// and an ancestor of this process may ignore even those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// Reads the set of this process.
    pub(crate) fn of_this_process() -> Self {
        let mut ignored = 0;
        for signal in 1..=MAX_SIGNAL {
            let mut action = DEFAULT_ACTION;
            // SAFETY: the kernel writes one structure into `action`.
            unsafe {
                let none = std::ptr::null::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, none, action.as_mut_ptr(), MASK_BYTES);
            }
            if action.first() == Some(&(libc::SIG_IGN as u64)) {
                ignored |= 1 << (signal - 1);
            }
        }
        Self(ignored)
    }

    /// Restores the default actions and an empty signal mask in a child. Only makes system calls.
    pub(crate) fn reset(self) {
        let mut left = self.0;
        while left != 0 {
            let signal = left.trailing_zeros() + 1;
            left &= left - 1;
            // SAFETY: the kernel reads one structure from `DEFAULT_ACTION`.
            unsafe {
                let none = std::ptr::null_mut::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT_ACTION.as_ptr(), none, MASK_BYTES);
            }
        }
        // SAFETY: a zeroed set is a valid empty set.
        unsafe {
            let none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
    }
}
