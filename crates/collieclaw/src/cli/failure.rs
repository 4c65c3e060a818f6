//! The failures of commands, with their help lines and exit codes.

use std::io;
use std::path::PathBuf;

use collieclaw::channels::ReplError;
use collieclaw_agent::memory::MemoryError;
use collieclaw_agent::plugins::{PluginFolderError, PluginInstallError};
use collieclaw_agent::receipts::ReceiptError;
use collieclaw_agent::runtime::{CallOutcome, TurnError};
use collieclaw_agent::security::{ApprovalError, FileError};
use collieclaw_agent::sop::{JournalError, SopError};
use collieclaw_agent::trash::TrashError;
use collieclaw_agent::usage::UsageError;
use collieclaw_agent::workspaces::{AllowError, FolderRefusal, WorkspaceError};
use collieclaw_gateway::GatewayError;
use collieclaw_listen::TokenError;
use collieclaw_mcp::serve::ServeError;
use collieclaw_mcp::{McpFailure, ToolPinError};
use collieclaw_providers::cancel::CancelReason;
use collieclaw_providers::{FixtureError, ProviderError};
use thiserror::Error;

use super::wiring::RuleChangeError;

#[derive(Debug, Error)]
pub(crate) enum CommandFailure {
    #[error("HOME is not set to an absolute path")]
    NoUserHome,
    #[error("COLLIECLAW_HOME must be an absolute path, not `{}`", .path.display())]
    RelativeHome { path: PathBuf },
    #[error("CollieClaw is not set up yet: {} does not exist", .config.display())]
    NotSetUp { config: PathBuf },
    #[error("{} can be changed by others, so it is not trusted", .path.display())]
    Untrusted { path: PathBuf },
    #[error("{} can't be read", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a regular file", .path.display())]
    NotRegularFile { path: PathBuf },
    #[error("the configuration is not valid")]
    Config { report: Box<ward_diag::FaultReport> },
    #[error("the workspace {} can't be used", .path.display())]
    Workspace { path: PathBuf, source: io::Error },
    #[error("the folder {path} can't be a workspace: {why}")]
    FolderRefused { path: String, why: FolderRefusal },
    #[error("the folder {path} is not trusted yet")]
    FolderNotTrusted { path: String },
    #[error("another folder is in the place of the trusted workspace {path}")]
    FolderReplaced { path: String },
    #[error(transparent)]
    Workspaces(#[from] WorkspaceError),
    #[error(transparent)]
    Allow(#[from] AllowError),
    #[error("{what}")]
    InvalidInput { what: String, cure: &'static str },
    #[error("the channel `cli` is switched off in the configuration (`channels.cli.enabled`)")]
    CliChannelDisabled,
    #[error("the channel `gateway` is switched off in the configuration (`channels.gateway.enabled`)")]
    GatewayDisabled,
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("could not reach the service manager of this user: {said}")]
    NoServiceManager { said: String },
    #[error("`{what}` failed: {said}")]
    ServiceManagerFailed { what: String, said: String },
    #[error("the service is not installed")]
    ServiceNotInstalled,
    #[error("the service is not running")]
    ServiceNotRunning,
    #[error(transparent)]
    Fixture(#[from] FixtureError),
    #[error(transparent)]
    Provider(ProviderError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    #[error("could not verify the receipts")]
    Verify(#[from] ward_ledger::verify::LedgerVerifyError),
    #[error("the chain of receipts is not sound")]
    ReceiptChainUnsound,
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error("the procedure is not valid")]
    Sop { report: Box<ward_diag::FaultReport> },
    #[error("{faulty} not valid")]
    InvalidSops { faulty: usize },
    #[error("{run} is waiting for an approval at step `{step}`")]
    WaitingForApproval { run: String, step: String },
    #[error("{run} needs an approval at the step `{step}`, and no operator is available")]
    NoOperatorAtStep { run: String, step: String },
    #[error("{run} was interrupted in step `{step}`, which may be partly done")]
    Interrupted { run: String, step: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Repl(#[from] ReplError),
    #[error(transparent)]
    Turn(TurnError),
    #[error("a tool call failed")]
    CallFailed,
    #[error("a tool call was denied")]
    CallDenied,
    #[error("a tool call was denied: it needs an approval, and no operator is available")]
    NoOperator,
    #[error("a tool call was refused: the emergency stop is active")]
    CallStopped,
    #[error("a tool call was cancelled")]
    CallCancelled,
    #[error("could not read the plugin")]
    PluginFolder(#[from] PluginFolderError),
    #[error("the manifest is not valid")]
    Manifest { report: Box<ward_diag::FaultReport> },
    #[error(transparent)]
    Plugin(#[from] PluginInstallError),
    #[error(transparent)]
    Trash(#[from] TrashError),
    #[error("the MCP server `{server}` can't be used: {why}")]
    Mcp { server: String, why: McpFailure },
    #[error(transparent)]
    Pin(#[from] ToolPinError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("not confirmed; nothing was changed")]
    NotConfirmed,
    #[error("could not ask for confirmation without a terminal; nothing was changed")]
    NoOperatorToConfirm,
    #[error("could not {what}")]
    Io { what: String, source: io::Error },
}

impl CommandFailure {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    /// Returns the documented exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Approval(ApprovalError::Unknown { .. })
            | Self::Plugin(PluginInstallError::NotInstalled(_))
            | Self::Trash(TrashError::Unknown(_))
            | Self::Journal(JournalError::Unknown { .. } | JournalError::Ambiguous { .. })
            | Self::Allow(
                AllowError::Forbidden(_) | AllowError::NotAName(_) | AllowError::ScriptOutside { .. },
            )
            | Self::InvalidInput { .. } => 2,
            Self::Memory(_)
            | Self::Approval(_)
            | Self::Usage(_)
            | Self::Interrupted { .. }
            | Self::Journal(
                JournalError::File { .. }
                | JournalError::Damaged { .. }
                | JournalError::Renamed { .. }
                | JournalError::OlderVersion { .. }
                | JournalError::WithoutReceipt { .. }
                | JournalError::ContradictsReceipts { .. }
                | JournalError::Busy { .. },
            )
            | Self::Io { .. }
            | Self::NoServiceManager { .. }
            | Self::ServiceManagerFailed { .. }
            | Self::ServiceNotInstalled
            | Self::ServiceNotRunning
            | Self::Gateway(GatewayError::Listen { .. } | GatewayError::Setup(_))
            | Self::Token(TokenError::Unusable { .. })
            | Self::Repl(ReplError::Terminal(_) | ReplError::Setup(_))
            | Self::Plugin(_)
            | Self::PluginFolder(_)
            | Self::Trash(_)
            | Self::Mcp { .. }
            | Self::Pin(_)
            | Self::Serve(ServeError::Io { .. } | ServeError::Adapter(_) | ServeError::Protocol(_))
            | Self::Allow(AllowError::Script { .. })
            | Self::CallFailed => 1,
            Self::NoUserHome
            | Self::RelativeHome { .. }
            | Self::NotSetUp { .. }
            | Self::Untrusted { .. }
            | Self::Unreadable { .. }
            | Self::NotRegularFile { .. }
            | Self::Config { .. }
            | Self::Workspace { .. }
            | Self::FolderRefused { .. }
            | Self::FolderReplaced { .. }
            | Self::Workspaces(_)
            | Self::Sop { .. }
            | Self::InvalidSops { .. }
            | Self::Journal(JournalError::UntrustedOwner { .. })
            | Self::Manifest { .. }
            | Self::CliChannelDisabled
            | Self::GatewayDisabled
            | Self::Token(TokenError::NotPrivate { .. })
            | Self::Fixture(_) => 3,
            Self::CallDenied | Self::NotConfirmed => 4,
            Self::NoOperator
            | Self::NoOperatorToConfirm
            | Self::FolderNotTrusted { .. }
            | Self::WaitingForApproval { .. }
            | Self::NoOperatorAtStep { .. } => 5,
            Self::Provider(ProviderError::Cancelled { .. }) | Self::CallCancelled => EXIT_CANCELLED,
            Self::Provider(ProviderError::Limit { .. }) => 7,
            Self::Provider(_) => 6,
            Self::CallStopped => 8,
            Self::Receipt(_)
            | Self::Verify(_)
            | Self::ReceiptChainUnsound
            | Self::Serve(ServeError::Receipt(_)) => 9,
            Self::Turn(turn) | Self::Repl(ReplError::Turn(turn)) => turn_exit_code(turn),
        }
    }

    /// Returns the error code for programs; each exit code has one.
    pub(crate) fn error_code(&self) -> &'static str {
        match self.exit_code() {
            2 => "command-line",
            3 => "configuration",
            4 => "denied",
            5 => "approval-needed",
            6 => "provider",
            7 => "limit",
            8 => "estop",
            9 => "receipts",
            EXIT_CANCELLED => "cancelled",
            _ => "failed",
        }
    }

    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::NotSetUp { .. } => {
                Some("run `collieclaw init`, or `collieclaw onboard` for a guided set-up")
            }
            Self::Untrusted { .. } | Self::Workspaces(WorkspaceError::Untrusted { .. }) => {
                Some("remove write permission for others: `chmod go-w` the file and its folder")
            }
            Self::Unreadable { .. } => Some("check the permissions of the file and its folders"),
            Self::NotRegularFile { .. } => Some("replace it with a regular file that you own"),
            Self::Workspace { .. } => {
                Some("run `collieclaw init`, or set `workspace_dir` to a folder of yours")
            }
            Self::FolderRefused { .. } => {
                Some("choose a folder that holds one project, and that only you can change")
            }
            Self::FolderNotTrusted { .. } => {
                Some("if you know what is in it, run `collieclaw workspace trust PATH`")
            }
            Self::FolderReplaced { .. } => {
                Some("if you know why, run `collieclaw workspace trust PATH` to trust the new folder")
            }
            Self::Workspaces(WorkspaceError::Invalid { .. }) => {
                Some("correct the file, or remove it and trust the folder again")
            }
            Self::Allow(AllowError::Forbidden(_)) => {
                Some("`security.forbidden_commands` in the configuration has the list")
            }
            Self::Allow(AllowError::NotAName(_)) => Some(
                "write the name alone, like `cargo`, or the path of a script of the workspace, like `./run.sh`",
            ),
            Self::Allow(AllowError::ScriptOutside { .. }) => {
                Some("allow an installed program by its name, without a path")
            }
            Self::Token(TokenError::NotPrivate { .. }) => {
                Some("`chmod 600` the file, or remove it to get a new token")
            }
            Self::Gateway(GatewayError::Listen { .. }) => {
                Some("another program has the port: choose one with --port or `channels.gateway.port`")
            }
            Self::NoServiceManager { .. } => {
                Some("the service needs systemd and a login session; without them, run `collieclaw gateway`")
            }
            Self::ServiceManagerFailed { .. } => Some("see `journalctl --user -u collieclaw-gateway`"),
            Self::ServiceNotInstalled => Some("run `collieclaw service install`"),
            Self::NoUserHome => Some("set HOME, or COLLIECLAW_HOME"),
            Self::ReceiptChainUnsound => Some(
                "run `collieclaw receipt verify` to find the fault, and compare the log with a copy: receipts after a broken \
                 link prove nothing. If only the head is missing, check the log and run `collieclaw receipt adopt --yes`",
            ),
            Self::NoOperator => Some("run the command at a terminal, or see `collieclaw policy explain`"),
            Self::NoOperatorToConfirm => Some("run the command at a terminal, or pass `--yes`"),
            Self::Plugin(PluginInstallError::NotInstalled(_)) => {
                Some("run `collieclaw plugin list` to see the installed plugins")
            }
            Self::Trash(TrashError::Unknown(_)) => Some("run `collieclaw trash list` to see the ids"),
            Self::Trash(TrashError::Entry { source: FileError::Exists, .. }) => {
                Some("move the existing file away first")
            }
            Self::CallDenied => Some("run `collieclaw policy explain` to see why"),
            Self::CallStopped => Some("`collieclaw estop --clear` lets tools run again"),
            Self::Provider(ProviderError::Limit { .. })
            | Self::Turn(TurnError::Provider(ProviderError::Limit { .. })) => {
                Some("`collieclaw usage` shows what was used; the limits are in `[limits]`")
            }
            // `provider test` itself failed, so the help can't recommend it.
            Self::Provider(_) => Some(
                "check its address and key with `collieclaw provider list`; they are set in `[providers.models.NAME]`",
            ),
            Self::Turn(TurnError::Provider(_)) => {
                Some("run `collieclaw provider test NAME` to find the cause")
            }
            Self::Turn(TurnError::TooManyRounds { .. }) => Some(
                "ask for less at once, or raise `limits.max_tool_rounds` (`limits.project_tool_rounds` in a project folder)",
            ),
            Self::Receipt(error) | Self::Turn(TurnError::Receipt(error)) => error.cure(),
            Self::Approval(ApprovalError::Unknown { .. }) => {
                Some("run `collieclaw approval list` to see the ids")
            }
            Self::WaitingForApproval { .. } => {
                Some("approve with `collieclaw sop approve RUN`, or cancel with `collieclaw sop cancel RUN`")
            }
            Self::NoOperatorAtStep { .. } => {
                Some("run `collieclaw sop resume RUN` at a terminal; earlier approvals stay valid")
            }
            Self::Interrupted { .. } => Some(
                "check what the step has done, then run `collieclaw sop resume RUN` with --rerun-interrupted or --skip-interrupted",
            ),
            Self::Journal(error) => error.cure(),
            Self::Mcp { why, .. } | Self::Serve(ServeError::Adapter(why)) => mcp_help(why),
            Self::InvalidInput { cure, .. } => Some(cure),
            _ => None,
        }
    }
}

impl From<CancelReason> for CommandFailure {
    fn from(stopped_by: CancelReason) -> Self {
        match stopped_by {
            CancelReason::Estop => Self::CallStopped,
            CancelReason::Operator => Self::CallCancelled,
        }
    }
}

impl From<RuleChangeError> for CommandFailure {
    fn from(error: RuleChangeError) -> Self {
        match error {
            RuleChangeError::Store(error) => Self::Workspaces(error),
            RuleChangeError::Allow(error) => Self::Allow(error),
        }
    }
}

impl From<SopError> for CommandFailure {
    fn from(error: SopError) -> Self {
        match error {
            SopError::Journal(error) => Self::Journal(error),
            SopError::Receipt(error) => Self::Receipt(error),
            SopError::Turn(error) => Self::Turn(error),
            SopError::Memory(error) => Self::Memory(error),
        }
    }
}

/// Returns the cure for a server or an adapter that can't be used.
pub(crate) fn mcp_help(failure: &McpFailure) -> Option<&'static str> {
    match failure {
        McpFailure::FileNotReadable(_) => Some(
            "the server sees only the folders of your home that `programs` lists in `[mcp.servers.NAME]`",
        ),
        McpFailure::NothingListens(_) => {
            Some("start the server first, or correct `url` in `[mcp.servers.NAME]`")
        }
        McpFailure::AdapterUnusable(_) => Some(
            "build both programs with `cargo build --release --package collieclaw`, and keep them in one folder",
        ),
        McpFailure::NoSuchProgram(_) => Some("install it, or correct `command` in `[mcp.servers.NAME]`"),
        McpFailure::Other(_) => None,
    }
}

/// The exit code that a shell reports for a program ended by Ctrl-C.
const EXIT_CANCELLED: u8 = 130;

fn turn_exit_code(turn: &TurnError) -> u8 {
    match turn {
        TurnError::Provider(ProviderError::Limit { .. })
        | TurnError::TooManyRounds { .. }
        | TurnError::TooManyCalls => 7,
        TurnError::Provider(_) => 6,
        TurnError::Receipt(_) => 9,
        TurnError::Memory(_) => 1,
        TurnError::Cancelled => EXIT_CANCELLED,
    }
}

/// Returns the failure that the outcome of a call means for a command.
pub(crate) fn check_call_outcome(outcome: &CallOutcome) -> Result<(), CommandFailure> {
    match outcome {
        CallOutcome::Completed { .. } => Ok(()),
        CallOutcome::Failed { .. } | CallOutcome::NotRun(_) => Err(CommandFailure::CallFailed),
        CallOutcome::Denied { .. } => Err(CommandFailure::CallDenied),
        CallOutcome::NoOperator => Err(CommandFailure::NoOperator),
        CallOutcome::Stopped { by, .. } => Err((*by).into()),
    }
}

/// Returns the failure of the worst of several outcomes. The model deals with tools that failed, so these don't count.
pub(crate) fn check_call_outcomes(outcomes: &[CallOutcome]) -> Result<(), CommandFailure> {
    let severity = |outcome: &CallOutcome| match outcome {
        CallOutcome::Completed { .. } | CallOutcome::Failed { .. } | CallOutcome::NotRun(_) => 0,
        CallOutcome::Stopped { by: CancelReason::Operator, .. } => 1,
        CallOutcome::Denied { .. } => 2,
        CallOutcome::NoOperator => 3,
        CallOutcome::Stopped { by: CancelReason::Estop, .. } => 4,
    };
    let worst = outcomes.iter().max_by_key(|outcome| severity(outcome));
    worst.filter(|worst| severity(worst) > 0).map_or(Ok(()), check_call_outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help depends on the kind of a failure, not on the words of its message.
    #[test]
    fn a_failure_of_mcp_has_the_help_of_its_kind() {
        let misleading =
            || "collieclaw-mcp is missing: No such file, Permission denied, nothing listens".to_owned();
        let cases = [
            (McpFailure::NoSuchProgram(misleading()), Some("install it")),
            (McpFailure::NothingListens(misleading()), Some("start the server first")),
            (McpFailure::FileNotReadable(misleading()), Some("the server sees only the folders")),
            (McpFailure::AdapterUnusable(misleading()), Some("build both programs")),
            (McpFailure::Other(misleading()), None),
        ];
        for (why, expected) in cases {
            let serve = CommandFailure::Serve(ServeError::Adapter(why.clone()));
            let server = CommandFailure::Mcp { server: "fake".to_owned(), why };
            for failure in [server, serve] {
                let help = failure.help();
                assert_eq!(help.is_some(), expected.is_some(), "{failure:?}: {help:?}");
                assert!(help.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{help:?}");
            }
        }
    }
}
