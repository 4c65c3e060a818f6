//! Formats days, hours and amounts as words.

use std::time::Duration;

use shepherd_core::policy::{
    BedtimeNights, BedtimePolicy, DailyQuota, Day, MinuteOfDay, NightHours, WeekdayAmounts, Weekdays,
};
use shepherd_util::ExactDuration;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Returns the name of a weekday; 0 is Monday.
pub(crate) fn day_name(weekday: usize) -> &'static str {
    DAYS.get(weekday).copied().unwrap_or_default()
}

pub(super) fn format_days(days: Weekdays) -> String {
    match days {
        Weekdays::ALL => "Every day".to_owned(),
        Weekdays::WEEKDAYS => "Monday to Friday".to_owned(),
        Weekdays::WEEKENDS => "Saturday and Sunday".to_owned(),
        some => join_words(&(0..7).filter(|index| some.contains(*index)).map(day_name).collect::<Vec<_>>()),
    }
}

pub(super) fn format_hours(from: MinuteOfDay, to: MinuteOfDay) -> String {
    let next = if to < from { " on the next day" } else { "" };
    format!("from {from} to {to}{next}")
}

pub(super) fn format_day_range(from: Day, to: Day) -> String {
    if from == to { from.to_string() } else { format!("{from} to {to}") }
}

/// Describes the amounts of a quota by day and by mode. Returns nothing if there is no limit.
pub(super) fn describe_quota(quota: &DailyQuota) -> Vec<String> {
    let mut parts = amounts_by_day(&quota.base);
    for (mode, amounts) in quota.by_mode.iter().filter(|(_, amounts)| **amounts != quota.base) {
        let amounts = amounts_by_day(amounts);
        let amounts = if amounts.is_empty() { "no limit".to_owned() } else { amounts.join(", ") };
        parts.push(format!("in the mode {mode}: {amounts}"));
    }
    parts
}

/// Describes a bedtime by kind of night and by mode.
pub(super) fn describe_bedtime(bedtime: &BedtimePolicy) -> Vec<String> {
    let night = |night: Option<NightHours>| match night.map(NightHours::times_of_day) {
        Some((start, end)) => format!("{start} to {end}"),
        None => "none".to_owned(),
    };
    let nights = |nights: &BedtimeNights| match (nights.school_nights, nights.weekends) {
        (school, weekends) if school == weekends => format!("{} every night", night(school)),
        (school, weekends) => format!("{} on school nights, {} on weekends", night(school), night(weekends)),
    };
    let in_modes =
        bedtime.by_mode.iter().map(|(mode, other)| format!("in the mode {mode} {}", nights(other)));
    std::iter::once(nights(&bedtime.nights)).chain(in_modes).collect()
}

/// Groups days with the same amount, in the order of the first day of each group.
fn amounts_by_day(amounts: &WeekdayAmounts) -> Vec<String> {
    let mut groups: Vec<(Option<Duration>, Weekdays)> = Vec::new();
    for (index, amount) in amounts.iter().enumerate() {
        match groups.iter_mut().find(|(other, _)| other == amount) {
            Some((_, days)) => *days = days.with(index),
            None => groups.push((*amount, Weekdays::default().with(index))),
        }
    }
    match groups.as_slice() {
        [(None, _)] => Vec::new(),
        [(Some(amount), _)] => vec![format!("{} a day", ExactDuration(*amount))],
        several => several
            .iter()
            .map(|(amount, group)| match amount {
                Some(amount) => format!("{} {}", format_days(*group), ExactDuration(*amount)),
                None => format!("{} no limit", format_days(*group)),
            })
            .collect(),
    }
}

/// Joins words as in "a, b and c".
pub(super) fn join_words<T: AsRef<str>>(words: &[T]) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}
