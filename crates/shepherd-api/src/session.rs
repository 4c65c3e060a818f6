//! Sessions and the state of the daemon.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, ProfileId, SessionId};

use crate::{Language, Millis};

/// The severity of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningSeverity {
    /// A remark that is worth knowing.
    Info,
    /// A warning that is worth a look.
    Warn,
    /// The last call: save your game.
    Critical,
}

/// The phase of a session (S3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionPhase {
    /// Approved, but not running yet.
    Launching,
    /// Running, without a warning so far.
    Running,
    /// Running, with at least one warning given.
    Warned,
    /// Being stopped by the daemon.
    Expiring,
}

/// The kind of requester that stops a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopRequester {
    /// The person who uses the session.
    User,
    /// An administrator of the household.
    Admin,
    /// The policy itself, when time is up.
    Policy,
}

/// The way in which a session is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// The program is asked first and gets the policy's grace period.
    Graceful,
    /// The program is killed at once.
    Force,
}

/// The reason for which a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum EndReason {
    /// The program exited by itself.
    Exited {
        /// The exit code, if it is known.
        code: Option<i32>,
        /// The signal that ended the program, if there was one.
        signal: Option<i32>,
    },
    /// The session's time was up.
    Expired,
    /// A person or the policy stopped the session.
    Stopped {
        /// The kind of requester.
        by: StopRequester,
    },
    /// The program could not be started.
    LaunchFailed {
        /// The cause of the failure.
        detail: String,
    },
    /// The program did not start in time.
    LaunchTimedOut,
    /// The program was gone when the daemon came back.
    Lost,
}

/// The place that a session takes. A place holds one session at a time (S19.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionSlot {
    /// The program that a profile uses: one for each profile.
    #[default]
    Foreground,
    /// A program that runs beside others: one for each background entry of a profile.
    Background,
    /// A login to the machine: one for each account.
    Login {
        /// The account that is logged in.
        account: String,
    },
}

impl SessionSlot {
    /// Returns whether this is the place of the program that a profile uses.
    #[must_use]
    pub fn is_foreground(&self) -> bool {
        *self == Self::Foreground
    }
}

/// The way in which the time of a session counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionCounting {
    /// The time counts.
    #[default]
    Active,
    /// The time counts, but nobody seems to use the session, so that it earns and unlocks nothing.
    Idle,
    /// The time doesn't count: the remaining time stands still, unless the hours of the session end first.
    Stopped,
}

impl SessionCounting {
    /// Returns whether the time counts and earns as usual.
    #[must_use]
    pub fn is_active(&self) -> bool {
        *self == Self::Active
    }
}

/// A session as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// The id of the session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The entry that the session runs.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// The label that people read.
    pub label: String,
    /// The profile whose time is used.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The place that the session takes; the foreground if absent.
    #[serde(default, skip_serializing_if = "SessionSlot::is_foreground")]
    pub slot: SessionSlot,
    /// The way in which its time counts; as usual if absent.
    #[serde(default, skip_serializing_if = "SessionCounting::is_active")]
    pub counting: SessionCounting,
    /// The current phase of the session.
    pub phase: SessionPhase,
    /// The time at which the session was approved.
    pub started_at: Timestamp,
    /// The remaining time as of the snapshot; absent if there is no limit.
    pub remaining: Option<Millis>,
    /// The time at which the session ends because its hours end then; absent if its time is used up before that. Extra
    /// time doesn't move this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours_end: Option<Timestamp>,
    /// The run time so far, as of the snapshot. Time for which the program did not run, such as a suspend, is left out
    /// unless the policy counts it. Absent if the daemon is too old to report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Millis>,
    /// The highest severity of the warnings so far, while the session is `warned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned: Option<WarningSeverity>,
}

/// The recorded output of a session, and the facts about the session that the audit log has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionLogView {
    /// The id of the session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The entry that the session ran.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// The label of the entry; its id if the policy no longer has the entry.
    pub label: String,
    /// The profile whose time was used.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The time at which the session was approved.
    pub started_at: Timestamp,
    /// The reason for the end; absent while the session runs.
    pub end: Option<EndReason>,
    /// The end of the output. Bytes that are not UTF-8 are replaced. Absent if the output was not kept.
    pub text: Option<String>,
    /// The number of earlier bytes of output that `text` leaves out.
    pub left_out: u64,
}

/// The state that a client needs to draw its first screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStateSnapshot {
    /// The version of the protocol.
    pub api_version: u32,
    /// The moment that the snapshot describes.
    pub at: Timestamp,
    /// The session that a client sees which knows only one: the oldest one in the foreground, or the oldest of all if
    /// none is.
    pub session: Option<SessionView>,
    /// All sessions, the oldest first. A daemon that is too old to send them has at most `session`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionView>,
    /// The number of entries in the policy.
    pub entry_count: usize,
    /// The household's mode.
    pub mode: String,
    /// False if launches are refused because the clock is not trusted.
    pub clock_trusted: bool,
    /// The profiles of the policy, sorted by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileView>,
    /// The language of the family. Absent if the daemon is too old to send it; then it is English.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
}

impl DaemonStateSnapshot {
    /// Returns the session that a client sees which knows only one, of sessions in the order of their start.
    #[must_use]
    pub fn primary_session(sessions: &[SessionView]) -> Option<&SessionView> {
        sessions.iter().find(|session| session.slot.is_foreground()).or(sessions.first())
    }

    /// Returns all sessions, the oldest first, also from a daemon that knows only one.
    #[must_use]
    pub fn all_sessions(&self) -> &[SessionView] {
        match &self.session {
            Some(session) if self.sessions.is_empty() => std::slice::from_ref(session),
            _ => &self.sessions,
        }
    }

    /// Returns the label of a profile, or its id if the snapshot doesn't list it.
    #[must_use]
    pub fn profile_label<'s>(&'s self, profile: &'s ProfileId) -> &'s str {
        let known = self.profiles.iter().find(|known| known.profile == *profile);
        known.map_or(profile.as_str(), |known| &known.label)
    }
}

/// A person whose time is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileView {
    /// The id of the profile.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The label that people read.
    pub label: String,
}
