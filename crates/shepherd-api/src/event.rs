//! What the daemon tells its subscribers (S10.4).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::SessionId;

use crate::{
    AuditRecord, DaemonStateSnapshot, EndReason, GrantView, SessionView, TimeRequestView, WarningSeverity,
};

/// Something happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// When, by the daemon's wall clock. What remains is as of this moment.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What can happen. What changes a session carries it whole, so that clients have nothing to work out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// Everything anew. Sent when no smaller event says it, as after a suspend or when the clock was moved.
    StateChanged {
        /// All of it.
        snapshot: DaemonStateSnapshot,
    },
    /// A launch was approved, and the program is being started.
    SessionLaunching {
        /// The session.
        session: SessionView,
    },
    /// The program runs.
    SessionStarted {
        /// The session.
        session: SessionView,
    },
    /// The end is near.
    WarningIssued {
        /// The session, with what is left of it.
        session: SessionView,
        /// Which of the warnings: seconds before the end.
        threshold_secs: u64,
        /// How loud.
        severity: WarningSeverity,
        /// For people.
        message: String,
    },
    /// The end was moved.
    DeadlineChanged {
        /// The session, with what is left of it now.
        session: SessionView,
    },
    /// Time is up, or somebody asked for the end: the program is being ended.
    SessionExpired {
        /// The session.
        session: SessionView,
        /// Why it will have ended.
        end: EndReason,
    },
    /// A session is over.
    SessionEnded {
        /// Which.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// Why.
        end: EndReason,
    },
    /// How it stands with entries has changed: a window opened, a pause is over.
    EntriesChanged {},
    /// Another policy applies.
    PolicyReloaded {
        /// How many entries it has.
        entry_count: usize,
    },
    /// Another mode of the household applies.
    ModeSwitched {
        /// Which.
        mode: String,
    },
    /// The clock is trusted again, or no longer.
    ClockTrustChanged {
        /// Whether it is.
        trusted: bool,
    },
    /// A request was made, seen, answered, or lapsed.
    RequestChanged {
        /// As it is now.
        request: TimeRequestView,
    },
    /// A grant was given or taken back.
    GrantChanged {
        /// As it is now.
        grant: GrantView,
    },
    /// The audit log has a new line.
    AuditAppended {
        /// The line.
        record: AuditRecord,
    },
    /// Something that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
