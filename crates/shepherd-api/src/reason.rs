//! Reasons against a launch, each with its evidence and a stable code for programs (S3.8). `shepherd-text` has the
//! sentences for people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{BudgetId, EntryId, SessionId};

use crate::Millis;

/// The kind of a usage limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaKind {
    /// The daily limit of an entry.
    EntryDaily,
    /// The weekly limit of an entry.
    EntryWeekly,
    /// The daily limit of a shared budget.
    BudgetDaily(#[schemars(with = "String")] BudgetId),
    /// The weekly limit of a shared budget.
    BudgetWeekly(#[schemars(with = "String")] BudgetId),
}

/// An item of the policy that a reason names and for which the policy has a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyItem<'a> {
    /// An entry.
    Entry(&'a EntryId),
    /// A shared budget.
    Budget(&'a BudgetId),
}

/// A reason for which an entry can't be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ReasonCode {
    /// The policy has no such entry.
    UnknownEntry {
        /// The id that the client asked for.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// The entry is not for this profile.
    NotForProfile,
    /// The policy disables the entry.
    Disabled {
        /// The policy's own reason.
        reason: Option<String>,
    },
    /// This machine can't run entries of this kind.
    HostCannotRun {
        /// The kind of entry.
        kind: String,
    },
    /// The entry stands for being logged in to the machine, so nobody launches it.
    LoginEntry,
    /// The daemon would run the program as root, because the policy names no other user.
    AccountMissing,
    /// The login that the program would run as doesn't exist on this machine.
    LoginNotFound {
        /// The name of the login, as the policy has it.
        login: String,
    },
    /// The current time is outside the entry's hours.
    OutsideHours {
        /// The start of the next window, if there is one within a year.
        next_opening: Option<Timestamp>,
    },
    /// It is bedtime for the profile.
    Bedtime {
        /// The end of the night, or an earlier grant, if it is found within a year.
        until: Option<Timestamp>,
    },
    /// Another session is running.
    SessionActive {
        /// The id of the running session.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// The entry of the running session.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// The entry's cooldown after its last run hasn't ended.
    Cooldown {
        /// The end of the cooldown.
        until: Timestamp,
    },
    /// A break is due after a long time across entries.
    BreakNeeded {
        /// The end of the break.
        until: Timestamp,
    },
    /// A usage limit is used up.
    QuotaExhausted {
        /// The kind of limit.
        quota: QuotaKind,
        /// The time that was used.
        used: Millis,
        /// The limit itself.
        limit: Millis,
        /// The moment at which there is time again.
        until: Option<Timestamp>,
    },
    /// Another entry has to be used first.
    NotUnlocked {
        /// The entry that comes first.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// The time spent on that entry today.
        done: Millis,
        /// The time that is needed.
        needed: Millis,
    },
    /// The clock is far behind the latest known time.
    ClockUntrusted {
        /// The latest time ever observed.
        latest_seen: Timestamp,
    },
    /// The usage records can't be read or written, so nothing is granted.
    StoreUnavailable {
        /// The fault of the store.
        detail: String,
    },
    /// A reason that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ReasonCode {
    /// Returns the stable name of this reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownEntry { .. } => "unknown-entry",
            Self::NotForProfile => "not-for-profile",
            Self::Disabled { .. } => "disabled",
            Self::HostCannotRun { .. } => "host-cannot-run",
            Self::LoginEntry => "login-entry",
            Self::AccountMissing => "account-missing",
            Self::LoginNotFound { .. } => "login-not-found",
            Self::OutsideHours { .. } => "outside-hours",
            Self::Bedtime { .. } => "bedtime",
            Self::SessionActive { .. } => "session-active",
            Self::Cooldown { .. } => "cooldown",
            Self::BreakNeeded { .. } => "break-needed",
            Self::QuotaExhausted { .. } => "quota-exhausted",
            Self::NotUnlocked { .. } => "not-unlocked",
            Self::ClockUntrusted { .. } => "clock-untrusted",
            Self::StoreUnavailable { .. } => "store-unavailable",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the moment at which this reason ends by itself, if that can be known.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::OutsideHours { next_opening } => *next_opening,
            Self::Cooldown { until } | Self::BreakNeeded { until } => Some(*until),
            Self::Bedtime { until } | Self::QuotaExhausted { until, .. } => *until,
            // The policy defines how far behind the clock may be.
            Self::ClockUntrusted { .. }
            | Self::UnknownEntry { .. }
            | Self::NotForProfile
            | Self::Disabled { .. }
            | Self::HostCannotRun { .. }
            | Self::LoginEntry
            | Self::AccountMissing
            | Self::LoginNotFound { .. }
            | Self::SessionActive { .. }
            | Self::NotUnlocked { .. }
            | Self::StoreUnavailable { .. }
            | Self::Unknown => None,
        }
    }
}
