//! Reads warnings before the end of a session.

use std::time::Duration;

use shepherd_api::WarningSeverity;
use ward_diag::{
    ConfigFault, InvalidValue, MAX_FAULTS, Spanned, TomlTable, TomlValue, ValueKind, closest, code,
};

use super::key_advice::{self, PolicySection};
use super::{time, values};
use crate::raw::RawWarning;

/// Placeholders that a message can contain.
const PLACEHOLDERS: [&str; 3] = ["remaining", "label", "profile"];

/// Reads the warnings of an entry or of `[defaults]`. An empty list means no warnings.
pub(super) fn read_warnings(table: &mut TomlTable<'_>) -> Option<Vec<RawWarning>> {
    let elements = table.value("warnings")?.elements()?;
    let warnings = values::read_valid(elements, read_warning);
    let mut seen = std::collections::BTreeMap::new();
    for warning in &warnings {
        if let Some(first) = seen.insert(warning.before.value, warning.before.span) {
            table.faults().push(
                ConfigFault::new(
                    code::DUPLICATE,
                    warning.before.span,
                    "there is already a warning at this time",
                )
                .related(first, "the first warning")
                .help("keep one of the two"),
            );
        }
    }
    Some(warnings)
}

/// Reads a warning: a table, or only the time before the end.
fn read_warning(value: TomlValue<'_>) -> Option<RawWarning> {
    let mut table = match value.kind() {
        ValueKind::Text(_) | ValueKind::Integer(_) => {
            let before = read_before(value)?;
            return Some(RawWarning { before, severity: WarningSeverity::Warn, message: None });
        }
        ValueKind::Table => value.table()?,
        _ => {
            let message = "a warning must be a duration or a table";
            let help = "write \"5m\", or `{ before = \"5m\", message = \"Soon!\" }`";
            value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
            return None;
        }
    };
    let before = table.required_with("before", read_before);
    table.help_if_missing("before", "add how long before the end: `before = \"5m\"`");
    let severity = table.optional_with("severity", read_severity).unwrap_or(WarningSeverity::Warn);
    let message = table.optional_with("message", read_template);
    key_advice::finish_table(table, PolicySection::Warning);
    Some(RawWarning { before: before?, severity, message })
}

fn read_before(value: TomlValue<'_>) -> Option<Spanned<Duration>> {
    let before = time::read_nonzero_duration(value)?;
    time::warn_about_seconds(value, time::SHORT_WARNING);
    Some(value.spanned(before))
}

fn read_severity(value: TomlValue<'_>) -> Option<WarningSeverity> {
    value.one_of(&[
        ("info", WarningSeverity::Info),
        ("warn", WarningSeverity::Warn),
        ("critical", WarningSeverity::Critical),
    ])
}

fn read_template(value: TomlValue<'_>) -> Option<String> {
    let text = values::read_label(value)?;
    let faults = template_faults(&text);
    let is_valid = faults.is_empty();
    faults.into_iter().for_each(|fault| value.reject(fault));
    is_valid.then_some(text)
}

/// Returns a fault for each unknown placeholder, and for a brace without its counterpart.
fn template_faults(text: &str) -> Vec<InvalidValue> {
    let listed = "the placeholders are `{remaining}`, `{label}` and `{profile}`";
    let mut faults = Vec::new();
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(['{', '}'])) {
        if faults.len() == MAX_FAULTS {
            break;
        }
        let open = from + found;
        let rest = text.get(open..).unwrap_or_default();
        let Some(length) = rest.find('}').filter(|length| *length > 0) else {
            let message = "this brace has no matching brace";
            faults.push(InvalidValue::new(message).at(open..open + 1).help(format!("remove it; {listed}")));
            if rest.starts_with('{') {
                break;
            }
            from = open + 1;
            continue;
        };
        let name = rest.get(1..length).unwrap_or_default();
        if !PLACEHOLDERS.contains(&name) {
            let shown = values::escape_name(name);
            let help = match closest(name, PLACEHOLDERS) {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => listed.to_owned(),
            };
            let message = format!("unknown placeholder `{{{shown}}}`");
            faults.push(InvalidValue::new(message).at(open..open + length + 1).help(help));
        }
        from = open + length + 1;
    }
    faults
}
