//! The commands that a client can give (S10.3).

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId, SessionId};

use crate::{AdminPin, ClientDisplay, EntryScope, GrantKind, Millis, Note, StopMode};

/// A command of a client. Without a named profile, a command uses the profile that the transport knows the client
/// by, or the policy's only profile.
///
/// Commands without arguments have braces, so that an unknown field is refused there as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Returns the state of the daemon.
    GetState {},
    /// Lists all entries with their availability.
    ListEntries {
        /// The moment to describe; now if absent.
        at_time: Option<Timestamp>,
        /// The profile to describe.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Launches an entry.
    Launch {
        /// The entry to launch.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The profile whose time is used.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
        /// The display of the desktop that the client runs on, for a program of the same user. Left out if there is none,
        /// because a daemon that doesn't know this field refuses it.
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<ClientDisplay>,
    },
    /// Stops a session.
    StopCurrent {
        /// The way in which the session is stopped.
        mode: StopMode,
        /// The session to stop. If absent, the session that runs; of several, the one in the foreground of the client's
        /// profile, or the only one in the foreground. Left out if it isn't needed, because a daemon that doesn't know this
        /// field refuses it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        session_id: Option<SessionId>,
    },
    /// Reads the policy again from its source.
    ReloadConfig {},
    /// Sends events on this connection, beginning with the snapshot in the reply.
    SubscribeEvents {},
    /// Returns the health of the daemon.
    Health {},
    /// Gives a session more time.
    ExtendCurrent {
        /// The extra time for the session.
        by: Millis,
        /// The session to extend, chosen as for `stop_current` if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        session_id: Option<SessionId>,
    },
    /// Replaces the policy.
    SetPolicy {
        /// The new policy, as TOML.
        text: String,
    },
    /// Returns the policy as it was written.
    GetPolicy {},
    /// Explains every rule about an entry, with its facts and its result.
    Why {
        /// The entry to explain.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The moment to explain; now if absent.
        at: Option<Timestamp>,
        /// The profile to explain.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Lists when each entry can be launched.
    Timeline {
        /// The start of the period.
        from: Timestamp,
        /// The end of the period.
        to: Timestamp,
        /// The profile to describe.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Returns how much time was used.
    Usage {
        /// The first day of the period.
        from: Date,
        /// The last day of the period.
        to: Date,
        /// The profile to report; everybody if absent.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Asks the parents for time.
    RequestTime {
        /// The entry that the time is for.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The requested minutes of extra time.
        minutes: u32,
        /// A note for the parents.
        note: Option<Note>,
        /// The profile that asks.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Lists the requests for time.
    ListRequests {},
    /// Marks a request as seen.
    MarkRequestSeen {
        /// The request to mark.
        #[schemars(with = "String")]
        request_id: RequestId,
    },
    /// Answers a request for time.
    DecideRequest {
        /// The request to answer.
        #[schemars(with = "String")]
        request_id: RequestId,
        /// The parent's answer.
        decision: TimeRequestDecision,
    },
    /// Grants extra time or longer hours.
    Grant {
        /// The profile that gets the grant; everybody if absent.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
        /// The entries that the grant covers.
        scope: EntryScope,
        /// The extra permission to give.
        gift: GrantKind,
        /// The start of the grant; now if absent.
        valid_from: Option<Timestamp>,
        /// The time at which the grant lapses. If absent, extra time lapses at the end of the day on which it becomes
        /// valid, and open hours lapse when they end.
        lapses_at: Option<Timestamp>,
        /// The author's reason.
        why: Option<Note>,
    },
    /// Revokes a grant.
    RevokeGrant {
        /// The grant to revoke.
        #[schemars(with = "String")]
        grant_id: GrantId,
    },
    /// Lists all current and future grants.
    ListGrants {},
    /// Switches the household's mode.
    SwitchMode {
        /// The new mode; if absent, the calendar decides again.
        mode: Option<String>,
    },
    /// Confirms that the clock is right, although it has shown a later time before.
    ConfirmClock {},
    /// Reads records of the audit log, oldest first.
    ReadAudit {
        /// Returns only records after this sequence number; from the beginning if absent.
        after: Option<u64>,
        /// The largest number of records to return.
        limit: u32,
    },
    /// Returns the recorded output of a session. Clients that are no administrators get only sessions of profiles
    /// that they may use.
    ReadSessionLog {
        /// The id of the session, or its first characters with or without `session-`; the newest session if absent.
        session: Option<String>,
        /// The profile whose newest session is meant, if no session is named; everybody's if absent.
        #[schemars(with = "Option<String>")]
        profile: Option<ProfileId>,
    },
    /// Gives this client the administrator's role that the PIN protects.
    Authenticate {
        /// The administrator's PIN.
        pin: AdminPin,
    },
    /// Sets, changes or removes the administrator's PIN.
    SetPin {
        /// The new PIN; if absent, no PIN is needed any more.
        pin: Option<AdminPin>,
    },
    /// Returns the daemon's metrics in the Prometheus text format.
    Metrics {},
    /// Asks whether an account may log in to this machine now (S19.2). Only an administrator and the account itself may
    /// ask.
    CheckLogin {
        /// The user id of the account.
        uid: u32,
        /// The id of its primary group, which may be new since the daemon read the accounts.
        gid: Option<u32>,
    },
}

impl Command {
    /// The stable names of all commands, as they appear on the wire.
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
        "read_session_log",
        "authenticate",
        "set_pin",
        "metrics",
        "check_login",
    ];

    /// Returns the stable name, as it appears on the wire.
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
            Self::ReadSessionLog { .. } => "read_session_log",
            Self::Authenticate { .. } => "authenticate",
            Self::SetPin { .. } => "set_pin",
            Self::Metrics { .. } => "metrics",
            Self::CheckLogin { .. } => "check_login",
        }
    }
}

/// A parent's answer to a request for time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TimeRequestDecision {
    /// Grants the request.
    Grant {
        /// The granted minutes; the requested amount if absent.
        minutes: Option<u32>,
    },
    /// Denies the request.
    Deny {
        /// The parent's reason.
        why: Option<Note>,
    },
}
