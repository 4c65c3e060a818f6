//! The policy: the parents' decisions, checked and complete, with no text and no defaults left to fill in.
//!
//! `shepherd-config` creates a `Policy` from a file; tests create it by hand. [`Policy::new`] is the only way, so every
//! budget, profile and entry that a policy names exists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::{Language, PolicyItem};
use shepherd_util::{BudgetId, EntryId, ProfileId};

mod access;
mod bedtime;
mod calendar;
mod check;
mod entry;
mod hours_group;
mod login;
mod quota;
mod run;

pub use access::{AccessPolicy, SystemAccount};
pub use bedtime::{BedtimeNights, BedtimePolicy, NightHours, NightHoursError};
pub use calendar::{
    AvailabilityPolicy, DateException, Day, DayRule, HouseholdModes, MinuteOfDay, TimeWindow, Weekdays,
};
pub use check::PolicyError;
pub use entry::{
    DEFAULT_CRASH_WITHIN, DisabledReason, EarningRule, EntrySlot, LimitsPolicy, PolicyEntry, TimeCost,
    UnlockRule, WarningPolicy, WarningThreshold,
};
pub(crate) use hours_group::HoursGroup;
pub use login::{IdleTime, LoginCounting, LoginEnd, LoginPolicy, LoginWithoutDaemon, TerminalState};
pub use quota::{DailyQuota, WeekdayAmounts};
pub use run::{CompositorConfig, CustomDriver, ResourceLimits, RunPolicy, WindowDisplay};

/// The name of a household mode, such as school, holiday or grandparents.
pub type ModeName = String;

/// A checked policy. A clone shares its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    rules: Arc<PolicyRules>,
    index: Arc<BTreeMap<EntryId, usize>>,
    /// The entries that earn time for each budget, as an index.
    earners: Arc<BTreeMap<BudgetId, Vec<usize>>>,
    /// The hours of each entry, in the order of the entries.
    hours_groups: Arc<[HoursGroup]>,
}

/// The content of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRules {
    /// The time zone of the windows; `None` is the system's.
    pub zone: Option<TimeZone>,
    /// The language of the family.
    pub language: Language,
    /// The people whose time is counted; at least one.
    pub profiles: BTreeMap<ProfileId, Profile>,
    /// The bedtimes of profiles; a profile without one has none.
    pub bedtimes: BTreeMap<ProfileId, BedtimePolicy>,
    /// The entries in the order in which they are shown.
    pub entries: Vec<PolicyEntry>,
    /// Quotas that entries share.
    pub budgets: BTreeMap<BudgetId, TimeBudget>,
    pub modes: HouseholdModes,
    /// Days on which other hours apply. The last of several exceptions for a day wins.
    pub exceptions: Vec<DateException>,
    /// A break after a long time across entries.
    pub breaks: Option<BreakRule>,
    /// The limits of grants.
    pub ceilings: GrantCeilings,
    pub suspended_time: SuspendedTime,
    /// The effect of a new policy on a running session.
    pub on_reload: OnReload,
    /// The effect of the daemon's end on a running session.
    pub on_shutdown: OnShutdown,
    pub libraries: BTreeMap<String, MediaLibrary>,
    /// Programs that run custom entries, by type.
    pub drivers: BTreeMap<String, CustomDriver>,
    /// The compositor, if the daemon works with one.
    pub compositor: Option<CompositorConfig>,
    /// The roles of users at the daemon's socket.
    pub access: AccessPolicy,
    pub reload_on_change: ReloadOnChange,
    /// The longest time that a program may take to start.
    pub launch_timeout: Duration,
    /// The grace period between the request to end and the kill.
    pub stop_grace: Duration,
    /// The largest distance of the clock behind the latest known time.
    pub clock_tolerance: Duration,
}

impl Default for PolicyRules {
    /// Returns rules without entries, with one profile and the documented defaults.
    fn default() -> Self {
        Self {
            zone: None,
            language: Language::default(),
            profiles: BTreeMap::from([(
                ProfileId::default(),
                Profile { label: "default".to_owned(), accounts: Vec::new() },
            )]),
            bedtimes: BTreeMap::new(),
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

/// A person whose time is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub label: String,
    /// The person's account. A client of this account uses this profile's time and no other.
    pub accounts: Vec<SystemAccount>,
}

/// A quota that several entries share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeBudget {
    pub label: String,
    pub daily: DailyQuota,
    /// The quota of a week, which begins on Monday.
    pub weekly: Option<Duration>,
}

/// A break after a long time across entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakRule {
    /// The time after which the break is due.
    pub after: Duration,
    /// The length of the break.
    pub length: Duration,
}

/// The limits of grants (S2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantCeilings {
    /// The extra time of one day, over all grants; `None` is no limit.
    pub extra_per_day: Option<Duration>,
    /// The time of day beyond which no window can be extended and no bedtime put off.
    pub open_until: Option<MinuteOfDay>,
}

/// The cost of suspended time in run time and quota (S4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendedTime {
    Free,
    Counts,
}

/// The effect of a new policy on a running session (S7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReload {
    /// The session keeps its plan.
    KeepPlan,
    /// The end is calculated again and never comes later than planned.
    Replan,
}

/// The effect of the daemon's end on a running session (S9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnShutdown {
    /// The session stays; the next daemon takes it back with its original end.
    LeaveSessions,
    /// The session is stopped first.
    EndSessions,
}

/// The reaction to a changed policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadOnChange {
    /// The file is read only on request.
    No,
    /// The file is read as soon as it has been written.
    Yes,
}

/// The files of a media library, with their player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaLibrary {
    pub paths: Vec<String>,
    /// The player; `None` is the default player.
    pub player: Option<String>,
}

impl Policy {
    /// Checks that every reference resolves.
    ///
    /// # Errors
    /// The first reference that doesn't resolve.
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
        let hours_groups = hours_group::group_by_hours(&rules).into();
        let (rules, index, earners) = (Arc::new(rules), Arc::new(index), Arc::new(earners));
        let policy = Self { rules, index, earners, hours_groups };
        policy.check_references()?;
        Ok(policy)
    }

    #[must_use]
    pub fn rules(&self) -> &PolicyRules {
        &self.rules
    }

    /// Returns the entries in the order in which they are shown.
    #[must_use]
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.rules.entries
    }

    #[must_use]
    pub fn entry(&self, entry_id: &EntryId) -> Option<&PolicyEntry> {
        self.rules.entries.get(*self.index.get(entry_id)?)
    }

    #[must_use]
    pub fn label_of(&self, item: PolicyItem<'_>) -> Option<&str> {
        match item {
            PolicyItem::Entry(entry_id) => self.entry(entry_id).map(|entry| entry.label.as_str()),
            PolicyItem::Budget(budget_id) => {
                self.rules.budgets.get(budget_id).map(|budget| budget.label.as_str())
            }
        }
    }

    /// Returns the group of each entry by its hours, in the order of the entries.
    pub(crate) fn hours_groups(&self) -> &[HoursGroup] {
        &self.hours_groups
    }

    /// Returns the position of each entry, in the order of the ids.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (&EntryId, usize)> {
        self.index.iter().map(|(entry_id, position)| (entry_id, *position))
    }

    /// Returns the account that an entry runs as for a profile: its own, else the profile's first; `None` is the
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

    /// Returns the logins that profiles and entries name.
    pub fn named_logins(&self) -> impl Iterator<Item = &str> {
        let of_entries = self.rules.entries.iter().filter_map(|entry| entry.run.user.as_deref());
        let accounts = self.rules.profiles.values().flat_map(|profile| &profile.accounts);
        let of_profiles = accounts.filter_map(|account| match account {
            SystemAccount::User(name) => Some(name.as_str()),
            SystemAccount::Uid(_) | SystemAccount::Group(_) | SystemAccount::Gid(_) => None,
        });
        of_entries.chain(of_profiles)
    }

    /// Returns the entry that stands for a profile's being logged in; `None` if the policy doesn't limit its logins.
    #[must_use]
    pub fn login_entry(&self, profile: &ProfileId) -> Option<&PolicyEntry> {
        self.login_entries().find(|entry| entry.is_for(profile))
    }

    /// Returns the entries that stand for being logged in.
    pub fn login_entries(&self) -> impl Iterator<Item = &PolicyEntry> {
        self.rules.entries.iter().filter(|entry| entry.kind.is_login())
    }

    /// Returns the entries whose use adds to a budget.
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

    /// Returns whether any limit starts again with a new day.
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

    /// Returns the profile for a request that names none: the first by name. The daemon knows the client and names one.
    #[must_use]
    pub fn default_profile(&self) -> ProfileId {
        self.rules.profiles.keys().next().cloned().unwrap_or_default()
    }
}
