//! The raw policy: the values of a file with their places, before names are looked up and defaults filled in. Values that
//! could not be read are absent, and a fault is recorded for each.

use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::{ClientRole, EntryKind, Language, WarningSeverity};
use shepherd_core::policy::{
    BreakRule, CompositorConfig, CustomDriver, Day, DisabledReason, EntrySlot, GrantCeilings, LoginPolicy,
    MediaLibrary, MinuteOfDay, NightHours, OnReload, OnShutdown, ReloadOnChange, SuspendedTime,
    SystemAccount, TimeCost, Weekdays, WindowDisplay,
};
use ward_diag::{Span, Spanned};

use crate::expect::PolicyExample;

pub(crate) type SpannedName = Spanned<String>;

pub(crate) type RawAccount = Spanned<SystemAccount>;

#[derive(Default)]
pub(crate) struct RawPolicy {
    /// True if parts of the file could not be parsed. A name that seems to be undefined may be in such a part.
    pub(crate) incomplete: bool,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) language: Option<Language>,
    pub(crate) defaults: RawDefaults,
    pub(crate) profiles: Vec<RawProfile>,
    pub(crate) budgets: Vec<RawBudget>,
    pub(crate) libraries: Vec<(SpannedName, Option<MediaLibrary>)>,
    pub(crate) drivers: Vec<(SpannedName, Option<CustomDriver>)>,
    /// The outer `None` means not set, the inner one unreadable.
    pub(crate) compositor: Option<Option<CompositorConfig>>,
    pub(crate) access: RawAccess,
    pub(crate) watch: Option<ReloadOnChange>,
    pub(crate) entries: Vec<RawEntry>,
    pub(crate) modes: RawModes,
    pub(crate) exceptions: Vec<RawException>,
    pub(crate) breaks: Option<BreakRule>,
    pub(crate) ceilings: GrantCeilings,
    pub(crate) suspended_time: Option<SuspendedTime>,
    pub(crate) on_reload: Option<OnReload>,
    pub(crate) on_shutdown: Option<OnShutdown>,
    pub(crate) launch_timeout: Option<Duration>,
    pub(crate) stop_grace: Option<Spanned<Duration>>,
    pub(crate) clock_tolerance: Option<Duration>,
    pub(crate) examples: Vec<Spanned<PolicyExample>>,
}

/// The table `[defaults]` of a policy.
#[derive(Default)]
pub(crate) struct RawDefaults {
    pub(crate) availability: RawAvailability,
    pub(crate) limits: RawLimits,
    pub(crate) warnings: Option<Vec<RawWarning>>,
    pub(crate) run: RawRun,
}

/// The table `[access]` of a policy.
#[derive(Default)]
pub(crate) struct RawAccess {
    pub(crate) rules: Vec<(RawAccount, ClientRole)>,
    pub(crate) others: Option<ClientRole>,
}

/// The table `[profiles.NAME]` of a policy.
pub(crate) struct RawProfile {
    pub(crate) id: SpannedName,
    pub(crate) label: Option<String>,
    pub(crate) accounts: Vec<RawAccount>,
    pub(crate) bedtime: Option<RawBedtime>,
}

/// The setting `bedtime` of a profile.
pub(crate) struct RawBedtime {
    pub(crate) nights: RawBedtimeNights,
    /// Nights by mode. Nights that a mode doesn't set are those of `nights`.
    pub(crate) by_mode: Vec<(SpannedName, RawBedtimeNights)>,
}

/// Nights by kind; `None` is not set.
pub(crate) struct RawBedtimeNights {
    pub(crate) school_nights: Option<NightSetting>,
    pub(crate) weekends: Option<NightSetting>,
}

/// The hours of a night, or `"none"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NightSetting {
    NoBedtime,
    Hours(NightHours),
}

impl NightSetting {
    /// Converts the setting for the engine; `None` means no bedtime.
    pub(crate) fn hours(self) -> Option<NightHours> {
        match self {
            Self::NoBedtime => None,
            Self::Hours(night) => Some(night),
        }
    }
}

/// The table `[budgets.NAME]` of a policy.
pub(crate) struct RawBudget {
    pub(crate) id: SpannedName,
    pub(crate) label: Option<String>,
    pub(crate) daily: Option<RawQuota>,
    pub(crate) weekly: Option<TimeLimitSetting>,
}

/// An element of `[[entries]]` in a policy.
pub(crate) struct RawEntry {
    /// The entry's header, for faults about the entry as a whole.
    pub(crate) span: Span,
    pub(crate) id: Option<SpannedName>,
    pub(crate) label: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) kind: RawKind,
    pub(crate) profiles: Option<Vec<SpannedName>>,
    pub(crate) availability: RawAvailability,
    pub(crate) limits: RawLimits,
    pub(crate) warnings: Option<Vec<RawWarning>>,
    pub(crate) disabled: Option<Spanned<DisabledReason>>,
    pub(crate) budgets: Vec<SpannedName>,
    pub(crate) cost: Option<Spanned<TimeCost>>,
    pub(crate) slot: Option<EntrySlot>,
    pub(crate) earns: Option<RawEarning>,
    pub(crate) unlock: Option<RawUnlock>,
    pub(crate) run: RawRun,
}

/// The kind of an entry, and the names in it that have to be looked up.
#[derive(Default)]
pub(crate) struct RawKind {
    pub(crate) kind: Option<EntryKind>,
    /// The library of a media entry.
    pub(crate) library: Option<SpannedName>,
    /// The type of a custom entry.
    pub(crate) driver: Option<SpannedName>,
    /// The settings of an entry that stands for being logged in; the defaults for any other.
    pub(crate) login: LoginPolicy,
}

#[derive(Default)]
pub(crate) struct RawRun {
    pub(crate) user: Option<String>,
    pub(crate) stop_grace: Option<Spanned<Duration>>,
    pub(crate) output_limit: Option<u64>,
    pub(crate) display: Option<Spanned<WindowDisplay>>,
    pub(crate) resources: RawResources,
}

/// The setting `resources = { … }` of an entry.
#[derive(Default)]
pub(crate) struct RawResources {
    pub(crate) memory: Option<LimitSetting<u64>>,
    pub(crate) processes: Option<LimitSetting<u32>>,
    pub(crate) cpu: Option<LimitSetting<u32>>,
    pub(crate) open_files: Option<LimitSetting<u32>>,
    pub(crate) file_size: Option<LimitSetting<u64>>,
}

#[derive(Default)]
pub(crate) enum RawAvailability {
    #[default]
    Unspecified,
    Unreadable,
    Always,
    Windows(Vec<RawWindow>),
}

pub(crate) struct RawWindow {
    pub(crate) days: Weekdays,
    pub(crate) start: MinuteOfDay,
    pub(crate) end: MinuteOfDay,
    pub(crate) modes: Option<Vec<SpannedName>>,
}

#[derive(Default)]
pub(crate) struct RawLimits {
    pub(crate) max_run: Option<Spanned<TimeLimitSetting>>,
    pub(crate) daily: Option<RawQuota>,
    pub(crate) weekly: Option<Spanned<TimeLimitSetting>>,
    pub(crate) cooldown: Option<Duration>,
    pub(crate) crash_within: Option<Duration>,
}

pub(crate) type TimeLimitSetting = LimitSetting<Duration>;

/// A limit, or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitSetting<T> {
    Unlimited,
    Limited(T),
}

impl<T> LimitSetting<T> {
    /// Converts the setting for the engine; `None` means no limit.
    pub(crate) fn limit(self) -> Option<T> {
        match self {
            Self::Unlimited => None,
            Self::Limited(amount) => Some(amount),
        }
    }
}

/// A quota for a day, by weekday and by mode.
pub(crate) struct RawQuota {
    pub(crate) span: Span,
    pub(crate) base: [TimeLimitSetting; 7],
    /// Amounts by mode. Days without an amount use `base`.
    pub(crate) by_mode: Vec<(SpannedName, [Option<TimeLimitSetting>; 7])>,
}

impl RawQuota {
    /// Returns the largest amount of any day in any mode; `None` means no limit.
    pub(crate) fn max_amount(&self) -> Option<Duration> {
        self.amounts().try_fold(Duration::ZERO, |most, amount| Some(most.max(amount.limit()?)))
    }

    /// Returns true if any day has a limit.
    pub(crate) fn limits_anything(&self) -> bool {
        self.amounts().any(|amount| amount.limit().is_some())
    }

    fn amounts(&self) -> impl Iterator<Item = TimeLimitSetting> {
        let mode_amounts = self.by_mode.iter().flat_map(|(_, amounts)| amounts.iter().flatten());
        self.base.iter().chain(mode_amounts).copied()
    }
}

pub(crate) struct RawWarning {
    pub(crate) before: Spanned<Duration>,
    pub(crate) severity: WarningSeverity,
    pub(crate) message: Option<String>,
}

/// The setting `earns = { … }` of an entry.
pub(crate) struct RawEarning {
    pub(crate) budget: SpannedName,
    pub(crate) for_each: Duration,
    pub(crate) earned: Duration,
    pub(crate) ceiling: Duration,
}

/// The setting `unlock = { … }` of an entry.
pub(crate) struct RawUnlock {
    pub(crate) entry: SpannedName,
    pub(crate) at_least: Spanned<Duration>,
}

/// The table `[modes]` of a policy.
#[derive(Default)]
pub(crate) struct RawModes {
    pub(crate) names: Vec<SpannedName>,
    pub(crate) default: Option<SpannedName>,
    pub(crate) dates: Vec<(DayRange, SpannedName)>,
}

/// A range of days, both ends included.
#[derive(Clone, Copy)]
pub(crate) struct DayRange {
    pub(crate) from: Day,
    pub(crate) to: Day,
}

/// An element of `[[exceptions]]` in a policy.
pub(crate) struct RawException {
    pub(crate) days: Option<DayRange>,
    pub(crate) label: Option<String>,
    pub(crate) entries: Option<Vec<SpannedName>>,
    pub(crate) rule: Option<shepherd_core::policy::DayRule>,
}
