//! Reasons against a launch, each with its evidence, a stable code for programs and a sentence for people (S3.8).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{BudgetId, EntryId, HumanDuration, SessionId};

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

    /// Returns the sentence for people, with times of day in their zone. Entries and budgets appear by their id; a
    /// caller that has their labels uses [`Self::sentence_with`].
    #[must_use]
    pub fn sentence(&self, zone: &TimeZone) -> String {
        let clock = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%a %H:%M").to_string();
        self.sentence_with(clock, |_| None)
    }

    /// Returns the sentence for people, with times written by `format_time`, and entries and budgets named by the label
    /// that `label_of` returns. Without a label, the id is used.
    #[must_use]
    pub fn sentence_with(
        &self,
        format_time: impl Fn(Timestamp) -> String,
        label_of: impl Fn(PolicyItem<'_>) -> Option<String>,
    ) -> String {
        let length = |millis: &Millis| HumanDuration((*millis).into());
        let name = |entry_id: &EntryId| {
            label_of(PolicyItem::Entry(entry_id)).unwrap_or_else(|| format!("`{entry_id}`"))
        };
        let budget_name = |budget_id: &BudgetId| {
            label_of(PolicyItem::Budget(budget_id)).unwrap_or_else(|| budget_id.to_string())
        };
        match self {
            Self::UnknownEntry { entry_id } => format!("There is no entry `{entry_id}`."),
            Self::NotForProfile => "Not available for this profile.".to_owned(),
            Self::Disabled { reason: Some(reason) } => format!("Switched off: {reason}"),
            Self::Disabled { reason: None } => "Switched off.".to_owned(),
            Self::HostCannotRun { kind } => format!("This machine can't run entries of kind `{kind}`."),
            Self::LoginEntry => "This is no program: it begins when the child logs in to the computer.".to_owned(),
            Self::AccountMissing => {
                "The rules name no child's login for this, and Shepherd starts nothing as root. A parent fills in the \
                 login in the policy, in `accounts` of the profile or in `user` of the entry, and then runs `sudo shepherd \
                 reload`."
                    .to_owned()
            }
            Self::LoginNotFound { login } => format!(
                "The login `{login}` doesn't exist on this computer. A parent creates it with `sudo adduser {login}`, or \
                 corrects the name in the policy and then runs `sudo shepherd reload`."
            ),
            Self::OutsideHours { next_opening: Some(at) } => {
                format!("Not allowed at this time. Opens {}.", format_time(*at))
            }
            Self::OutsideHours { next_opening: None } => "Not allowed at this time.".to_owned(),
            Self::Bedtime { until: Some(at) } => format!("Bedtime until {}.", format_time(*at)),
            Self::Bedtime { until: None } => "It is bedtime.".to_owned(),
            Self::SessionActive { entry_id, .. } => {
                format!("{} is running. Only one entry can run at a time.", name(entry_id))
            }
            Self::Cooldown { until } => {
                format!("Needs a pause after the last run, until {}.", format_time(*until))
            }
            Self::BreakNeeded { until } => format!("Time for a break, until {}.", format_time(*until)),
            Self::QuotaExhausted { quota, used, limit, .. } => {
                let subject = match quota {
                    QuotaKind::EntryDaily => "The time for today".to_owned(),
                    QuotaKind::EntryWeekly => "The time for this week".to_owned(),
                    QuotaKind::BudgetDaily(budget) => format!("Today's time for {}", budget_name(budget)),
                    QuotaKind::BudgetWeekly(budget) => format!("This week's time for {}", budget_name(budget)),
                };
                format!("{subject} is used up: {} of {}.", length(used), length(limit))
            }
            Self::NotUnlocked { entry_id, done, needed } => {
                let done = if done.0 == 0 { "0".to_owned() } else { length(done).to_string() };
                format!("Do {} of {} first ({done} so far).", length(needed), name(entry_id))
            }
            Self::ClockUntrusted { latest_seen } => format!(
                "The clock seems to be wrong: it has already shown {}. A parent can correct the clock or, if it is \
                 right, run `shepherd clock confirm`.",
                format_time(*latest_seen)
            ),
            Self::StoreUnavailable { detail } => {
                format!("Nothing can be launched while usage can't be recorded: {detail}")
            }
            Self::Unknown => {
                "Not available, for a reason that this version of the program doesn't know.".to_owned()
            }
        }
    }
}
