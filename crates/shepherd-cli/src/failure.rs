//! Why a command did not do what was asked, and the exit code for it.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use ward_ledger::verify::VerifyError;
use ward_ledger::{AppendError, FormatError, KeyError, OpenError};
use ward_process::{SetupError, SpawnError, StopError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the log is not sound")]
    LogNotSound,
    #[error("the policy is not valid: {count} fault{}", if *count == 1 { "" } else { "s" })]
    PolicyNotValid { count: usize },
    #[error("could not read {}", file.display())]
    Policy { file: PathBuf, source: io::Error },
    #[error("{0}")]
    NotAsTold(String),
    #[error("could not check {}", log.display())]
    Verify { log: PathBuf, source: VerifyError },
    #[error("could not use the key")]
    Key(#[from] KeyError),
    #[error("the hash field's name can't be used")]
    Format(#[from] FormatError),
    #[error("could not open the tour's log")]
    Open(#[from] OpenError),
    #[error("could not append to the tour's log")]
    Append(#[from] AppendError),
    #[error("could not set up supervision")]
    Setup(#[from] SetupError),
    #[error("could not start a program")]
    Spawn(#[from] SpawnError),
    #[error("could not end a program")]
    Stop(#[from] StopError),
    #[error("could not {what}")]
    Io { what: &'static str, source: io::Error },
}

impl Failure {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::LogNotSound | Self::PolicyNotValid { .. } | Self::NotAsTold(_) => ExitCode::from(1),
            _ => ExitCode::from(3),
        }
    }
}
