//! Reads the lines of all segments in order, through one buffer.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::canonical::RecordParseError;
use crate::chain::MAX_RECORD_BYTES;
use crate::error::LedgerReadError;
use crate::files;

/// The initial size of the buffer, large enough that reading is cheap compared with hashing. The buffer grows
/// only for a line that doesn't fit.
const BUFFER_BYTES: usize = 256 << 10;

/// A file of the log, and the way to open it.
pub(crate) struct LogSegment {
    name: Arc<SegmentInfo>,
    source: SegmentSource,
}

/// The file of the log that a line is in.
#[derive(Debug)]
pub(crate) struct SegmentInfo {
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
    /// True for the current segment, where a crash may leave half a line.
    pub(crate) is_last: bool,
}

impl SegmentInfo {
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

enum SegmentSource {
    /// A closed segment, opened only when it is read, since there may be more segments than a process may
    /// have open files.
    Closed,
    Current(File, u64),
    Absent,
}

impl LogSegment {
    pub(crate) fn closed(path: PathBuf, number: u64) -> Self {
        Self { name: Arc::new(SegmentInfo { path, number, is_last: false }), source: SegmentSource::Closed }
    }

    pub(crate) fn current(path: PathBuf, number: u64, file: File, length: u64) -> Self {
        Self {
            name: Arc::new(SegmentInfo { path, number, is_last: true }),
            source: SegmentSource::Current(file, length),
        }
    }

    pub(crate) fn absent(path: PathBuf, number: u64) -> Self {
        Self { name: Arc::new(SegmentInfo { path, number, is_last: true }), source: SegmentSource::Absent }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.name.path
    }

    /// Opens the file, and returns it with the number of bytes to read.
    pub(crate) fn open(self) -> io::Result<Option<(File, u64)>> {
        match self.source {
            SegmentSource::Closed => {
                let file = files::open_existing(&self.name.path)?;
                let length = file.metadata()?.len();
                Ok(Some((file, length)))
            }
            SegmentSource::Current(file, length) => Ok(Some((file, length))),
            SegmentSource::Absent => Ok(None),
        }
    }
}

/// The place of a line in the log.
#[derive(Clone, Debug)]
pub(crate) struct LinePosition {
    pub(crate) segment: Arc<SegmentInfo>,
    /// The line number in the segment, starting at 1.
    pub(crate) line: u64,
}

/// A parser for the lines of a log.
pub(crate) trait LineParser {
    /// The type that a line is parsed into.
    type ParsedRecord;

    /// Parses the record at the start of `bytes` without knowing where the line ends, and returns it with its
    /// length. Returns `None` if that isn't possible.
    fn parse_ahead(&self, bytes: &[u8]) -> Option<(Self::ParsedRecord, usize)>;

    /// Parses a complete line, without its newline.
    fn parse_line(&self, line: &[u8]) -> Result<Self::ParsedRecord, RecordParseError>;
}

/// The result of parsing a line.
#[derive(Debug)]
pub(crate) enum ParsedLine<R> {
    Record(R),
    Invalid(RecordParseError),
    /// A last line without a newline.
    Torn {
        bytes: u64,
    },
}

/// A parsed line and its place in the log.
pub(crate) type PositionedLine<R> = (LinePosition, ParsedLine<R>);

/// A reader for the lines of all segments, in order.
pub(crate) struct LogLines<P> {
    remaining_segments: std::vec::IntoIter<LogSegment>,
    parser: P,
    buffer: LineBuffer,
    position: Option<LinePosition>,
}

impl<P: LineParser> LogLines<P> {
    pub(crate) fn new(segments: Vec<LogSegment>, parser: P) -> Self {
        Self { remaining_segments: segments.into_iter(), parser, buffer: LineBuffer::new(), position: None }
    }

    /// Returns the place of the line that was read last.
    pub(crate) fn last_position(&self) -> Option<&LinePosition> {
        self.position.as_ref()
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<PositionedLine<P::ParsedRecord>>, LedgerReadError> {
        loop {
            if let Some(position) = &mut self.position {
                let line = self.buffer.next_line(&self.parser).map_err(|source| LedgerReadError::File {
                    step: "read",
                    path: position.segment.path.clone(),
                    source,
                })?;
                if let Some(line) = line {
                    position.line += 1;
                    return Ok(Some((position.clone(), line)));
                }
            }
            let Some(segment) = self.remaining_segments.next() else { return Ok(None) };
            let name = Arc::clone(&segment.name);
            let file = segment.open().map_err(|source| LedgerReadError::File {
                step: "open",
                path: name.path.clone(),
                source,
            })?;
            if let Some((file, length)) = file {
                self.buffer.start_file(file.take(length));
                self.position = Some(LinePosition { segment: name, line: 0 });
            }
        }
    }
}

struct LineBuffer {
    file: Option<io::Take<File>>,
    bytes: Vec<u8>,
    /// The start of the bytes that were read from the file but not returned yet.
    start: usize,
    end: usize,
}

impl LineBuffer {
    fn new() -> Self {
        Self { file: None, bytes: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    fn start_file(&mut self, file: io::Take<File>) {
        self.file = Some(file);
        (self.start, self.end) = (0, 0);
    }

    fn next_line<P: LineParser>(&mut self, parser: &P) -> io::Result<Option<ParsedLine<P::ParsedRecord>>> {
        loop {
            let rest = self.bytes.get(self.start..self.end).unwrap_or_default();
            if let Some((record, length)) = parser.parse_ahead(rest)
                && rest.get(length) == Some(&b'\n')
            {
                self.start += length + 1;
                return Ok(Some(ParsedLine::Record(record)));
            }
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.get(..length).unwrap_or_default();
                let line = parser.parse_line(line).map_or_else(ParsedLine::Invalid, ParsedLine::Record);
                self.start += length + 1;
                return Ok(Some(line));
            }
            if rest.len() > MAX_RECORD_BYTES {
                return self.skip_line().map(Some);
            }
            let length = rest.len() as u64;
            if !self.fill_buffer()? {
                self.start = self.end;
                return Ok((length > 0).then_some(ParsedLine::Torn { bytes: length }));
            }
        }
    }

    /// Reads more bytes from the file into the buffer. Returns false at the end of the file.
    fn fill_buffer(&mut self) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        let Some(file) = &mut self.file else { return Ok(false) };
        loop {
            match file.read(self.bytes.get_mut(self.end..).unwrap_or_default()) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Skips a line that is longer than a record may be.
    fn skip_line<R>(&mut self) -> io::Result<ParsedLine<R>> {
        let mut skipped = 0;
        loop {
            let rest = self.bytes.get(self.start..self.end).unwrap_or_default();
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                self.start += length + 1;
                let fault =
                    format!("the line is longer than {MAX_RECORD_BYTES} bytes, the limit for a record");
                return Ok(ParsedLine::Invalid(RecordParseError::NotRecord(fault)));
            }
            skipped += rest.len() as u64;
            self.start = self.end;
            if !self.fill_buffer()? {
                return Ok(ParsedLine::Torn { bytes: skipped });
            }
        }
    }
}
