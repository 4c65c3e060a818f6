//! Fuzz targets; longer with `cargo xtask fuzz shepherd-api`.

use shepherd_api::{ClientMessage, CommandReply, Event, MessageParseError, ServerMessage};

use crate::fixtures;

fn corpus() -> Vec<Vec<u8>> {
    let lines = fixtures::GOLDEN_FILES.iter().flat_map(|name| fixtures::golden_lines(name));
    let requests = fixtures::golden_lines("commands")
        .into_iter()
        .map(|command| format!(r#"{{"type":"request","id":1,"command":{command}}}"#));
    lines.chain(requests).map(String::into_bytes).collect()
}

/// Returns a message without its quoted parts, so that messages of the same kind are equal.
fn fault_kind(text: &str) -> String {
    let unquoted: String = text.split(['`', '"']).step_by(2).collect();
    unquoted.chars().filter(|character| !character.is_ascii_digit()).take(100).collect()
}

#[test]
fn no_line_of_a_client_makes_the_daemon_panic() {
    let report = ward_fuzz::run("client_messages", &corpus(), |bytes| match ClientMessage::parse(bytes) {
        Ok(message) => {
            let line = serde_json::to_vec(&message).unwrap();
            assert_eq!(ClientMessage::parse(&line).as_ref(), Ok(&message), "it does not come back");
            match message {
                ClientMessage::Hello(hello) => format!("hello {}", hello.negotiate_version().is_ok()),
                ClientMessage::Request(request) => request.command.name().to_owned(),
            }
        }
        Err(MessageParseError::InvalidRequest { error, .. } | MessageParseError::InvalidLine(error)) => {
            assert!(error.sentence.len() < 3_000, "an answer that grows with the question");
            assert!(!error.sentence.contains(char::is_control), "an answer that can harm a terminal");
            fault_kind(&error.sentence)
        }
    })
    .unwrap();
    println!("{report}");
}

#[test]
fn no_line_of_a_daemon_makes_a_client_panic() {
    let report = ward_fuzz::run("server_messages", &corpus(), |bytes| {
        let event = serde_json::from_slice::<Event>(bytes).map_err(|error| fault_kind(&error.to_string()));
        let reply =
            serde_json::from_slice::<CommandReply>(bytes).map_err(|error| fault_kind(&error.to_string()));
        let message = ServerMessage::parse(bytes).map_err(|error| fault_kind(&error.to_string()));
        if let Ok(message) = &message {
            let line = serde_json::to_vec(message).unwrap();
            assert_eq!(ServerMessage::parse(&line).as_ref().ok(), Some(message), "it does not come back");
        }
        (event.map(|_| ()), reply.map(|_| ()), message.map(|message| std::mem::discriminant(&message)))
    })
    .unwrap();
    println!("{report}");
}
