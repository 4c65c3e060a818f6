//! The root process of a tree, held by its pidfd, and the pipe on which a keeper reports the program's exit.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::exit::{ProcessExit, ResourceUsage};
use crate::record::ProcessIdentity;
use crate::sys::fork::ForkedChild;
use crate::sys::procfs::{ProcRoot, open_pidfd};
use crate::sys::wait::{ReapOutcome, reap, wait_readable};

/// A handle on the root process of a tree.
pub(crate) struct RootHandle {
    pid: i32,
    /// Start time, read on first use and at the latest before the process is reaped and its pid can be
    /// reused.
    start_time: Cell<Option<u64>>,
    origin: RootOrigin,
    state: RootState,
}

/// The origin of a root process, which decides when its pid can be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootOrigin {
    /// A child of this process: its pid can't be reused before we reap it.
    Child,
    /// A process that an earlier supervisor started: its pid may be reused as soon as it ends.
    Reopened,
}

enum RootState {
    Held(OwnedFd),
    Ended(Option<OwnedFd>, ProcessExit, ResourceUsage),
}

impl RootHandle {
    /// Wraps a child that was just forked.
    pub(crate) fn from_child(forked: ForkedChild) -> Self {
        let pid = forked.pid.as_raw_nonzero().get();
        let state = RootState::Held(forked.pidfd);
        Self { pid, start_time: Cell::new(None), origin: RootOrigin::Child, state }
    }

    /// Returns the identity of a child that was just forked.
    pub(crate) fn identity_of_child(forked: &ForkedChild, proc: &ProcRoot) -> Result<ProcessIdentity, Errno> {
        let pid = forked.pid.as_raw_nonzero().get();
        Ok(ProcessIdentity { pid, start_time: proc.stat(pid)?.start_time })
    }

    /// Opens a process that was started earlier. If the pid now belongs to another process, the root counts
    /// as ended.
    pub(crate) fn reopen(process: ProcessIdentity, proc: &ProcRoot) -> io::Result<Self> {
        let ProcessIdentity { pid, start_time } = process;
        let ended = RootState::Ended(None, ProcessExit::Unknown, ResourceUsage::default());
        let state = match open_pidfd(pid) {
            Err(Errno::SRCH) => ended,
            Err(error) => return Err(error.into()),
            // The stat is read after the pid was pinned, so it belongs to the process behind the pidfd.
            Ok(pidfd) => match proc.stat(pid) {
                Ok(stat) if stat.start_time == start_time && stat.is_alive() => RootState::Held(pidfd),
                Ok(_) | Err(Errno::NOENT | Errno::SRCH) => ended,
                Err(error) => return Err(error.into()),
            },
        };
        Ok(Self { pid, start_time: Cell::new(Some(start_time)), origin: RootOrigin::Reopened, state })
    }

    /// Returns a handle for a tree whose root process isn't known; it counts as ended.
    pub(crate) fn unknown() -> Self {
        let state = RootState::Ended(None, ProcessExit::Unknown, ResourceUsage::default());
        // No process has the pid 0.
        Self { pid: 0, start_time: Cell::new(None), origin: RootOrigin::Reopened, state }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn origin(&self) -> RootOrigin {
        self.origin
    }

    /// Returns the identity of the process, or `None` if its start time can't be read.
    pub(crate) fn identity(&self, proc: &ProcRoot) -> Option<ProcessIdentity> {
        let start_time = self.start_time(proc)?;
        Some(ProcessIdentity { pid: self.pid, start_time })
    }

    fn start_time(&self, proc: &ProcRoot) -> Option<u64> {
        if self.start_time.get().is_none() {
            // The process has not been reaped yet, so its pid can't have been reused. Even a zombie has a
            // start time.
            self.start_time.set(proc.stat(self.pid).ok().map(|stat| stat.start_time));
        }
        self.start_time.get()
    }

    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            RootState::Held(pidfd) | RootState::Ended(Some(pidfd), ..) => Some(pidfd.as_fd()),
            RootState::Ended(None, ..) => None,
        }
    }

    pub(crate) fn exit(&self) -> Option<(ProcessExit, ResourceUsage)> {
        match self.state {
            RootState::Held(_) => None,
            RootState::Ended(_, exit, usage) => Some((exit, usage)),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.exit().is_some() || self.is_unreaped()
    }

    /// Returns true if the process has ended, as its pidfd shows, but this handle has not reaped it yet.
    pub(crate) fn is_unreaped(&self) -> bool {
        let RootState::Held(pidfd) = &self.state else { return false };
        wait_readable(pidfd.as_fd(), Some(Duration::ZERO)) == Ok(true)
    }

    /// Returns true if the process has ended but can't be reaped, because a tracer has not waited for it. The
    /// kernel reports the status to the tracer first; see `ptrace(2)`.
    pub(crate) fn is_held_by_tracer(&mut self) -> bool {
        self.is_unreaped() && matches!(self.reap(), Ok(None))
    }

    /// Reads the start time and then reaps the process if it has ended.
    pub(crate) fn poll(&mut self, proc: &ProcRoot) -> Result<Option<(ProcessExit, ResourceUsage)>, Errno> {
        if self.is_unreaped() {
            self.start_time(proc);
        }
        self.reap()
    }

    /// Reaps the process if it has ended.
    pub(crate) fn reap(&mut self) -> Result<Option<(ProcessExit, ResourceUsage)>, Errno> {
        let RootState::Held(pidfd) = &self.state else { return Ok(self.exit()) };
        let (exit, usage) = match reap(pidfd.as_fd())? {
            ReapOutcome::Ended(exit, usage) => (exit, usage),
            ReapOutcome::NotOurChild if self.is_unreaped() => {
                (ProcessExit::Unknown, ResourceUsage::default())
            }
            ReapOutcome::NotOurChild | ReapOutcome::Running => return Ok(None),
        };
        let ended = RootState::Ended(None, exit, usage);
        if let RootState::Held(pidfd) = std::mem::replace(&mut self.state, ended) {
            self.state = RootState::Ended(Some(pidfd), exit, usage);
        }
        Ok(Some((exit, usage)))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let RootState::Held(pidfd) = &self.state {
            // Fails if the process has ended meanwhile, which is fine.
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
    }
}

/// The pipe on which the keeper reports the exit of the program.
pub(crate) struct KeeperStatusPipe {
    status: OwnedFd,
    program: Option<ProcessExit>,
}

impl KeeperStatusPipe {
    pub(crate) fn new(status: OwnedFd) -> Self {
        Self { status, program: None }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.status.as_fd()
    }

    pub(crate) fn program_exit(&mut self) -> Option<ProcessExit> {
        let mut message = [0_u8; 8];
        if self.program.is_none() && rustix::io::read(&self.status, &mut message) == Ok(message.len()) {
            let [a, b, c, d, e, f, g, h] = message;
            let (code, status) = (i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]));
            self.program = Some(ProcessExit::from_wait(code, status));
        }
        self.program
    }
}
