//! What a file says, with the place of everything that can still turn out wrong: names are not looked up yet and
//! defaults not filled in. What could not be read is absent, and a fault is on record for it.

use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::{EntryKind, Severity};
use shepherd_core::policy::{
    BreakRule, Ceilings, Cost, Day, Disabled, Library, MinuteOfDay, OnReload, OnShutdown, SuspendedTime,
    Weekdays,
};
use ward_diag::{Span, Spanned};

use crate::expect::Example;

/// A name that the file uses.
pub(crate) type Name = Spanned<String>;

/// The whole file.
#[derive(Default)]
pub(crate) struct RawPolicy {
    /// Whether parts of the file could not be parsed: what seems to be undefined may stand there.
    pub(crate) incomplete: bool,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) defaults: RawDefaults,
    pub(crate) profiles: Vec<RawProfile>,
    pub(crate) budgets: Vec<RawBudget>,
    pub(crate) libraries: Vec<(Name, Option<Library>)>,
    pub(crate) entries: Vec<RawEntry>,
    pub(crate) modes: RawModes,
    pub(crate) exceptions: Vec<RawException>,
    pub(crate) breaks: Option<BreakRule>,
    pub(crate) ceilings: Ceilings,
    pub(crate) suspended_time: Option<SuspendedTime>,
    pub(crate) on_reload: Option<OnReload>,
    pub(crate) on_shutdown: Option<OnShutdown>,
    pub(crate) launch_timeout: Option<Duration>,
    pub(crate) stop_grace: Option<Duration>,
    pub(crate) clock_tolerance: Option<Duration>,
    pub(crate) examples: Vec<Spanned<Example>>,
}

/// `[defaults]`.
#[derive(Default)]
pub(crate) struct RawDefaults {
    pub(crate) availability: RawAvailability,
    pub(crate) limits: RawLimits,
    pub(crate) warnings: Option<Vec<RawWarning>>,
}

/// `[profiles.NAME]`.
pub(crate) struct RawProfile {
    pub(crate) id: Name,
    pub(crate) label: Option<String>,
}

/// `[budgets.NAME]`.
pub(crate) struct RawBudget {
    pub(crate) id: Name,
    pub(crate) label: Option<String>,
    pub(crate) daily: Option<RawQuota>,
    pub(crate) weekly: Option<Amount>,
}

/// One of `[[entries]]`.
pub(crate) struct RawEntry {
    /// Its header, for faults about the entry as a whole.
    pub(crate) span: Span,
    pub(crate) id: Option<Name>,
    pub(crate) label: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) kind: Option<EntryKind>,
    /// The library of a media entry, to be looked up.
    pub(crate) library: Option<Name>,
    pub(crate) profiles: Option<Vec<Name>>,
    pub(crate) availability: RawAvailability,
    pub(crate) limits: RawLimits,
    pub(crate) warnings: Option<Vec<RawWarning>>,
    pub(crate) disabled: Option<Spanned<Disabled>>,
    pub(crate) budgets: Vec<Name>,
    pub(crate) cost: Option<Spanned<Cost>>,
    pub(crate) earns: Option<RawEarning>,
    pub(crate) unlock: Option<RawUnlock>,
}

/// When an entry may run, as far as it says.
#[derive(Default)]
pub(crate) enum RawAvailability {
    /// Nothing is said.
    #[default]
    Unsaid,
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
    pub(crate) modes: Option<Vec<Name>>,
}

/// How long an entry may run, as far as it says.
#[derive(Default)]
pub(crate) struct RawLimits {
    pub(crate) max_run: Option<Spanned<Amount>>,
    pub(crate) daily: Option<RawQuota>,
    pub(crate) weekly: Option<Spanned<Amount>>,
    pub(crate) cooldown: Option<Duration>,
}

/// So much, or without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Without limit.
    Unlimited,
    /// At most this.
    Limited(Duration),
}

impl Amount {
    /// As the engine wants it: `None` is without limit.
    pub(crate) fn limit(self) -> Option<Duration> {
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
    pub(crate) base: [Amount; 7],
    /// Days that a mode does not name have the amount of `base`.
    pub(crate) by_mode: Vec<(Name, [Option<Amount>; 7])>,
}

impl RawQuota {
    /// The most that any day in any mode gives; `None` is without limit.
    pub(crate) fn most(&self) -> Option<Duration> {
        self.amounts().try_fold(Duration::ZERO, |most, amount| Some(most.max(amount.limit()?)))
    }

    /// Whether there is a day with a limit.
    pub(crate) fn limits_anything(&self) -> bool {
        self.amounts().any(|amount| amount.limit().is_some())
    }

    fn amounts(&self) -> impl Iterator<Item = Amount> {
        let of_modes = self.by_mode.iter().flat_map(|(_, amounts)| amounts.iter().flatten());
        self.base.iter().chain(of_modes).copied()
    }
}

/// One warning.
pub(crate) struct RawWarning {
    pub(crate) before: Spanned<Duration>,
    pub(crate) severity: Severity,
    pub(crate) message: Option<String>,
}

/// `earns = { … }`.
pub(crate) struct RawEarning {
    pub(crate) budget: Name,
    pub(crate) for_each: Duration,
    pub(crate) earned: Duration,
    pub(crate) ceiling: Duration,
}

/// `unlock = { … }`.
pub(crate) struct RawUnlock {
    pub(crate) entry: Name,
    pub(crate) at_least: Spanned<Duration>,
}

/// `[modes]`.
#[derive(Default)]
pub(crate) struct RawModes {
    pub(crate) names: Vec<Name>,
    pub(crate) default: Option<Name>,
    pub(crate) dates: Vec<(DayRange, Name)>,
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
    pub(crate) entries: Option<Vec<Name>>,
    pub(crate) rule: Option<shepherd_core::policy::DayRule>,
}
