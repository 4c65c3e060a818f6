//! Serialises the lines that the daemon writes.

use std::time::Duration;

use serde::Serialize;
use shepherd_api::{ApiError, ErrorCode, Event, ServerMessage};

use super::outbox::EncodedLine;

/// A [`ServerMessage::Event`] that borrows its event.
#[derive(Serialize)]
pub(super) struct EventMessage<'a> {
    r#type: &'static str,
    event: &'a Event,
}

impl<'a> EventMessage<'a> {
    pub(super) fn new(event: &'a Event) -> Self {
        Self { r#type: "event", event }
    }
}

/// Serialises a message as a line. `None` can't occur with protocol types, whose keys are all strings.
pub(super) fn encode_line(message: &impl Serialize) -> Option<EncodedLine> {
    let mut line = serde_json::to_vec(message).ok()?;
    line.push(b'\n');
    Some(line.into())
}

/// Creates the last line of a connection.
pub(super) fn closing_line(error: ApiError) -> Option<EncodedLine> {
    encode_line(&ServerMessage::Closing { error })
}

pub(super) fn not_permitted_error() -> ApiError {
    let sentence = "The policy gives this user no access. An administrator can add it under `access`.";
    ApiError::new(ErrorCode::NotPermitted, sentence)
}

pub(super) fn timeout_error(what: &str, patience: Duration) -> ApiError {
    ApiError::new(ErrorCode::TimedOut, format!("{what} within {} seconds.", patience.as_secs_f32()))
}
