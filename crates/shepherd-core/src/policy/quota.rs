//! How much on a day, by weekday and by mode of the household.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ModeName;
use super::calendar::Day;

/// An amount for each weekday, Monday first; `NotRequested` is without limit.
pub type WeekdayAmounts = [Option<Duration>; 7];

/// How much on a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DailyQuota {
    /// In every mode that has none of its own.
    pub base: WeekdayAmounts,
    /// In a mode.
    pub by_mode: BTreeMap<ModeName, WeekdayAmounts>,
}

impl DailyQuota {
    /// The same on every day.
    #[must_use]
    pub fn every_day(amount: Duration) -> Self {
        Self { base: [Some(amount); 7], by_mode: BTreeMap::new() }
    }

    /// The amount for a day in a mode; `NotRequested` is without limit.
    #[must_use]
    pub fn amount_on(&self, day: Day, mode: &str) -> Option<Duration> {
        let amounts = self.by_mode.get(mode).unwrap_or(&self.base);
        amounts.get(day.weekday()).copied().flatten()
    }
}
