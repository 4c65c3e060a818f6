//! A strict daemon, lenient clients, and a handshake with both versions (S10.1).

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shepherd_api::{
    API_VERSION, ApiError, ClientHello, ClientMessage, CommandReply, ErrorCode, Event, EventKind,
    MessageParseError, ReasonCode, ServerMessage,
};

use crate::generated::{any_json, values_of};

/// Keys below which fields are not checked: opaque values, and parts of commands that views repeat.
const OPAQUE: &[&str] = &["env", "args", "payload", "grant", "scope", "gift", "of"];

/// Objects with exactly one field, whose name is the variant.
const SINGLE_FIELD_OBJECTS: &[&str] = &["result", "quota"];

/// Calls `visit` for every object in which a field can be added.
fn visit_objects(name: &str, value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut().filter(|(name, _)| !OPAQUE.contains(&name.as_str())) {
                visit_objects(name, field, visit);
            }
            if !SINGLE_FIELD_OBJECTS.contains(&name) {
                visit(fields);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit_objects(name, item, visit)),
        _ => {}
    }
}

/// Returns the value with an unknown field in one of its objects.
fn with_unknown_field(value: &Value, choice: prop::sample::Index) -> Value {
    let mut value = value.clone();
    let mut count = 0;
    visit_objects("", &mut value, &mut |_| count += 1);
    let mut before = choice.index(count);
    visit_objects("", &mut value, &mut |fields| {
        if before == 0 {
            fields.insert("from_the_future".to_owned(), json!({"type": "new"}));
        }
        before = before.wrapping_sub(1);
    });
    value
}

proptest! {
    #[test]
    fn a_client_passes_over_fields_that_it_does_not_know(
        json in values_of("ServerMessage"),
        choice in any::<prop::sample::Index>(),
    ) {
        let known: ServerMessage = serde_json::from_value(json.clone()).unwrap();
        let line = serde_json::to_vec(&with_unknown_field(&json, choice)).unwrap();
        prop_assert_eq!(ServerMessage::parse(&line).unwrap(), known);
    }

    #[test]
    fn the_daemon_refuses_a_field_that_it_does_not_know(
        command in values_of("Command"),
        id in any::<u64>(),
        choice in any::<prop::sample::Index>(),
    ) {
        let request = with_unknown_field(&json!({"id": id, "command": command}), choice);
        let mut message = json!({"type": "request"});
        message.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
        let Err(MessageParseError::InvalidRequest { id: answered, error }) = ClientMessage::parse(message.to_string().as_bytes())
        else {
            return Err(TestCaseError::fail("not refused"));
        };
        prop_assert_eq!(answered, id);
        prop_assert_eq!(error.code, ErrorCode::InvalidCommand);
        prop_assert!(error.sentence.contains("from_the_future"), "{}", error.sentence);
    }

    #[test]
    fn invalid_messages_are_refused_without_a_panic(bytes in any::<Vec<u8>>(), json in any_json()) {
        prop_assert!(matches!(ClientMessage::parse(&bytes), Err(MessageParseError::InvalidLine(_))));
        prop_assert!(ServerMessage::parse(&bytes).is_err());
        let line = json.to_string();
        prop_assert!(matches!(ClientMessage::parse(line.as_bytes()), Err(MessageParseError::InvalidLine(_))));
        let _ = ServerMessage::parse(line.as_bytes());
    }

    #[test]
    fn an_agreed_version_is_one_that_both_speak(api_version in 0u32..5, oldest in prop::option::of(0u32..5)) {
        let hello = ClientHello { api_version, oldest_api_version: oldest, client: "x".to_owned() };
        match hello.negotiate_version() {
            Ok(version) => prop_assert!(version == API_VERSION && oldest.unwrap_or(api_version) <= version),
            Err(error) => {
                prop_assert_eq!(error.code, ErrorCode::UnsupportedVersion);
                prop_assert!(!(oldest.unwrap_or(api_version)..=api_version).contains(&API_VERSION));
            }
        }
    }
}

#[test]
fn an_old_client_reads_new_values_as_unknown() {
    let new = r#"{"type":"new","detail":[1,{"a":2}]}"#;
    assert_eq!(ServerMessage::parse(new.as_bytes()).unwrap(), ServerMessage::Unknown);
    assert_eq!(serde_json::from_str::<CommandReply>(new).unwrap(), CommandReply::Unknown);
    let event: Event =
        serde_json::from_str(r#"{"at":"2026-03-28T09:00:00Z","type":"new","detail":1}"#).unwrap();
    assert_eq!(event.kind, EventKind::Unknown);
    let reason: ReasonCode = serde_json::from_str(r#"{"code":"full-moon","phase":1}"#).unwrap();
    assert_eq!(reason, ReasonCode::Unknown);
    let error: ApiError = serde_json::from_str(r#"{"code":"new","sentence":"No."}"#).unwrap();
    assert_eq!(error, ApiError::new(ErrorCode::Unknown, "No."));
}

/// Returns the daemon's reply to a line: `answer` or `closing`, with the code and the sentence.
fn assert_refused_with(line: &str, expected: &str) {
    let said = match ClientMessage::parse(line.as_bytes()) {
        Ok(message) => panic!("read as {message:?}"),
        Err(MessageParseError::InvalidRequest { id, error }) => (format!("answer {id}"), error),
        Err(MessageParseError::InvalidLine(error)) => ("closing".to_owned(), error),
    };
    let code = serde_json::to_value(said.1.code).unwrap();
    assert_eq!(format!("{}: {}: {}", said.0, code.as_str().unwrap(), said.1.sentence), expected);
}

#[test]
fn a_command_that_does_not_exist_is_answered_as_such() {
    assert_refused_with(
        r#"{"type":"request","id":7,"command":{"type":"fly","to":"moon"}}"#,
        "answer 7: unknown-command: There is no command `fly` in this version of the daemon.",
    );
    assert_refused_with(
        "{\"type\":\"request\",\"id\":7,\"command\":{\"type\":\"\\u001b[2J\"}}",
        "answer 7: unknown-command: There is no command `\\u{1b}[2J` in this version of the daemon.",
    );
}

#[test]
fn a_command_that_is_wrong_is_answered_with_its_fault() {
    assert_refused_with(
        r#"{"type":"request","id":7,"command":{"type":"launch"}}"#,
        "answer 7: invalid-command: The command can't be read: missing field `entry_id`.",
    );
    assert_refused_with(
        r#"{"type":"request","id":7,"command":{"type":"get_state","force":true}}"#,
        "answer 7: invalid-command: The command can't be read: unknown field `force`, there are no fields.",
    );
    assert_refused_with(
        r#"{"type":"request","id":7,"command":{"type":"launch","entry_id":"Tux Math"}}"#,
        "answer 7: invalid-command: The command can't be read: an entry id can't contain 'T'; use lower-case \
         letters, digits, `-`, `_` and `.`.",
    );
    assert_refused_with(
        r#"{"type":"request","id":7}"#,
        "answer 7: invalid-command: The command can't be read: missing field `command`.",
    );
}

#[test]
fn a_line_that_is_no_message_ends_the_connection() {
    assert_refused_with(
        "",
        "closing: malformed-message: This line is not a message of the protocol: EOF while parsing a value at line 1 column 0.",
    );
    assert_refused_with(
        r#"{"type":"event"}"#,
        "closing: malformed-message: This line is not a message of the protocol: unknown variant `event`, expected \
         `hello` or `request` at line 1 column 15.",
    );
}

#[test]
fn an_error_repeats_only_a_little_of_the_request() {
    let line = format!(r#"{{"type":"request","id":1,"command":{{"type":"{}"}}}}"#, "x".repeat(100_000));
    let Err(MessageParseError::InvalidRequest { error, .. }) = ClientMessage::parse(line.as_bytes()) else {
        panic!("not refused")
    };
    assert!(error.sentence.len() < 300, "{}", error.sentence.len());
}

#[test]
fn a_client_of_another_version_gets_both_versions_and_the_cure() {
    let hello = ClientHello { api_version: 9, oldest_api_version: Some(8), client: "x".to_owned() };
    assert_eq!(
        hello.negotiate_version().unwrap_err().sentence,
        "The daemon supports protocol version 1, the client 8 to 9. Update the daemon."
    );
    let hello = ClientHello { api_version: 0, oldest_api_version: None, client: "x".to_owned() };
    assert_eq!(
        hello.negotiate_version().unwrap_err().sentence,
        "The daemon supports protocol version 1, the client 0. Update the client."
    );
    assert_eq!(ClientHello::for_client("x").negotiate_version(), Ok(API_VERSION));
}

#[test]
fn a_command_is_spelled_out_and_never_a_position() {
    // S10.1: an addition in the middle must not change the meaning of an old line.
    for line in [
        r#"["request",1,["launch","tux",null]]"#,
        r#"{"type":"request","id":1,"command":[2,"tux",null]}"#,
        r#"{"type":"request","id":1,"command":["launch","tux",null]}"#,
    ] {
        assert!(ClientMessage::parse(line.as_bytes()).is_err(), "{line}");
    }
}
