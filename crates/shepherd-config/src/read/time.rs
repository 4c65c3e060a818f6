//! Reads durations, times of day, weekdays and dates.

mod day_words;

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use shepherd_core::policy::{Day, MinuteOfDay, Weekdays};
use shepherd_util::{DurationError, ExactDuration, MAX_DURATION, parse_duration};
use ward_diag::{InvalidValue, TomlValue, ValueKind, closest, code, date_in_other_notation};

use super::values;
use crate::raw::TimeLimitSetting;
pub(super) use day_words::FULL_NAMES;

/// Names of the weekdays in a policy, Monday first.
pub(crate) const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Names for groups of weekdays.
pub(crate) const DAY_GROUPS: [(&str, Weekdays); 3] =
    [("weekdays", Weekdays::WEEKDAYS), ("weekends", Weekdays::WEEKENDS), ("all", Weekdays::ALL)];

/// Reads a duration: text with units, or whole seconds.
pub(super) fn read_duration(value: TomlValue<'_>) -> Option<Duration> {
    match value.kind() {
        ValueKind::Integer(seconds) if seconds < 0 => {
            reject_duration(value, "can't be negative", "remove the minus sign")
        }
        ValueKind::Integer(seconds) => {
            let duration = u64::try_from(seconds).ok().map(Duration::from_secs);
            duration.filter(|duration| *duration <= MAX_DURATION).or_else(|| {
                reject_duration(
                    value,
                    "is longer than ten years",
                    "write a shorter time, in seconds or like \"45m\"",
                )
            })
        }
        ValueKind::Text(text) => match parse_duration(text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                let message =
                    format!("{} must be a duration such as \"45m\" or \"1h30m\": {error}", value.name());
                value.reject(InvalidValue::new(message).at(error.at.clone()).help(error.help()));
                None
            }
        },
        kind => {
            let message = format!("{} must be a duration", value.name());
            // A TOML time such as `00:30:00` may be meant as a duration.
            let meant = match kind {
                ValueKind::DateTime(written) => parse_duration(written).err(),
                _ => None,
            };
            let help = meant.as_ref().map_or("write it like \"45m\" or \"1h30m\"", DurationError::help);
            value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
            None
        }
    }
}

fn reject_duration<T>(value: TomlValue<'_>, fault: &str, help: &str) -> Option<T> {
    value.reject(InvalidValue::new(format!("{} {fault}", value.name())).help(help));
    None
}

/// Reads a duration that is not zero.
pub(super) fn read_nonzero_duration(value: TomlValue<'_>) -> Option<Duration> {
    let duration = read_duration(value)?;
    if duration.is_zero() {
        return reject_duration(value, "can't be zero", "write a duration such as \"30s\" or \"10m\"");
    }
    Some(duration)
}

/// A bare number of seconds below this is a strange length for play, and probably means minutes.
pub(crate) const SHORT_PLAY: Duration = Duration::from_mins(5);

/// A bare number of seconds below this is a strange time for a warning, and probably means minutes.
pub(super) const SHORT_WARNING: Duration = Duration::from_secs(30);

/// Warns if a duration is a bare number below `usual`, which is in seconds but probably means minutes.
pub(super) fn warn_about_seconds(value: TomlValue<'_>, usual: Duration) {
    let ValueKind::Integer(number) = value.kind() else { return };
    if number < 1 || u64::try_from(number).is_ok_and(|seconds| Duration::from_secs(seconds) >= usual) {
        return;
    }
    let seconds = if number == 1 { "1 second".to_owned() } else { format!("{number} seconds") };
    let message =
        format!("{} is only {seconds}, because a number without a unit is in seconds", value.name());
    value.warn(InvalidValue::new(message).help(format!("write \"{number}m\" for minutes, or \"{number}s\"")));
}

/// Reads a time of play or of a pause: a duration that is not zero and usually takes minutes.
pub(super) fn read_play_time(value: TomlValue<'_>) -> Option<Duration> {
    let duration = read_nonzero_duration(value)?;
    warn_about_seconds(value, SHORT_PLAY);
    Some(duration)
}

/// Rejects a duration above a limit.
pub(super) fn check_at_most(
    value: TomlValue<'_>,
    duration: Duration,
    most: Duration,
    usual: &str,
) -> Option<Duration> {
    if duration <= most {
        return Some(duration);
    }
    let fault = format!("can't be longer than {}", ExactDuration(most));
    reject_duration(value, &fault, &format!("check the unit; a usual value is \"{usual}\""))
}

fn reject_table<T>(value: TomlValue<'_>) -> Option<T> {
    let message = format!("{} must be a duration, and can't differ by day or by mode", value.name());
    let help = "write it like \"45m\"; only `daily_quota`, and `daily` of a budget, can be a table";
    value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
    None
}

/// Reads the longest run; 0 and "unlimited" mean no limit (S2.4).
pub(super) fn read_max_run(value: TomlValue<'_>) -> Option<TimeLimitSetting> {
    match value.kind() {
        ValueKind::Text("unlimited") | ValueKind::Integer(0) => Some(TimeLimitSetting::Unlimited),
        ValueKind::Text("none") => reject_duration(
            value,
            "can't be \"none\"",
            "write `disabled = true` if it must not run, or \"unlimited\"",
        ),
        ValueKind::Table => reject_table(value),
        _ => {
            let longest = read_duration(value)?;
            warn_about_seconds(value, SHORT_PLAY);
            Some(if longest.is_zero() {
                TimeLimitSetting::Unlimited
            } else {
                TimeLimitSetting::Limited(longest)
            })
        }
    }
}

/// Reads a quota. Zero is rejected, because it could mean no time or no limit.
pub(super) fn read_amount(value: TomlValue<'_>) -> Option<TimeLimitSetting> {
    match value.kind() {
        ValueKind::Text("unlimited") => Some(TimeLimitSetting::Unlimited),
        ValueKind::Text("none") => Some(TimeLimitSetting::Limited(Duration::ZERO)),
        ValueKind::Table => reject_table(value),
        ValueKind::Text("0") => reject_zero_amount(value),
        _ => {
            let amount = read_duration(value)?;
            warn_about_seconds(value, SHORT_PLAY);
            if amount.is_zero() {
                return reject_zero_amount(value);
            }
            Some(TimeLimitSetting::Limited(amount))
        }
    }
}

fn reject_zero_amount<T>(value: TomlValue<'_>) -> Option<T> {
    let help = "write \"none\" for no time, or \"unlimited\"";
    reject_duration(value, "is zero, which could mean no time or no limit", help)
}

/// Reads a time of day from `00:00` to `24:00`.
pub(super) fn read_time_of_day(value: TomlValue<'_>) -> Option<MinuteOfDay> {
    let written = match value.kind() {
        // A TOML time without quotes has seconds.
        ValueKind::DateTime(text) if text.len() == 8 => text.strip_suffix(":00").unwrap_or(text),
        ValueKind::DateTime(text) | ValueKind::Text(text) => text,
        _ => "",
    };
    if let Ok(time) = parse_time_of_day(written) {
        return Some(time);
    }
    let meant = match value.kind() {
        ValueKind::Integer(hour) => suggest_time(&hour.to_string()),
        // A number such as 15.30 is meant as a time.
        ValueKind::Float(_) => suggest_time(&value.quoted()),
        _ => suggest_time(written),
    };
    let help = meant.map_or_else(
        || "write hours and minutes, from \"00:00\" to \"24:00\"".to_owned(),
        |time| format!("write \"{time}\""),
    );
    let message = format!("{} is not a time of day: {}", value.name(), value.quoted());
    value.reject(InvalidValue::new(message).help(help));
    None
}

/// Returns the time that is meant by other notations, such as `3pm`, `15.30`, `15h`, `15 Uhr`, `1530` or `15`.
pub(super) fn suggest_time(written: &str) -> Option<String> {
    let text = written.trim().to_ascii_lowercase();
    let halves = [("am", 0), ("pm", 12)];
    let half = halves.iter().find_map(|(suffix, hours)| Some((text.strip_suffix(suffix)?, *hours)));
    let digits = half.map_or(text.as_str(), |(digits, _)| digits).trim();
    let digits = ["uhr", "o'clock", "h"].iter().find_map(|word| digits.strip_suffix(word)).unwrap_or(digits);
    let digits = digits.trim_end();
    let (hour, minute) = match digits.split_once([':', '.', 'h']) {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "00"),
    };
    if minute.len() != 2 {
        return None;
    }
    let (hour, minute) = (hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?);
    let hour = match half {
        Some((_, hours)) if (1..=12).contains(&hour) => hour % 12 + hours,
        Some(_) => return None,
        None => hour,
    };
    (hour < 24 && minute < 60).then(|| format!("{hour:02}:{minute:02}"))
}

/// Parses hours and minutes; the hour can have one digit.
pub(crate) fn parse_time_of_day(text: &str) -> Result<MinuteOfDay, ()> {
    let (hour, minute) = text.split_once(':').ok_or(())?;
    let number = |digits: &str| {
        let plain = matches!(digits.len(), 1 | 2) && digits.bytes().all(|digit| digit.is_ascii_digit());
        if plain { digits.parse::<u16>().map_err(|_| ()) } else { Err(()) }
    };
    if minute.len() != 2 {
        return Err(());
    }
    MinuteOfDay::new(number(hour)?, number(minute)?).ok_or(())
}

/// Reads weekdays: `"weekdays"`, `"sat"`, or a list of such words.
pub(super) fn read_days(value: TomlValue<'_>) -> Option<Weekdays> {
    match value.kind() {
        ValueKind::Array => {
            let groups = values::read_all(
                values::non_empty_list(value, "name a day, or remove `days` for every day")?,
                read_day_group,
            )?;
            let all = (0..7).filter(|day| groups.iter().any(|group| group.contains(*day)));
            Some(all.fold(Weekdays::default(), Weekdays::with))
        }
        _ => read_day_group(value),
    }
}

fn read_day_group(value: TomlValue<'_>) -> Option<Weekdays> {
    let ValueKind::Text(text) = value.kind() else {
        let message = format!("{} must be days of the week", value.name());
        let help = "write \"weekdays\", \"weekends\", \"all\" or a list such as [\"mon\", \"fri\"]";
        value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
        return None;
    };
    let day = parse_weekday(text).map(|day| Weekdays::default().with(day));
    let group = || DAY_GROUPS.iter().find(|(name, _)| *name == text).map(|(_, days)| *days);
    if let Some(days) = day.or_else(group) {
        return Some(days);
    }
    value.reject(unknown_day(text, DAY_GROUPS.iter().map(|(name, _)| *name)));
    None
}

/// Reads a weekday; 0 is Monday.
pub(super) fn read_weekday(value: TomlValue<'_>) -> Option<usize> {
    let text = value.text()?;
    let day = parse_weekday(text);
    if day.is_none() {
        value.reject(unknown_day(text, []));
    }
    day
}

/// Parses a weekday; 0 is Monday.
pub(crate) fn parse_weekday(text: &str) -> Option<usize> {
    WEEKDAYS.iter().position(|day| *day == text)
}

/// Returns the fault for an unknown day, with a suggestion.
pub(super) fn unknown_day<'w>(text: &str, groups: impl IntoIterator<Item = &'w str>) -> InvalidValue {
    let lower = text.to_lowercase();
    let groups: Vec<&str> = groups.into_iter().collect();
    let near = day_words::single(&lower)
        .filter(|day| WEEKDAYS.contains(day) || groups.contains(day))
        .or_else(|| closest(&lower, WEEKDAYS.into_iter().chain(groups.iter().copied())));
    let several = day_words::several(&lower).filter(|_| near.is_none() && !groups.is_empty());
    let also = groups.iter().map(|name| format!(", `{name}`")).collect::<String>();
    let known = format!("days are `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`{also}");
    let message = format!("unknown day `{}`", values::escape_name(text));
    InvalidValue::new(message).code(code::NOT_ALLOWED).help(match (near, several) {
        (Some(near), _) => format!("did you mean `{near}`? The {known}"),
        (None, Some(days)) => {
            let quoted: Vec<String> = days.iter().map(|day| format!("\"{day}\"")).collect();
            format!("write each day in quotes of its own: `[{}]`", quoted.join(", "))
        }
        (None, None) => format!("the {known}"),
    })
}

/// Reads a date such as `2026-12-24`, with or without quotes.
pub(super) fn read_date(value: TomlValue<'_>) -> Option<Day> {
    let written = match value.kind() {
        ValueKind::DateTime(text) | ValueKind::Text(text) => text,
        _ => "",
    };
    if let Some(day) = parse_date(written) {
        return Some(day);
    }
    let message = format!("{} is not a date: {}", value.name(), value.quoted());
    let help = match value.kind() {
        ValueKind::Array => {
            "write such a table for each day, or `from` and `to` instead of `on` for days in a row".to_owned()
        }
        _ => date_in_other_notation(written).map_or_else(
            || "write year, month and day, such as 2026-12-24".to_owned(),
            |date| format!("write year, month and day: {date}"),
        ),
    };
    value.reject(InvalidValue::new(message).help(help));
    None
}

/// Parses a date of the form `YYYY-MM-DD`.
pub(crate) fn parse_date(text: &str) -> Option<Day> {
    let plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if !plain {
        return None;
    }
    text.parse::<Date>().ok().map(Day::from_date)
}

/// Reads a time zone by its name in the system's database.
pub(super) fn read_zone(value: TomlValue<'_>) -> Option<TimeZone> {
    let name = value.non_empty_text()?;
    if let Ok(zone) = TimeZone::get(name) {
        return Some(zone);
    }
    let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let help = match closest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => {
            "this machine has no time zone database; install the package `tzdata`".to_owned()
        }
        None => {
            "write continent and city, such as \"Europe/Berlin\", or remove it to use the machine's time zone"
                .to_owned()
        }
    };
    let shown = values::escape_name(name);
    value.reject(
        InvalidValue::new(format!("unknown time zone `{shown}`")).code(code::UNKNOWN_NAME).help(help),
    );
    None
}
