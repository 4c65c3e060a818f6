//! Reads a streamed answer and reports its text while it arrives.

use std::time::Duration;

use serde_json::Value;

use super::assembly::{ResponseAssembly, StreamPart};
use super::reply::ReplyError;
use crate::net::{BodyStream, EventReader, ExchangeError, StreamEvent};

/// The protocol wraps each word in a lot of JSON; a stream may be this many times longer than its text.
const MAX_OVERHEAD_FACTOR: usize = 64;

/// The time for a server to send token usage and the end marker after a complete answer.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(2);

/// A body with more leading blanks is not a stream.
const MAX_LEADING_BLANKS: usize = 4 * 1024;

const READ_BUFFER_BYTES: usize = 16 * 1024;

/// The reason why a stream gave no answer.
pub(super) enum StreamError {
    Exchange(ExchangeError),
    /// The stream ended before the answer was complete.
    Unfinished,
    /// The stream is larger than allowed.
    TooLarge,
    /// The stream is complete, but its content is not an answer.
    Reply(ReplyError),
}

pub(super) struct StreamLimits {
    pub(super) max_bytes: usize,
    pub(super) stall_timeout: Duration,
}

/// Decides by its type and first bytes if a body is a stream. Returns `None` while the bytes are too few to
/// tell. The type alone is not reliable: some servers send errors as a stream, and some send streams without
/// a type.
pub(super) fn is_stream(content_type: Option<&str>, head: &[u8]) -> Option<bool> {
    if head.len() > MAX_LEADING_BLANKS {
        return Some(false);
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if content_type == Some("text/event-stream") {
        return head.first().map(|first| !matches!(first, b'{' | b'[' | b'<'));
    }
    let start: &[u8] = b"data:";
    match head.starts_with(start) {
        true => Some(true),
        false if start.starts_with(head) => None,
        false => Some(false),
    }
}

/// Reads a stream to the end of the answer and passes each piece of text to `on_text`. Returns the answer in
/// the form of a reply that was not streamed.
pub(super) fn read_stream(
    incoming: &mut BodyStream,
    head: &[u8],
    limits: &StreamLimits,
    on_text: &mut dyn FnMut(&str),
) -> Result<Value, StreamError> {
    incoming.set_stall_timeout(limits.stall_timeout);
    let mut events = EventReader::new(limits.max_bytes);
    let mut answer = ResponseAssembly::new(limits.max_bytes);
    let mut received = head.len();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    let mut ready = events.push_bytes(head).map_err(|_| StreamError::TooLarge)?;
    loop {
        for event in ready {
            if add_event(&mut answer, &event, on_text)? == StreamPart::End {
                return Ok(answer.into_payload());
            }
        }
        if answer.is_complete() {
            incoming.set_stall_timeout(TRAILER_TIMEOUT);
        }
        let piece = match incoming.read_some(&mut buffer) {
            Ok(0) => break,
            Ok(amount) => buffer.get(..amount).unwrap_or_default(),
            Err(ExchangeError::Stopped(stopped)) => {
                return Err(StreamError::Exchange(ExchangeError::Stopped(stopped)));
            }
            // The answer is complete, so a broken connection does no harm.
            Err(_) if answer.is_complete() => break,
            Err(error) => return Err(StreamError::Exchange(error)),
        };
        received = received.saturating_add(piece.len());
        if received > limits.max_bytes.saturating_mul(MAX_OVERHEAD_FACTOR) {
            return Err(StreamError::TooLarge);
        }
        ready = events.push_bytes(piece).map_err(|_| StreamError::TooLarge)?;
    }
    if let Some(event) = events.finish() {
        add_event(&mut answer, &event, on_text)?;
    }
    if answer.is_complete() { Ok(answer.into_payload()) } else { Err(StreamError::Unfinished) }
}

fn add_event(
    answer: &mut ResponseAssembly,
    event: &StreamEvent,
    on_text: &mut dyn FnMut(&str),
) -> Result<StreamPart, StreamError> {
    let part = answer.add_event(event)?;
    if let StreamPart::Text(text) = &part
        && !text.is_empty()
    {
        on_text(text);
    }
    Ok(part)
}
