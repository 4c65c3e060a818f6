//! Lines in, whatever way the bytes come (S11.1): one JSON object a line, and a line has a longest length.

/// Longest line that the daemon reads from an administrator, in bytes. `set_policy` sends a whole policy in one
/// line; one of 1,000 entries has about 150 KiB. A longer one is put into the daemon's own file: on a thousand
/// connections lines of any length would be all the memory there is.
pub const MAX_ADMIN_FRAME: usize = 256 * 1024;

/// Longest line that the daemon reads from anybody else, in bytes. Their longest command is `request_time` with a
/// note of 280 characters, each of which may be written as twelve bytes. A user with all connections that one may
/// have can so make the daemon hold 16 MiB of half-sent lines, and no more.
pub const MAX_FRAME: usize = 16 * 1024;

/// Longest line that a client reads, in bytes. The daemon is trusted, but a client has a memory to lose.
pub const MAX_REPLY_FRAME: usize = 64 * 1024 * 1024;

/// A line is longer than it may be. Nothing after it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {limit} bytes")]
pub struct FrameTooLarge {
    /// The longest length.
    pub limit: usize,
}

/// Cuts a stream of bytes into lines. Empty lines are passed over, so that a person at a terminal may press return.
///
/// It holds at most one unfinished line and what was fed last, so whoever feeds it bounded pieces, and takes all
/// lines out before the next piece, needs bounded memory.
#[derive(Clone, Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Where the first byte stands that was not handed out.
    start: usize,
    /// How far, from there on, no end of a line was found.
    scanned: usize,
    limit: usize,
}

impl FrameDecoder {
    /// A decoder of lines with at most so many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, limit }
    }

    /// From now on lines may have so many bytes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes in the next piece of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line, without its end; `Normal` until more is fed.
    ///
    /// # Errors
    /// The line is too long. It stays an error for ever.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameTooLarge> {
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let unseen = rest.get(self.scanned..).unwrap_or_default();
            let Some(found) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.scanned = rest.len();
                if rest.is_empty() {
                    // Of thousands of connections most are idle: they hold nothing.
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

    /// Whether a line was begun and has not ended.
    #[must_use]
    pub fn has_partial_line(&self) -> bool {
        self.start < self.buffer.len()
    }
}

fn is_empty(line: &[u8]) -> bool {
    matches!(line, [] | b"\r")
}
