//! Reads windows and `always`.

use std::time::Duration;

use shepherd_core::policy::{MinuteOfDay, Weekdays};
use shepherd_util::ExactDuration;
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::key_advice::{self, PolicySection};
use super::{report_contradiction, time, values};
use crate::raw::{RawAvailability, RawWindow};

const MINUTES_PER_DAY: u16 = 1440;

/// Least time that a window past midnight must be closed. With less, its times are probably swapped.
const LEAST_CLOSED: u16 = MINUTES_PER_DAY / 2;

/// Reads `windows` or `always`, if the table has them.
pub(super) fn read_availability(table: &mut TomlTable<'_>) -> RawAvailability {
    let windows_value = table.value("windows");
    let always = table.optional_with("always", TomlValue::boolean);
    let help = "keep `windows` for certain hours, or `always = true` for all";
    if report_contradiction(table, &["windows", "always"], help) {
        let _ = windows_value.map(read_windows);
        return RawAvailability::Unreadable;
    }
    match (windows_value, always) {
        (Some(value), _) => read_windows(value).map_or(RawAvailability::Unreadable, RawAvailability::Windows),
        (None, Some(true)) => RawAvailability::Always,
        (None, Some(false)) => {
            let span = table.key_span("always").unwrap_or(table.span());
            table.faults().push(
                ConfigFault::new(code::INVALID, span, "`always = false` does not say when the entry may run")
                    .help("write `windows = [ … ]` instead, or `disabled = true` if the entry must not run"),
            );
            RawAvailability::Unreadable
        }
        (None, None) if table.key_span("always").is_some() => RawAvailability::Unreadable,
        (None, None) => RawAvailability::Unspecified,
    }
}

fn read_windows(value: TomlValue<'_>) -> Option<Vec<RawWindow>> {
    if let ValueKind::Text(text) = value.kind() {
        let message = "`windows` must be a list of tables, but this is text";
        let help = format!("write `windows = [{}]`", suggest_window(text));
        value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
        return None;
    }
    let if_empty = "add a window, such as `{ days = \"all\", from = \"15:00\", to = \"18:00\" }`, or write `always = true`";
    values::read_all(values::non_empty_list(value, if_empty)?, |element| match element.kind() {
        ValueKind::Text(text) => {
            let help = format!("write `{}`, without quotes around it", suggest_window(text));
            let message = "a window must be a table, but this is text";
            element.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
            None
        }
        _ => read_window(element.inline_table(&suggest_window(""))?),
    })
}

/// Returns the window that is meant by a text such as `15:00-18:00`, or an example.
fn suggest_window(text: &str) -> String {
    let (from, to) = suggest_hours(text).unwrap_or(("15:00".to_owned(), "18:00".to_owned()));
    format!("{{ from = \"{from}\", to = \"{to}\" }}")
}

/// Returns the hours that are meant by other notations, such as `8pm to 7am`.
pub(super) fn suggest_hours(text: &str) -> Option<(String, String)> {
    let (from, to) = ["-", "–", "to"].iter().find_map(|between| text.split_once(between))?;
    Some((time::suggest_time(from)?, time::suggest_time(to)?))
}

fn read_window(mut table: TomlTable<'_>) -> Option<RawWindow> {
    let days = table.optional_with("days", time::read_days).unwrap_or(Weekdays::ALL);
    let hours = read_hours(&mut table);
    let modes = table.optional_with("modes", |value| {
        values::read_names(value, "name a mode, or remove `modes` for all modes")
    });
    key_advice::finish_table(table, PolicySection::Window);
    let (start, end) = hours?;
    Some(RawWindow { days, start, end, modes })
}

/// Reads a window of a single day.
pub(super) fn read_hours_of_day(value: TomlValue<'_>) -> Option<(MinuteOfDay, MinuteOfDay)> {
    let text = if let ValueKind::Text(text) = value.kind() { text } else { "" };
    let mut table = value.inline_table(&suggest_window(text))?;
    let hours = read_hours(&mut table);
    key_advice::finish_table(table, PolicySection::Window);
    hours
}

fn read_hours(table: &mut TomlTable<'_>) -> Option<(MinuteOfDay, MinuteOfDay)> {
    let start = table.required_with("from", time::read_time_of_day);
    table.help_if_missing("from", "add the opening time: `from = \"15:00\"`");
    let end = table.required_with("to", time::read_time_of_day);
    table.help_if_missing("to", "add the closing time: `to = \"18:30\"`");
    let (start, end) = (start?, end?);
    let span = table.span();
    if start == MinuteOfDay::END {
        table.faults().push(
            ConfigFault::new(code::INVALID, span, "this window opens at 24:00, when the day is already over")
                .help("write `from = \"00:00\"` on the day after"),
        );
        return None;
    }
    if start == end {
        let help = if start.minutes() == 0 {
            "write `to = \"24:00\"` for the whole day"
        } else {
            "write two different times; `from = \"00:00\", to = \"24:00\"` is the whole day"
        };
        let message = format!("this window is empty: it opens and closes at {start}");
        table.faults().push(ConfigFault::new("empty-window", span, message).help(help));
        return None;
    }
    // A window that closes at 00:00 ends with its own day.
    if start > end && end.minutes() != 0 && start.minutes() - end.minutes() < LEAST_CLOSED {
        let open = ExactDuration(Duration::from_mins(u64::from(
            MINUTES_PER_DAY - (start.minutes() - end.minutes()),
        )));
        let message = format!("this window closes before it opens, so it lasts {open}, past midnight");
        let help = format!(
            "write `from = \"{end}\", to = \"{start}\"`; if it should be this long, write two windows: \
             `from = \"{start}\", to = \"24:00\"`, and `from = \"00:00\", to = \"{end}\"` on the day after"
        );
        table.faults().push(ConfigFault::new(code::INVALID, span, message).help(help));
        return None;
    }
    Some((start, end))
}
