//! Reads warnings before the end of a session.

use shepherd_api::WarningSeverity;
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, closest, code};

use super::{time, values};
use crate::raw::RawWarning;

/// Placeholders that a message can contain.
const PLACEHOLDERS: [&str; 3] = ["remaining", "label", "profile"];

/// Reads the warnings of an entry or of `[defaults]`. An empty list means no warnings.
pub(super) fn read_warnings(table: &mut TomlTable<'_>) -> Option<Vec<RawWarning>> {
    let elements = table.value("warnings")?.elements()?;
    let warnings = values::read_valid(elements, |element| read_warning(element.table()?));
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

fn read_warning(mut table: TomlTable<'_>) -> Option<RawWarning> {
    let before = table.required_with("before", |value| {
        time::read_nonzero_duration(value).map(|before| value.spanned(before))
    });
    table.help_if_missing("before", "add how long before the end: `before = \"5m\"`");
    let severity = table.optional_with("severity", read_severity).unwrap_or(WarningSeverity::Warn);
    let message = table.optional_with("message", read_template);
    table.finish();
    Some(RawWarning { before: before?, severity, message })
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
    match check_template(&text) {
        Ok(()) => Some(text),
        Err(invalid) => {
            value.reject(invalid);
            None
        }
    }
}

fn check_template(text: &str) -> Result<(), InvalidValue> {
    let listed = "the placeholders are `{remaining}`, `{label}` and `{profile}`";
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(['{', '}'])) {
        let open = from + found;
        let rest = text.get(open..).unwrap_or_default();
        let Some(length) = rest.find('}').filter(|length| *length > 0) else {
            let message = "this brace has no matching brace";
            return Err(InvalidValue::new(message).at(open..open + 1).help(format!("remove it; {listed}")));
        };
        let name = rest.get(1..length).unwrap_or_default();
        if !PLACEHOLDERS.contains(&name) {
            let shown = values::escape_name(name);
            let help = match closest(name, PLACEHOLDERS) {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => listed.to_owned(),
            };
            let message = format!("unknown placeholder `{{{shown}}}`");
            return Err(InvalidValue::new(message).at(open..open + length + 1).help(help));
        }
        from = open + length + 1;
    }
    Ok(())
}
