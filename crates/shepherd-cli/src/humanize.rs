//! Lengths, moments and ends in the words of people.

use jiff::Timestamp;
use shepherd_api::{
    EndReason, EntryScope, GrantKind, HealthView, Millis, ReasonCode, SessionPhase, StopRequester,
    TimeRequestState,
};
use shepherd_util::HumanDuration;
use ward_process::Containment;

use crate::context::DisplaySettings;
use crate::output::TextTone;
use crate::text::escape_unsafe;

/// A length of time.
pub(crate) fn duration(millis: Millis) -> String {
    HumanDuration(millis.into()).to_string()
}

/// What holds the daemon's programs, if it says. A name that we do not know is shown as it is.
pub(crate) fn containment(health: &HealthView) -> Option<String> {
    let code = health.containment.as_deref()?;
    let name = Containment::from_code(code).map_or_else(|| escape_unsafe(code), |known| known.to_string());
    Some(format!("its programs are held by a {name}"))
}

/// A countdown: `0:19`, `12:05`, `1:02:03`. Rounded up, so that it shows zero only when time is up.
pub(crate) fn countdown(Millis(millis): Millis) -> String {
    let seconds = millis.div_ceil(1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A moment, as short as it can be told today.
pub(crate) fn time(at: Timestamp, look: &DisplaySettings) -> String {
    let (then, now) = (at.to_zoned(look.zone.clone()), look.now.to_zoned(look.zone.clone()));
    let near = at.as_second().abs_diff(look.now.as_second()) < 120;
    let days = (then.date() - now.date()).get_days();
    let format = match days {
        0 if near => "%H:%M:%S",
        0 => "%H:%M",
        1 => "tomorrow %H:%M",
        -1 => "yesterday %H:%M",
        -6..=6 => "%a %H:%M",
        _ => "%Y-%m-%d %H:%M",
    };
    then.strftime(format).to_string()
}

pub(crate) fn phase(phase: SessionPhase) -> &'static str {
    match phase {
        SessionPhase::Launching => "starting",
        SessionPhase::Running => "running",
        SessionPhase::Warned => "running, warned",
        SessionPhase::Expiring => "being ended",
    }
}

pub(crate) fn end_reason(end: &EndReason) -> String {
    match end {
        EndReason::Exited { code: Some(0), .. } => "it ended by itself".to_owned(),
        EndReason::Exited { code: Some(code), .. } => format!("it ended by itself, with code {code}"),
        EndReason::Exited { signal: Some(signal), .. } => format!("it was ended by signal {signal}"),
        EndReason::Exited { .. } => "it ended by itself".to_owned(),
        EndReason::Expired => "time was up".to_owned(),
        EndReason::Stopped { by } => format!("stopped by {}", requester(*by)),
        EndReason::LaunchFailed { detail } => format!("it could not be started: {}", escape_unsafe(detail)),
        EndReason::LaunchTimedOut => "it did not start in time".to_owned(),
        EndReason::Lost => "it was gone when the daemon came back".to_owned(),
    }
}

pub(crate) fn requester(by: StopRequester) -> &'static str {
    match by {
        StopRequester::User => "whoever used it",
        StopRequester::Admin => "an administrator",
        StopRequester::Policy => "the policy",
    }
}

pub(crate) fn reason(reason: &ReasonCode, look: &DisplaySettings) -> String {
    escape_unsafe(&reason.sentence(&look.zone))
}

pub(crate) fn scope(scope: &EntryScope) -> String {
    match scope {
        EntryScope::Everything {} => "everything".to_owned(),
        EntryScope::Entry { entry_id } => entry_id.to_string(),
        EntryScope::Budget { budget_id } => format!("budget {budget_id}"),
    }
}

pub(crate) fn gift(gift: &GrantKind, look: &DisplaySettings) -> String {
    match gift {
        GrantKind::Extra { amount } => format!("{} more", duration(*amount)),
        GrantKind::OpenUntil { until } => format!("open until {}", time(*until, look)),
    }
}

pub(crate) fn request_state(state: &TimeRequestState) -> (TextTone, String) {
    match state {
        TimeRequestState::Asked => (TextTone::Warn, "asked".to_owned()),
        TimeRequestState::Seen => (TextTone::Warn, "seen".to_owned()),
        TimeRequestState::Granted { .. } => (TextTone::Good, "granted".to_owned()),
        TimeRequestState::Denied { why: None } => (TextTone::Bad, "denied".to_owned()),
        TimeRequestState::Denied { why: Some(why) } => {
            (TextTone::Bad, format!("denied: {}", escape_unsafe(why)))
        }
        TimeRequestState::Lapsed => (TextTone::Faint, "lapsed".to_owned()),
    }
}

/// The part of a given id that tells it from others at a glance: `grant-1f2e3d4c`.
pub(crate) fn short_id(id: &str) -> &str {
    let digits = id.find('-').map_or(0, |dash| dash + 1);
    id.get(..digits + 8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn lengths_are_told_in_seconds_only_below_a_minute() {
        let told =
            [0, 1, 999, 1000, 20_000, 60_000, 119_000, 5_400_000].map(|millis| duration(Millis(millis)));
        let expected = [
            "no time",
            "less than a second",
            "less than a second",
            "1 second",
            "20 seconds",
            "1 minute",
            "1 minute",
            "1 hour 30 minutes",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_countdown_is_zero_only_when_time_is_up() {
        let told = [0, 1, 19_000, 725_000, 3_723_000].map(|millis| countdown(Millis(millis)));
        assert_eq!(told, ["0:00", "0:01", "0:19", "12:05", "1:02:03"]);
    }

    #[test]
    fn a_moment_is_as_short_as_it_can_be() {
        let look =
            DisplaySettings { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width: 80 };
        let check = |at: &str, told: &str| assert_eq!(time(at.parse().unwrap(), &look), told);
        check("2026-11-16T10:00:30Z", "10:00:30");
        check("2026-11-16T18:30:00Z", "18:30");
        check("2026-11-17T05:00:00Z", "tomorrow 05:00");
        check("2026-11-15T05:00:00Z", "yesterday 05:00");
        check("2026-11-21T10:00:00Z", "Sat 10:00");
        check("2026-12-24T10:00:00Z", "2026-12-24 10:00");
    }

    #[test]
    fn ids_are_short_but_can_be_typed() {
        assert_eq!(short_id("grant-0123456789abcdef0123456789abcdef"), "grant-01234567");
        assert_eq!(short_id("x"), "x");
    }
}
