//! A descriptor that becomes readable at the end of a tree, for every kind of containment.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::TreeControl;
use crate::cgroup::Cgroup;

/// Time between two polls for members that have outlived their root, if no kernel event reports their end.
/// They have been killed by then, so one poll is usually enough.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The epoll set of a tree. It is created before the tree, so that a lack of descriptors is noticed before a
/// program runs.
pub(crate) struct TreeReadiness {
    set: OwnedFd,
    last_members: LastMemberWatch,
}

/// The way in which the end of members that outlive the root is noticed.
enum LastMemberWatch {
    /// A cgroup event reports the end. In a PID namespace no member outlives the root.
    KernelEvent,
    /// A timer triggers polling.
    PollTimer(OwnedFd),
}

impl TreeReadiness {
    pub(crate) fn new(control: &TreeControl) -> Result<Self, Errno> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let last_members = match control {
            TreeControl::PidNamespace => LastMemberWatch::KernelEvent,
            TreeControl::Cgroup(group) => {
                watch_group(&set, group)?;
                LastMemberWatch::KernelEvent
            }
            TreeControl::Subreaper(_) | TreeControl::CgroupWithKeeper(..) | TreeControl::ProcessGroup => {
                if let Some(group) = control.group() {
                    watch_group(&set, group)?;
                }
                let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
                add_to_epoll(&set, timer.as_fd(), epoll::EventFlags::IN)?;
                LastMemberWatch::PollTimer(timer)
            }
        };
        Ok(Self { set, last_members })
    }

    /// Adds the root process to the set, which then becomes readable when the root ends.
    pub(crate) fn watch_root(&self, pidfd: BorrowedFd<'_>) -> Result<(), Errno> {
        add_to_epoll(&self.set, pidfd, epoll::EventFlags::IN)
    }

    /// Replaces the root, which has ended, by a watch on the remaining members. The pidfd of the root has to
    /// be removed, because it would stay readable forever.
    pub(crate) fn watch_last_members(&self, root: BorrowedFd<'_>) -> Result<(), Errno> {
        if let LastMemberWatch::PollTimer(timer) = &self.last_members {
            let interval = Itimerspec { it_interval: POLL_INTERVAL, it_value: POLL_INTERVAL };
            rustix::time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &interval)?;
        }
        match epoll::delete(&self.set, root) {
            // The root has been removed already, or was never added.
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    /// Reads the timer, so that it is readable again only after its next interval.
    pub(crate) fn drain_timer(&self) {
        if let LastMemberWatch::PollTimer(timer) = &self.last_members {
            // Fails with EAGAIN if the timer has not expired, which is fine.
            let _ = rustix::io::read(timer, &mut [0_u8; 8]);
        }
    }

    /// Stops the timer after the end of the tree.
    pub(crate) fn stop_polling(&self) {
        if let LastMemberWatch::PollTimer(timer) = &self.last_members {
            let never = Itimerspec { it_interval: NEVER, it_value: NEVER };
            let _ = rustix::time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &never);
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

fn watch_group(set: &OwnedFd, group: &Cgroup) -> Result<(), Errno> {
    // The first read clears the pending event, so that only later changes wake the caller.
    group.is_populated()?;
    add_to_epoll(set, group.events(), epoll::EventFlags::PRI)
}

fn add_to_epoll(set: &OwnedFd, fd: BorrowedFd<'_>, flags: epoll::EventFlags) -> Result<(), Errno> {
    // All events carry the same data, because every wake-up checks everything.
    epoll::add(set, fd, epoll::EventData::new_u64(0), flags)
}
