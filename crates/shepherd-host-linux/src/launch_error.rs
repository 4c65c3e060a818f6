//! The errors of starting an entry.

use shepherd_util::ErrorChain;
use ward_process::SpawnError;

/// A reason why an entry can't be started, and the cure. The caller adds the name of the entry.
pub(crate) struct LaunchError {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl LaunchError {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }

    pub(crate) fn empty_command() -> Self {
        Self::new("the command is empty", "name a program")
    }

    /// Adds the cure to an error of `ward-process`.
    pub(crate) fn from_spawn(error: &SpawnError) -> Self {
        let help = match error {
            SpawnError::NulByte { .. }
            | SpawnError::RelativeProgram { .. }
            | SpawnError::ZeroLimit { .. } => "correct the entry",
            SpawnError::Start { .. } => {
                "check that the program and its folder exist and are open to the user it runs as"
            }
            SpawnError::NotRecorded(_) | SpawnError::Stream { .. } => {
                "check that the data folder is writable and has space left"
            }
            SpawnError::Killed { .. } => "find out what killed it: the kernel does so when memory runs out",
            SpawnError::CannotDieWithSupervisor(_)
            | SpawnError::Sandbox(_)
            | SpawnError::Cgroup { .. }
            | SpawnError::Fork(_)
            | SpawnError::Trace { .. } => "run `shepherd doctor` to see what this machine can't do",
        };
        Self::new(ErrorChain(error).to_string(), help)
    }
}
