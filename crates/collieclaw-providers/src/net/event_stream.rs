//! A parser for server-sent events (`text/event-stream`) that accepts the bytes in chunks of any size.

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Collects bytes and returns the events that they complete.
#[derive(Debug)]
pub struct EventReader {
    most: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Option<Vec<u8>>,
    first_line: bool,
    after_return: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// The event type; most servers send none.
    pub name: Vec<u8>,
    /// The data lines, joined by line feeds.
    pub data: Vec<u8>,
}

/// An event, or a line of an event, exceeds the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {most} bytes")]
pub struct EventTooLong {
    /// The size limit in bytes.
    pub most: usize,
}

impl EventReader {
    /// Creates a reader that accepts events up to `most` bytes, including names and comments.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), name: Vec::new(), data: None, first_line: true, after_return: false }
    }

    /// Adds bytes and returns the events that they complete.
    ///
    /// # Errors
    /// Fails if an event is too long; the rest of the stream can't be read then.
    pub fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<Vec<StreamEvent>, EventTooLong> {
        let mut events = Vec::new();
        if std::mem::take(&mut self.after_return) {
            // A CRLF may be split between two chunks. An empty chunk doesn't decide that yet.
            self.after_return = bytes.is_empty();
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            self.push_to_line(line)?;
            events.extend(self.end_line());
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [_, rest @ ..] => {
                    self.after_return = rest.is_empty();
                    rest
                }
                [] => rest,
            };
        }
        self.push_to_line(bytes)?;
        Ok(events)
    }

    /// Returns the last event if only its closing blank line is missing: some servers omit that line at the
    /// end.
    #[must_use]
    pub fn finish(mut self) -> Option<StreamEvent> {
        let ended = self.end_line();
        ended.or_else(|| self.dispatch())
    }

    fn push_to_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        let held = self.line.len() + self.name.len() + self.data.as_ref().map_or(0, Vec::len);
        if held.saturating_add(bytes.len()) > self.most {
            return Err(EventTooLong { most: self.most });
        }
        self.line.extend(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<StreamEvent> {
        let held = std::mem::take(&mut self.line);
        let mut line = held.as_slice();
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (field, &mut self.data) {
            (b"data", Some(data)) => {
                data.push(b'\n');
                data.extend(value);
            }
            (b"data", data @ None) => *data = Some(value.to_vec()),
            (b"event", _) => self.name = value.to_vec(),
            // Comments keep the connection alive, and the other fields matter only to clients that reconnect.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<StreamEvent> {
        let name = std::mem::take(&mut self.name);
        self.data.take().map(|data| StreamEvent { name, data })
    }
}
