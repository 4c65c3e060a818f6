//! What a client can ask for (S10.3).

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId};

use crate::{AdminPin, EntryScope, GrantKind, Millis, Note, StopMode};

/// One command. Where a profile can be named and is not, it is the one that the transport knows the client by, or
/// the only one of the policy.
///
/// Commands without arguments have braces so that an unknown field is refused there, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// What the daemon is doing.
    GetState {},
    /// How it stands with every entry.
    ListEntries {
        /// At which moment; now if absent.
        at_time: Option<Timestamp>,
        /// For whom.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Start an entry.
    Launch {
        /// Which.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// Whose time it costs.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// End the session that runs.
    StopCurrent {
        /// How.
        mode: StopMode,
    },
    /// Read the policy again from where it came.
    ReloadConfig {},
    /// Send events on this connection, from the snapshot in the reply on.
    SubscribeEvents {},
    /// Whether the daemon is well.
    Health {},
    /// Give the session that runs more time.
    ExtendCurrent {
        /// How much.
        by: Millis,
    },
    /// Replace the policy.
    SetPolicy {
        /// The new one, as TOML.
        text: String,
    },
    /// The policy as it was written.
    GetPolicy {},
    /// Every rule about an entry, what it looked at and how it came out.
    Why {
        /// Which entry.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// At which moment; now if absent.
        at: Option<Timestamp>,
        /// For whom.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// When each entry could be launched.
    Timeline {
        /// From this moment.
        from: Timestamp,
        /// Up to this one.
        to: Timestamp,
        /// For whom.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// How much was used.
    Usage {
        /// The first day.
        from: Date,
        /// The last day.
        to: Date,
        /// By whom; everybody if absent.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Ask the parents for time.
    RequestTime {
        /// For what.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// How much.
        minutes: u32,
        /// Why.
        note: Option<Note>,
        /// Who asks.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// What was asked for.
    ListRequests {},
    /// Say that a request was looked at.
    MarkRequestSeen {
        /// Which.
        #[schemars(with = "String")]
        request_id: RequestId,
    },
    /// Answer a request.
    DecideRequest {
        /// Which.
        #[schemars(with = "String")]
        request_id: RequestId,
        /// The answer.
        decision: TimeRequestDecision,
    },
    /// Give something that the policy does not give by itself.
    Grant {
        /// To whom; everybody if absent.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
        /// For what.
        scope: EntryScope,
        /// What.
        gift: GrantKind,
        /// From when it holds; now if absent.
        valid_from: Option<Timestamp>,
        /// When it lapses. If absent: extra time at the end of the day on which it begins to hold, an opening at the
        /// moment until which it opens.
        lapses_at: Option<Timestamp>,
        /// Why.
        why: Option<Note>,
    },
    /// Take a grant back.
    RevokeGrant {
        /// Which.
        #[schemars(with = "String")]
        grant_id: GrantId,
    },
    /// All grants that hold or will hold.
    ListGrants {},
    /// Switch the household's mode.
    SwitchMode {
        /// To which; the calendar decides again if absent.
        mode: Option<String>,
    },
    /// Say that the clock is right, though it showed a later time before.
    ConfirmClock {},
    /// Lines of the audit log, oldest first.
    ReadAudit {
        /// Only those after this sequence number; from the beginning if absent.
        after: Option<u64>,
        /// At most so many.
        limit: u32,
    },
    /// Become the administrator that this client would be if there were no PIN.
    Authenticate {
        /// The administrator's PIN.
        pin: AdminPin,
    },
    /// Set, change or remove the administrator's PIN.
    SetPin {
        /// The new one; none is asked for any more if absent.
        pin: Option<AdminPin>,
    },
    /// What the daemon counts, in the text format of Prometheus.
    Metrics {},
}

impl Command {
    /// The stable names of all commands, as they stand on the wire.
    pub const NAMES: &[&str] = &[
        "get_state",
        "list_entries",
        "launch",
        "stop_current",
        "reload_config",
        "subscribe_events",
        "health",
        "extend_current",
        "set_policy",
        "get_policy",
        "why",
        "timeline",
        "usage",
        "request_time",
        "list_requests",
        "mark_request_seen",
        "decide_request",
        "grant",
        "revoke_grant",
        "list_grants",
        "switch_mode",
        "confirm_clock",
        "read_audit",
        "authenticate",
        "set_pin",
        "metrics",
    ];

    /// The stable name, as it stands on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::GetState { .. } => "get_state",
            Self::ListEntries { .. } => "list_entries",
            Self::Launch { .. } => "launch",
            Self::StopCurrent { .. } => "stop_current",
            Self::ReloadConfig { .. } => "reload_config",
            Self::SubscribeEvents { .. } => "subscribe_events",
            Self::Health { .. } => "health",
            Self::ExtendCurrent { .. } => "extend_current",
            Self::SetPolicy { .. } => "set_policy",
            Self::GetPolicy { .. } => "get_policy",
            Self::Why { .. } => "why",
            Self::Timeline { .. } => "timeline",
            Self::Usage { .. } => "usage",
            Self::RequestTime { .. } => "request_time",
            Self::ListRequests { .. } => "list_requests",
            Self::MarkRequestSeen { .. } => "mark_request_seen",
            Self::DecideRequest { .. } => "decide_request",
            Self::Grant { .. } => "grant",
            Self::RevokeGrant { .. } => "revoke_grant",
            Self::ListGrants { .. } => "list_grants",
            Self::SwitchMode { .. } => "switch_mode",
            Self::ConfirmClock { .. } => "confirm_clock",
            Self::ReadAudit { .. } => "read_audit",
            Self::Authenticate { .. } => "authenticate",
            Self::SetPin { .. } => "set_pin",
            Self::Metrics { .. } => "metrics",
        }
    }
}

/// The answer to a child's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TimeRequestDecision {
    /// Yes.
    Grant {
        /// So much; what was asked for if absent.
        minutes: Option<u32>,
    },
    /// No.
    Deny {
        /// Why not.
        why: Option<Note>,
    },
}
