//! One descriptor that tells of the end of a tree, whatever holds it together.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::TreeControl;
use crate::cgroup::Cgroup;

/// How often members are looked for that have outlived their root where nothing tells of their end.
/// They have been killed by then, so that it is seldom more than once.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Made before the tree is, so that a shortage of descriptors is known in time.
pub(crate) struct TreeReadiness {
    set: OwnedFd,
    last_members: LastMemberWatch,
}

/// What tells of the end of members that outlive the root.
enum LastMemberWatch {
    /// The cgroup; or nobody outlives an init.
    KernelEvent,
    /// Only looking again.
    PollTimer(OwnedFd),
}

impl TreeReadiness {
    pub(crate) fn new(reins: &TreeControl) -> Result<Self, Errno> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let last_members = match reins {
            TreeControl::PidNamespace => LastMemberWatch::KernelEvent,
            TreeControl::Cgroup(group) => {
                watch_group(&set, group)?;
                LastMemberWatch::KernelEvent
            }
            TreeControl::Subreaper(_) | TreeControl::CgroupWithKeeper(..) | TreeControl::ProcessGroup => {
                if let Some(group) = reins.group() {
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

    /// From now on the end of this process is news.
    pub(crate) fn watch_root(&self, pidfd: BorrowedFd<'_>) -> Result<(), Errno> {
        add_to_epoll(&self.set, pidfd, epoll::EventFlags::IN)
    }

    /// The root has ended and would be news for ever; what comes after it is.
    pub(crate) fn watch_last_members(&self, root: BorrowedFd<'_>) -> Result<(), Errno> {
        if let LastMemberWatch::PollTimer(timer) = &self.last_members {
            let every = Itimerspec { it_interval: POLL_INTERVAL, it_value: POLL_INTERVAL };
            rustix::time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &every)?;
        }
        match epoll::delete(&self.set, root) {
            // It had ended before it was watched.
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    /// What there was to see has been seen.
    pub(crate) fn drain_timer(&self) {
        if let LastMemberWatch::PollTimer(timer) = &self.last_members {
            // Nothing to read: it was something else.
            let _ = rustix::io::read(timer, &mut [0_u8; 8]);
        }
    }

    /// The tree has ended: there will be no more news.
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
    // Looked at once, so that only later changes are news.
    group.is_populated()?;
    add_to_epoll(set, group.events(), epoll::EventFlags::PRI)
}

fn add_to_epoll(set: &OwnedFd, fd: BorrowedFd<'_>, flags: epoll::EventFlags) -> Result<(), Errno> {
    // Whoever is woken looks at everything, so that no event needs to be told from the others.
    epoll::add(set, fd, epoll::EventData::new_u64(0), flags)
}
