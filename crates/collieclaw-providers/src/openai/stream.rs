//! An answer that comes bit by bit: as events, and told as it comes.

use std::time::Duration;

use serde_json::Value;

use super::assembly::{ResponseAssembly, StreamPart};
use super::reply::ReplyError;
use crate::net::{BodyStream, EventReader, ExchangeError, StreamEvent};

/// Around each word of a streamed answer there is a lot of paper; this many times the words themselves is enough of it.
const MAX_OVERHEAD_FACTOR: usize = 64;

/// What a server may still want to say once the answer is whole: what it cost, and that this is all.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(2);

/// No stream begins with more blanks than this.
const MAX_LEADING_BLANKS: usize = 4 * 1024;

/// How much is read at once.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// Why there is no answer at the end of a stream.
pub(super) enum StreamError {
    /// The connection is.
    Exchange(ExchangeError),
    /// The stream ended before the answer.
    Unfinished,
    /// There is too much of it.
    TooLarge,
    /// It is whole, and no answer.
    Reply(ReplyError),
}

/// How much and how long.
pub(super) struct StreamLimits {
    pub(super) max_bytes: usize,
    pub(super) stall_timeout: Duration,
}

/// Whether a body is a stream, judged by its type and its first bytes; `None` while they are too few to tell. Servers
/// call errors a stream, and streams nothing at all.
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

/// Follows a stream to the end of the answer, tells each bit of text, and returns it whole, in the form of an answer that
/// was not streamed.
pub(super) fn read_stream(
    incoming: &mut BodyStream,
    head: &[u8],
    bounds: &StreamLimits,
    tell: &mut dyn FnMut(&str),
) -> Result<Value, StreamError> {
    incoming.set_stall_timeout(bounds.stall_timeout);
    let mut events = EventReader::new(bounds.max_bytes);
    let mut answer = ResponseAssembly::new(bounds.max_bytes);
    let mut received = head.len();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    let mut ready = events.push_bytes(head).map_err(|_| StreamError::TooLarge)?;
    loop {
        for event in ready {
            if add_event(&mut answer, &event, tell)? == StreamPart::End {
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
            // Nothing that matters can follow.
            Err(_) if answer.is_complete() => break,
            Err(broken) => return Err(StreamError::Exchange(broken)),
        };
        received = received.saturating_add(piece.len());
        if received > bounds.max_bytes.saturating_mul(MAX_OVERHEAD_FACTOR) {
            return Err(StreamError::TooLarge);
        }
        ready = events.push_bytes(piece).map_err(|_| StreamError::TooLarge)?;
    }
    if let Some(event) = events.finish() {
        add_event(&mut answer, &event, tell)?;
    }
    if answer.is_complete() { Ok(answer.into_payload()) } else { Err(StreamError::Unfinished) }
}

fn add_event(
    answer: &mut ResponseAssembly,
    event: &StreamEvent,
    tell: &mut dyn FnMut(&str),
) -> Result<StreamPart, StreamError> {
    let part = answer.add_event(event)?;
    if let StreamPart::Text(text) = &part
        && !text.is_empty()
    {
        tell(text);
    }
    Ok(part)
}
