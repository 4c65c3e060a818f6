//! Why a command did not do what was asked, and the exit code for it.

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
    #[error("the log is not sound")]
    LogNotSound,
    #[error("the policy is not valid: {count} fault{}", if *count == 1 { "" } else { "s" })]
    PolicyNotValid { count: usize },
    #[error("could not read {}", file.display())]
    Policy { file: PathBuf, source: io::Error },
    #[error("{} is there already; take it away first, or choose another place", file.display())]
    PolicyExists { file: PathBuf },
    #[error("{} is longer than the {limit} bytes that can be sent to the daemon", file.display())]
    PolicyTooLong { file: PathBuf, limit: usize },
    #[error("{0}")]
    DemoCheckFailed(String),
    #[error("the daemon is not ready to work")]
    NotReady,
    #[error("it could not be started: {0}")]
    LaunchFailed(String),
    #[error("can't reach the daemon")]
    Connect(#[from] ConnectError),
    #[error("{}", .0.sentence)]
    Refused(ApiError),
    #[error("the conversation with the daemon failed")]
    Call(#[source] CallError),
    #[error("the daemon answered with something else than was asked for; is it newer than this program?")]
    UnexpectedReply,
    #[error("there is no {what} `{given}`; `shepherd {list}` lists them")]
    NoMatch { what: &'static str, given: String, list: &'static str },
    #[error("`{given}` could be several {what}s; give more of it")]
    AmbiguousId { what: &'static str, given: String },
    #[error("can't tell where the daemon's things are")]
    Paths(#[source] PathError),
    #[error("can't tell where the daemon's things are")]
    Options(#[from] shepherdd::DaemonOptionsError),
    #[error("the daemon did not come up; it said:\n{said}")]
    DaemonEnded { said: String },
    #[error("the calendar has no such time")]
    InvalidTime,
    #[error("the note can't be used")]
    Note(#[from] NoteError),
    #[error("this can't be the PIN")]
    Pin(#[from] PinFormatError),
    #[error("user {user} listens there, who is not to hear the PIN")]
    UntrustedPinRecipient { user: u32 },
    #[error("the two PINs are not the same")]
    PinsDiffer,
    #[error("the live view needs a terminal; `shepherd status` and `shepherd list` do not")]
    NotATerminal,
    #[error("there is no terminal to ask for the PIN at; give it in a file, with `--from FILE`")]
    NoTerminalForPin,
    #[error("could not check {}", log.display())]
    Verify { log: PathBuf, source: LedgerVerifyError },
    #[error("could not use the key")]
    Key(#[from] LedgerKeyError),
    #[error("the hash field's name can't be used")]
    Format(#[from] LedgerFormatError),
    #[error("could not open the tour's log")]
    Open(#[from] LedgerOpenError),
    #[error("could not append to the tour's log")]
    Append(#[from] LedgerAppendError),
    #[error("could not set up supervision")]
    Setup(#[from] SetupError),
    #[error("could not start a program")]
    Spawn(#[from] SpawnError),
    #[error("could not end a program")]
    Stop(#[from] StopError),
    #[error("could not {what}")]
    Io { what: &'static str, source: io::Error },
    #[error("could not use {}", path.display())]
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

    /// What to do about it, where that can be said.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Connect(ConnectError::NoDaemon { .. }) => Some(
                "start it with `shepherd up`, or as a service with `systemctl start shepherdd`; \
                 `--socket` says where it listens",
            ),
            Self::Connect(ConnectError::PermissionDenied { .. }) => {
                Some("ask whoever administers this machine to name you in `access` of the policy")
            }
            Self::Connect(ConnectError::TimedOut { .. }) => {
                Some("it hangs, or the machine is very busy; `systemctl restart shepherdd` loses no session")
            }
            Self::Connect(ConnectError::NotShepherd { .. }) => {
                Some("give the daemon's own socket with `--socket`")
            }
            Self::PolicyTooLong { .. } => Some(
                "copy it over the daemon's own file, which `shepherd health` names, and have it read with `shepherd reload`",
            ),
            Self::UntrustedPinRecipient { .. } => Some(
                "the daemon of this machine is root's; end whatever listens there, or name its socket with `--socket`",
            ),
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

/// Whether the daemon said "I can't" rather than "no".
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
        ErrorCode::UnknownEntry => Some("`shepherd list` shows what there is"),
        ErrorCode::UnknownProfile => Some("say whose time it is with `--profile NAME`"),
        ErrorCode::NotPermitted => Some("an administrator may; `access` in the policy names them"),
        ErrorCode::PinRequired => Some("give the PIN with `--pin-file`, or at a terminal"),
        ErrorCode::Denied => {
            Some("`shepherd why ENTRY` tells every rule; `shepherd request ENTRY 15m` asks for time")
        }
        ErrorCode::NoSession => Some("`shepherd list` shows what could be launched"),
        ErrorCode::UnsupportedVersion | ErrorCode::UnknownCommand => {
            Some("`shepherd` and `shepherdd` should be of the same version")
        }
        ErrorCode::RateLimited => Some("wait a moment and try again"),
        ErrorCode::StoreUnavailable => Some("`shepherd health` says what is wrong"),
        _ => None,
    }
}
