//! Lines that the daemon writes.

use std::time::Duration;

use serde::Serialize;
use shepherd_api::{ApiError, ErrorCode, Event, ServerMessage};

use super::outbox::EncodedLine;

/// [`ServerMessage::Event`] of an event that is only lent.
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

/// A message as a line. `Normal` can't be with types of the protocol, whose keys are all texts.
pub(super) fn encode_line(message: &impl Serialize) -> Option<EncodedLine> {
    let mut line = serde_json::to_vec(message).ok()?;
    line.push(b'\n');
    Some(line.into())
}

/// The last line of a connection.
pub(super) fn closing_line(error: ApiError) -> Option<EncodedLine> {
    encode_line(&ServerMessage::Closing { error })
}

pub(super) fn not_permitted_error() -> ApiError {
    let sentence = "The policy gives this user no access. An administrator can name it under `access`.";
    ApiError::new(ErrorCode::NotPermitted, sentence)
}

pub(super) fn timeout_error(what: &str, patience: Duration) -> ApiError {
    ApiError::new(ErrorCode::TimedOut, format!("{what} within {} seconds.", patience.as_secs_f32()))
}
