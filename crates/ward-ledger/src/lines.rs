//! The lines of all segments, one after the other, through one buffer.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::canonical::ParseError;
use crate::chain::MAX_RECORD_BYTES;
use crate::error::ReadError;
use crate::files;

/// Enough that reading costs nothing beside hashing; it grows only for a line that doesn't fit.
const BUFFER_BYTES: usize = 256 << 10;

/// A file of the log.
pub(crate) struct Segment {
    name: Arc<SegmentName>,
    source: Source,
}

/// Which file of the log a line is in.
#[derive(Debug)]
pub(crate) struct SegmentName {
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
    /// The segment that is being written, where a crash may leave half a line.
    pub(crate) is_last: bool,
}

impl SegmentName {
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

enum Source {
    /// Opened when its turn comes: there may be more segments than a process may have files.
    Closed,
    Current(File, u64),
    Absent,
}

impl Segment {
    pub(crate) fn closed(path: PathBuf, number: u64) -> Self {
        Self { name: Arc::new(SegmentName { path, number, is_last: false }), source: Source::Closed }
    }

    pub(crate) fn current(path: PathBuf, number: u64, file: File, length: u64) -> Self {
        Self {
            name: Arc::new(SegmentName { path, number, is_last: true }),
            source: Source::Current(file, length),
        }
    }

    pub(crate) fn absent(path: PathBuf, number: u64) -> Self {
        Self { name: Arc::new(SegmentName { path, number, is_last: true }), source: Source::Absent }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.name.path
    }

    /// The file, and how much of it is to be read.
    pub(crate) fn open(self) -> io::Result<Option<(File, u64)>> {
        match self.source {
            Source::Closed => {
                let file = files::open_existing(&self.name.path)?;
                let length = file.metadata()?.len();
                Ok(Some((file, length)))
            }
            Source::Current(file, length) => Ok(Some((file, length))),
            Source::Absent => Ok(None),
        }
    }
}

/// Where a line is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) segment: Arc<SegmentName>,
    /// From 1.
    pub(crate) line: u64,
}

/// What a line is made into.
pub(crate) trait ParseLine {
    /// What comes of a record.
    type Record;

    /// Reads the record that `bytes` begin with and says how long it is, when that can be done
    /// without knowing where the line ends.
    fn parse_ahead(&self, bytes: &[u8]) -> Option<(Self::Record, usize)>;

    /// Reads a whole line, without its newline.
    fn parse_line(&self, line: &[u8]) -> Result<Self::Record, ParseError>;
}

/// What a line holds.
#[derive(Debug)]
pub(crate) enum Line<R> {
    Record(R),
    Fault(ParseError),
    /// A last line without a newline.
    Torn {
        bytes: u64,
    },
}

/// A line and where it is.
pub(crate) type PlacedLine<R> = (Place, Line<R>);

/// Reads the segments in their order.
pub(crate) struct LogLines<P> {
    waiting: std::vec::IntoIter<Segment>,
    parser: P,
    buffer: Buffer,
    place: Option<Place>,
}

impl<P: ParseLine> LogLines<P> {
    pub(crate) fn new(segments: Vec<Segment>, parser: P) -> Self {
        Self { waiting: segments.into_iter(), parser, buffer: Buffer::new(), place: None }
    }

    /// The place of the line that was read last.
    pub(crate) fn last_place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<PlacedLine<P::Record>>, ReadError> {
        loop {
            if let Some(place) = &mut self.place {
                let line = self.buffer.next_line(&self.parser).map_err(|source| ReadError::File {
                    step: "read",
                    path: place.segment.path.clone(),
                    source,
                })?;
                if let Some(line) = line {
                    place.line += 1;
                    return Ok(Some((place.clone(), line)));
                }
            }
            let Some(segment) = self.waiting.next() else { return Ok(None) };
            let name = Arc::clone(&segment.name);
            let file = segment.open().map_err(|source| ReadError::File {
                step: "open",
                path: name.path.clone(),
                source,
            })?;
            if let Some((file, length)) = file {
                self.buffer.begin(file.take(length));
                self.place = Some(Place { segment: name, line: 0 });
            }
        }
    }
}

struct Buffer {
    file: Option<io::Take<File>>,
    bytes: Vec<u8>,
    /// What has been read from the file and not yet handed out.
    start: usize,
    end: usize,
}

impl Buffer {
    fn new() -> Self {
        Self { file: None, bytes: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    fn begin(&mut self, file: io::Take<File>) {
        self.file = Some(file);
        (self.start, self.end) = (0, 0);
    }

    fn next_line<P: ParseLine>(&mut self, parser: &P) -> io::Result<Option<Line<P::Record>>> {
        loop {
            let rest = self.bytes.get(self.start..self.end).unwrap_or_default();
            if let Some((record, length)) = parser.parse_ahead(rest)
                && rest.get(length) == Some(&b'\n')
            {
                self.start += length + 1;
                return Ok(Some(Line::Record(record)));
            }
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.get(..length).unwrap_or_default();
                let line = parser.parse_line(line).map_or_else(Line::Fault, Line::Record);
                self.start += length + 1;
                return Ok(Some(line));
            }
            if rest.len() > MAX_RECORD_BYTES {
                return self.skip_line().map(Some);
            }
            let length = rest.len() as u64;
            if !self.fill()? {
                self.start = self.end;
                return Ok((length > 0).then_some(Line::Torn { bytes: length }));
            }
        }
    }

    /// Reads more behind what is there; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
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

    /// Passes over a line that is longer than any record.
    fn skip_line<R>(&mut self) -> io::Result<Line<R>> {
        let mut skipped = 0;
        loop {
            let rest = self.bytes.get(self.start..self.end).unwrap_or_default();
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                self.start += length + 1;
                let fault =
                    format!("the line is longer than {MAX_RECORD_BYTES} bytes, the most a record has");
                return Ok(Line::Fault(ParseError::NotRecord(fault)));
            }
            skipped += rest.len() as u64;
            self.start = self.end;
            if !self.fill()? {
                return Ok(Line::Torn { bytes: skipped });
            }
        }
    }
}
