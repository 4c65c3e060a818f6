//! What a program inherits of signals: nothing. And how a whole process group is signalled.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::last_error;

/// The kernel's `struct sigaction`: handler, flags, restorer, mask. All zero is the default action.
type KernelAction = [u64; 4];
const DEFAULT_ACTION: KernelAction = [0; 4];
const MASK_BYTES: usize = 8;
const MAX_SIGNAL: libc::c_int = 64;

/// Signals the process group that the process behind a pidfd leads or has led; 0 only asks whether it
/// has members, those that nobody has waited for included. A number that was given to somebody else
/// meanwhile makes no difference. Linux 6.9 can; an older one says `INVAL`.
pub(crate) fn send_to_group(leader: BorrowedFd<'_>, signal: libc::c_int) -> Result<(), Errno> {
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: numbers only; without a siginfo the kernel makes its own.
    match unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, leader.as_raw_fd(), signal, none, PROCESS_GROUP)
    } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Signals that this process ignores. Handlers end at `execve`, but what is ignored stays ignored.
///
/// The kernel is asked itself, since the C library refuses to speak of the two signals that it keeps
/// for its threads, which a careless ancestor may have ignored all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// As of now.
    pub(crate) fn of_this_process() -> Self {
        let mut ignored = 0;
        for signal in 1..=MAX_SIGNAL {
            let mut action = DEFAULT_ACTION;
            // SAFETY: the kernel writes one structure.
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

    /// In a child: default actions and an empty mask. Only makes system calls.
    pub(crate) fn reset(self) {
        let mut left = self.0;
        while left != 0 {
            let signal = left.trailing_zeros() + 1;
            left &= left - 1;
            // SAFETY: the kernel reads one structure.
            unsafe {
                let none = std::ptr::null_mut::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT_ACTION.as_ptr(), none, MASK_BYTES);
            }
        }
        // SAFETY: an all-zero set is the empty one.
        unsafe {
            let none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
    }
}
