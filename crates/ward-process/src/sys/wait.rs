//! Waits for descriptors, and reaps a child together with its resource usage.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::last_error;
use crate::exit::{ProcessExit, ResourceUsage};

/// The outcome of an attempt to reap a process.
pub(crate) enum ReapOutcome {
    /// The process has not ended yet.
    Running,
    /// The process has ended and was reaped.
    Ended(ProcessExit, ResourceUsage),
    /// The process is not a child of this process, so only its pidfd shows whether it is alive.
    NotOurChild,
}

/// Waits until a descriptor is readable, and returns false if that takes longer than `limit`; `None` waits
/// without limit. A pidfd becomes readable when its process ends.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, limit: Option<Duration>) -> Result<bool, Errno> {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
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
    // SAFETY: both structures are live and writable, and all zeros is a valid value of both. The raw system
    // call is used because the C library's `waitid` doesn't return the resource usage.
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
    // SAFETY: waitid filled in these fields or left them zero.
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
        // `ru_maxrss` is in KiB.
        max_resident_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    }
}
