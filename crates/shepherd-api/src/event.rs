//! Events that the daemon sends to its subscribers (S10.4).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::SessionId;

use crate::{
    AuditRecord, DaemonStateSnapshot, EndReason, GrantView, Language, SessionView, TimeRequestView,
    WarningSeverity,
};

/// An event, with the time at which it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The daemon's wall-clock time. Remaining times are as of this moment.
    pub at: Timestamp,
    /// The event itself.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events. An event about a session carries the whole session, so that clients have nothing to derive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// The whole state changed, as after a suspend or a change of the clock. Sent if no smaller event describes it.
    StateChanged {
        /// The new state.
        snapshot: DaemonStateSnapshot,
    },
    /// A launch was approved, and the program is being started.
    SessionLaunching {
        /// The session that is being launched.
        session: SessionView,
    },
    /// The program of a session is running.
    SessionStarted {
        /// The session that started.
        session: SessionView,
    },
    /// A warning was given.
    WarningIssued {
        /// The session, with its remaining time.
        session: SessionView,
        /// The threshold of the warning, in seconds before the end.
        threshold_secs: u64,
        /// The severity of the warning.
        severity: WarningSeverity,
        /// The message for people.
        message: String,
    },
    /// The end of a session moved.
    DeadlineChanged {
        /// The session, with its new remaining time.
        session: SessionView,
    },
    /// The session is being stopped, because its time is up or a client asked for it.
    SessionExpired {
        /// The session that is being stopped.
        session: SessionView,
        /// The reason for which the session is going to end.
        end: EndReason,
    },
    /// A session has ended.
    SessionEnded {
        /// The session that ended.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The reason for the end.
        end: EndReason,
    },
    /// The availability of entries changed: a window opened, a cooldown ended.
    EntriesChanged {},
    /// A new policy applies.
    PolicyReloaded {
        /// The number of entries in the policy.
        entry_count: usize,
        /// The language of the family. Absent if the daemon is too old to send it; then it is English.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<Language>,
    },
    /// A new household mode applies.
    ModeSwitched {
        /// The name of the mode.
        mode: String,
    },
    /// The clock is trusted again, or is no longer trusted.
    ClockTrustChanged {
        /// True if the clock is trusted.
        trusted: bool,
    },
    /// A request was made, seen, answered or has lapsed.
    RequestChanged {
        /// The request in its new state.
        request: TimeRequestView,
    },
    /// A grant was made or revoked.
    GrantChanged {
        /// The grant in its new state.
        grant: GrantView,
    },
    /// The audit log has a new record.
    AuditAppended {
        /// The new record.
        record: AuditRecord,
    },
    /// An event that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
