//! Why not: reasons with their evidence, a stable code for programs and a sentence for people (S3.8).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{BudgetId, EntryId, HumanDuration, SessionId};

use crate::Millis;

/// A limit on use over a day or a week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaKind {
    /// Of the entry, for a day.
    EntryDaily,
    /// Of the entry, for a week.
    EntryWeekly,
    /// Of a budget that entries share, for a day.
    BudgetDaily(#[schemars(with = "String")] BudgetId),
    /// Of a budget that entries share, for a week.
    BudgetWeekly(#[schemars(with = "String")] BudgetId),
}

/// One reason why an entry can't be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ReasonCode {
    /// The policy has no such entry.
    UnknownEntry {
        /// What was asked for.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// The entry is not for this profile.
    NotForProfile,
    /// Switched off in the policy.
    Disabled {
        /// What the policy says about it.
        reason: Option<String>,
    },
    /// This machine can't run such a thing.
    HostCannotRun {
        /// The kind of entry.
        kind: String,
    },
    /// The host runs programs as root if nobody says as whom, and nobody does.
    AccountMissing,
    /// Not at this time of day.
    OutsideHours {
        /// When the next window opens, if one does within a year.
        next_opening: Option<Timestamp>,
    },
    /// Something else is running.
    SessionActive {
        /// Which session.
        #[schemars(with = "String")]
        session_id: SessionId,
        /// Of which entry.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// A pause after the last run.
    Cooldown {
        /// Until when.
        until: Timestamp,
    },
    /// A pause after so much time in a row, whatever it was spent on.
    BreakNeeded {
        /// Until when.
        until: Timestamp,
    },
    /// Used up.
    QuotaExhausted {
        /// Which limit.
        quota: QuotaKind,
        /// How much was used.
        used: Millis,
        /// How much there was.
        limit: Millis,
        /// When there will be some again.
        until: Option<Timestamp>,
    },
    /// Something else comes first.
    NotUnlocked {
        /// What has to be done first.
        #[schemars(with = "String")]
        entry_id: EntryId,
        /// How much of it was done today.
        done: Millis,
        /// How much is needed.
        needed: Millis,
    },
    /// The clock shows a time long before the latest that was ever seen.
    ClockUntrusted {
        /// The latest time ever seen.
        latest_seen: Timestamp,
    },
    /// What was used can't be read or written, and so nothing is granted.
    StoreUnavailable {
        /// What is wrong with it.
        detail: String,
    },
    /// Something that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ReasonCode {
    /// The stable name of this reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownEntry { .. } => "unknown-entry",
            Self::NotForProfile => "not-for-profile",
            Self::Disabled { .. } => "disabled",
            Self::HostCannotRun { .. } => "host-cannot-run",
            Self::AccountMissing => "account-missing",
            Self::OutsideHours { .. } => "outside-hours",
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

    /// When this reason ends by itself, where that can be known.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::OutsideHours { next_opening } => *next_opening,
            Self::Cooldown { until } | Self::BreakNeeded { until } => Some(*until),
            Self::QuotaExhausted { until, .. } => *until,
            // How far behind it may be, the policy says.
            Self::ClockUntrusted { .. }
            | Self::UnknownEntry { .. }
            | Self::NotForProfile
            | Self::Disabled { .. }
            | Self::HostCannotRun { .. }
            | Self::AccountMissing
            | Self::SessionActive { .. }
            | Self::NotUnlocked { .. }
            | Self::StoreUnavailable { .. }
            | Self::Unknown => None,
        }
    }

    /// The sentence for people, with times of day in their zone.
    #[must_use]
    pub fn sentence(&self, zone: &TimeZone) -> String {
        let clock = |at: &Timestamp| at.to_zoned(zone.clone()).strftime("%a %H:%M").to_string();
        let length = |millis: &Millis| HumanDuration((*millis).into());
        match self {
            Self::UnknownEntry { entry_id } => format!("There is no entry `{entry_id}`."),
            Self::NotForProfile => "Not for this profile, or nobody said whose time it is.".to_owned(),
            Self::Disabled { reason: Some(reason) } => format!("Switched off: {reason}"),
            Self::Disabled { reason: None } => "Switched off.".to_owned(),
            Self::HostCannotRun { kind } => format!("This machine can't run entries of kind `{kind}`."),
            Self::AccountMissing => {
                "It would run as root, which nothing could hold. A parent has to name an account: \
                                     `user` for the entry, or `accounts` for the profile."
                    .to_owned()
            }
            Self::OutsideHours { next_opening: Some(at) } => {
                format!("Not at this time. It opens {}.", clock(at))
            }
            Self::OutsideHours { next_opening: None } => "Not at this time.".to_owned(),
            Self::SessionActive { entry_id, .. } => format!("`{entry_id}` is running."),
            Self::Cooldown { until } => format!("A pause after the last run, until {}.", clock(until)),
            Self::BreakNeeded { until } => format!("Time for a break, until {}.", clock(until)),
            Self::QuotaExhausted { quota, used, limit, .. } => {
                let whose = match quota {
                    QuotaKind::EntryDaily => "Today's time for this".to_owned(),
                    QuotaKind::EntryWeekly => "This week's time for this".to_owned(),
                    QuotaKind::BudgetDaily(budget) => format!("Today's time for `{budget}`"),
                    QuotaKind::BudgetWeekly(budget) => format!("This week's time for `{budget}`"),
                };
                format!("{whose} is used up: {} of {}.", length(used), length(limit))
            }
            Self::NotUnlocked { entry_id, done, needed } => {
                let done = if done.0 == 0 { "none".to_owned() } else { length(done).to_string() };
                format!("First {} of `{entry_id}`: {done} done today.", length(needed))
            }
            Self::ClockUntrusted { latest_seen } => {
                format!("The clock is wrong: it has been {} before.", clock(latest_seen))
            }
            Self::StoreUnavailable { detail } => {
                format!("Not now, what was used can't be looked up: {detail}")
            }
            Self::Unknown => "Not now, for a reason that this program is too old to know.".to_owned(),
        }
    }
}
