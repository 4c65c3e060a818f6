//! What a new process tells of its way to the program.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// A step on the way to the program, so that a failure can name it.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartStep {
    UserNamespace,
    Grouping,
    Stdio,
    Limits,
    Mounts,
    Identity,
    Directory,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Descriptors,
    Keeper,
    Execute,
}

impl StartStep {
    const ALL: [Self; 13] = [
        Self::UserNamespace,
        Self::Grouping,
        Self::Stdio,
        Self::Limits,
        Self::Mounts,
        Self::Identity,
        Self::Directory,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Descriptors,
        Self::Keeper,
        Self::Execute,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == byte)
    }

    /// For the sentence "could not …".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::UserNamespace => "enter a user namespace",
            Self::Grouping => "start a process group of its own",
            Self::Stdio => "connect standard input and output",
            Self::Limits => "set the resource limits",
            Self::Mounts => "make the file system read-only",
            Self::Identity => "become the ordered user",
            Self::Directory => "enter the working directory",
            Self::NoNewPrivileges => "give up new privileges",
            Self::Landlock => "restrict file access with Landlock",
            Self::Seccomp => "restrict system calls with seccomp",
            Self::Descriptors => "close the descriptors of the parent",
            Self::Keeper => "start the keeper of the process tree",
            Self::Execute => "execute the program",
        }
    }
}

/// A step that failed, with the kernel's reason.
pub(crate) type StartFailure = (StartStep, Errno);

/// What came through the pipe between a new process and us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StartOutcome {
    /// The program runs.
    Executed,
    /// A step failed.
    Failed(StartFailure),
    /// It was killed before it came to the program.
    Lost,
}

/// Written right before `execve`, so that an end on the way there is not taken for a start.
pub(super) const READY: u8 = u8::MAX;

/// Reads until the pipe closes, because the program runs or because its process has ended.
pub(crate) fn read_start_outcome(pipe: BorrowedFd<'_>) -> Result<StartOutcome, Errno> {
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
            // What the child wrote is an error number; anything else would be our own mistake.
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
    fn only_a_whole_message_says_that_a_program_started() {
        let failed = StartOutcome::Failed((StartStep::Directory, Errno::NOENT));
        let told = [StartStep::Directory as u8, 2, 0, 0, 0];
        assert_eq!(parse_start_message(&[READY]), StartOutcome::Executed);
        assert_eq!(parse_start_message(&told), failed);
        assert_eq!(parse_start_message(&[[READY].as_slice(), &told].concat()), failed);
        for torn in [&[][..], &told[..3], &[READY, 1], &[READY; 8], &[0]] {
            assert_eq!(parse_start_message(torn), StartOutcome::Lost, "{torn:?}");
        }
    }
}
