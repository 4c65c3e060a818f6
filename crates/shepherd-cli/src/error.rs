//! Errors of the command line, with their help text and exit code.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use shepherd_api::{ErrorCode, NoteError, PinFormatError};
use shepherd_ipc::{CallError, ConnectError};
use shepherd_util::PathError;
use ward_ledger::verify::LedgerVerifyError;
use ward_ledger::{LedgerAppendError, LedgerFormatError, LedgerKeyError, LedgerOpenError};
use ward_process::{SetupError, SpawnError, StopError};
use ward_terminal::format_count;

use crate::refusal::{RefusedCommand, unknown_login_help};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ShepherdCliError {
    #[error("the log failed verification")]
    LogNotSound,
    #[error("the policy is not valid: {}", describe_mistakes(*count, *incomplete))]
    PolicyNotValid { count: usize, incomplete: bool },
    #[error("could not read {}", file.display())]
    Policy { file: PathBuf, source: io::Error },
    #[error("{} already exists", file.display())]
    PolicyExists { file: PathBuf },
    #[error("the service on this computer reads its rules from {}", file.display())]
    ServiceHasPolicy { file: PathBuf },
    #[error("{} is longer than the {limit} bytes that can be sent to the daemon", file.display())]
    PolicyTooLong { file: PathBuf, limit: usize },
    #[error("{} was not replaced: it has no mistake, but rules that are not in force yet", file.display())]
    ValidPolicyKept { file: PathBuf },
    #[error("{0}")]
    DemoCheckFailed(String),
    #[error("the daemon is not ready")]
    NotReady,
    #[error("could not start the program: {0}")]
    LaunchFailed(String),
    #[error("could not reach the daemon: no daemon listens at {}", socket.display())]
    NoDaemon { socket: PathBuf },
    #[error("could not reach the daemon")]
    Connect(#[source] ConnectError),
    #[error("{}", .0.error.sentence)]
    Refused(Box<RefusedCommand>),
    #[error("the connection to the daemon failed")]
    Call(#[source] CallError),
    #[error("the policy is in force, but it gives you no access any more")]
    AccessLost,
    #[error("unexpected reply from the daemon")]
    UnexpectedReply,
    #[error("no such {what} `{given}`; `shepherd {list}` shows all of them")]
    NoMatch { what: &'static str, given: String, list: &'static str },
    #[error("`{given}` matches several {what}s; type more of the id")]
    AmbiguousId { what: &'static str, given: String },
    #[error("no such {what} `{given}`")]
    UnknownName { what: &'static str, given: String, help: String },
    #[error("several {what} are called `{given}`")]
    AmbiguousName { what: &'static str, given: String, ids: Vec<String> },
    #[error("several children run `{given}`")]
    AmbiguousChild { given: String, profiles: Vec<String> },
    #[error("nothing is running for this child")]
    NothingRuns,
    #[error("there are no rules in force")]
    NoPolicy,
    #[error("no bedtime begins within a day")]
    NoBedtime,
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
    #[error("could not ask the questions: no terminal")]
    NoTerminalForQuestions,
    #[error("the questions were not answered to the end, so nothing was written")]
    QuestionsNotAnswered,
    #[error("could not make valid rules of the answers, so nothing was written:\n{0}")]
    AnswersNotValid(String),
    #[error("could not read the logins of this computer: {0}")]
    Accounts(String),
    #[error("could not check {}", log.display())]
    Verify { log: PathBuf, source: LedgerVerifyError },
    #[error("could not load the key of the audit log")]
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

/// The advice if no daemon runs.
pub(crate) const NO_DAEMON_HELP: &str =
    "`sudo systemctl start shepherdd` starts the service; `shepherd up` tries Shepherd without a service";

impl From<ConnectError> for ShepherdCliError {
    fn from(error: ConnectError) -> Self {
        match error {
            // The error of the operating system says nothing more.
            ConnectError::NoDaemon { socket, .. } => Self::NoDaemon { socket },
            other => Self::Connect(other),
        }
    }
}

impl From<CallError> for ShepherdCliError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(error) => Self::Refused(Box::new(error.into())),
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

    /// Returns true if the daemon refuses to talk to this user.
    pub(crate) fn is_refused_connection(&self) -> bool {
        matches!(self, Self::Connect(ConnectError::Refused(error)) if error.code == ErrorCode::NotPermitted)
    }

    /// Names the cause if new rules took away this user's access while the daemon put them into force.
    pub(crate) fn after_new_rules(self) -> Self {
        match self {
            Self::Call(CallError::Closed(error)) if error.code == ErrorCode::NotPermitted => Self::AccessLost,
            other => other,
        }
    }

    /// Returns true if the daemon needs to know which child a command is for.
    pub(crate) fn is_unknown_profile(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.error.code == ErrorCode::UnknownProfile)
    }

    /// Returns the advice for the `help:` line.
    pub(crate) fn help(&self) -> Option<String> {
        let help = match self {
            Self::Refused(refused) => return refused.help(),
            _ if self.is_refused_connection() => return Some(unknown_login_help()),
            Self::UnknownName { help, .. } => return Some(help.clone()),
            Self::ServiceHasPolicy { file } => {
                let how = if file.exists() {
                    format!("`sudoedit {}` changes them", file.display())
                } else {
                    "`sudo shepherd policy init` writes rules to start from".to_owned()
                };
                return Some(format!(
                    "{how}; `shepherd policy init ./policy.toml` writes an example elsewhere"
                ));
            }
            Self::AmbiguousChild { profiles, .. } => {
                return Some(format!("add `--profile {}`", profiles.join("` or `--profile ")));
            }
            Self::AmbiguousName { ids, .. } => {
                return Some(format!("use an id instead: `{}`", ids.join("`, `")));
            }
            _ => self.fixed_help().or_else(|| self.sudo_help())?,
        };
        Some(help.to_owned())
    }

    /// Returns the advice for a file that only root may read or write.
    fn sudo_help(&self) -> Option<&'static str> {
        let mut cause: Option<&dyn Error> = Some(self);
        while let Some(error) = cause {
            let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            if error.downcast_ref().is_some_and(denied) {
                return Some("put `sudo` before the command");
            }
            cause = error.source();
        }
        None
    }

    /// Returns the advice that depends on nothing but the kind of error.
    fn fixed_help(&self) -> Option<&'static str> {
        match self {
            Self::NoDaemon { .. } => Some(NO_DAEMON_HELP),
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
            Self::ValidPolicyKept { .. } => Some(
                "`sudo shepherd reload` puts the file into force; `sudo shepherd policy restore --yes` replaces the file \
                 and discards its changes",
            ),
            Self::PolicyExists { .. } => Some("remove it first, or choose another file"),
            Self::AccessLost => {
                Some("correct `admins` under `[access]` in the policy file, then run `sudo shepherd reload`")
            }
            Self::UnexpectedReply => Some("install `shepherd` and `shepherdd` in the same version"),
            Self::InvalidTime => {
                Some("give a nearer time, for example `18:30`, `sat 18:30` or `tomorrow 9:00`")
            }
            Self::NotATerminal => Some("use `shepherd status` or `shepherd list` instead"),
            Self::NoTerminalForQuestions => Some(
                "type it in a terminal; `shepherd policy init` writes rules to start from without a question",
            ),
            Self::NoTerminalForPin => Some("give the PIN in a file, with `--from FILE`"),
            Self::Policy { file, source } if source.kind() == io::ErrorKind::NotFound => {
                Some(if file == Path::new("/etc/shepherd/policy.toml") {
                    "`sudo shepherd policy init` writes rules to start from"
                } else {
                    "the rules of the service are in /etc/shepherd/policy.toml"
                })
            }
            Self::NoBedtime => Some("`shepherd grant --open-until 20:00` opens entries outside their hours"),
            Self::NoPolicy => Some("`shepherd health` shows what is wrong with the policy file"),
            _ => None,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::LogNotSound
            | Self::PolicyNotValid { .. }
            | Self::PolicyExists { .. }
            | Self::ServiceHasPolicy { .. }
            | Self::ValidPolicyKept { .. }
            | Self::PolicyTooLong { .. }
            | Self::DemoCheckFailed(_)
            | Self::NotReady
            | Self::LaunchFailed(_)
            | Self::NoMatch { .. }
            | Self::AmbiguousId { .. }
            | Self::UnknownName { .. }
            | Self::AmbiguousName { .. }
            | Self::AmbiguousChild { .. }
            | Self::NothingRuns
            | Self::NoPolicy
            | Self::NoBedtime
            | Self::AccessLost
            | Self::QuestionsNotAnswered
            | Self::PinsDiffer => ExitCode::from(1),
            Self::Refused(refused) if !is_daemon_failure(refused.error.code) => ExitCode::from(1),
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

/// Counts the mistakes of a policy, and says if syntax errors may hide more of them.
fn describe_mistakes(count: usize, incomplete: bool) -> String {
    let mistakes = format_count(count, "mistake", "mistakes");
    let these = if count == 1 { "it is" } else { "these are" };
    if incomplete {
        format!("{mistakes}; there may be more, which show when {these} corrected")
    } else {
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use shepherd_api::ApiError;

    use super::*;

    #[test]
    fn a_reload_that_takes_away_the_own_access_says_that_the_rules_apply() {
        let closed = |code| ShepherdCliError::Call(CallError::Closed(ApiError::new(code, "Closed.")));
        let lost = closed(ErrorCode::NotPermitted).after_new_rules();
        assert_eq!(lost.to_string(), "the policy is in force, but it gives you no access any more");
        assert!(lost.help().unwrap().ends_with("then run `sudo shepherd reload`"));
        let other = closed(ErrorCode::ShuttingDown).after_new_rules();
        assert!(matches!(other, ShepherdCliError::Call(_)), "{other}");
    }
}
