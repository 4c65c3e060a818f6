//! One line for every command, reply, event, message and reason: the wire format can't drift unnoticed (S10.2–S10.4).
//!
//! Changing a line is a breaking change; a new line is an addition.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shepherd_api::{ClientMessage, Command, CommandReply, Event, ReasonCode, ServerMessage};

use crate::{fixtures, schema};

/// Checks that every line of the file is a `T` and is written in the same form, and that every variant of `T` occurs.
fn assert_golden_file<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    file: &str,
    type_name: &str,
    tag: &str,
) {
    let mut seen = BTreeSet::new();
    for line in fixtures::golden_lines(file) {
        let value: T = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), line);
        let json: Value = serde_json::from_str(&line).unwrap();
        seen.insert(json[tag].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, schema::variant_tags(type_name, tag).into_iter().collect(), "in {file}");
}

#[test]
fn every_command_has_its_line() {
    // S10.3.
    assert_golden_file::<Command>("commands", "Command", "type");
}

#[test]
fn every_reply_has_its_line() {
    // S10.2.
    assert_golden_file::<CommandReply>("replies", "CommandReply", "type");
}

#[test]
fn every_event_has_its_line() {
    // S10.4.
    assert_golden_file::<Event>("events", "Event", "type");
}

#[test]
fn every_reason_has_its_line() {
    // S3.8.
    assert_golden_file::<ReasonCode>("reasons", "ReasonCode", "code");
}

#[test]
fn every_message_has_its_line() {
    // S10.2.
    assert_golden_file::<ClientMessage>("client_messages", "ClientMessage", "type");
    assert_golden_file::<ServerMessage>("server_messages", "ServerMessage", "type");
}

#[test]
fn the_names_of_commands_are_those_on_the_wire() {
    assert_eq!(Command::NAMES, schema::variant_tags("Command", "type"));
    for line in fixtures::golden_lines("commands") {
        let json: Value = serde_json::from_str(&line).unwrap();
        let command: Command = serde_json::from_str(&line).unwrap();
        assert_eq!(json["type"], command.name());
    }
}
