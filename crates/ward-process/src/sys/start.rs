//! The message by which a new process reports to its parent whether it has reached the program.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// A step between fork and `execve`, to be named if it fails.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartStep {
    UserNamespace,
    Grouping,
    Stdio,
    Limits,
    Mounts,
    Network,
    Identity,
    Directory,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Descriptors,
    Keeper,
    Tracing,
    Execute,
}

impl StartStep {
    const ALL: [Self; 15] = [
        Self::UserNamespace,
        Self::Grouping,
        Self::Stdio,
        Self::Limits,
        Self::Mounts,
        Self::Network,
        Self::Identity,
        Self::Directory,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Descriptors,
        Self::Keeper,
        Self::Tracing,
        Self::Execute,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == byte)
    }

    /// Returns a verb phrase that completes "could not …".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::UserNamespace => "enter a user namespace",
            Self::Grouping => "create a process group",
            Self::Stdio => "connect standard input and output",
            Self::Limits => "set the resource limits",
            Self::Mounts => "make the file system read-only",
            Self::Network => "set up the loopback interface",
            Self::Identity => "switch to the requested user",
            Self::Directory => "enter the working directory",
            Self::NoNewPrivileges => "give up new privileges",
            Self::Landlock => "restrict file access with Landlock",
            Self::Seccomp => "restrict system calls with seccomp",
            Self::Descriptors => "close the descriptors of the parent",
            Self::Keeper => "start the keeper of the process tree",
            Self::Tracing => "prepare the tracing of its programs",
            Self::Execute => "execute the program",
        }
    }
}

/// A step that failed, with the kernel's error.
pub(crate) type StartFailure = (StartStep, Errno);

/// The outcome of a start, as read from the start pipe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartOutcome {
    /// `execve` has succeeded.
    Executed,
    /// A step before or in `execve` has failed.
    Failed(StartFailure),
    /// The new process was killed before it executed the program.
    Lost,
}

/// Written right before `execve`. Without it, a child that is killed early would look like a successful
/// start, because the pipe closes in both cases.
pub(super) const READY: u8 = u8::MAX;

/// Written when the new process waits for its tracer.
pub(super) const TRACEABLE: u8 = u8::MAX - 1;

/// Waits until the new process can be traced. Returns the outcome of the start if the process failed before.
pub(crate) fn wait_until_traceable(pipe: BorrowedFd<'_>) -> Result<Option<StartOutcome>, Errno> {
    let mut first = [0_u8; 1];
    loop {
        match rustix::io::read(pipe, &mut first) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(1) if first == [TRACEABLE] => return Ok(None),
            Ok(0) => return Ok(Some(StartOutcome::Lost)),
            Ok(_) => {
                let mut rest = [0_u8; 4];
                let length = rustix::io::read(pipe, &mut rest)?;
                let message = [&first, rest.get(..length).unwrap_or_default()].concat();
                return Ok(Some(parse_start_message(&message)));
            }
        }
    }
}

/// Reads until the pipe is closed, either by `execve` or by the end of the process.
pub(crate) fn read_start_outcome(pipe: BorrowedFd<'_>) -> Result<StartOutcome, Errno> {
    // Waits for the end first. A wake-up for the message would come right before `execve` and could take the processor
    // from the new process.
    while let Err(Errno::INTR) =
        rustix::event::poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::empty())], None)
    {}
    let mut message = [0_u8; 8];
    let mut length = 0;
    while let Some(rest) = message.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(pipe, rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(parse_start_message(message.get(..length).unwrap_or_default()))
}

fn parse_start_message(message: &[u8]) -> StartOutcome {
    match *message {
        [READY] => StartOutcome::Executed,
        [step, a, b, c, d] | [READY, step, a, b, c, d] => {
            // The child writes a valid error number; anything else would be a bug in this crate.
            let number = i32::from_le_bytes([a, b, c, d]);
            let known = (1..4096).contains(&number);
            let errno = if known { Errno::from_raw_os_error(number) } else { Errno::IO };
            StartOutcome::Failed((StartStep::from_byte(step).unwrap_or(StartStep::Execute), errno))
        }
        _ => StartOutcome::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_messages_count_as_lost() {
        let failed = StartOutcome::Failed((StartStep::Directory, Errno::NOENT));
        let message = [StartStep::Directory as u8, 2, 0, 0, 0];
        assert_eq!(parse_start_message(&[READY]), StartOutcome::Executed);
        assert_eq!(parse_start_message(&message), failed);
        assert_eq!(parse_start_message(&[[READY].as_slice(), &message].concat()), failed);
        for incomplete in [&[][..], &message[..3], &[READY, 1], &[READY; 8], &[0]] {
            assert_eq!(parse_start_message(incomplete), StartOutcome::Lost, "{incomplete:?}");
        }
    }
}
