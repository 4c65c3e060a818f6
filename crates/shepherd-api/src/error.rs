//! Errors that a command is answered with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, ReasonCode};

/// The error that answers a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{sentence}")]
pub struct ApiError {
    /// The stable code for programs.
    pub code: ErrorCode,
    /// The sentence for people.
    pub sentence: String,
    /// All reasons of a denied launch; show the first.
    #[serde(default)]
    pub reasons: Vec<ReasonCode>,
    /// Every fault of a refused policy, as it would be shown.
    #[serde(default)]
    pub faults: Vec<String>,
    /// The time after which a retry makes sense, if that can be known.
    pub retry_after: Option<Millis>,
}

impl ApiError {
    /// Creates an error with a code and a sentence only.
    #[must_use]
    pub fn new(code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), reasons: Vec::new(), faults: Vec::new(), retry_after: None }
    }

    /// Creates the error for a launch that the policy denies.
    #[must_use]
    pub fn denied(sentence: impl Into<String>, reasons: Vec<ReasonCode>) -> Self {
        Self { reasons, ..Self::new(ErrorCode::Denied, sentence) }
    }

    /// Creates the error for a refused policy.
    #[must_use]
    pub fn policy_rejected(sentence: impl Into<String>, faults: Vec<String>) -> Self {
        Self { faults, ..Self::new(ErrorCode::PolicyRejected, sentence) }
    }

    /// Creates the error for too many commands, with the time until the next one is accepted.
    #[must_use]
    pub fn rate_limited(sentence: impl Into<String>, retry_after: Millis) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(ErrorCode::RateLimited, sentence) }
    }
}

/// The kind of an error, for programs. The names are stable.
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
    /// The command has a field that is unknown, missing or invalid.
    InvalidCommand,
    /// The client took too long to say hello, to finish a line or to send anything. The connection ends.
    TimedOut,
    /// This client lacks the permission for the command, or for a connection.
    NotPermitted,
    /// This client has to give the administrator's PIN before this command.
    PinRequired,
    /// The policy denies the launch; the reasons say why.
    Denied,
    /// No session is running.
    NoSession,
    /// There is no such session.
    UnknownSession,
    /// Several sessions run, and the command names none of them; the sentence lists them.
    SeveralSessions,
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
    /// The request was already answered or has lapsed.
    AlreadyDecided,
    /// The amount exceeds what the policy allows anyone to grant.
    OverCeiling,
    /// The period is empty, reversed or longer than the daemon calculates.
    InvalidRange,
    /// The policy was refused and the previous policy stays; the faults say why.
    PolicyRejected,
    /// The program could not be started.
    LaunchFailed,
    /// Too many commands in too short a time.
    RateLimited,
    /// The PIN is incorrect, or none is set.
    WrongPin,
    /// The daemon has no room for another client, in total or for this user. The connection ends.
    TooManyClients,
    /// The usage records can't be read or written.
    StoreUnavailable,
    /// The daemon is shutting down.
    ShuttingDown,
    /// An internal error of the daemon.
    Internal,
    /// A code that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
