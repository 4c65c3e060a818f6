//! A naive check of opening hours for a single minute, without any search or interval.

use jiff::Timestamp;
use shepherd_core::policy::{AvailabilityPolicy, Day, DayRule, NightHours};

use super::household::CHILDREN;
use super::usage_model::PolicyTerms;

pub(super) fn is_open(terms: &PolicyTerms, child: usize, entry: usize, at: Timestamp) -> bool {
    let shown = terms.zone.to_datetime(at);
    let today = Day::from_date(shown.date());
    let minute = i32::from(shown.hour()) * 60 + i32::from(shown.minute());
    let covered =
        covers(terms, entry, today, minute) || covers(terms, entry, today.plus_days(-1), minute + 1440);
    let asleep = is_bedtime(terms, child, today, minute)
        || is_bedtime(terms, child, today.plus_days(-1), minute + 1440);
    covered && !asleep
}

/// Returns true if the night after an evening covers a minute, counted from the midnight before that evening.
fn is_bedtime(terms: &PolicyTerms, child: usize, evening: Day, minute: i32) -> bool {
    let rules = terms.policy.rules();
    let Some(bedtime) = rules.bedtimes.get(&CHILDREN[child].parse().unwrap()) else { return false };
    let next = evening.plus_days(1);
    let mut weekday = next.weekday();
    for exception in rules.exceptions.iter().filter(|exception| exception.entries.is_none()) {
        if let (DayRule::AsOn(other), true) =
            (&exception.rule, exception.from <= next && next <= exception.to)
        {
            weekday = *other;
        }
    }
    let nights = bedtime.by_mode.get(terms.mode_on(next)).unwrap_or(&bedtime.nights);
    let night = if weekday >= 5 { nights.weekends } else { nights.school_nights };
    let Some((start, end)) = night.map(NightHours::times_of_day) else { return false };
    let (start, end) = (i32::from(start.minutes()), i32::from(end.minutes()));
    let start = if start < 720 { start + 1440 } else { start };
    let end = if end > start { end } else { end + 1440 };
    let end = if end > start { end } else { end + 1440 };
    start <= minute && minute < end
}

/// Returns true if the hours of a day cover a minute, counted from the midnight of that day.
fn covers(terms: &PolicyTerms, entry: usize, day: Day, minute: i32) -> bool {
    let Some(rules) = terms.entry(entry) else { return false };
    let within = |(start, end): (u16, u16)| {
        let (start, end) = (i32::from(start), i32::from(end));
        let end = if end > start { end } else { end + 1440 };
        start <= minute && minute < end
    };
    let on_weekday = |weekday: usize| match &rules.availability {
        AvailabilityPolicy::Always => minute < 1440,
        AvailabilityPolicy::Windows(windows) => windows.iter().any(|window| {
            window.days.contains(weekday)
                && window.modes.as_ref().is_none_or(|modes| modes.contains(terms.mode_on(day)))
                && within((window.start.minutes(), window.end.minutes()))
        }),
    };
    let exceptions = terms.policy.rules().exceptions.iter().rev();
    let exception = exceptions.into_iter().find(|exception| {
        exception.from <= day
            && day <= exception.to
            && exception.entries.as_ref().is_none_or(|entries| entries.contains(&rules.entry_id))
    });
    match exception.map(|exception| &exception.rule) {
        None => on_weekday(day.weekday()),
        Some(DayRule::AsOn(weekday)) => on_weekday(*weekday),
        Some(DayRule::Closed) => false,
        Some(DayRule::Open) => minute < 1440,
        Some(DayRule::Windows(windows)) => {
            windows.iter().any(|(start, end)| within((start.minutes(), end.minutes())))
        }
    }
}
