//! What the schema is made of.

use serde_json::{Map, Value, json};

use crate::read::{DAY_GROUPS, WEEKDAYS};

/// A key and what it takes.
pub(super) type SchemaKey = (&'static str, Value);

/// A table, none of whose keys is required.
pub(super) fn object(description: &str, keys: impl IntoIterator<Item = SchemaKey>) -> Value {
    object_with(description, &[], keys)
}

/// A table.
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

/// A table whose keys are names that the file invents.
pub(super) fn map_of(description: &str, each: &Value) -> Value {
    json!({ "description": description, "type": "object", "additionalProperties": each })
}

/// A list.
pub(super) fn list(description: &str, each: &Value) -> Value {
    json!({ "description": description, "type": "array", "items": each })
}

/// Text.
pub(super) fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

/// `true` or `false`.
pub(super) fn boolean(description: &str) -> Value {
    json!({ "description": description, "type": "boolean" })
}

/// One of several words.
pub(super) fn one_of(description: &str, words: &[&str]) -> Value {
    json!({ "description": description, "enum": words })
}

/// One of several forms.
pub(super) fn any_of(description: &str, forms: impl IntoIterator<Item = Value>) -> Value {
    let forms: Vec<Value> = forms.into_iter().collect();
    json!({ "description": description, "anyOf": forms })
}

/// A length of time.
pub(super) fn duration(description: &str) -> Value {
    let written = json!({ "type": "string", "examples": ["45m", "1h30m", "90s"] });
    any_of(description, [written, json!({ "type": "integer", "minimum": 0, "description": "Seconds." })])
}

/// A size.
pub(super) fn size(description: &str) -> Value {
    let written = json!({ "type": "string", "examples": ["512MiB", "2GiB", "unlimited"] });
    any_of(description, [written, json!({ "type": "integer", "minimum": 0, "description": "Bytes." })])
}

/// A whole number of something, or "unlimited".
pub(super) fn count(description: &str) -> Value {
    any_of(description, [json!({ "type": "integer", "minimum": 1 }), json!({ "const": "unlimited" })])
}

/// A quota: a length of time, "none" or "unlimited".
pub(super) fn amount(description: &str) -> Value {
    let written = json!({ "type": "string", "examples": ["45m", "1h30m", "none", "unlimited"] });
    any_of(description, [written, json!({ "type": "integer", "minimum": 1, "description": "Seconds." })])
}

/// A quota for a day, by weekday and by mode.
pub(super) fn quota(description: &str) -> Value {
    let of_mode = any_of("So much in this mode.", [amount("On every day."), object("By day.", days())]);
    let modes = ("modes", map_of("In a mode of the household.", &of_mode));
    let by_day = object("By day, and by mode.", days().into_iter().chain([modes]));
    any_of(description, [amount("On every day."), by_day])
}

fn days() -> Vec<SchemaKey> {
    let groups = DAY_GROUPS.iter().map(|(name, _)| *name);
    groups.chain(WEEKDAYS).map(|day| (day, amount("So much on these days."))).collect()
}

/// From one time of day to another.
pub(super) fn hours() -> [SchemaKey; 2] {
    [
        ("from", text("When it opens, such as \"15:00\".")),
        ("to", text("When it closes, such as \"18:30\"; on the next day if that is before it opens.")),
    ]
}

/// One day, or from one to another.
pub(super) fn days_of_the_calendar() -> [SchemaKey; 3] {
    [
        ("on", text("A single day, such as 2026-12-24.")),
        ("from", text("The first of several days.")),
        ("to", text("The last of several days.")),
    ]
}

/// When something may run.
pub(super) fn availability() -> [SchemaKey; 2] {
    let words: Vec<&str> = DAY_GROUPS.iter().map(|(name, _)| *name).chain(WEEKDAYS).collect();
    let day = json!({ "enum": words });
    let days =
        any_of("On which days. Without it: on all.", [day.clone(), json!({ "type": "array", "items": day })]);
    let modes = list("In which modes of the household. Without it: in all.", &text("A mode."));
    let keys = [("days", days), ("modes", modes)].into_iter().chain(hours());
    let window = object_with("A time of day on some days of the week.", &["from", "to"], keys);
    [("windows", list("When it may run.", &window)), ("always", boolean("It may run at any time."))]
}

/// How long something may run, and when to warn.
pub(super) fn limits() -> [SchemaKey; 6] {
    let warning = object_with(
        "A warning before the end.",
        &["before"],
        [
            ("before", duration("So long before the end.")),
            ("severity", one_of("How loud. Usually \"warn\".", &["info", "warn", "critical"])),
            ("message", text("What to say. {remaining}, {label} and {profile} are filled in.")),
        ],
    );
    [
        ("max_run", duration("The longest run; 0 or \"unlimited\" is without limit.")),
        ("daily_quota", quota("How much a day.")),
        ("weekly_quota", amount("How much a week, from Monday.")),
        ("cooldown_after_run", duration("A pause after each run.")),
        ("min_gap_between_runs", duration("Another name for `cooldown_after_run`.")),
        ("warnings", list("When to warn.", &warning)),
    ]
}
