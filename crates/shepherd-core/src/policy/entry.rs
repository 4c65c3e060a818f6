//! Entries: what can be launched, when, for how long and at what cost.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use shepherd_api::{EntryKind, WarningSeverity};
use shepherd_util::{BudgetId, EntryId, ProfileId};

use super::{AvailabilityPolicy, DailyQuota, RunPolicy};

/// An entry of the policy (S2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyEntry {
    pub entry_id: EntryId,
    pub label: String,
    /// The name of an icon, which only front ends interpret.
    pub icon_ref: Option<String>,
    pub kind: EntryKind,
    /// The profiles that may launch the entry; `None` is everyone.
    pub profiles: Option<BTreeSet<ProfileId>>,
    pub availability: AvailabilityPolicy,
    pub limits: LimitsPolicy,
    pub warnings: WarningPolicy,
    pub disabled: Option<DisabledReason>,
    /// The budgets that the entry uses.
    pub budgets: Vec<BudgetId>,
    /// The cost of the entry's time. Usage is recorded in any case.
    pub cost: TimeCost,
    /// The place that a session of the entry takes.
    pub slot: EntrySlot,
    /// Time that the entry's use adds to a budget.
    pub earns: Option<EarningRule>,
    /// The use of another entry that has to come first.
    pub unlock: Option<UnlockRule>,
    /// The way in which the program is run.
    pub run: RunPolicy,
}

impl PolicyEntry {
    /// Returns whether this profile has the entry.
    #[must_use]
    pub fn is_for(&self, profile: &ProfileId) -> bool {
        self.profiles.as_ref().is_none_or(|profiles| profiles.contains(profile))
    }
}

/// The place that sessions of an entry take (S19.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntrySlot {
    /// A profile runs one such entry at a time.
    #[default]
    Foreground,
    /// The entry runs beside others, once for each profile.
    Background,
    /// The entry stands for being logged in. It is never launched, and begins with a login; one for each account.
    Login,
}

/// The reason for which an entry is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledReason {
    pub reason: Option<String>,
}

/// The cost of an entry's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCost {
    /// The time counts against every quota that applies.
    Counts,
    /// The time is recorded, but counts against no quota ("learning is free").
    Free,
}

/// The limits of an entry (S2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsPolicy {
    /// The longest run; `None` is no limit.
    pub max_run: Option<Duration>,
    pub daily_quota: DailyQuota,
    /// The quota of a week, which begins on Monday.
    pub weekly_quota: Option<Duration>,
    pub cooldown_after_run: Duration,
    /// A program that crashes within this time of its launch causes no cooldown; zero switches the rule off.
    pub crash_within: Duration,
}

/// The time within which a crash causes no cooldown, unless a policy sets another.
pub const DEFAULT_CRASH_WITHIN: Duration = Duration::from_secs(10);

impl Default for LimitsPolicy {
    fn default() -> Self {
        Self {
            max_run: None,
            daily_quota: DailyQuota::default(),
            weekly_quota: None,
            cooldown_after_run: Duration::ZERO,
            crash_within: DEFAULT_CRASH_WITHIN,
        }
    }
}

/// The warnings of an entry (S2.5): thresholds before the end, the longest first, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarningPolicy(Vec<WarningThreshold>);

impl WarningPolicy {
    /// Sorts the thresholds; of two for the same moment the one with the higher severity stays.
    #[must_use]
    pub fn new(mut warnings: Vec<WarningThreshold>) -> Self {
        warnings.sort_by_key(|warning| (Reverse(warning.before), Reverse(warning.severity)));
        warnings.dedup_by_key(|warning| warning.before);
        Self(warnings)
    }

    /// Returns the thresholds, the longest first.
    #[must_use]
    pub fn warnings(&self) -> &[WarningThreshold] {
        &self.0
    }
}

/// A warning of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarningThreshold {
    pub before: Duration,
    pub severity: WarningSeverity,
    /// The message, with the placeholders `{remaining}`, `{label}` and `{profile}`; `None` is the default sentence.
    pub message_template: Option<String>,
}

/// A rule by which the use of an entry adds time to a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarningRule {
    /// The budget whose amount for the day grows; its weekly amount doesn't.
    pub budget: BudgetId,
    /// The use that is needed …
    pub for_each: Duration,
    /// … for this much extra time.
    pub earned: Duration,
    /// The largest extra time of a day.
    pub ceiling: Duration,
}

impl EarningRule {
    /// Returns the time earned by the use of one day. Only whole portions count: if 20 minutes earn 10, then 19 minutes
    /// earn nothing.
    pub(crate) fn earned_for(&self, used: Duration) -> Duration {
        let portions = used.as_millis() / self.for_each.as_millis().max(1);
        self.earned.saturating_mul(u32::try_from(portions).unwrap_or(u32::MAX)).min(self.ceiling)
    }
}

/// A rule that another entry has to be used first on the same day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlockRule {
    pub entry_id: EntryId,
    pub at_least: Duration,
}
