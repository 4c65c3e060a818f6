//! Why a command did not do what was asked, its cure, and its exit code.

use std::io;
use std::path::PathBuf;

use collieclaw::channels::ReplError;
use collieclaw_agent::memory::MemoryError;
use collieclaw_agent::plugins::{PluginFolderError, PluginInstallError};
use collieclaw_agent::receipts::ReceiptError;
use collieclaw_agent::runtime::{CallOutcome, TurnError};
use collieclaw_agent::security::ApprovalError;
use collieclaw_agent::sop::{JournalError, SopError};
use collieclaw_agent::usage::UsageError;
use collieclaw_gateway::GatewayError;
use collieclaw_listen::TokenError;
use collieclaw_mcp::ToolPinError;
use collieclaw_mcp::serve::ServeError;
use collieclaw_providers::cancel::CancelReason;
use collieclaw_providers::{FixtureError, ProviderError};
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum CommandFailure {
    #[error("the variable HOME names no folder")]
    NoUserHome,
    #[error("COLLIECLAW_HOME is `{}`, and must be an absolute path", .path.display())]
    RelativeHome { path: PathBuf },
    #[error("CollieClaw is not set up yet: there is no {}", .config.display())]
    NotSetUp { config: PathBuf },
    #[error("{} can be changed by others, so it is not trusted", .path.display())]
    Untrusted { path: PathBuf },
    #[error("{} can't be read", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no plain file", .path.display())]
    NotRegularFile { path: PathBuf },
    #[error("the configuration is not valid")]
    Config { report: Box<ward_diag::FaultReport> },
    #[error("the workspace {} can't be used", .path.display())]
    Workspace { path: PathBuf, source: io::Error },
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
    #[error("this user has no service manager that answers: {said}")]
    NoServiceManager { said: String },
    #[error("`{what}` failed: {said}")]
    ServiceManagerFailed { what: String, said: String },
    #[error("the service is not installed")]
    ServiceNotInstalled,
    #[error("the service does not run")]
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
    #[error("the receipts can't be checked")]
    Verify(#[from] ward_ledger::verify::LedgerVerifyError),
    #[error("the chain of receipts is not sound")]
    ReceiptChainUnsound,
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error("the procedure is not valid")]
    Sop { report: Box<ward_diag::FaultReport> },
    #[error("{faulty} not valid")]
    InvalidSops { faulty: usize },
    #[error("{run} waits for an approval at the step `{step}`")]
    WaitingForApproval { run: String, step: String },
    #[error("{run} needs an approval at the step `{step}`, and nobody is there to ask")]
    NoOperatorAtStep { run: String, step: String },
    #[error("{run} was interrupted in the step `{step}`, and nobody knows how far it came")]
    Interrupted { run: String, step: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Repl(#[from] ReplError),
    #[error(transparent)]
    Turn(TurnError),
    #[error("a tool call was made and failed")]
    CallFailed,
    #[error("a tool call was denied")]
    CallDenied,
    #[error("a tool call was denied: it needs an approval, and nobody is there to ask")]
    NobodyToAsk,
    #[error("a tool call was refused: the emergency stop is active")]
    CallStopped,
    #[error("a tool call was cancelled")]
    CallCancelled,
    #[error("the plugin can't be read")]
    PluginFolder(#[from] PluginFolderError),
    #[error("the manifest is not valid")]
    Manifest { report: Box<ward_diag::FaultReport> },
    #[error(transparent)]
    Plugin(#[from] PluginInstallError),
    #[error("the MCP server `{server}` can't be used: {why}")]
    Mcp { server: String, why: String },
    #[error(transparent)]
    Pin(#[from] ToolPinError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("nobody said yes, so nothing was changed")]
    NotConfirmed,
    #[error("nobody is there to say yes, so nothing was changed")]
    NoOperatorToConfirm,
    #[error("could not {what}")]
    Io { what: String, source: io::Error },
}

impl CommandFailure {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    /// As it is documented, for scripts.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Approval(ApprovalError::Unknown { .. })
            | Self::Plugin(PluginInstallError::NotInstalled(_))
            | Self::Journal(JournalError::Unknown { .. } | JournalError::Ambiguous { .. })
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
            | Self::Mcp { .. }
            | Self::Pin(_)
            | Self::Serve(ServeError::Io { .. } | ServeError::Adapter(_) | ServeError::Protocol(_))
            | Self::CallFailed => 1,
            Self::NoUserHome
            | Self::RelativeHome { .. }
            | Self::NotSetUp { .. }
            | Self::Untrusted { .. }
            | Self::Unreadable { .. }
            | Self::NotRegularFile { .. }
            | Self::Config { .. }
            | Self::Workspace { .. }
            | Self::Sop { .. }
            | Self::InvalidSops { .. }
            | Self::Journal(JournalError::UntrustedOwner { .. })
            | Self::Manifest { .. }
            | Self::CliChannelDisabled
            | Self::GatewayDisabled
            | Self::Token(TokenError::NotPrivate { .. })
            | Self::Fixture(_) => 3,
            Self::CallDenied | Self::NotConfirmed => 4,
            Self::NobodyToAsk
            | Self::NoOperatorToConfirm
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

    /// Its kind in a word, for programs: one for each exit code.
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
            Self::NotSetUp { .. } => Some("run `collieclaw init`, or `collieclaw onboard` to be asked"),
            Self::Untrusted { .. } => {
                Some("it must be yours alone to change: `chmod go-w` it, and its folder")
            }
            Self::Unreadable { .. } => {
                Some("it must be a file that you can read, in folders that you can look into")
            }
            Self::NotRegularFile { .. } => Some("move it away, and put a plain file of yours in its place"),
            Self::Workspace { .. } => {
                Some("run `collieclaw init`, or set `workspace_dir` to a folder of yours")
            }
            Self::Token(TokenError::NotPrivate { .. }) => Some("`chmod 600` it, or remove it for a new one"),
            Self::Gateway(GatewayError::Listen { .. }) => {
                Some("another program has the port: choose one with --port or `channels.gateway.port`")
            }
            Self::NoServiceManager { .. } => Some(
                "there is none without systemd, or without a login of your own; `collieclaw gateway` runs without",
            ),
            Self::ServiceManagerFailed { .. } => Some("`journalctl --user -u collieclaw-gateway` tells more"),
            Self::ServiceNotInstalled => Some("`collieclaw service install` does it"),
            Self::NoUserHome => Some("set HOME, or COLLIECLAW_HOME"),
            Self::ReceiptChainUnsound => Some(
                "`collieclaw receipt verify` names what is wrong: compare with a copy, for what follows a broken link \
                 proves nothing; where only the head is gone, look, and say `collieclaw receipt adopt --yes`",
            ),
            Self::NobodyToAsk => Some("run it at a terminal to be asked, or see `collieclaw policy explain`"),
            Self::NoOperatorToConfirm => {
                Some("run it at a terminal, or say `--yes` if you know what it does")
            }
            Self::Plugin(PluginInstallError::NotInstalled(_)) => Some("`collieclaw plugin list` shows them"),
            Self::CallDenied => Some("`collieclaw policy explain` tells why"),
            Self::CallStopped => Some("`collieclaw estop --clear` lets tools run again"),
            Self::Provider(ProviderError::Limit { .. })
            | Self::Turn(TurnError::Provider(ProviderError::Limit { .. })) => {
                Some("`collieclaw usage` shows what was used; the limits are in `[limits]`")
            }
            // Of a test: there is none that tells more.
            Self::Provider(_) => Some(
                "`collieclaw provider list` shows its address and key, `[providers.models.NAME]` sets them",
            ),
            Self::Turn(TurnError::Provider(_)) => Some("`collieclaw provider test NAME` looks what is wrong"),
            Self::Turn(TurnError::TooManyRounds { .. }) => {
                Some("ask for less at once, or raise `limits.max_tool_rounds`")
            }
            Self::Receipt(error) | Self::Turn(TurnError::Receipt(error)) => error.cure(),
            Self::Approval(ApprovalError::Unknown { .. }) => Some("`collieclaw approval list` shows them"),
            Self::WaitingForApproval { .. } => {
                Some("`collieclaw sop approve RUN` says yes, `collieclaw sop cancel RUN` no")
            }
            Self::NoOperatorAtStep { .. } => Some(
                "`collieclaw sop resume RUN` at a terminal asks you and goes on; what was approved stays approved",
            ),
            Self::Interrupted { .. } => Some(
                "look at what it left, then `collieclaw sop resume RUN` with --rerun-interrupted or --skip-interrupted",
            ),
            Self::Journal(error) => error.cure(),
            // What the sandbox does not show it is not there, or not to be read.
            Self::Mcp { why, .. }
                if ["Permission denied", "No such file"].iter().any(|no| why.contains(no)) =>
            {
                Some("of your home it sees only the folders that `programs` names in `[mcp.servers.NAME]`")
            }
            Self::Mcp { why, .. } if why.starts_with("nothing listens") => {
                Some("start the server first, or correct `url` in `[mcp.servers.NAME]`")
            }
            Self::Mcp { why, .. } | Self::Serve(ServeError::Adapter(why))
                if why.contains("collieclaw-mcp")
                    && ["is missing", "has the version"].iter().any(|no| why.contains(no)) =>
            {
                Some(
                    "`cargo build --release --package collieclaw` makes both programs; keep them in one folder",
                )
            }
            Self::Mcp { why, .. } if why.starts_with("there is no program") => {
                Some("install it, or correct `command` in `[mcp.servers.NAME]`")
            }
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

/// As a shell tells of a program that Ctrl-C ended.
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
        CallOutcome::NobodyToAsk => Err(CommandFailure::NobodyToAsk),
        CallOutcome::Stopped { by, .. } => Err((*by).into()),
    }
}

/// Returns the failure of the worst of several outcomes. The model deals with tools that failed, so these don't count.
pub(crate) fn check_call_outcomes(outcomes: &[CallOutcome]) -> Result<(), CommandFailure> {
    let severity = |outcome: &CallOutcome| match outcome {
        CallOutcome::Completed { .. } | CallOutcome::Failed { .. } | CallOutcome::NotRun(_) => 0,
        CallOutcome::Stopped { by: CancelReason::Operator, .. } => 1,
        CallOutcome::Denied { .. } => 2,
        CallOutcome::NobodyToAsk => 3,
        CallOutcome::Stopped { by: CancelReason::Estop, .. } => 4,
    };
    let worst = outcomes.iter().max_by_key(|outcome| severity(outcome));
    worst.filter(|worst| severity(worst) > 0).map_or(Ok(()), check_call_outcome)
}
