//! Reads `[modes]` and `[[exceptions]]`.

use shepherd_core::policy::DayRule;
use ward_diag::{ConfigFault, TomlTable, TomlValue, code};

use super::key_advice::{self, PolicySection};
use super::{report_contradiction, time, values, windows};
use crate::raw::{DayRange, RawException, RawModes};

/// Keys that set the rule of an exception.
const RULES: [&str; 4] = ["closed", "open", "windows", "as_on"];

/// Limit on modes, because each one adds work when a policy is loaded.
const MAX_MODES: usize = 50;

/// Reads the table `[modes]`.
pub(super) fn read_modes(mut table: TomlTable<'_>) -> RawModes {
    let faults = table.faults();
    let names = table.required_with("names", |value| {
        let new = |value: TomlValue<'_>| {
            let text = value.non_empty_text()?;
            Some(values::check_new_name(faults, value.spanned(text)))
        };
        let named = values::non_empty_list(value, "list the modes, starting with the one of ordinary days")?;
        let help = "combine some of them, or use `[[exceptions]]` for single days";
        Some(values::read_valid(values::limit_elements(named, MAX_MODES, "modes", help), new))
    });
    table.help_if_missing(
        "names",
        "list the modes, starting with the one of ordinary days: `names = [\"school\", \"holiday\"]`",
    );
    let default = table.optional_with("default", values::read_name);
    let modes = RawModes {
        // Avoids a second fault about the default mode if the names are missing.
        names: names.unwrap_or_else(|| default.iter().cloned().collect()),
        default,
        dates: table
            .tables_or_help("dates", key_advice::WRITE_MODE_DATES)
            .into_iter()
            .filter_map(read_mode_dates)
            .collect(),
    };
    key_advice::finish_table(table, PolicySection::Modes);
    modes
}

fn read_mode_dates(mut table: TomlTable<'_>) -> Option<(DayRange, crate::raw::SpannedName)> {
    let mode = table.required_with("mode", values::read_name);
    table.help_if_missing("mode", "add the mode of these days: `mode = \"holiday\"`");
    let days = read_day_range(&mut table);
    key_advice::finish_table(table, PolicySection::ModeDates);
    Some((days?, mode?))
}

/// Reads an element of `[[exceptions]]`.
pub(super) fn read_exception(mut table: TomlTable<'_>) -> RawException {
    let exception = RawException {
        label: table.optional_with("label", values::read_label),
        days: read_day_range(&mut table),
        entries: table.optional_with("entries", |value| {
            values::read_names(value, "name an entry, or remove `entries` for all entries")
        }),
        rule: read_day_rule(&mut table),
    };
    key_advice::finish_table(table, PolicySection::Exception);
    exception
}

/// Reads `on` for a single day, or `from` and `to` for several days.
fn read_day_range(table: &mut TomlTable<'_>) -> Option<DayRange> {
    let on = table.optional_with("on", time::read_date);
    let help = "use `on` for a single day, or `from` and `to` for several";
    let mixed = ["from", "to"].iter().any(|key| report_contradiction(table, &["on", key], help));
    if table.key_span("on").is_some() {
        let _ = (table.optional_with("from", time::read_date), table.optional_with("to", time::read_date));
        return on.filter(|_| !mixed).map(|day| DayRange { from: day, to: day });
    }
    let from = table.required_with("from", time::read_date);
    table
        .help_if_missing("from", "add the first day, `from = 2026-12-23`; a single day is `on = 2026-12-24`");
    let to = table.required_with("to", time::read_date);
    table.help_if_missing("to", "add the last day, `to = 2027-01-06`; a single day is `on = 2026-12-24`");
    let (from, to) = (from?, to?);
    if from > to {
        let span = table.key_span("to").unwrap_or(table.span());
        table.faults().push(
            ConfigFault::new(code::INVALID, span, format!("the last day, {to}, is before the first, {from}"))
                .related(table.key_span("from").unwrap_or_default(), "the first day")
                .help("`from` is the first day and `to` the last; check the year"),
        );
        return None;
    }
    Some(DayRange { from, to })
}

fn read_day_rule(table: &mut TomlTable<'_>) -> Option<DayRule> {
    let closed = table.optional_with("closed", TomlValue::boolean);
    let open = table.optional_with("open", TomlValue::boolean);
    let windows = table.optional_with("windows", |value| {
        values::read_all(
            values::non_empty_list(value, "add a window, or write `closed = true`")?,
            windows::read_hours_of_day,
        )
    });
    let as_on = table.optional_with("as_on", time::read_weekday);
    if report_contradiction(table, &RULES, "keep one of `closed`, `open`, `windows` and `as_on`") {
        return None;
    }
    if RULES.iter().all(|key| table.key_span(key).is_none()) {
        table.faults().push(
            ConfigFault::new(code::MISSING_KEY, table.span(), "this exception has no rule")
                .help("add `closed = true`, `open = true`, `windows = [ … ]` or `as_on = \"sun\"`"),
        );
        return None;
    }
    for (key, value) in [("closed", closed), ("open", open)] {
        if value == Some(false) {
            let span = table.key_span(key).unwrap_or(table.span());
            table.faults().push(
                ConfigFault::new(
                    code::INVALID,
                    span,
                    format!("`{key} = false` does not set a rule for the day"),
                )
                .help("write `closed = true`, `open = true`, `windows = [ … ]` or `as_on = \"sun\"`"),
            );
        }
    }
    let closed = closed.filter(|value| *value).map(|_| DayRule::Closed);
    let open = open.filter(|value| *value).map(|_| DayRule::Open);
    closed.or(open).or(windows.map(DayRule::Windows)).or(as_on.map(DayRule::AsOn))
}
