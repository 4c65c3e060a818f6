//! Values generated from the schema: every allowed value can be read, and is written in the same form.

use std::fmt::Debug;

use jiff::Timestamp;
use jiff::civil::Date;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::schema;

/// Returns values of a type of the protocol.
pub(crate) fn values_of(type_name: &str) -> BoxedStrategy<Value> {
    let schema = schema::protocol_schema();
    let definition = schema["$defs"].get(type_name).unwrap_or_else(|| panic!("no schema of {type_name}"));
    schema_strategy(definition, &schema["$defs"], type_name)
}

/// Returns values that a schema allows. `name` is the name of the property, which tells the kind of an id.
fn schema_strategy(schema: &Value, defs: &Value, name: &str) -> BoxedStrategy<Value> {
    let mut parts = Vec::new();
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.rsplit('/').next().unwrap();
        let name = if target == "Note" { "note" } else { name };
        parts.push(schema_strategy(&defs[target], defs, name));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(variants) = schema[key].as_array() {
            parts.push(
                Union::new(variants.iter().map(|variant| schema_strategy(variant, defs, name))).boxed(),
            );
        }
    }
    if let Some(constant) = schema.get("const") {
        parts.push(Just(constant.clone()).boxed());
    } else if let Some(constants) = schema["enum"].as_array() {
        parts.push(select(constants.clone()).boxed());
    } else if let Some(types) = schema["type"].as_array() {
        let one = |kind: &Value| type_strategy(kind.as_str().unwrap(), schema, defs, name);
        parts.push(Union::new(types.iter().map(one)).boxed());
    } else if let Some(kind) = schema["type"].as_str() {
        parts.push(type_strategy(kind, schema, defs, name));
    }
    if parts.is_empty() { any_json() } else { parts.prop_map(merge_parts).boxed() }
}

/// Returns values that satisfy several parts of one schema.
fn merge_parts(parts: Vec<Value>) -> Value {
    let mut whole = Map::new();
    for part in parts {
        match part {
            Value::Object(fields) => whole.extend(fields),
            single => return single,
        }
    }
    Value::Object(whole)
}

fn type_strategy(kind: &str, schema: &Value, defs: &Value, name: &str) -> BoxedStrategy<Value> {
    match kind {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" => integer_strategy(schema["format"].as_str().unwrap()),
        "string" => string_strategy(schema["format"].as_str(), name).prop_map(Value::from).boxed(),
        "array" => prop::collection::vec(schema_strategy(&schema["items"], defs, name), 0..3)
            .prop_map(Value::from)
            .boxed(),
        "object" => object_strategy(schema, defs),
        other => panic!("no values of type {other}"),
    }
}

fn object_strategy(schema: &Value, defs: &Value) -> BoxedStrategy<Value> {
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, field)| {
            let named = name.clone();
            let value =
                schema_strategy(field, defs, name).prop_map(move |value| Some((named.clone(), value)));
            if required(name) { value.boxed() } else { prop_oneof![2 => value, 1 => Just(None)].boxed() }
        })
        .collect();
    let others = match &schema["additionalProperties"] {
        Value::Null | Value::Bool(false) => Just(Vec::new()).boxed(),
        free => prop::collection::vec(("[a-z]{1,4}", schema_strategy(free, defs, "")), 0..3).boxed(),
    };
    (fields, others)
        .prop_map(|(fields, others)| Value::Object(fields.into_iter().flatten().chain(others).collect()))
        .boxed()
}

fn integer_strategy(format: &str) -> BoxedStrategy<Value> {
    match format {
        "uint32" => any::<u32>().prop_map(Value::from).boxed(),
        "uint64" | "uint" => any::<u64>().prop_map(Value::from).boxed(),
        "int32" => any::<i32>().prop_map(Value::from).boxed(),
        other => panic!("no integers of format {other}"),
    }
}

fn string_strategy(format: Option<&str>, name: &str) -> BoxedStrategy<String> {
    let random = |prefix: &str| format!("{prefix}-[0-9a-f]{{32}}").prop_regex();
    match (format, name) {
        (Some("date-time"), _) => any_timestamp().prop_map(|at| at.to_string()).boxed(),
        (Some("date"), _) => any_date().prop_map(|date| date.to_string()).boxed(),
        (_, "entry_id" | "profile" | "budget_id" | "budget_daily" | "budget_weekly") => {
            "[a-z0-9][a-z0-9_.-]{0,20}".prop_regex()
        }
        (_, "session_id") => random("session"),
        (_, "request_id") => random("request"),
        (_, "grant_id") => random("grant"),
        (_, "client_id") => random("client"),
        (_, "pin") => "[ -~äöüß✓]{4,64}".prop_regex(),
        (_, "note") => "[ -~äöüß✓]{0,30}".prop_regex(),
        _ => any::<String>().boxed(),
    }
}

trait RegexStrategy {
    fn prop_regex(&self) -> BoxedStrategy<String>;
}

impl RegexStrategy for str {
    fn prop_regex(&self) -> BoxedStrategy<String> {
        proptest::string::string_regex(self).unwrap().boxed()
    }
}

/// Returns any timestamp.
pub(crate) fn any_timestamp() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond())
        .prop_map(|nanosecond| Timestamp::from_nanosecond(nanosecond).unwrap())
}

fn any_date() -> impl Strategy<Value = Date> {
    (1i16..=9999, 1i8..=12, 1i8..=28).prop_map(|(year, month, day)| Date::new(year, month, day).unwrap())
}

/// Returns any JSON value of a few levels, without floating-point numbers, whose last digit JSON doesn't guarantee.
pub(crate) fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,5}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Removes fields that are `null`, empty, or the default of a session, where an absent field means the same.
fn strip_empty_values(value: &Value) -> Value {
    let is_empty = |value: &Value| value.is_null() || value == &json!([]) || value == &json!({});
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), strip_empty_values(field)))
            .filter(|(name, field)| {
                let is_default = match name.as_str() {
                    "slot" => *field == json!({ "type": "foreground" }),
                    "counting" => *field == json!("active"),
                    _ => false,
                };
                !is_empty(field) && !is_default
            })
            .collect(),
        Value::Array(items) => items.iter().map(strip_empty_values).collect(),
        other => other.clone(),
    }
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &Value) -> Result<(), TestCaseError> {
    let value: T = match serde_json::from_value(json.clone()) {
        Ok(value) => value,
        Err(error) => return Err(TestCaseError::fail(format!("the schema allows {json}, but: {error}"))),
    };
    let line = serde_json::to_string(&value).unwrap();
    prop_assert!(!line.contains('\n'), "more than one line: {line}");
    let again: Value = serde_json::from_str(&line).unwrap();
    prop_assert_eq!(strip_empty_values(&again), strip_empty_values(json));
    prop_assert_eq!(serde_json::from_str::<T>(&line).unwrap(), value);
    Ok(())
}

/// Defines one test for each type, so that each has its own number of cases.
macro_rules! round_trips {
    ($($test:ident: $type:ident,)*) => {
        $(proptest! {
            #[test]
            fn $test(json in values_of(stringify!($type))) {
                check::<shepherd_api::$type>(&json)?;
            }
        })*
    };
}

round_trips! {
    a_client_message_comes_back_as_it_was: ClientMessage,
    a_server_message_comes_back_as_it_was: ServerMessage,
    a_request_comes_back_as_it_was: ApiRequest,
    a_response_comes_back_as_it_was: ApiResponse,
    a_command_comes_back_as_it_was: Command,
    a_reply_comes_back_as_it_was: CommandReply,
    an_event_comes_back_as_it_was: Event,
    an_error_comes_back_as_it_was: ApiError,
    a_reason_comes_back_as_it_was: ReasonCode,
    an_entry_view_comes_back_as_it_was: EntryView,
    an_entry_kind_comes_back_as_it_was: EntryKind,
    a_snapshot_comes_back_as_it_was: DaemonStateSnapshot,
    an_audit_event_comes_back_as_it_was: AuditEvent,
    a_grant_comes_back_as_it_was: GrantView,
    a_timeline_comes_back_as_it_was: TimelineView,
    an_explanation_comes_back_as_it_was: ExplanationView,
}
