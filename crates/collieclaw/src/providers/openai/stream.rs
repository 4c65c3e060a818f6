//! An answer that comes bit by bit: as events, and told as it comes.

use std::time::Duration;

use serde_json::Value;

use super::assembly::{Assembly, Part};
use super::reply::Unusable;
use crate::net::{Broken, EventReader, Incoming, StreamEvent};

/// Around each word of a streamed answer there is a lot of paper; this many times the words themselves is enough of it.
const MOST_PAPER: usize = 64;

/// What a server may still want to say once the answer is whole: what it cost, and that this is all.
const PATIENCE_AFTER_THE_END: Duration = Duration::from_secs(2);

/// No stream begins with more blanks than this.
const MOST_BLANKS: usize = 4 * 1024;

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// Why there is no answer at the end of a stream.
pub(super) enum Torn {
    /// The connection is.
    Broken(Broken),
    /// The stream ended before the answer.
    Unfinished,
    /// There is too much of it.
    TooLarge,
    /// It is whole, and no answer.
    Unusable(Unusable),
}

/// How much and how long.
pub(super) struct Bounds {
    pub(super) most: usize,
    pub(super) longest_silence: Duration,
}

/// Whether a body is a stream, judged by its type and its first bytes; `None` while they are too few to tell. Servers
/// call errors a stream, and streams nothing at all.
pub(super) fn is_stream(content_type: Option<&str>, head: &[u8]) -> Option<bool> {
    if head.len() > MOST_BLANKS {
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
pub(super) fn follow(
    incoming: &mut Incoming,
    head: &[u8],
    bounds: &Bounds,
    tell: &mut dyn FnMut(&str),
) -> Result<Value, Torn> {
    incoming.end_silence_after(bounds.longest_silence);
    let mut events = EventReader::new(bounds.most);
    let mut answer = Assembly::new(bounds.most);
    let mut received = head.len();
    let mut buffer = vec![0; PIECE];
    let mut ready = events.take(head).map_err(|_| Torn::TooLarge)?;
    loop {
        for event in ready {
            if add(&mut answer, &event, tell)? == Part::End {
                return Ok(answer.payload());
            }
        }
        if answer.is_whole() {
            incoming.end_silence_after(PATIENCE_AFTER_THE_END);
        }
        let piece = match incoming.some(&mut buffer) {
            Ok(0) => break,
            Ok(amount) => buffer.get(..amount).unwrap_or_default(),
            Err(Broken::Stopped(stopped)) => return Err(Torn::Broken(Broken::Stopped(stopped))),
            // Nothing that matters can follow.
            Err(_) if answer.is_whole() => break,
            Err(broken) => return Err(Torn::Broken(broken)),
        };
        received = received.saturating_add(piece.len());
        if received > bounds.most.saturating_mul(MOST_PAPER) {
            return Err(Torn::TooLarge);
        }
        ready = events.take(piece).map_err(|_| Torn::TooLarge)?;
    }
    if let Some(event) = events.finish() {
        add(&mut answer, &event, tell)?;
    }
    if answer.is_whole() { Ok(answer.payload()) } else { Err(Torn::Unfinished) }
}

fn add(answer: &mut Assembly, event: &StreamEvent, tell: &mut dyn FnMut(&str)) -> Result<Part, Torn> {
    let part = answer.add(event)?;
    if let Part::Text(text) = &part
        && !text.is_empty()
    {
        tell(text);
    }
    Ok(part)
}
