//! Corrections of the clock to an earlier day (S4.5).
//!
//! A clock that is confirmed far behind the latest known time was ahead until now, or it is behind now. Nobody can tell
//! which. So usage is never taken off the day to which it was charged; it is charged once more to the day on which it
//! happened in the other case. If this errs, the child gains nothing: a day that was charged without reason, such as the far
//! day when it really comes, can be corrected by a grant. Usage that earns time or unlocks an entry stays on its one day,
//! because it would be rewarded on two days.
//!
//! A clock that is confirmed up to a week behind is taken at its word: usage stays on its day, which pays back what was
//! borrowed from it, and is charged to no other.

use std::collections::BTreeSet;
use std::time::Duration;

use shepherd_util::ClockReading;

use super::CoreEngine;
use crate::civil::LocalTime;
use crate::policy::Day;
use crate::state::{ClockCorrection, UsageAmount, UsageCounter, UsageKey};

/// Time that was borrowed from one of this many next days is missing on that day, and on no other.
const DAYS_THAT_PAY_BACK: i32 = 7;

/// The most far days whose usage is charged again, the latest first. After years with the right clock, a wrong
/// confirmation would otherwise make the snapshot huge. Usage of earlier far days stays on its one day.
const MAX_FAR_DAYS: usize = 31;

/// Usage this many days ago counts for no quota, neither of the day nor of the week.
const RECENT_DAYS: i32 = 7;

/// After this many days, a day that was charged twice is over, and a correction that goes back before it charges it anew.
/// The record would otherwise stay in the snapshot for good.
const DAYS_OF_DOUBT: i32 = 28;

impl CoreEngine {
    /// Charges usage of days that are more than a week after the confirmed day again, to the days on which it happened if
    /// the clock was ahead. The next days pay back what was borrowed from them.
    ///
    /// The latest accounting day was really today, and the days before it were the days before today, but only those after
    /// the last day that was used with the right clock, and only a week of them. Usage that would be earlier comes from a
    /// clock that was set ahead several times, so it is charged to today.
    pub(super) fn correct_to_earlier_day(&mut self, now: ClockReading) {
        let Some(last) = self.snapshot.clock.accounting_day else { return };
        let today = LocalTime::at(self.zone(), now.wall).day();
        let near = today.plus_days(DAYS_THAT_PAY_BACK);
        let used_days: BTreeSet<Day> = self.usage.iter().map(|(key, _)| key.day).collect();
        let last_right_day = used_days.range(..=today).next_back().copied();
        let last_known_day = last_right_day.max(Some(today.plus_days(-RECENT_DAYS)));
        let real_day = |day: Day| {
            let real_day = today.plus_days(day.0.saturating_sub(last.0)).min(today);
            if last_known_day < Some(real_day) { real_day } else { today }
        };
        let far_days: BTreeSet<Day> =
            used_days.iter().rev().copied().take_while(|day| near < *day).take(MAX_FAR_DAYS).collect();
        let far: Vec<(UsageKey, Duration)> =
            self.usage.iter().filter(|(key, _)| far_days.contains(&key.day)).collect();
        let before = self.snapshot.clock_correction.take();
        let mut charged_twice = Vec::new();
        for (key, amount) in far {
            let charged = before.as_ref().map_or(Duration::ZERO, |before| before.charged_twice_to(&key));
            // The rules may have rewarded the entry only since an earlier correction.
            let amount = if self.is_rewarded(&key.counter) { charged } else { amount };
            let more = amount.saturating_sub(charged);
            if !more.is_zero() {
                self.charge_usage(UsageKey { day: real_day(key.day), ..key.clone() }, more);
            }
            if !amount.is_zero() {
                charged_twice.push(UsageAmount { key, amount });
            }
        }
        let mut used_since = before.as_ref().map_or_else(Vec::new, |before| before.used_since.clone());
        for used in &mut used_since {
            used.key.day = used.key.day.min(today);
        }
        // Doubts about an earlier correction remain. A correction by less than a week adds none.
        let mut last_days = before.map_or_else(BTreeSet::new, |before| before.last_days);
        if near < last || last_days.is_empty() {
            last_days.insert(last);
        }
        if last_days.len() > MAX_FAR_DAYS {
            last_days.pop_last();
        }
        self.snapshot.clock_correction = Some(ClockCorrection { last_days, charged_twice, used_since });
    }

    /// Keeps usage that will have to be charged again if the corrected clock turns out to be behind.
    pub(super) fn record_use_since_correction(&mut self, key: &UsageKey, amount: Duration) {
        let correction = self.snapshot.clock_correction.as_mut();
        if let Some(correction) = correction.filter(|correction| !correction.last_days.is_empty()) {
            correction.used_since.retain(|used| key.day < used.key.day.plus_days(RECENT_DAYS));
            add_amount(&mut correction.used_since, key, amount);
        }
    }

    /// Charges usage since a correction again, if the clock jumps ahead to the day that it showed before the correction:
    /// it was right then, and the usage happened just before the jump. If time was used within a week before, the clock
    /// has got there by itself. A longer pause looks like a jump, at the child's expense; a clock that returns in steps of
    /// up to a week doesn't look like one, and charges nothing.
    ///
    /// After several corrections, the clock may return in as many steps. The usage is charged at each, because any of these
    /// days may be the real one.
    pub(super) fn charge_use_since_correction_again(&mut self, today: Day) {
        let before = self.snapshot.clock_correction.clone();
        let Some(correction) = self.snapshot.clock_correction.as_mut() else { return };
        let last_days = correction.last_days.len();
        correction.last_days.retain(|last_day| today < *last_day);
        correction.charged_twice.retain(|known| today <= known.key.day.plus_days(DAYS_OF_DOUBT));
        let (is_reached, is_last) = (correction.last_days.len() < last_days, correction.last_days.is_empty());
        if is_reached {
            let mut used_since = std::mem::take(&mut correction.used_since);
            let last = used_since.iter().map(|used| used.key.day).max();
            if let Some(last) = last.filter(|last| last.plus_days(DAYS_THAT_PAY_BACK) < today) {
                for used in &mut used_since {
                    used.key.day = today.plus_days(used.key.day.0.saturating_sub(last.0));
                    self.charge_again(used);
                }
            }
            if let Some(correction) = self.snapshot.clock_correction.as_mut().filter(|_| !is_last) {
                correction.used_since = used_since;
            }
        }
        let is_over = |correction: &mut ClockCorrection| is_last && correction.charged_twice.is_empty();
        self.snapshot.clock_correction.take_if(is_over);
        if self.snapshot.clock_correction != before {
            self.save_snapshot();
        }
    }

    fn charge_again(&mut self, UsageAmount { key, amount }: &UsageAmount) {
        if self.is_rewarded(&key.counter) {
            return;
        }
        // If this clock is wrong, the usage isn't charged back.
        if let Some(correction) = &mut self.snapshot.clock_correction {
            add_amount(&mut correction.charged_twice, key, *amount);
        }
        self.charge_usage(key.clone(), *amount);
    }

    fn is_rewarded(&self, counter: &UsageCounter) -> bool {
        matches!(counter, UsageCounter::Entry(entry_id) if self.earns_or_unlocks(entry_id))
    }
}

impl ClockCorrection {
    fn charged_twice_to(&self, key: &UsageKey) -> Duration {
        let known = self.charged_twice.iter().find(|known| known.key == *key);
        known.map_or(Duration::ZERO, |known| known.amount)
    }
}

fn add_amount(amounts: &mut Vec<UsageAmount>, key: &UsageKey, amount: Duration) {
    match amounts.iter_mut().find(|known| known.key == *key) {
        Some(known) => known.amount = known.amount.saturating_add(amount),
        None => amounts.push(UsageAmount { key: key.clone(), amount }),
    }
}
