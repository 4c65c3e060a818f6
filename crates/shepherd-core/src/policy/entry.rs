//! What can be launched: when, for how long, at what cost.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use shepherd_api::{EntryKind, WarningSeverity};
use shepherd_util::{BudgetId, EntryId, ProfileId};

use super::{AvailabilityPolicy, DailyQuota, RunPolicy};

/// A whitelisted launchable unit (S2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyEntry {
    /// Stable name.
    pub entry_id: EntryId,
    /// For people.
    pub label: String,
    /// Opaque; the shell interprets it.
    pub icon_ref: Option<String>,
    /// What it takes to start it.
    pub kind: EntryKind,
    /// Who may launch it; `NotRequested` is everyone.
    pub profiles: Option<BTreeSet<ProfileId>>,
    /// When it may run.
    pub availability: AvailabilityPolicy,
    /// For how long.
    pub limits: LimitsPolicy,
    /// When to warn.
    pub warnings: WarningPolicy,
    /// Switched off.
    pub disabled: Option<DisabledReason>,
    /// Budgets it draws on.
    pub budgets: Vec<BudgetId>,
    /// Whether its time counts against quotas and budgets. It is recorded in any case.
    pub cost: TimeCost,
    /// Time that its use adds to a budget.
    pub earns: Option<EarningRule>,
    /// What has to be done first.
    pub unlock: Option<UnlockRule>,
    /// How it is run.
    pub run: RunPolicy,
}

impl PolicyEntry {
    /// Whether it is among what this profile has.
    #[must_use]
    pub fn is_for(&self, profile: &ProfileId) -> bool {
        self.profiles.as_ref().is_none_or(|profiles| profiles.contains(profile))
    }
}

/// Why an entry is switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledReason {
    /// For people.
    pub reason: Option<String>,
}

/// Whether time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCost {
    /// Against every quota that applies.
    Counts,
    /// Learning is free: recorded, but against nothing.
    Free,
}

/// How long an entry may run (S2.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsPolicy {
    /// One run; `NotRequested` is without limit.
    pub max_run: Option<Duration>,
    /// A day.
    pub daily_quota: DailyQuota,
    /// A week, from Monday.
    pub weekly_quota: Option<Duration>,
    /// A pause after each run.
    pub cooldown_after_run: Duration,
}

/// When to warn (S2.5): thresholds before the end, the longest first, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarningPolicy(Vec<WarningThreshold>);

impl WarningPolicy {
    /// Puts them in order; of two for the same moment the louder stays.
    #[must_use]
    pub fn new(mut warnings: Vec<WarningThreshold>) -> Self {
        warnings.sort_by_key(|warning| (Reverse(warning.before), Reverse(warning.severity)));
        warnings.dedup_by_key(|warning| warning.before);
        Self(warnings)
    }

    /// The longest before the end comes first.
    #[must_use]
    pub fn warnings(&self) -> &[WarningThreshold] {
        &self.0
    }
}

/// One warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarningThreshold {
    /// So long before the end.
    pub before: Duration,
    /// How loud.
    pub severity: WarningSeverity,
    /// What to say; `{remaining}`, `{label}` and `{profile}` are filled in. `NotRequested` is our own sentence.
    pub message_template: Option<String>,
}

/// Time that the use of one entry adds to a budget: so much earned for so much used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarningRule {
    /// Which budget grows, for the day; its weekly amount does not.
    pub budget: BudgetId,
    /// For so much use …
    pub for_each: Duration,
    /// … so much is earned.
    pub earned: Duration,
    /// At most so much a day.
    pub ceiling: Duration,
}

impl EarningRule {
    /// What so much use on one day earns. Only whole portions count: twenty minutes unlock ten, nineteen unlock none.
    pub(crate) fn earned_for(&self, used: Duration) -> Duration {
        let portions = used.as_millis() / self.for_each.as_millis().max(1);
        self.earned.saturating_mul(u32::try_from(portions).unwrap_or(u32::MAX)).min(self.ceiling)
    }
}

/// What has to be done on a day before an entry opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlockRule {
    /// Which entry has to be used first.
    pub entry_id: EntryId,
    /// For how long.
    pub at_least: Duration,
}
