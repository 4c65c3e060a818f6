//! Records of the audit log: every command with its author, every decision with its reasons, and every change of a
//! session, of the policy and of the clock (S8.3).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId, SessionId};

use crate::{EndReason, Millis, ReasonCode, StopMode, StopRequester};

/// A record of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEvent {
    /// The wall-clock time of the event.
    pub at: Timestamp,
    /// The author: `policy` for acts of the daemon itself, otherwise the client as the transport knows it.
    pub actor: String,
    /// The event itself.
    #[serde(flatten)]
    pub what: AuditKind,
}

/// The kinds of events in the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditKind {
    /// A launch was approved; the program is about to be started.
    LaunchApproved {
        /// The id of the new session.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The entry to be launched.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The profile whose time is used.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// The longest time that the session may run; absent if there is no limit.
        max_run: Option<Millis>,
    },
    /// A launch was denied.
    LaunchDenied {
        /// The entry that the client asked for.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The profile that asked.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// All reasons against the launch.
        reasons: Vec<ReasonCode>,
    },
    /// The program of a session is running.
    SessionStarted {
        /// The session that started.
        #[schemars(with = "String")]
        session_id: SessionId,
    },
    /// A warning was given.
    WarningGiven {
        /// The session that was warned.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The threshold of the warning, in seconds before the end.
        threshold_secs: u64,
    },
    /// The end of a session was moved.
    DeadlineChanged {
        /// The session whose end moved.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The time that is left now; absent if there is no limit.
        remaining: Option<Millis>,
    },
    /// The end of a session was requested.
    StopRequested {
        /// The session to be stopped.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The kind of requester.
        by: StopRequester,
        /// The way in which the session is stopped.
        mode: StopMode,
    },
    /// A session has ended.
    SessionEnded {
        /// The session that ended.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The reason for the end.
        end: EndReason,
        /// The time that the session was charged.
        charged: Millis,
    },
    /// Extra time or a longer window was granted.
    Granted {
        /// The id of the grant.
        #[schemars(with = "String")]
        grant_id: GrantId,
        /// The content of the grant, in one sentence.
        grant: serde_json::Value,
    },
    /// A grant was revoked.
    GrantRevoked {
        /// The grant that was revoked.
        #[schemars(with = "String")]
        grant_id: GrantId,
    },
    /// A child asked for time.
    TimeRequested {
        /// The id of the request.
        #[schemars(with = "String")]
        request_id: RequestId,
        /// The entry that the time is for.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The profile that asked.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// The requested amount of time.
        amount: Millis,
    },
    /// A request was answered, or lapsed.
    RequestDecided {
        /// The request that changed.
        #[schemars(with = "String")]
        request_id: RequestId,
        /// `granted`, `denied` or `lapsed`.
        decision: String,
    },
    /// A policy was loaded and now applies.
    PolicyLoaded {
        /// The number of entries in the policy.
        entry_count: usize,
        /// SHA-256 of the policy's text, if the policy came from a text.
        digest: Option<String>,
    },
    /// A policy was refused; the previous policy stays.
    PolicyRejected {
        /// The faults, as they were shown.
        faults: Vec<String>,
    },
    /// The household's mode changed.
    ModeSwitched {
        /// The new mode; absent if the calendar decides again.
        mode: Option<String>,
    },
    /// The clock was found far behind the latest known time.
    ClockUntrusted {
        /// The latest time ever observed.
        latest_seen: Timestamp,
    },
    /// An administrator confirmed the clock, or the clock caught up.
    ClockTrusted,
    /// The time zone changed.
    ZoneChanged {
        /// The new time zone.
        zone: String,
    },
    /// The daemon started.
    DaemonStarted {
        /// The state of an earlier session that the daemon found.
        recovered: Option<String>,
    },
    /// The daemon stopped in an orderly way.
    DaemonStopped,
    /// A command was refused, because of its author or because the policy forbids it.
    CommandRefused {
        /// The name of the command.
        command: String,
        /// The reason for the refusal.
        reason: String,
    },
    /// A remarkable event that has no kind of its own.
    Note {
        /// The description of the event.
        text: String,
    },
}
