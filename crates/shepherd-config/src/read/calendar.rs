//! Days on which the week does not apply, and the modes of the household.

use shepherd_core::policy::DayRule;
use ward_diag::{ConfigFault, TomlTable, TomlValue, code};

use super::{report_contradiction, time, values, windows};
use crate::raw::{DayRange, RawException, RawModes};

/// The ways to say what applies on such a day.
const RULES: [&str; 4] = ["closed", "open", "windows", "as_on"];

/// Each multiplies what has to be asked when a policy is loaded.
const MAX_MODES: usize = 50;

/// `[modes]`.
pub(super) fn read_modes(mut table: TomlTable<'_>) -> RawModes {
    let faults = table.faults();
    let names = table.required_with("names", |value| {
        let new = |value: TomlValue<'_>| {
            let text = value.non_empty_text()?;
            Some(values::check_new_name(faults, value.spanned(text)))
        };
        let named = values::non_empty_list(value, "name the modes, that of ordinary days first")?;
        let cure = "let several of them share a name, or use `[[exceptions]]` for single days";
        Some(values::read_valid(values::limit_elements(named, MAX_MODES, "modes", cure), new))
    });
    table.help_if_missing(
        "names",
        "list the modes, that of ordinary days first: `names = [\"school\", \"holiday\"]`",
    );
    let default = table.optional_with("default", values::read_name);
    let modes = RawModes {
        // Without names, one more complaint about the usual mode would not help.
        names: names.unwrap_or_else(|| default.iter().cloned().collect()),
        default,
        dates: table.tables("dates").into_iter().filter_map(read_mode_dates).collect(),
    };
    table.finish();
    modes
}

fn read_mode_dates(mut table: TomlTable<'_>) -> Option<(DayRange, crate::raw::SpannedName)> {
    let mode = table.required_with("mode", values::read_name);
    table.help_if_missing("mode", "say which mode applies on these days: `mode = \"holiday\"`");
    let days = read_day_range(&mut table);
    table.finish();
    Some((days?, mode?))
}

/// One of `[[exceptions]]`.
pub(super) fn read_exception(mut table: TomlTable<'_>) -> RawException {
    let exception = RawException {
        label: table.optional_with("label", values::read_label),
        days: read_day_range(&mut table),
        entries: table.optional_with("entries", |value| {
            values::read_names(value, "name an entry, or leave `entries` out: then it is for all")
        }),
        rule: read_day_rule(&mut table),
    };
    table.finish();
    exception
}

/// `on` for a single day, or `from` and `to`.
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
            values::non_empty_list(value, "write `closed = true` if nothing is open")?,
            windows::read_hours_of_day,
        )
    });
    let as_on = table.optional_with("as_on", time::read_weekday);
    if report_contradiction(table, &RULES, "keep one of `closed`, `open`, `windows` and `as_on`") {
        return None;
    }
    if RULES.iter().all(|key| table.key_span(key).is_none()) {
        table.faults().push(
            ConfigFault::new(code::MISSING_KEY, table.span(), "this exception does not say what applies")
                .help("add `closed = true`, `open = true`, `windows = [ … ]` or `as_on = \"sun\"`"),
        );
        return None;
    }
    for (key, said) in [("closed", closed), ("open", open)] {
        if said == Some(false) {
            let span = table.key_span(key).unwrap_or(table.span());
            table.faults().push(
                ConfigFault::new(
                    code::INVALID,
                    span,
                    format!("`{key} = false` does not say what applies instead"),
                )
                .help("write `closed = true`, `open = true`, `windows = [ … ]` or `as_on = \"sun\"`"),
            );
        }
    }
    let closed = closed.filter(|said| *said).map(|_| DayRule::Closed);
    let open = open.filter(|said| *said).map(|_| DayRule::Open);
    closed.or(open).or(windows.map(DayRule::Windows)).or(as_on.map(DayRule::AsOn))
}
