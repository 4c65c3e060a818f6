//! What the audit log says: every command with who gave it, every decision with its reasons, every change of a
//! session, of the policy and of the clock (S8.3).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId, SessionId};

use crate::{EndReason, Millis, ReasonCode, StopMode, StopRequester};

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEvent {
    /// When, by the wall clock.
    pub at: Timestamp,
    /// On whose behalf: `policy` for what the daemon does by itself, else what the transport knows of the client.
    pub actor: String,
    /// What happened.
    #[serde(flatten)]
    pub what: AuditKind,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditKind {
    /// A launch was approved; the program is about to be started.
    LaunchApproved {
        /// The session to be.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// Of which entry.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// Whose time it is.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// How long it may run; absent if without end.
        max_run: Option<Millis>,
    },
    /// A launch was denied.
    LaunchDenied {
        /// Which entry was asked for.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// By whom.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// All the reasons.
        reasons: Vec<ReasonCode>,
    },
    /// The program runs.
    SessionStarted {
        /// Which session.
        #[schemars(with = "String")]
        session_id: SessionId,
    },
    /// A warning was given.
    WarningGiven {
        /// In which session.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// Seconds before the end.
        threshold_secs: u64,
    },
    /// The end of a session was moved.
    DeadlineChanged {
        /// Of which session.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// What is left now; absent if without end.
        remaining: Option<Millis>,
    },
    /// Somebody asked for the end of a session.
    StopRequested {
        /// Of which session.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// Who.
        by: StopRequester,
        /// How.
        mode: StopMode,
    },
    /// A session is over.
    SessionEnded {
        /// Which.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// Why.
        end: EndReason,
        /// How much time it was charged with.
        charged: Millis,
    },
    /// Extra time or a longer window was granted.
    Granted {
        /// The record.
        #[schemars(with = "String")]
        grant_id: GrantId,
        /// What it allows, as the record says it.
        grant: serde_json::Value,
    },
    /// A grant was taken back.
    GrantRevoked {
        /// Which.
        #[schemars(with = "String")]
        grant_id: GrantId,
    },
    /// A child asked for time.
    TimeRequested {
        /// The record.
        #[schemars(with = "String")]
        request_id: RequestId,
        /// For what.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// By whom.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// How much.
        amount: Millis,
    },
    /// A request was answered, or lapsed.
    RequestDecided {
        /// Which.
        #[schemars(with = "String")]
        request_id: RequestId,
        /// `granted`, `denied` or `lapsed`.
        decision: String,
    },
    /// A policy applies from now on.
    PolicyLoaded {
        /// How many entries it has.
        entry_count: usize,
        /// SHA-256 of its text, where it came from a text.
        digest: Option<String>,
    },
    /// A policy was refused; the one before stays.
    PolicyRejected {
        /// Why: the faults as they were shown.
        faults: Vec<String>,
    },
    /// The household changed its mode.
    ModeSwitched {
        /// To which; absent if the calendar decides again.
        mode: Option<String>,
    },
    /// The clock was found far behind what was seen before.
    ClockUntrusted {
        /// The latest time ever seen.
        latest_seen: Timestamp,
    },
    /// An administrator said that the clock is right, or it caught up.
    ClockTrusted,
    /// The time zone changed.
    ZoneChanged {
        /// To which.
        zone: String,
    },
    /// The daemon came up.
    DaemonStarted {
        /// What it found of an earlier session.
        recovered: Option<String>,
    },
    /// The daemon went down in order.
    DaemonStopped,
    /// A command was refused: because of who gave it, or because the policy forbids what it asks for.
    CommandRefused {
        /// Which command.
        command: String,
        /// Why.
        reason: String,
    },
    /// Something remarkable that no other line has a word for.
    Note {
        /// What.
        text: String,
    },
}
