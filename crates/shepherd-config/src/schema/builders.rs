//! Builders for parts of the schema.

use serde_json::{Map, Value, json};

use crate::read::{DAY_GROUPS, WEEKDAYS};

/// A key and the schema of its value.
pub(super) type SchemaKey = (&'static str, Value);

/// Returns the schema of a table without required keys.
pub(super) fn object(description: &str, keys: impl IntoIterator<Item = SchemaKey>) -> Value {
    object_with(description, &[], keys)
}

/// Returns the schema of a table.
pub(super) fn object_with(
    description: &str,
    required: &[&str],
    keys: impl IntoIterator<Item = SchemaKey>,
) -> Value {
    let properties: Map<String, Value> =
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    json!({
        "description": description,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the schema of a table whose keys are names chosen in the policy.
pub(super) fn map_of(description: &str, each: &Value) -> Value {
    json!({ "description": description, "type": "object", "additionalProperties": each })
}

pub(super) fn list(description: &str, each: &Value) -> Value {
    json!({ "description": description, "type": "array", "items": each })
}

pub(super) fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

pub(super) fn boolean(description: &str) -> Value {
    json!({ "description": description, "type": "boolean" })
}

pub(super) fn one_of(description: &str, words: &[&str]) -> Value {
    json!({ "description": description, "enum": words })
}

/// Returns the schema of a value that can have several forms.
pub(super) fn any_of(description: &str, forms: impl IntoIterator<Item = Value>) -> Value {
    let forms: Vec<Value> = forms.into_iter().collect();
    json!({ "description": description, "anyOf": forms })
}

pub(super) fn duration(description: &str) -> Value {
    let written = json!({ "type": "string", "examples": ["45m", "1h30m", "90s"] });
    any_of(description, [written, json!({ "type": "integer", "minimum": 0, "description": "Seconds." })])
}

pub(super) fn size(description: &str) -> Value {
    let written = json!({ "type": "string", "examples": ["512MiB", "2GiB", "unlimited"] });
    any_of(description, [written, json!({ "type": "integer", "minimum": 0, "description": "Bytes." })])
}

/// Returns the schema of a whole number, or "unlimited".
pub(super) fn count(description: &str) -> Value {
    any_of(description, [json!({ "type": "integer", "minimum": 1 }), json!({ "const": "unlimited" })])
}

/// Returns the schema of an amount: a duration, "none" or "unlimited".
pub(super) fn amount(description: &str) -> Value {
    let written = json!({ "type": "string", "examples": ["45m", "1h30m", "none", "unlimited"] });
    any_of(description, [written, json!({ "type": "integer", "minimum": 1, "description": "Seconds." })])
}

/// Returns the schema of a daily quota, by weekday and by mode.
pub(super) fn quota(description: &str) -> Value {
    let mode_amount =
        any_of("Time per day in this mode.", [amount("Same time on every day."), object("By day.", days())]);
    let modes = ("modes", map_of("Other times in a mode of the household.", &mode_amount));
    let by_day = object("By day and by mode.", days().into_iter().chain([modes]));
    any_of(description, [amount("Same time on every day."), by_day])
}

fn days() -> Vec<SchemaKey> {
    let groups = DAY_GROUPS.iter().map(|(name, _)| *name);
    groups.chain(WEEKDAYS).map(|day| (day, amount("Time on these days."))).collect()
}

/// Returns the keys of a range of hours.
pub(super) fn hours() -> [SchemaKey; 2] {
    [
        ("from", text("Opening time, such as \"15:00\".")),
        (
            "to",
            text("Closing time, such as \"18:30\". If it is before the opening time, it is on the next day."),
        ),
    ]
}

/// Returns the keys of a single day or a range of days.
pub(super) fn days_of_the_calendar() -> [SchemaKey; 3] {
    [
        ("on", text("Single day, such as 2026-12-24.")),
        ("from", text("First day of a range.")),
        ("to", text("Last day of a range.")),
    ]
}

/// Returns the keys for the hours of an entry.
pub(super) fn availability() -> [SchemaKey; 2] {
    let words: Vec<&str> = DAY_GROUPS.iter().map(|(name, _)| *name).chain(WEEKDAYS).collect();
    let day = json!({ "enum": words });
    let days = any_of(
        "Days of the window. Default: all days.",
        [day.clone(), json!({ "type": "array", "items": day })],
    );
    let modes =
        list("Modes of the household in which the window applies. Default: all modes.", &text("A mode."));
    let keys = [("days", days), ("modes", modes)].into_iter().chain(hours());
    let window = object_with("Range of hours on some days of the week.", &["from", "to"], keys);
    [
        ("windows", list("Hours in which the entry may run.", &window)),
        ("always", boolean("The entry may run at any time.")),
    ]
}

/// Returns the keys for limits and warnings.
pub(super) fn limits() -> [SchemaKey; 7] {
    let warning = object_with(
        "Warning before the end of a session.",
        &["before"],
        [
            ("before", duration("Time before the end.")),
            ("severity", one_of("Severity. Default: \"warn\".", &["info", "warn", "critical"])),
            ("message", text("Message. The placeholders are {remaining}, {label} and {profile}.")),
        ],
    );
    [
        ("max_run", duration("Longest single run. 0 or \"unlimited\" means no limit.")),
        ("daily_quota", quota("Time per day.")),
        ("weekly_quota", amount("Time per week, from Monday.")),
        ("cooldown_after_run", duration("Pause after each run.")),
        (
            "crash_within",
            duration(
                "A program that crashes within this time causes no pause. Default: \"10s\"; with 0, every crash causes one.",
            ),
        ),
        ("min_gap_between_runs", duration("Another name for `cooldown_after_run`.")),
        (
            "warnings",
            list(
                "Warnings before the end.",
                &any_of("A warning, or only its time.", [duration("Time before the end."), warning]),
            ),
        ),
    ]
}
