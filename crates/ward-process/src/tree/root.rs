//! The process at the root of a tree: a child of ours, or one found again.

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

/// A process held by its pidfd.
pub(crate) struct RootHandle {
    pid: i32,
    /// Read when it is first asked for, at the latest before the number is free again.
    start_time: Cell<Option<u64>>,
    origin: RootOrigin,
    state: RootState,
}

/// How we came by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootOrigin {
    /// A child of ours: its number is its own until we have reaped it.
    Child,
    /// Its number may be given away at any time.
    Reopened,
}

enum RootState {
    Held(OwnedFd),
    Ended(Option<OwnedFd>, ProcessExit, ResourceUsage),
}

impl RootHandle {
    /// A child that we have just made.
    pub(crate) fn from_child(forked: ForkedChild) -> Self {
        let pid = forked.pid.as_raw_nonzero().get();
        let state = RootState::Held(forked.pidfd);
        Self { pid, start_time: Cell::new(None), origin: RootOrigin::Child, state }
    }

    /// What names a child that we have just made.
    pub(crate) fn identity_of_child(forked: &ForkedChild, proc: &ProcRoot) -> Result<ProcessIdentity, Errno> {
        let pid = forked.pid.as_raw_nonzero().get();
        Ok(ProcessIdentity { pid, start_time: proc.stat(pid)?.start_time })
    }

    /// One that was started earlier, if it is still the same.
    pub(crate) fn reopen(process: ProcessIdentity, proc: &ProcRoot) -> io::Result<Self> {
        let ProcessIdentity { pid, start_time } = process;
        let ended = RootState::Ended(None, ProcessExit::Unknown, ResourceUsage::default());
        let state = match open_pidfd(pid) {
            Err(Errno::SRCH) => ended,
            Err(error) => return Err(error.into()),
            // Looked at after the number was pinned: what we read is of the process that we hold.
            Ok(pidfd) => match proc.stat(pid) {
                Ok(stat) if stat.start_time == start_time && stat.is_alive() => RootState::Held(pidfd),
                Ok(_) | Err(Errno::NOENT | Errno::SRCH) => ended,
                Err(error) => return Err(error.into()),
            },
        };
        Ok(Self { pid, start_time: Cell::new(Some(start_time)), origin: RootOrigin::Reopened, state })
    }

    /// Nobody knows which it was.
    pub(crate) fn unknown() -> Self {
        let state = RootState::Ended(None, ProcessExit::Unknown, ResourceUsage::default());
        // No process has the number 0.
        Self { pid: 0, start_time: Cell::new(None), origin: RootOrigin::Reopened, state }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn origin(&self) -> RootOrigin {
        self.origin
    }

    /// What names it for ever.
    pub(crate) fn identity(&self, proc: &ProcRoot) -> Option<ProcessIdentity> {
        let start_time = self.start_time(proc)?;
        Some(ProcessIdentity { pid: self.pid, start_time })
    }

    fn start_time(&self, proc: &ProcRoot) -> Option<u64> {
        if self.start_time.get().is_none() {
            // Not reaped yet, so the number is still its own, and even a zombie has a start time.
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

    /// Ended, as its pidfd tells, but nobody has asked for its status yet.
    pub(crate) fn is_unreaped(&self) -> bool {
        let RootState::Held(pidfd) = &self.state else { return false };
        wait_readable(pidfd.as_fd(), Some(Duration::ZERO)) == Ok(true)
    }

    /// Ended, but somebody who traces it does not ask for its status, and nobody else gets it before.
    pub(crate) fn is_held_by_tracer(&mut self) -> bool {
        self.is_unreaped() && matches!(self.reap(), Ok(None))
    }

    /// Reaps it if it has ended, with its start time noted before.
    pub(crate) fn poll(&mut self, proc: &ProcRoot) -> Result<Option<(ProcessExit, ResourceUsage)>, Errno> {
        if self.is_unreaped() {
            self.start_time(proc);
        }
        self.reap()
    }

    /// Reaps it if it has ended.
    pub(crate) fn reap(&mut self) -> Result<Option<(ProcessExit, ResourceUsage)>, Errno> {
        let RootState::Held(pidfd) = &self.state else { return Ok(self.exit()) };
        let (exit, usage) = match reap(pidfd.as_fd())? {
            ReapOutcome::Ended(exit, usage) => (exit, usage),
            ReapOutcome::NotOurChild if self.is_unreaped() => {
                (ProcessExit::Unknown, ResourceUsage::default())
            }
            ReapOutcome::NotOurChild | ReapOutcome::Running => return Ok(None),
        };
        let unknown = RootState::Ended(None, exit, usage);
        if let RootState::Held(pidfd) = std::mem::replace(&mut self.state, unknown) {
            self.state = RootState::Ended(Some(pidfd), exit, usage);
        }
        Ok(Some((exit, usage)))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let RootState::Held(pidfd) = &self.state {
            // Ended meanwhile: nothing to do.
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
    }
}

/// What the keeper tells of the program.
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
