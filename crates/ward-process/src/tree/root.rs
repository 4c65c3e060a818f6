//! The process at the root of a tree: a child of ours, or one found again.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::exit::{Exit, Usage};
use crate::record::RootProcess;
use crate::sys::fork::Forked;
use crate::sys::procfs::{ProcRoot, pidfd_of};
use crate::sys::wait::{Reaped, reap, wait_readable};

/// A process held by its pidfd.
pub(crate) struct Root {
    pid: i32,
    /// Read when it is first asked for, at the latest before the number is free again.
    start_time: Cell<Option<u64>>,
    origin: Origin,
    state: State,
}

/// How we came by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A child of ours: its number is its own until we have reaped it.
    Child,
    /// Its number may be given away at any time.
    Found,
}

enum State {
    Held(OwnedFd),
    Ended(Option<OwnedFd>, Exit, Usage),
}

impl Root {
    /// A child that we have just made.
    pub(crate) fn child(forked: Forked) -> Self {
        let pid = forked.pid.as_raw_nonzero().get();
        let state = State::Held(forked.pidfd);
        Self { pid, start_time: Cell::new(None), origin: Origin::Child, state }
    }

    /// What names a child that we have just made.
    pub(crate) fn process_of(forked: &Forked, proc: &ProcRoot) -> Result<RootProcess, Errno> {
        let pid = forked.pid.as_raw_nonzero().get();
        Ok(RootProcess { pid, start_time: proc.stat(pid)?.start_time })
    }

    /// One that was started earlier, if it is still the same.
    pub(crate) fn found(process: RootProcess, proc: &ProcRoot) -> io::Result<Self> {
        let RootProcess { pid, start_time } = process;
        let ended = State::Ended(None, Exit::Unknown, Usage::default());
        let state = match pidfd_of(pid) {
            Err(Errno::SRCH) => ended,
            Err(error) => return Err(error.into()),
            // Looked at after the number was pinned: what we read is of the process that we hold.
            Ok(pidfd) => match proc.stat(pid) {
                Ok(stat) if stat.start_time == start_time && stat.is_alive() => State::Held(pidfd),
                Ok(_) | Err(Errno::NOENT | Errno::SRCH) => ended,
                Err(error) => return Err(error.into()),
            },
        };
        Ok(Self { pid, start_time: Cell::new(Some(start_time)), origin: Origin::Found, state })
    }

    /// Nobody knows which it was.
    pub(crate) fn unknown() -> Self {
        let state = State::Ended(None, Exit::Unknown, Usage::default());
        // No process has the number 0.
        Self { pid: 0, start_time: Cell::new(None), origin: Origin::Found, state }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// What names it for ever.
    pub(crate) fn process(&self, proc: &ProcRoot) -> Option<RootProcess> {
        let start_time = self.start_time(proc)?;
        Some(RootProcess { pid: self.pid, start_time })
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
            State::Held(pidfd) | State::Ended(Some(pidfd), ..) => Some(pidfd.as_fd()),
            State::Ended(None, ..) => None,
        }
    }

    pub(crate) fn exit(&self) -> Option<(Exit, Usage)> {
        match self.state {
            State::Held(_) => None,
            State::Ended(_, exit, usage) => Some((exit, usage)),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.exit().is_some() || self.is_waiting_to_be_reaped()
    }

    /// Ended, as its pidfd tells, but nobody has asked for its status yet.
    pub(crate) fn is_waiting_to_be_reaped(&self) -> bool {
        let State::Held(pidfd) = &self.state else { return false };
        wait_readable(pidfd.as_fd(), Some(Duration::ZERO)) == Ok(true)
    }

    /// Ended, but somebody who traces it does not ask for its status, and nobody else gets it before.
    pub(crate) fn is_kept_by_a_tracer(&mut self) -> bool {
        self.is_waiting_to_be_reaped() && matches!(self.reap(), Ok(None))
    }

    /// Reaps it if it has ended, with its start time noted before.
    pub(crate) fn poll(&mut self, proc: &ProcRoot) -> Result<Option<(Exit, Usage)>, Errno> {
        if self.is_waiting_to_be_reaped() {
            self.start_time(proc);
        }
        self.reap()
    }

    /// Reaps it if it has ended.
    pub(crate) fn reap(&mut self) -> Result<Option<(Exit, Usage)>, Errno> {
        let State::Held(pidfd) = &self.state else { return Ok(self.exit()) };
        let (exit, usage) = match reap(pidfd.as_fd())? {
            Reaped::Ended(exit, usage) => (exit, usage),
            Reaped::NotOurs if self.is_waiting_to_be_reaped() => (Exit::Unknown, Usage::default()),
            Reaped::NotOurs | Reaped::Running => return Ok(None),
        };
        let unknown = State::Ended(None, exit, usage);
        if let State::Held(pidfd) = std::mem::replace(&mut self.state, unknown) {
            self.state = State::Ended(Some(pidfd), exit, usage);
        }
        Ok(Some((exit, usage)))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let State::Held(pidfd) = &self.state {
            // Ended meanwhile: nothing to do.
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
    }
}

/// What the keeper tells of the program.
pub(crate) struct KeeperLink {
    status: OwnedFd,
    program: Option<Exit>,
}

impl KeeperLink {
    pub(crate) fn new(status: OwnedFd) -> Self {
        Self { status, program: None }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.status.as_fd()
    }

    pub(crate) fn program_exit(&mut self) -> Option<Exit> {
        let mut message = [0_u8; 8];
        if self.program.is_none() && rustix::io::read(&self.status, &mut message) == Ok(message.len()) {
            let [a, b, c, d, e, f, g, h] = message;
            let (code, status) = (i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]));
            self.program = Some(Exit::from_wait(code, status));
        }
        self.program
    }
}
