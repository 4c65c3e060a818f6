//! Framing (S11.1): one JSON object per line, with a largest length.

/// The longest line that the daemon reads from an administrator, in bytes. `set_policy` sends a whole policy in one
/// line; a policy of 1,000 entries has about 150 KiB. A longer policy goes into the daemon's own file, because
/// unlimited lines on a thousand connections would use up all memory.
pub const MAX_ADMIN_FRAME: usize = 256 * 1024;

/// The longest line that the daemon reads from any other client, in bytes. Their longest command is `request_time`
/// with a note of 280 characters, each of which may take twelve bytes. A user with all allowed connections can
/// therefore make the daemon hold at most 16 MiB of half-sent lines.
pub const MAX_FRAME: usize = 16 * 1024;

/// The longest line that a client reads, in bytes. Clients trust the daemon, but their memory is limited too.
pub const MAX_REPLY_FRAME: usize = 64 * 1024 * 1024;

/// The error for a line that is too long. The stream can't be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {limit} bytes")]
pub struct FrameTooLarge {
    /// The largest allowed length.
    pub limit: usize,
}

/// Splits a stream of bytes into lines. Empty lines are skipped, so that a person at a terminal may press return.
///
/// The decoder holds at most one unfinished line and the last piece. A caller that feeds bounded pieces and takes all
/// lines out before the next piece needs bounded memory.
#[derive(Clone, Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// The position of the first byte that was not returned.
    start: usize,
    /// The number of bytes from there that contain no line end.
    scanned: usize,
    limit: usize,
}

impl FrameDecoder {
    /// Creates a decoder for lines of at most this many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, limit }
    }

    /// Changes the largest length of a line.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes the next piece of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next line without its end; `None` until more is fed.
    ///
    /// # Errors
    /// The line is too long. The error is permanent.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameTooLarge> {
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let unseen = rest.get(self.scanned..).unwrap_or_default();
            let Some(found) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.scanned = rest.len();
                if rest.is_empty() {
                    // Most of thousands of connections are idle, and an idle one holds no memory.
                    (self.buffer, self.start) = (Vec::new(), 0);
                    return Ok(None);
                }
                return if rest.len() > self.limit {
                    Err(FrameTooLarge { limit: self.limit })
                } else {
                    Ok(None)
                };
            };
            let length = self.scanned + found;
            if length > self.limit {
                return Err(FrameTooLarge { limit: self.limit });
            }
            let begin = self.start;
            self.start += length + 1;
            self.scanned = 0;
            if !is_empty(self.buffer.get(begin..begin + length).unwrap_or_default()) {
                return Ok(self.buffer.get(begin..begin + length));
            }
        }
    }

    /// Returns whether a line has begun and not ended.
    #[must_use]
    pub fn has_partial_line(&self) -> bool {
        self.start < self.buffer.len()
    }
}

fn is_empty(line: &[u8]) -> bool {
    matches!(line, [] | b"\r")
}
