//! The output of a plugin: exactly one JSON object on standard output.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum PluginOutput {
    /// The result: a text, or another JSON value, which the model gets as JSON.
    Output(Value),
    /// The error of the plugin.
    Error(String),
}

/// Parses the output of a call. The error is the plugin's own, or describes an invalid output.
pub(super) fn parse_output(bytes: &[u8]) -> Result<String, String> {
    let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
    if is_empty {
        return Err("the plugin returned nothing".to_owned());
    }
    match serde_json::from_slice(bytes) {
        Ok(PluginOutput::Output(Value::String(text))) => Ok(text),
        Ok(PluginOutput::Output(value)) => Ok(value.to_string()),
        Ok(PluginOutput::Error(error)) => Err(error),
        Err(error) => Err(format!("the plugin did not answer with {FORM}: {error}")),
    }
}

const FORM: &str = "one JSON object, {\"output\": …} or {\"error\": …}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_json_object_is_a_valid_output() {
        let check = |text: &str, expected: Result<&str, &str>| match (parse_output(text.as_bytes()), expected)
        {
            (Ok(output), Ok(expected)) => assert_eq!(output, expected),
            (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{text}: {fault}"),
            (read, expected) => panic!("{text}: {read:?} instead of {expected:?}"),
        };
        check("{\"output\": \"sunny\"}\n", Ok("sunny"));
        check("{\"output\": {\"sky\": [1, null]}}", Ok("{\"sky\":[1,null]}"));
        check("{\"error\": \"no such city\"}", Err("no such city"));
        check("", Err("returned nothing"));
        check(" \n", Err("returned nothing"));
        for garbage in [
            "sunny",
            "\"sunny\"",
            "{}",
            "[]",
            "null",
            "{\"output\": 1, \"error\": \"both\"}",
            "{\"output\": 1} {\"output\": 2}",
            "{\"output\": 1, \"policy\": \"full\"}",
            "{\"error\": 7}",
            "{\"output\": \"half",
            "\u{1b}[2J",
        ] {
            check(garbage, Err("did not answer with one JSON object"));
        }
        assert!(parse_output(b"{\"output\": \"\xff\"}").is_err());
        assert!(
            parse_output(format!("{{\"output\": {}1{}}}", "[".repeat(9999), "]".repeat(9999)).as_bytes())
                .is_err()
        );
    }
}
