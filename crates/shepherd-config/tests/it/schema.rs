//! The schema for editors (S7.4) matches the checked-in file and the loader.

use std::collections::BTreeSet;

use serde_json::Value;
use shepherd_config::{json_schema, load};

use crate::fixture;

#[test]
fn the_checked_in_schema_is_the_one_of_the_program() {
    let mut current = serde_json::to_string_pretty(&json_schema()).unwrap();
    current.push('\n');
    fixture::assert_snapshot("../../policies/policy.schema.json", &current);
}

#[test]
fn the_example_policies_fit_the_schema() {
    for name in ["all-keys.toml", "family.toml", "minimal.toml", "starter.toml"] {
        let policy = as_json(&fixture::text(&format!("../../policies/{name}")));
        assert_eq!(schema_mismatch(&policy, &json_schema(), name), None);
    }
}

#[test]
fn a_misspelt_key_and_a_wrong_type_do_not_fit_the_schema() {
    let schema = json_schema();
    for text in [
        "config_version = 1\ntime_zone = \"Europe/Berlin\"",
        "config_version = 2",
        "",
        "config_version = 1\n[budgets.games]\ndaily = { friday = \"1h\" }",
        "config_version = 1\n[[entries]]\nid = \"x\"\nwindows = [{ from = \"15:00\" }]",
        "config_version = 1\nsuspended_time = \"half\"",
    ] {
        assert!(schema_mismatch(&as_json(text), &schema, "policy").is_some(), "{text}");
    }
}

#[test]
fn the_reference_policy_shows_every_key_of_the_schema() {
    let mut in_schema = BTreeSet::new();
    keys_of_schema(&json_schema(), "", &mut in_schema);
    let mut in_policy = BTreeSet::new();
    keys_of_policy(
        &as_json(&fixture::text("../../policies/all-keys.toml")),
        &json_schema(),
        "",
        &mut in_policy,
    );
    // Some keys have alternatives, of which the example policy shows one.
    let day = |key: &&String| {
        ["mon", "tue", "wed", "thu", "fri", "sat", "sun", "all", "weekdays", "weekends"]
            .contains(&last_segment(key))
    };
    let other_ways = |key: &&String| {
        key.starts_with("/entries[]/args/")
            || key.starts_with("/entries[]/payload/")
            || *key == "/compositor/start"
            || *key == "/compositor/user"
    };
    let missing: Vec<&String> =
        in_schema.difference(&in_policy).filter(|key| !day(key) && !other_ways(key)).collect();
    let of_defaults = |key: &&&String| key.starts_with("/defaults/");
    assert_eq!(missing.iter().filter(|key| !of_defaults(key)).collect::<Vec<_>>(), Vec::<&&String>::new());
}

#[test]
fn the_loader_knows_every_key_of_the_schema() {
    let mut keys = BTreeSet::new();
    keys_of_schema(&json_schema(), "", &mut keys);
    assert!(keys.len() > 100, "{}", keys.len());
    for key in keys.iter().filter(|key| *key != "/config_version") {
        let policy = format!("config_version = 1\n{}", with_key(key));
        let Err(report) = load("policy.toml", &policy) else { continue };
        let unknown = report.faults().iter().any(|fault| fault.message().starts_with("unknown key"));
        assert!(!unknown, "{policy}\n{report}");
    }
}

pub(crate) fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns a line that sets a key such as `/entries[]/unlock/entry` to a value, valid or not.
fn with_key(path: &str) -> String {
    let mut steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let first = steps.remove(0);
    let value = steps.iter().rev().fold("7".to_owned(), |value, step| {
        let (name, value) = match step.strip_suffix("[]") {
            Some(name) => (name, if value == "7" { value } else { format!("[{value}]") }),
            None => (*step, value),
        };
        format!("{{ {} = {value} }}", name.replace('*', "x"))
    });
    match first.strip_suffix("[]") {
        Some(name) if value != "7" => format!("{name} = [{value}]"),
        Some(name) => format!("{name} = {value}"),
        None => format!("{first} = {value}"),
    }
}

/// Collects the paths of all keys; `*` stands for a name chosen in the policy, `[]` for an element of a list.
pub(crate) fn keys_of_schema(schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        keys.insert(format!("{path}/{key}"));
        keys_of_schema(inner, &format!("{path}/{key}"), keys);
    }
    if schema["additionalProperties"].is_object() {
        keys_of_schema(&schema["additionalProperties"], &format!("{path}/*"), keys);
    }
    if schema["items"].is_object() {
        keys_of_schema(&schema["items"], &format!("{path}[]"), keys);
    }
    for form in schema["anyOf"].as_array().into_iter().flatten() {
        keys_of_schema(form, path, keys);
    }
}

/// Collects the paths of all keys of a policy, in the notation of [`keys_of_schema`].
fn keys_of_policy(value: &Value, schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
    for form in schema["anyOf"].as_array().into_iter().flatten() {
        keys_of_policy(value, form, path, keys);
    }
    for element in value.as_array().into_iter().flatten() {
        keys_of_policy(element, &schema["items"], &format!("{path}[]"), keys);
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][key];
        if known.is_object() {
            keys.insert(format!("{path}/{key}"));
            keys_of_policy(inner, known, &format!("{path}/{key}"), keys);
        } else if schema["additionalProperties"].is_object() {
            keys_of_policy(inner, &schema["additionalProperties"], &format!("{path}/*"), keys);
        }
    }
}

pub(crate) fn as_json(text: &str) -> Value {
    fn convert(value: toml::Value) -> Value {
        match value {
            toml::Value::String(text) => text.into(),
            toml::Value::Integer(number) => number.into(),
            toml::Value::Float(number) => number.into(),
            toml::Value::Boolean(flag) => flag.into(),
            toml::Value::Datetime(date) => date.to_string().into(),
            toml::Value::Array(elements) => elements.into_iter().map(convert).collect(),
            toml::Value::Table(table) => {
                Value::Object(table.into_iter().map(|(key, value)| (key, convert(value))).collect())
            }
        }
    }
    convert(toml::Value::Table(toml::from_str(text).unwrap()))
}

/// Returns the first place where a value does not match a schema. Supports the parts of JSON Schema that ours uses.
pub(crate) fn schema_mismatch(value: &Value, schema: &Value, path: &str) -> Option<String> {
    let fits_type = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() && value.as_i64() >= schema["minimum"].as_i64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("unknown type {other}"),
        None => true,
    };
    let allowed = schema["enum"].as_array().is_none_or(|words| words.contains(value));
    if !fits_type || !allowed || schema.get("const").is_some_and(|only| only != value) {
        return Some(format!("{path}: {value}"));
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        let misfits: Vec<_> = forms.iter().map(|form| schema_mismatch(value, form, path)).collect();
        if misfits.iter().all(Option::is_some) {
            return misfits.into_iter().next_back().flatten();
        }
    }
    for (index, element) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(found) = schema_mismatch(element, &schema["items"], &format!("{path}[{index}]")) {
            return Some(found);
        }
    }
    let table = value.as_object()?;
    for required in schema["required"].as_array().into_iter().flatten() {
        if !table.contains_key(required.as_str().unwrap()) {
            return Some(format!("{path}: {required} is missing"));
        }
    }
    table.iter().find_map(|(key, inner)| {
        let path = format!("{path}/{key}");
        let known = &schema["properties"][key];
        match &schema["additionalProperties"] {
            _ if known.is_object() => schema_mismatch(inner, known, &path),
            Value::Bool(false) => Some(format!("{path}: unknown")),
            others => schema_mismatch(inner, others, &path),
        }
    })
}
