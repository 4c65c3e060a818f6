//! Events in a stream of bytes (`text/event-stream`), wherever the bytes are cut.

/// What a file may begin with to say that it is UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Takes bytes as they come and gives the events in them.
#[derive(Debug)]
pub struct EventReader {
    most: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Option<Vec<u8>>,
    first_line: bool,
    after_return: bool,
}

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// What kind it is; most servers don't say.
    pub name: Vec<u8>,
    /// Its lines, as they were sent.
    pub data: Vec<u8>,
}

/// An event, or a line of one, is longer than was agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {most} bytes")]
pub struct EventTooLong {
    /// How long one may be.
    pub most: usize,
}

impl EventReader {
    /// For a stream whose events are at most so many bytes long, names and comments included.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), name: Vec::new(), data: None, first_line: true, after_return: false }
    }

    /// Takes more bytes and returns the events that they complete.
    ///
    /// # Errors
    /// When an event is too long. The stream can't be read on then.
    pub fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<Vec<StreamEvent>, EventTooLong> {
        let mut events = Vec::new();
        if std::mem::take(&mut self.after_return) {
            // One line end in two pieces, unless there is nothing yet of the second.
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

    /// The event that was sent whole but for the empty line behind it: servers forget that at the end.
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
            // Comments keep the connection alive, and the other fields are for those who come back.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<StreamEvent> {
        let name = std::mem::take(&mut self.name);
        self.data.take().map(|data| StreamEvent { name, data })
    }
}
