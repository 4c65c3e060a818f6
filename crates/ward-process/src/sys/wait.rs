//! Reaping with the resources that were used.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::last_error;
use crate::exit::{ProcessExit, ResourceUsage};

/// What is known of a child that was waited for.
pub(crate) enum ReapOutcome {
    /// It has not ended yet.
    Running,
    /// It ended, and its zombie is gone.
    Ended(ProcessExit, ResourceUsage),
    /// It is not a child of this process, so that only its pidfd tells whether it lives.
    NotOurChild,
}

/// Waits until a descriptor is readable, at most so long; `None` means without end. For a pidfd that
/// is the end of its process. Returns whether it is.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, at_most: Option<Duration>) -> Result<bool, Errno> {
    let deadline = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => {}
            result => return result.map(|ready| ready > 0),
        }
    }
}

/// Reaps the process behind a pidfd if it has ended. Never blocks.
pub(crate) fn reap(pidfd: BorrowedFd<'_>) -> Result<ReapOutcome, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both structures are live and writable, and all-zero is a valid value of either.
    let (result, info, usage) = unsafe {
        let result = libc::syscall(
            libc::SYS_waitid,
            libc::P_PIDFD,
            pidfd.as_raw_fd(),
            info.as_mut_ptr(),
            libc::WEXITED | libc::WNOHANG,
            usage.as_mut_ptr(),
        );
        (result, info.assume_init(), usage.assume_init())
    };
    if result < 0 {
        return match last_error() {
            Errno::CHILD => Ok(ReapOutcome::NotOurChild),
            Errno::INTR => Ok(ReapOutcome::Running),
            other => Err(other),
        };
    }
    // SAFETY: waitid filled these members, or left them zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Ok(ReapOutcome::Running);
    }
    Ok(ReapOutcome::Ended(ProcessExit::from_wait(info.si_code, status), usage_of(&usage)))
}

fn usage_of(usage: &libc::rusage) -> ResourceUsage {
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.try_into().unwrap_or(0))
            + Duration::from_micros(value.tv_usec.try_into().unwrap_or(0))
    };
    ResourceUsage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        // The kernel counts in KiB.
        max_resident_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    }
}
