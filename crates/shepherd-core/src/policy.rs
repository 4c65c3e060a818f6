//! What the parents have decided, checked and complete: no text, no defaults left to fill in.
//!
//! A `Policy` is made by `shepherd-config` from a file, or by hand in a test. [`Policy::new`] is the only way in,
//! so that every budget, profile and entry it names is there.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_util::{BudgetId, EntryId, ProfileId};

mod access;
mod calendar;
mod check;
mod entry;
mod quota;
mod run;

pub use access::{AccessPolicy, SystemAccount};
pub use calendar::{
    AvailabilityPolicy, DateException, Day, DayRule, HouseholdModes, MinuteOfDay, TimeWindow, Weekdays,
};
pub use check::PolicyError;
pub use entry::{
    DisabledReason, EarningRule, LimitsPolicy, PolicyEntry, TimeCost, UnlockRule, WarningPolicy,
    WarningThreshold,
};
pub use quota::{DailyQuota, WeekdayAmounts};
pub use run::{CompositorConfig, CustomDriver, ResourceLimits, RunPolicy, WindowDisplay};

/// A mode of the household: school, holiday, grandparents.
pub type ModeName = String;

/// The whole policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    rules: PolicyRules,
    index: BTreeMap<EntryId, usize>,
    /// Which entries earn time for a budget, so that nobody has to look through all of them.
    earners: BTreeMap<BudgetId, Vec<usize>>,
}

/// What a policy is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRules {
    /// The zone in which windows are meant; `NotRequested` is the system's.
    pub zone: Option<TimeZone>,
    /// Whose time is counted. At least one.
    pub profiles: BTreeMap<ProfileId, Profile>,
    /// What can be launched, in the order in which it is shown.
    pub entries: Vec<PolicyEntry>,
    /// Quotas that entries share.
    pub budgets: BTreeMap<BudgetId, TimeBudget>,
    /// The modes of the household.
    pub modes: HouseholdModes,
    /// Days on which the week does not apply. Of several for a day the last one wins.
    pub exceptions: Vec<DateException>,
    /// A break after so much time in a row.
    pub breaks: Option<BreakRule>,
    /// How far a grant can go.
    pub ceilings: GrantCeilings,
    /// Whether a suspended hour costs anything.
    pub suspended_time: SuspendedTime,
    /// What a new policy does to a session that runs.
    pub on_reload: OnReload,
    /// What the end of the daemon does to a session that runs.
    pub on_shutdown: OnShutdown,
    /// Media libraries: what their entries show.
    pub libraries: BTreeMap<String, MediaLibrary>,
    /// Programs that run custom entries, by type.
    pub drivers: BTreeMap<String, CustomDriver>,
    /// The compositor, if the daemon is to work with one.
    pub compositor: Option<CompositorConfig>,
    /// Who may do what at the daemon's socket.
    pub access: AccessPolicy,
    /// Whether the policy is read again when its file changes.
    pub reload_on_change: ReloadOnChange,
    /// How long a program may take to start.
    pub launch_timeout: Duration,
    /// How long a program may take to end after it was asked to.
    pub stop_grace: Duration,
    /// How far behind the latest time ever seen the clock may be.
    pub clock_tolerance: Duration,
}

impl Default for PolicyRules {
    /// No entries; one profile; the defaults that the documentation names.
    fn default() -> Self {
        Self {
            zone: None,
            profiles: BTreeMap::from([(
                ProfileId::default(),
                Profile { label: "default".to_owned(), accounts: Vec::new() },
            )]),
            entries: Vec::new(),
            budgets: BTreeMap::new(),
            modes: HouseholdModes::default(),
            exceptions: Vec::new(),
            breaks: None,
            ceilings: GrantCeilings::default(),
            suspended_time: SuspendedTime::Free,
            on_reload: OnReload::KeepPlan,
            on_shutdown: OnShutdown::LeaveSessions,
            libraries: BTreeMap::new(),
            drivers: BTreeMap::new(),
            compositor: None,
            access: AccessPolicy::default(),
            reload_on_change: ReloadOnChange::No,
            launch_timeout: Duration::from_secs(30),
            stop_grace: Duration::from_secs(10),
            clock_tolerance: Duration::from_secs(10 * 60),
        }
    }
}

/// Someone whose time is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// For people.
    pub label: String,
    /// Who this is to the operating system. A client of such an account plays on this profile's time and no other.
    pub accounts: Vec<SystemAccount>,
}

/// A quota that several entries share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeBudget {
    /// For people.
    pub label: String,
    /// A day.
    pub daily: DailyQuota,
    /// A week, from Monday.
    pub weekly: Option<Duration>,
}

/// A break after so much time in a row, across entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakRule {
    /// After so much.
    pub after: Duration,
    /// For so long.
    pub length: Duration,
}

/// How far grants can go (S2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantCeilings {
    /// Extra time on one day, all grants together; `NotRequested` is without limit.
    pub extra_per_day: Option<Duration>,
    /// No window is stretched beyond this time of day.
    pub open_until: Option<MinuteOfDay>,
}

/// Whether a suspended hour costs run time and quota (S4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendedTime {
    /// It does not.
    Free,
    /// It does.
    Counts,
}

/// What a new policy does to a session that runs (S7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReload {
    /// Nothing: it keeps its plan.
    KeepPlan,
    /// Its end is worked out anew, and never comes later than planned.
    Replan,
}

/// What the end of the daemon does to a session that runs (S9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnShutdown {
    /// Nothing: the next daemon takes it back, with its original end.
    LeaveSessions,
    /// It is ended first.
    EndSessions,
}

/// Whether a changed file is a new policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadOnChange {
    /// Only when somebody says so.
    No,
    /// As soon as it has been written.
    Yes,
}

/// What the media entries of a library show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaLibrary {
    /// Files and folders.
    pub paths: Vec<String>,
    /// What plays them; `NotRequested` is the default player.
    pub player: Option<String>,
}

impl Policy {
    /// Checks that every reference leads somewhere.
    ///
    /// # Errors
    /// With the first that does not.
    pub fn new(rules: PolicyRules) -> Result<Self, PolicyError> {
        if rules.profiles.is_empty() {
            return Err(PolicyError::NoProfile);
        }
        let (mut index, mut earners) = (BTreeMap::new(), BTreeMap::<BudgetId, Vec<usize>>::new());
        for (position, entry) in rules.entries.iter().enumerate() {
            if let Some(earning) = &entry.earns {
                earners.entry(earning.budget.clone()).or_default().push(position);
            }
            if index.insert(entry.entry_id.clone(), position).is_some() {
                return Err(PolicyError::DuplicateEntry(entry.entry_id.clone()));
            }
        }
        let policy = Self { rules, index, earners };
        policy.check_references()?;
        Ok(policy)
    }

    /// All of it.
    #[must_use]
    pub fn rules(&self) -> &PolicyRules {
        &self.rules
    }

    /// The entries, in the order in which they are shown.
    #[must_use]
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.rules.entries
    }

    /// One entry.
    #[must_use]
    pub fn entry(&self, entry_id: &EntryId) -> Option<&PolicyEntry> {
        self.rules.entries.get(*self.index.get(entry_id)?)
    }

    /// Where each entry stands among the others, in the order of their names.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (&EntryId, usize)> {
        self.index.iter().map(|(entry_id, position)| (entry_id, *position))
    }

    /// As which user an entry runs for a profile: its own, else the first that the profile names; `NotRequested` is the
    /// daemon's.
    #[must_use]
    pub fn system_account<'a>(&'a self, entry: &'a PolicyEntry, profile: &ProfileId) -> Option<&'a str> {
        let accounts = || self.rules.profiles.get(profile).into_iter().flat_map(|profile| &profile.accounts);
        let named = |account: &'a SystemAccount| match account {
            SystemAccount::User(name) => Some(name.as_str()),
            SystemAccount::Uid(_) | SystemAccount::Group(_) | SystemAccount::Gid(_) => None,
        };
        entry.run.user.as_deref().or_else(|| accounts().find_map(named))
    }

    /// The entries whose use adds to a budget.
    pub(crate) fn earning_entries(
        &self,
        budget: &BudgetId,
    ) -> impl Iterator<Item = (&EntryId, &EarningRule)> {
        let positions = self.earners.get(budget).into_iter().flatten();
        positions.filter_map(|position| {
            let entry = self.rules.entries.get(*position)?;
            Some((&entry.entry_id, entry.earns.as_ref()?))
        })
    }

    /// Whether anything in it is filled up again with the day.
    #[must_use]
    pub fn has_quotas(&self) -> bool {
        let bounded = |quota: &DailyQuota| {
            quota.base.iter().chain(quota.by_mode.values().flatten()).any(Option::is_some)
        };
        let entry = |entry: &PolicyEntry| {
            bounded(&entry.limits.daily_quota)
                || entry.limits.weekly_quota.is_some()
                || entry.unlock.is_some()
        };
        self.rules.entries.iter().any(entry)
            || self.rules.budgets.values().any(|budget| bounded(&budget.daily) || budget.weekly.is_some())
    }

    /// The profile of whoever names none: the first by its name. The daemon knows who asks and names one.
    #[must_use]
    pub fn default_profile(&self) -> ProfileId {
        self.rules.profiles.keys().next().cloned().unwrap_or_default()
    }
}
