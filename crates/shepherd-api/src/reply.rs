//! What the daemon answers to a command that it carried out.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{ProfileId, SessionId};

use crate::{
    AuditEvent, ClientRole, DaemonStateSnapshot, EntryView, ExplanationView, GrantView, HealthView,
    SessionView, TimeRequestView, TimelineView, UsageView,
};

/// The answer to a command that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CommandReply {
    /// To `get_state`.
    State {
        /// All of it.
        snapshot: DaemonStateSnapshot,
    },
    /// To `list_entries`.
    Entries {
        /// At this moment.
        at: Timestamp,
        /// For this profile.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// In the order of the policy.
        entries: Vec<EntryView>,
    },
    /// To `launch`: approved and recorded, and the program is being started. What becomes of it comes as an event.
    Launched {
        /// The session.
        session: SessionView,
    },
    /// To `stop_current`: the program is being ended. That it is gone comes as an event.
    Stopping {
        /// Which session.
        #[schemars(with = "String")]
        session_id: SessionId,
    },
    /// To `reload_config` and `set_policy`.
    PolicyApplied {
        /// How many entries the new policy has.
        entry_count: usize,
    },
    /// To `subscribe_events`: events follow from this state on.
    Subscribed {
        /// All of it.
        snapshot: DaemonStateSnapshot,
    },
    /// To `health`.
    Health {
        /// How it is.
        health: HealthView,
    },
    /// To `extend_current`.
    Extended {
        /// The session with its new end.
        session: SessionView,
    },
    /// To `get_policy`.
    Policy {
        /// As it was written; absent if it did not come from a text.
        text: Option<String>,
        /// SHA-256 of the text.
        digest: Option<String>,
    },
    /// To `why`.
    Why {
        /// The rules.
        why: ExplanationView,
    },
    /// To `timeline`.
    Timeline {
        /// The spans.
        timeline: TimelineView,
    },
    /// To `usage`.
    Usage {
        /// By day, then by profile.
        usage: Vec<UsageView>,
    },
    /// To `request_time` and `mark_request_seen`.
    Request {
        /// As it is now.
        request: TimeRequestView,
    },
    /// To `list_requests`.
    Requests {
        /// Oldest first.
        requests: Vec<TimeRequestView>,
    },
    /// To `decide_request`.
    Decided {
        /// As it is now.
        request: TimeRequestView,
        /// What was given, if anything was.
        grant: Option<GrantView>,
    },
    /// To `grant` and `revoke_grant`.
    Grant {
        /// As it is now.
        grant: GrantView,
    },
    /// To `list_grants`.
    Grants {
        /// Oldest first.
        grants: Vec<GrantView>,
    },
    /// To `switch_mode`.
    Mode {
        /// The mode that applies now.
        mode: String,
    },
    /// To `confirm_clock`.
    ClockConfirmed {
        /// What the clock says.
        at: Timestamp,
    },
    /// To `read_audit`.
    Audit {
        /// Oldest first.
        records: Vec<AuditRecord>,
    },
    /// To `authenticate`.
    Authenticated {
        /// What this connection may do from now on.
        role: ClientRole,
    },
    /// To `set_pin`.
    PinChanged {
        /// Whether there is one now.
        set: bool,
    },
    /// To `metrics`.
    Metrics {
        /// In the text format of Prometheus.
        text: String,
    },
    /// Something that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// A line of the audit log and its place in the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// Its number, without gaps.
    pub sequence: u64,
    /// What it says.
    pub line: AuditEvent,
}
