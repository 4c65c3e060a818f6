//! A naive check of opening hours for a single minute, without any search or interval.

use jiff::Timestamp;
use shepherd_core::policy::{AvailabilityPolicy, Day, DayRule};

use super::usage_model::PolicyTerms;

pub(super) fn is_open(terms: &PolicyTerms, entry: usize, at: Timestamp) -> bool {
    let shown = terms.zone.to_datetime(at);
    let today = Day::from_date(shown.date());
    let minute = i32::from(shown.hour()) * 60 + i32::from(shown.minute());
    covers(terms, entry, today, minute) || covers(terms, entry, today.plus_days(-1), minute + 1440)
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
