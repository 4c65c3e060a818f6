//! Errors of the command line, with their help text and exit code.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use shepherd_api::{ApiError, ErrorCode, NoteError, PinFormatError, ReasonCode};
use shepherd_ipc::{CallError, ConnectError};
use shepherd_util::PathError;
use ward_ledger::verify::LedgerVerifyError;
use ward_ledger::{LedgerAppendError, LedgerFormatError, LedgerKeyError, LedgerOpenError};
use ward_process::{SetupError, SpawnError, StopError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ShepherdCliError {
    #[error("the log failed verification")]
    LogNotSound,
    #[error("the policy is not valid: {count} fault{}", if *count == 1 { "" } else { "s" })]
    PolicyNotValid { count: usize },
    #[error("could not read {}", file.display())]
    Policy { file: PathBuf, source: io::Error },
    #[error("{} already exists", file.display())]
    PolicyExists { file: PathBuf },
    #[error("{} is longer than the {limit} bytes that can be sent to the daemon", file.display())]
    PolicyTooLong { file: PathBuf, limit: usize },
    #[error("{0}")]
    DemoCheckFailed(String),
    #[error("the daemon is not ready")]
    NotReady,
    #[error("could not start the program: {0}")]
    LaunchFailed(String),
    #[error("could not reach the daemon")]
    Connect(#[from] ConnectError),
    #[error("{}", .0.sentence)]
    Refused(ApiError),
    #[error("the connection to the daemon failed")]
    Call(#[source] CallError),
    #[error("unexpected reply from the daemon")]
    UnexpectedReply,
    #[error("no such {what} `{given}`; `shepherd {list}` shows all of them")]
    NoMatch { what: &'static str, given: String, list: &'static str },
    #[error("`{given}` matches several {what}s; type more of the id")]
    AmbiguousId { what: &'static str, given: String },
    #[error("could not find the daemon's folders")]
    Paths(#[source] PathError),
    #[error("could not find the daemon's folders")]
    Options(#[from] shepherdd::DaemonOptionsError),
    #[error("the daemon did not start:\n{log}")]
    DaemonEnded { log: String },
    #[error("the time is too far away")]
    InvalidTime,
    #[error("invalid note")]
    Note(#[from] NoteError),
    #[error("invalid PIN")]
    Pin(#[from] PinFormatError),
    #[error("could not send the PIN: the daemon runs as user {user}")]
    UntrustedPinRecipient { user: u32 },
    #[error("the two PINs differ")]
    PinsDiffer,
    #[error("the live view needs a terminal")]
    NotATerminal,
    #[error("could not ask for the PIN: no terminal")]
    NoTerminalForPin,
    #[error("could not check {}", log.display())]
    Verify { log: PathBuf, source: LedgerVerifyError },
    #[error("could not use the key")]
    Key(#[from] LedgerKeyError),
    #[error("invalid hash field name")]
    Format(#[from] LedgerFormatError),
    #[error("could not open the tour's log")]
    Open(#[from] LedgerOpenError),
    #[error("could not append to the tour's log")]
    Append(#[from] LedgerAppendError),
    #[error("could not prepare to start programs")]
    Setup(#[from] SetupError),
    #[error("could not start a program")]
    Spawn(#[from] SpawnError),
    #[error("could not stop a program")]
    Stop(#[from] StopError),
    #[error("could not {what}")]
    Io { what: &'static str, source: io::Error },
    #[error("could not access {}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl From<CallError> for ShepherdCliError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(error) => Self::Refused(error),
            other => Self::Call(other),
        }
    }
}

impl ShepherdCliError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// Returns the advice for the `help:` line.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Connect(ConnectError::NoDaemon { .. }) => Some(
                "start it with `shepherd up`, or as a service with `systemctl start shepherdd`; \
                 if it listens elsewhere, use `--socket`",
            ),
            Self::Connect(ConnectError::PermissionDenied { .. }) => {
                Some("ask an administrator of this machine to add you under `access` in the policy")
            }
            Self::Connect(ConnectError::TimedOut { .. }) => Some(
                "the daemon is stuck or the machine very busy; `systemctl restart shepherdd` keeps running sessions",
            ),
            Self::Connect(ConnectError::NotShepherd { .. }) => {
                Some("choose the daemon's socket with `--socket`")
            }
            Self::PolicyTooLong { .. } => Some(
                "copy it over the daemon's policy file, shown by `shepherd health`, then run `shepherd reload`",
            ),
            Self::UntrustedPinRecipient { .. } => Some(
                "this machine's daemon runs as root; stop the program that listens on the socket, or choose the \
                 daemon's socket with `--socket`",
            ),
            Self::PolicyExists { .. } => Some("remove it first, or choose another file"),
            Self::UnexpectedReply => Some("install `shepherd` and `shepherdd` in the same version"),
            Self::InvalidTime => {
                Some("give a nearer time, for example `18:30`, `sat 18:30` or `tomorrow 9:00`")
            }
            Self::NotATerminal => Some("use `shepherd status` or `shepherd list` instead"),
            Self::NoTerminalForPin => Some("give the PIN in a file, with `--from FILE`"),
            Self::Refused(error)
                if error.reasons.iter().any(|reason| matches!(reason, ReasonCode::UnknownEntry { .. })) =>
            {
                refusal_help(ErrorCode::UnknownEntry)
            }
            Self::Refused(error) => refusal_help(error.code),
            _ => None,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::LogNotSound
            | Self::PolicyNotValid { .. }
            | Self::PolicyExists { .. }
            | Self::PolicyTooLong { .. }
            | Self::DemoCheckFailed(_)
            | Self::NotReady
            | Self::LaunchFailed(_)
            | Self::NoMatch { .. }
            | Self::AmbiguousId { .. }
            | Self::PinsDiffer => ExitCode::from(1),
            Self::Refused(error) if !is_daemon_failure(error.code) => ExitCode::from(1),
            Self::InvalidTime | Self::Note(_) | Self::Pin(_) => ExitCode::from(2),
            _ => ExitCode::from(3),
        }
    }
}

/// Fails with a message if a claim of the demonstration or the tour does not hold.
pub(crate) fn ensure(holds: bool, otherwise: &str) -> Result<(), ShepherdCliError> {
    if holds { Ok(()) } else { Err(ShepherdCliError::DemoCheckFailed(otherwise.to_owned())) }
}

/// Returns true if the daemon failed to carry out a command, and false if it refused the command.
fn is_daemon_failure(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::MalformedMessage
            | ErrorCode::MessageTooLarge
            | ErrorCode::UnsupportedVersion
            | ErrorCode::HandshakeExpected
            | ErrorCode::UnknownCommand
            | ErrorCode::InvalidCommand
            | ErrorCode::RateLimited
            | ErrorCode::TooManyClients
            | ErrorCode::StoreUnavailable
            | ErrorCode::ShuttingDown
            | ErrorCode::Internal
            | ErrorCode::Unknown
    )
}

fn refusal_help(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::UnknownEntry => Some("`shepherd list` shows all entries"),
        ErrorCode::UnknownProfile => Some("choose a profile with `--profile NAME`"),
        ErrorCode::NotPermitted => {
            Some("ask an administrator; `access` in the policy names the administrators")
        }
        ErrorCode::PinRequired => {
            Some("give the PIN with `--pin-file FILE`, or run the command in a terminal")
        }
        ErrorCode::Denied => {
            Some("`shepherd why ENTRY` shows every rule; `shepherd request ENTRY 15m` asks a parent for time")
        }
        ErrorCode::UnknownSession => Some(
            "`shepherd log` without an id shows the latest session; an administrator finds others with `shepherd audit \
             list`",
        ),
        ErrorCode::NoSession => Some("`shepherd list` shows what can be launched"),
        ErrorCode::UnsupportedVersion | ErrorCode::UnknownCommand => {
            Some("install `shepherd` and `shepherdd` in the same version")
        }
        ErrorCode::RateLimited => Some("wait a moment and try again"),
        ErrorCode::StoreUnavailable => Some("`shepherd health` shows what is wrong"),
        _ => None,
    }
}
