//! Results as JSON for scripts.

use serde::Serialize;
use serde_json::json;

/// Formats a result as an indented JSON document. A value that JSON can't express becomes an object with the member
/// `error`.
#[must_use]
pub fn to_json_document(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|error| describe_error(&error))
}

/// Formats an item of a stream as one line of JSON. A value that JSON can't express becomes an object with the member
/// `error`.
#[must_use]
pub fn to_json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| describe_error(&error))
}

fn describe_error(error: &serde_json::Error) -> String {
    json!({ "error": error.to_string() }).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_value_that_json_cannot_express_becomes_an_error() {
        assert_eq!(to_json_document(&json!({ "a": 1 })), "{\n  \"a\": 1\n}");
        assert_eq!(to_json_line(&json!({ "a": 1 })), r#"{"a":1}"#);
        let keys_are_lists = BTreeMap::from([(vec![1], 2)]);
        assert_eq!(to_json_line(&keys_are_lists), r#"{"error":"key must be a string"}"#);
        assert_eq!(to_json_document(&keys_are_lists), to_json_line(&keys_are_lists));
    }
}
