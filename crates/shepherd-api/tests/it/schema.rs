//! The checked-in schema matches the types (S10.1).

use std::fs;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use shepherd_api::{
    API_VERSION, ApiRequest, ApiResponse, AuditEvent, ClientMessage, EntryKind, ServerMessage,
};

use crate::fixtures;

const SCHEMA_FILE: &str = "schema/protocol.schema.json";

/// The environment variable that makes the test write the file.
const UPDATE: &str = "UPDATE_SCHEMA";

/// Returns the schema of all types, including those that no message contains.
pub(crate) fn protocol_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let messages = [generator.subschema_for::<ClientMessage>(), generator.subschema_for::<ServerMessage>()];
    generator.subschema_for::<ApiRequest>();
    generator.subschema_for::<ApiResponse>();
    generator.subschema_for::<AuditEvent>();
    generator.subschema_for::<EntryKind>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("One line of Shepherd's protocol, version {API_VERSION}"),
        "anyOf": messages,
        "$defs": generator.take_definitions(true),
    })
}

/// Returns the names of the variants of a type: the values of its tag.
pub(crate) fn variant_tags(type_name: &str, tag: &str) -> Vec<String> {
    let schema = protocol_schema();
    let variants = schema["$defs"][type_name]["oneOf"].as_array().unwrap_or_else(|| panic!("{type_name}"));
    variants.iter().map(|variant| variant["properties"][tag]["const"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_checked_in_schema_is_the_one_of_the_types() {
    let path = fixtures::crate_path(SCHEMA_FILE);
    let expected = serde_json::to_string_pretty(&protocol_schema()).unwrap() + "\n";
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{} is not what the types say (line {})\nhelp: read what that means for clients in `lib.rs`, then run \
         `{UPDATE}=1 cargo nextest run -p shepherd-api schema` and commit the file",
        path.display(),
        differs.map_or_else(|| "of its end".to_owned(), |line| (line + 1).to_string()),
    );
}
