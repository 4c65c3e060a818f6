//! Replies to commands that the daemon carried out.

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{ProfileId, SessionId};

use crate::{
    AuditEvent, ClientRole, DaemonStateSnapshot, EntryView, ExplanationView, GrantView, HealthView,
    LoginAnswer, SessionLogView, SessionView, TimeRequestView, TimelineView, UsageView,
};

/// The reply to a command that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CommandReply {
    /// The reply to `get_state`.
    State {
        /// The whole state.
        snapshot: DaemonStateSnapshot,
    },
    /// The reply to `list_entries`.
    Entries {
        /// The moment that the list describes.
        at: Timestamp,
        /// The profile that the list describes.
        #[schemars(with = "String")]
        profile: ProfileId,
        /// The entries, in the order of the policy.
        entries: Vec<EntryView>,
    },
    /// The reply to `launch`: approved and recorded, and the program is being started. Events report the outcome.
    Launched {
        /// The session that is being launched.
        session: SessionView,
    },
    /// The reply to `stop_current`: the program is being stopped. An event reports when it is gone.
    Stopping {
        /// The session that is being stopped.
        #[schemars(with = "String")]
        session_id: SessionId,
    },
    /// The reply to `reload_config` and `set_policy`.
    PolicyApplied {
        /// The number of entries in the new policy.
        entry_count: usize,
    },
    /// The reply to `subscribe_events`: events follow from this state on.
    Subscribed {
        /// The whole state.
        snapshot: DaemonStateSnapshot,
    },
    /// The reply to `health`.
    Health {
        /// The results of the checks.
        health: HealthView,
    },
    /// The reply to `extend_current`.
    Extended {
        /// The session with its new end.
        session: SessionView,
    },
    /// The reply to `get_policy`.
    Policy {
        /// The policy as it was written; absent if it did not come from a text.
        text: Option<String>,
        /// SHA-256 of the text.
        digest: Option<String>,
        /// The path of the policy file. The file may have been changed since the daemon read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// The reply to `why`.
    Why {
        /// The result of every rule.
        why: ExplanationView,
    },
    /// The reply to `timeline`.
    Timeline {
        /// The intervals of each entry.
        timeline: TimelineView,
    },
    /// The reply to `usage`.
    Usage {
        /// The day to which the daemon charges usage now. It differs from the client's day if the policy sets another
        /// time zone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        today: Option<Date>,
        /// The usage by day, then by profile.
        usage: Vec<UsageView>,
    },
    /// The reply to `request_time` and `mark_request_seen`.
    Request {
        /// The request in its new state.
        request: TimeRequestView,
    },
    /// The reply to `list_requests`.
    Requests {
        /// The requests, oldest first.
        requests: Vec<TimeRequestView>,
    },
    /// The reply to `decide_request`.
    Decided {
        /// The request in its new state.
        request: TimeRequestView,
        /// The grant that was made, if the answer was yes.
        grant: Option<GrantView>,
    },
    /// The reply to `grant` and `revoke_grant`.
    Grant {
        /// The grant in its new state.
        grant: GrantView,
    },
    /// The reply to `list_grants`.
    Grants {
        /// The grants, oldest first.
        grants: Vec<GrantView>,
    },
    /// The reply to `switch_mode`.
    Mode {
        /// The mode that applies now.
        mode: String,
    },
    /// The reply to `confirm_clock`.
    ClockConfirmed {
        /// The time that the clock shows.
        at: Timestamp,
    },
    /// The reply to `read_audit`.
    Audit {
        /// The records, oldest first.
        records: Vec<AuditRecord>,
    },
    /// The reply to `read_session_log`.
    SessionLog {
        /// The session with its output.
        log: SessionLogView,
    },
    /// The reply to `authenticate`.
    Authenticated {
        /// The role of this connection from now on.
        role: ClientRole,
    },
    /// The reply to `set_pin`.
    PinChanged {
        /// True if a PIN is set now.
        set: bool,
    },
    /// The reply to `metrics`.
    Metrics {
        /// The metrics in the Prometheus text format.
        text: String,
    },
    /// The reply to `check_login`.
    LoginChecked {
        /// Whether the account may log in.
        login: LoginAnswer,
    },
    /// A reply that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// A record of the audit log with its place in the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// The sequence number, without gaps.
    pub sequence: u64,
    /// The event that the record describes.
    pub line: AuditEvent,
}
