//! Checks of arguments against the JSON Schema of an external tool. Such a schema is untrusted: references to
//! other documents are not followed, and both compiling and checking have a time limit.

use std::time::Duration;

use boon::{Compiler, Draft, SchemaIndex, Schemas, SchemeUrlLoader};
use serde_json::Value;

use crate::security::BlockingWorkers;

/// The maximum size of a schema. A model could hardly use a tool with more complex arguments.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// The time limit of a check. A check takes microseconds unless the schema was built to be slow.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of checks that may run at once. A check that exceeds its time limit keeps its thread and a
/// processor busy.
static CHECK_WORKERS: BlockingWorkers = BlockingWorkers::new(4);

/// The URL of the schema itself, so that references inside it can be resolved.
const SCHEMA_URL: &str = "tool:arguments";

/// Checks that arguments can be checked with this schema.
///
/// # Errors
/// Fails with the fault of the schema.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("the schema is longer than {MAX_SCHEMA_BYTES} bytes"));
    }
    if schema.get("type") != Some(&Value::from("object")) {
        return Err("the schema must describe an object: `type = \"object\"`".to_owned());
    }
    // A schema that is too slow for an empty object is too slow for every other.
    let empty = Value::Object(serde_json::Map::new());
    check_with_timeout(schema, move |schema| {
        let (schemas, index) = compile(&schema)?;
        let _ = schemas.validate(&empty, index);
        Ok(())
    })
}

/// Checks arguments against a schema.
///
/// # Errors
/// Fails with the faults of the arguments.
pub(crate) fn check_arguments(schema: &Value, arguments: &Value) -> Result<(), String> {
    let arguments = arguments.clone();
    check_with_timeout(schema, move |schema| {
        let (schemas, index) = compile(&schema)?;
        schemas.validate(&arguments, index).map_err(|error| join_faults(&error.to_string()))
    })
}

fn check_with_timeout(
    schema: &Value,
    work: impl FnOnce(Value) -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let schema = schema.clone();
    let checked = CHECK_WORKERS.run(CHECK_TIMEOUT, move || work(schema));
    checked.unwrap_or_else(|| Err("the schema takes too long to check".to_owned()))
}

fn compile(schema: &Value) -> Result<(Schemas, SchemaIndex), String> {
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    // The default loader would read any file that the schema refers to.
    compiler.use_loader(Box::new(SchemeUrlLoader::new()));
    let mut schemas = Schemas::new();
    let invalid =
        |error: boon::CompileError| format!("invalid schema: {}", join_faults(&format!("\n{error:#}")));
    compiler.add_resource(SCHEMA_URL, schema.clone()).map_err(invalid)?;
    let index = compiler.compile(SCHEMA_URL, &mut schemas).map_err(invalid)?;
    Ok((schemas, index))
}

/// Joins all lines except the first, which only names the schema.
fn join_faults(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip(1).map(|line| line.trim().trim_start_matches("- ")).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_arguments_are_rejected_with_their_faults() {
        let schema = json!({ "type": "object", "required": ["city"], "additionalProperties": false,
            "properties": { "city": { "type": "string", "minLength": 1 }, "days": { "$ref": "#/$defs/days" } },
            "$defs": { "days": { "type": "integer", "maximum": 7 } } });
        assert_eq!(check_schema(&schema), Ok(()));
        let check = |arguments: Value, expected: Result<(), &str>| {
            assert_eq!(check_arguments(&schema, &arguments), expected.map_err(str::to_owned), "{arguments}");
        };
        check(json!({ "city": "Ulm", "days": 3 }), Ok(()));
        check(json!({}), Err("at '': missing properties 'city'"));
        check(json!({ "city": "Ulm", "days": 8 }), Err("at '/days': must be <=7, but got 8"));
        check(json!(["Ulm"]), Err("at '': want object, but got array"));
        let both = "at '/city': length must be >=1, but got 0; at '': additionalProperties 'x' not allowed";
        check(json!({ "city": "", "x": 1 }), Err(both));
    }

    #[test]
    fn a_hostile_schema_reads_no_files_and_times_out() {
        let fails = |schema: Value, expected: &str| {
            let fault =
                check_schema(&schema).and_then(|()| check_arguments(&schema, &json!({}))).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        };
        fails(json!({ "type": "object", "$ref": "file:///etc/passwd" }), "invalid schema");
        fails(json!({ "type": "object", "$ref": "http://127.0.0.1/x" }), "invalid schema");
        fails(json!({ "type": "object", "allOf": [{ "$ref": "#" }] }), "");
        fails(json!({ "type": "string" }), "must describe an object");
        fails(json!({ "type": "object", "properties": 7 }), "invalid schema");
        fails(json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES) }), "is longer than");
        // Each step refers to the next one twice, so that checking takes exponential time.
        let mut steps = serde_json::Map::new();
        for step in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/s{}", step + 1) });
            steps.insert(format!("s{step}"), json!({ "allOf": [next, next] }));
        }
        steps.insert("s40".to_owned(), json!({ "type": "object" }));
        fails(json!({ "type": "object", "$ref": "#/$defs/s0", "$defs": steps }), "takes too long to check");
    }
}
