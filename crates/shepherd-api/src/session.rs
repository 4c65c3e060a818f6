//! Sessions and the state of the daemon.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, ProfileId, SessionId};

use crate::Millis;

/// How loud a warning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningSeverity {
    /// Worth knowing.
    Info,
    /// Worth looking at.
    Warn,
    /// Save your game.
    Critical,
}

/// Where a session is in its life (S3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionPhase {
    /// Approved, not yet running.
    Launching,
    /// Running, nothing to warn of yet.
    Running,
    /// Running, and warned at least once.
    Warned,
    /// Being ended.
    Expiring,
}

/// Who wants a session to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopRequester {
    /// Whoever uses it.
    User,
    /// An administrator.
    Admin,
    /// The policy itself.
    Policy,
}

/// How a session is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// Asked first, with the grace of the policy.
    Graceful,
    /// At once.
    Force,
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum EndReason {
    /// The program ended by itself.
    Exited {
        /// Its exit code, where it is known.
        code: Option<i32>,
        /// The signal that ended it, where there was one.
        signal: Option<i32>,
    },
    /// Time was up.
    Expired,
    /// Somebody stopped it.
    Stopped {
        /// Who.
        by: StopRequester,
    },
    /// It never ran.
    LaunchFailed {
        /// Why.
        detail: String,
    },
    /// It did not start in time.
    LaunchTimedOut,
    /// It was gone when the daemon came back.
    Lost,
}

/// A session as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Which session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// Of which entry.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// For people.
    pub label: String,
    /// Whose time it is.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// Where it is in its life.
    pub phase: SessionPhase,
    /// When it was approved.
    pub started_at: Timestamp,
    /// What is left, as of the snapshot; absent if without end.
    pub remaining: Option<Millis>,
    /// How loud the loudest warning was that it has had, while it is `warned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned: Option<WarningSeverity>,
}

/// All that a client needs to draw itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStateSnapshot {
    /// The version of the protocol.
    pub api_version: u32,
    /// When this was true.
    pub at: Timestamp,
    /// The session, if there is one.
    pub session: Option<SessionView>,
    /// How many entries the policy has.
    pub entry_count: usize,
    /// The household's mode.
    pub mode: String,
    /// Whether launches are refused because the clock is not trusted.
    pub clock_trusted: bool,
}
