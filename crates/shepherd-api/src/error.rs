//! Why a command was not carried out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, ReasonCode};

/// A command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{sentence}")]
pub struct ApiError {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub sentence: String,
    /// Of a launch that the policy denies: all the reasons, the first is the one to show.
    #[serde(default)]
    pub reasons: Vec<ReasonCode>,
    /// Of a policy that was refused: every fault in it, as it would be shown.
    #[serde(default)]
    pub faults: Vec<String>,
    /// When it makes sense to try again, where that can be known.
    pub retry_after: Option<Millis>,
}

impl ApiError {
    /// An error that has no more to it than its sentence.
    #[must_use]
    pub fn new(code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), reasons: Vec::new(), faults: Vec::new(), retry_after: None }
    }

    /// A launch that the policy denies.
    #[must_use]
    pub fn denied(sentence: impl Into<String>, reasons: Vec<ReasonCode>) -> Self {
        Self { reasons, ..Self::new(ErrorCode::Denied, sentence) }
    }

    /// A policy that was refused.
    #[must_use]
    pub fn policy_rejected(sentence: impl Into<String>, faults: Vec<String>) -> Self {
        Self { faults, ..Self::new(ErrorCode::PolicyRejected, sentence) }
    }

    /// Too many commands; the next one will be heard after this.
    #[must_use]
    pub fn rate_limited(sentence: impl Into<String>, retry_after: Millis) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(ErrorCode::RateLimited, sentence) }
    }
}

/// What went wrong, for programs. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The line is not a message of this protocol. The connection ends.
    MalformedMessage,
    /// The line is longer than the daemon reads. The connection ends.
    MessageTooLarge,
    /// The two sides have no version of the protocol in common. The connection ends.
    UnsupportedVersion,
    /// The first message must be a `hello`, and no later one can be. The connection ends.
    HandshakeExpected,
    /// There is no such command in this version of the daemon.
    UnknownCommand,
    /// The command has a field that is unknown, missing or of no use.
    InvalidCommand,
    /// The client took too long: to say hello, to end a line, or to say anything at all. The connection ends.
    TimedOut,
    /// This client may not give this command, or may not be connected at all.
    NotPermitted,
    /// This client may not give this command before it has given the administrator's PIN.
    PinRequired,
    /// The policy says no; the reasons say why.
    Denied,
    /// Nothing runs.
    NoSession,
    /// The policy has no such entry.
    UnknownEntry,
    /// The policy has no such profile, or several and none was named.
    UnknownProfile,
    /// The policy has no such budget.
    UnknownBudget,
    /// The policy has no such mode.
    UnknownMode,
    /// There is no such request.
    UnknownRequest,
    /// There is no such grant.
    UnknownGrant,
    /// The request was answered, or lapsed, before.
    AlreadyDecided,
    /// More than the policy lets anyone grant.
    OverCeiling,
    /// The span is empty, turned round, or longer than the daemon will look at.
    InvalidRange,
    /// The policy was refused; the faults say why. The one before stays.
    PolicyRejected,
    /// The program could not be started.
    LaunchFailed,
    /// Too many commands in too short a time.
    RateLimited,
    /// The PIN is another one, or none is set.
    WrongPin,
    /// As many clients are connected as the daemon has room for, in all or of this user. The connection ends.
    TooManyClients,
    /// What was used can't be read or written.
    StoreUnavailable,
    /// The daemon is going down.
    ShuttingDown,
    /// A fault of the daemon.
    Internal,
    /// Something that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
