//! Arguments against the JSON Schema of a tool that is not ours. A schema of others is hostile until shown otherwise:
//! it refers to nothing outside of itself, and neither it nor a check of it takes as long as it likes.

use std::time::Duration;

use boon::{Compiler, Draft, SchemaIndex, Schemas, SchemeUrlLoader};
use serde_json::Value;

use crate::security::BlockingWorkers;

/// A tool that needs more words to say what it takes is none that a model would understand.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// A check takes microseconds, unless somebody made the schema so that it doesn't.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// A check that takes longer goes on, on a processor of its own: more than a few would be felt.
static CHECK_WORKERS: BlockingWorkers = BlockingWorkers::new(4);

/// A name for the schema itself, so that references inside of it can be followed.
const SCHEMA_URL: &str = "tool:arguments";

/// Whether a schema is one that arguments can be checked with.
///
/// # Errors
/// With what is wrong with it.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("the schema is longer than {MAX_SCHEMA_BYTES} bytes"));
    }
    if schema.get("type") != Some(&Value::from("object")) {
        return Err("the schema must be of an object: `type = \"object\"`".to_owned());
    }
    // What is too slow for no arguments at all is too slow for any.
    let nothing = Value::Object(serde_json::Map::new());
    check_with_timeout(schema, move |schema| {
        let (schemas, index) = compile(&schema)?;
        let _ = schemas.validate(&nothing, index);
        Ok(())
    })
}

/// Checks arguments.
///
/// # Errors
/// With what doesn't fit.
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
    checked.unwrap_or_else(|| Err("it can't be checked in time".to_owned()))
}

fn compile(schema: &Value) -> Result<(Schemas, SchemaIndex), String> {
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    // The usual one would read any file that the schema names.
    compiler.use_loader(Box::new(SchemeUrlLoader::new()));
    let mut schemas = Schemas::new();
    let wrong =
        |error: boon::CompileError| format!("the schema is wrong: {}", join_faults(&format!("\n{error:#}")));
    compiler.add_resource(SCHEMA_URL, schema.clone()).map_err(wrong)?;
    let index = compiler.compile(SCHEMA_URL, &mut schemas).map_err(wrong)?;
    Ok((schemas, index))
}

/// Of several lines all but the first, which names the schema.
fn join_faults(text: &str) -> String {
    let lines: Vec<&str> = text.lines().skip(1).map(|line| line.trim().trim_start_matches("- ")).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_that_do_not_fit_are_told_apart_from_those_that_do() {
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
    fn a_hostile_schema_reads_nothing_and_takes_no_longer_than_it_may() {
        let fails = |schema: Value, expected: &str| {
            let fault =
                check_schema(&schema).and_then(|()| check_arguments(&schema, &json!({}))).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        };
        fails(json!({ "type": "object", "$ref": "file:///etc/passwd" }), "the schema is wrong");
        fails(json!({ "type": "object", "$ref": "http://127.0.0.1/x" }), "the schema is wrong");
        fails(json!({ "type": "object", "allOf": [{ "$ref": "#" }] }), "");
        fails(json!({ "type": "string" }), "must be of an object");
        fails(json!({ "type": "object", "properties": 7 }), "the schema is wrong");
        fails(json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES) }), "is longer than");
        // Each step asks the next one twice.
        let mut steps = serde_json::Map::new();
        for step in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/s{}", step + 1) });
            steps.insert(format!("s{step}"), json!({ "allOf": [next, next] }));
        }
        steps.insert("s40".to_owned(), json!({ "type": "object" }));
        fails(json!({ "type": "object", "$ref": "#/$defs/s0", "$defs": steps }), "can't be checked in time");
    }
}
