//! What a file says, with the place of everything that can still turn out wrong: names are not looked up yet and
//! defaults not filled in. What could not be read is absent, and a fault is on record for it.

use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::{ClientRole, EntryKind, WarningSeverity};
use shepherd_core::policy::{
    BreakRule, CompositorConfig, CustomDriver, Day, DisabledReason, GrantCeilings, MediaLibrary, MinuteOfDay,
    OnReload, OnShutdown, ReloadOnChange, SuspendedTime, SystemAccount, TimeCost, Weekdays, WindowDisplay,
};
use ward_diag::{Span, Spanned};

use crate::expect::PolicyExample;

/// A name that the file uses.
pub(crate) type SpannedName = Spanned<String>;

/// An account that the file names.
pub(crate) type RawAccount = Spanned<SystemAccount>;

/// The whole file.
#[derive(Default)]
pub(crate) struct RawPolicy {
    /// Whether parts of the file could not be parsed: what seems to be undefined may stand there.
    pub(crate) incomplete: bool,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) defaults: RawDefaults,
    pub(crate) profiles: Vec<RawProfile>,
    pub(crate) budgets: Vec<RawBudget>,
    pub(crate) libraries: Vec<(SpannedName, Option<MediaLibrary>)>,
    pub(crate) drivers: Vec<(SpannedName, Option<CustomDriver>)>,
    /// The outer `None` is "not said", the inner one "unreadable".
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

/// `[defaults]`.
#[derive(Default)]
pub(crate) struct RawDefaults {
    pub(crate) availability: RawAvailability,
    pub(crate) limits: RawLimits,
    pub(crate) warnings: Option<Vec<RawWarning>>,
    pub(crate) run: RawRun,
}

/// `[access]`.
#[derive(Default)]
pub(crate) struct RawAccess {
    pub(crate) rules: Vec<(RawAccount, ClientRole)>,
    pub(crate) others: Option<ClientRole>,
}

/// `[profiles.NAME]`.
pub(crate) struct RawProfile {
    pub(crate) id: SpannedName,
    pub(crate) label: Option<String>,
    pub(crate) accounts: Vec<RawAccount>,
}

/// `[budgets.NAME]`.
pub(crate) struct RawBudget {
    pub(crate) id: SpannedName,
    pub(crate) label: Option<String>,
    pub(crate) daily: Option<RawQuota>,
    pub(crate) weekly: Option<TimeLimitSetting>,
}

/// One of `[[entries]]`.
pub(crate) struct RawEntry {
    /// Its header, for faults about the entry as a whole.
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
    pub(crate) earns: Option<RawEarning>,
    pub(crate) unlock: Option<RawUnlock>,
    pub(crate) run: RawRun,
}

/// What it takes to start an entry, and the names in it that are to be looked up.
#[derive(Default)]
pub(crate) struct RawKind {
    pub(crate) kind: Option<EntryKind>,
    /// The library of a media entry.
    pub(crate) library: Option<SpannedName>,
    /// The type of a custom entry.
    pub(crate) driver: Option<SpannedName>,
}

/// How something is run, as far as it says.
#[derive(Default)]
pub(crate) struct RawRun {
    pub(crate) user: Option<String>,
    pub(crate) stop_grace: Option<Spanned<Duration>>,
    pub(crate) output_limit: Option<u64>,
    pub(crate) display: Option<Spanned<WindowDisplay>>,
    pub(crate) resources: RawResources,
}

/// `resources = { … }`.
#[derive(Default)]
pub(crate) struct RawResources {
    pub(crate) memory: Option<LimitSetting<u64>>,
    pub(crate) processes: Option<LimitSetting<u32>>,
    pub(crate) cpu: Option<LimitSetting<u32>>,
    pub(crate) open_files: Option<LimitSetting<u32>>,
    pub(crate) file_size: Option<LimitSetting<u64>>,
}

/// When an entry may run, as far as it says.
#[derive(Default)]
pub(crate) enum RawAvailability {
    /// Nothing is said.
    #[default]
    Unspecified,
    /// Something is said that can't be read.
    Unreadable,
    /// At any time.
    Always,
    /// In these windows.
    Windows(Vec<RawWindow>),
}

/// A window of the week.
pub(crate) struct RawWindow {
    pub(crate) days: Weekdays,
    pub(crate) start: MinuteOfDay,
    pub(crate) end: MinuteOfDay,
    pub(crate) modes: Option<Vec<SpannedName>>,
}

/// How long an entry may run, as far as it says.
#[derive(Default)]
pub(crate) struct RawLimits {
    pub(crate) max_run: Option<Spanned<TimeLimitSetting>>,
    pub(crate) daily: Option<RawQuota>,
    pub(crate) weekly: Option<Spanned<TimeLimitSetting>>,
    pub(crate) cooldown: Option<Duration>,
}

/// So much time, or without limit.
pub(crate) type TimeLimitSetting = LimitSetting<Duration>;

/// So much, or without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitSetting<T> {
    /// Without limit.
    Unlimited,
    /// At most this.
    Limited(T),
}

impl<T> LimitSetting<T> {
    /// As the engine wants it: `None` is without limit.
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
    /// Every day has an amount.
    pub(crate) base: [TimeLimitSetting; 7],
    /// Days that a mode does not name have the amount of `base`.
    pub(crate) by_mode: Vec<(SpannedName, [Option<TimeLimitSetting>; 7])>,
}

impl RawQuota {
    /// The most that any day in any mode gives; `None` is without limit.
    pub(crate) fn max_amount(&self) -> Option<Duration> {
        self.amounts().try_fold(Duration::ZERO, |most, amount| Some(most.max(amount.limit()?)))
    }

    /// Whether there is a day with a limit.
    pub(crate) fn limits_anything(&self) -> bool {
        self.amounts().any(|amount| amount.limit().is_some())
    }

    fn amounts(&self) -> impl Iterator<Item = TimeLimitSetting> {
        let of_modes = self.by_mode.iter().flat_map(|(_, amounts)| amounts.iter().flatten());
        self.base.iter().chain(of_modes).copied()
    }
}

/// One warning.
pub(crate) struct RawWarning {
    pub(crate) before: Spanned<Duration>,
    pub(crate) severity: WarningSeverity,
    pub(crate) message: Option<String>,
}

/// `earns = { … }`.
pub(crate) struct RawEarning {
    pub(crate) budget: SpannedName,
    pub(crate) for_each: Duration,
    pub(crate) earned: Duration,
    pub(crate) ceiling: Duration,
}

/// `unlock = { … }`.
pub(crate) struct RawUnlock {
    pub(crate) entry: SpannedName,
    pub(crate) at_least: Spanned<Duration>,
}

/// `[modes]`.
#[derive(Default)]
pub(crate) struct RawModes {
    pub(crate) names: Vec<SpannedName>,
    pub(crate) default: Option<SpannedName>,
    pub(crate) dates: Vec<(DayRange, SpannedName)>,
}

/// From one day to another, both included.
#[derive(Clone, Copy)]
pub(crate) struct DayRange {
    pub(crate) from: Day,
    pub(crate) to: Day,
}

/// One of `[[exceptions]]`.
pub(crate) struct RawException {
    pub(crate) days: Option<DayRange>,
    pub(crate) label: Option<String>,
    pub(crate) entries: Option<Vec<SpannedName>>,
    pub(crate) rule: Option<shepherd_core::policy::DayRule>,
}
