//! Quotas by weekday and by household mode.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ModeName;
use super::calendar::Day;

/// An amount for each weekday, Monday first; `None` is no limit.
pub type WeekdayAmounts = [Option<Duration>; 7];

/// The quota of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DailyQuota {
    /// The amounts for every mode without amounts of its own.
    pub base: WeekdayAmounts,
    /// The amounts of single modes.
    pub by_mode: BTreeMap<ModeName, WeekdayAmounts>,
}

impl DailyQuota {
    /// Creates a quota that is the same on every day.
    #[must_use]
    pub fn every_day(amount: Duration) -> Self {
        Self { base: [Some(amount); 7], by_mode: BTreeMap::new() }
    }

    /// Returns whether there is a limit on this weekday, in any mode.
    pub(crate) fn limits_day(&self, day: Day) -> bool {
        let mut amounts = std::iter::once(&self.base).chain(self.by_mode.values());
        amounts.any(|amounts| amounts.get(day.weekday()).copied().flatten().is_some())
    }

    /// Returns the amount for a day in a mode; `None` is no limit.
    #[must_use]
    pub fn amount_on(&self, day: Day, mode: &str) -> Option<Duration> {
        let amounts = self.by_mode.get(mode).unwrap_or(&self.base);
        amounts.get(day.weekday()).copied().flatten()
    }
}
