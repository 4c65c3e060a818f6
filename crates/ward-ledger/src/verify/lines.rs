//! The lines of all segments, one after the other, through one buffer.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::VerifyError;
use crate::canonical::ParseError;
use crate::chain::MAX_RECORD_BYTES;
use crate::files;
use crate::record::{Record, RecordReader};

/// Enough that reading costs nothing beside hashing; it grows only for a line that doesn't fit.
const BUFFER_BYTES: usize = 256 << 10;

/// A file of the log.
pub(super) struct Segment {
    name: Arc<SegmentName>,
    source: Source,
}

/// Which file of the log a line is in.
#[derive(Debug)]
pub(super) struct SegmentName {
    pub(super) path: PathBuf,
    pub(super) number: u64,
    /// The segment that is being written, where a crash may leave half a line.
    pub(super) is_last: bool,
}

impl SegmentName {
    pub(super) fn name(&self) -> String {
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
    pub(super) fn closed(path: PathBuf, number: u64) -> Self {
        Self { name: Arc::new(SegmentName { path, number, is_last: false }), source: Source::Closed }
    }

    pub(super) fn current(path: PathBuf, number: u64, file: File, length: u64) -> Self {
        Self {
            name: Arc::new(SegmentName { path, number, is_last: true }),
            source: Source::Current(file, length),
        }
    }

    pub(super) fn absent(path: PathBuf, number: u64) -> Self {
        Self { name: Arc::new(SegmentName { path, number, is_last: true }), source: Source::Absent }
    }

    fn open(self) -> io::Result<Option<io::Take<File>>> {
        match self.source {
            Source::Closed => {
                let file = files::open_existing(&self.name.path)?;
                let length = file.metadata()?.len();
                Ok(Some(file.take(length)))
            }
            Source::Current(file, length) => Ok(Some(file.take(length))),
            Source::Absent => Ok(None),
        }
    }
}

/// Where a line is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) segment: Arc<SegmentName>,
    /// From 1.
    pub(super) line: u64,
}

/// What a line holds.
#[derive(Debug)]
pub(super) enum Line {
    Record(Record),
    Fault(ParseError),
    /// A last line without a newline.
    Torn {
        bytes: u64,
    },
}

/// Reads the segments in their order.
pub(super) struct LogLines<'a> {
    waiting: std::vec::IntoIter<Segment>,
    reader: &'a RecordReader,
    buffer: Buffer,
    place: Option<Place>,
}

impl<'a> LogLines<'a> {
    pub(super) fn new(segments: Vec<Segment>, reader: &'a RecordReader) -> Self {
        Self { waiting: segments.into_iter(), reader, buffer: Buffer::new(), place: None }
    }

    /// The place of the line that was read last.
    pub(super) fn last_place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    pub(super) fn next_line(&mut self) -> Result<Option<(Place, Line)>, VerifyError> {
        loop {
            if let Some(place) = &mut self.place {
                let line = self.buffer.next_line(self.reader).map_err(|source| VerifyError::File {
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
            let file = segment.open().map_err(|source| VerifyError::File {
                step: "open",
                path: name.path.clone(),
                source,
            })?;
            if let Some(file) = file {
                self.buffer.begin(file);
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

    fn next_line(&mut self, reader: &RecordReader) -> io::Result<Option<Line>> {
        loop {
            let rest = self.bytes.get(self.start..self.end).unwrap_or_default();
            if let Some((record, length)) = reader.read_canonical(rest)
                && rest.get(length) == Some(&b'\n')
            {
                self.start += length + 1;
                return Ok(Some(Line::Record(record)));
            }
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.get(..length).unwrap_or_default();
                let line = reader.read_slowly(line).map_or_else(Line::Fault, Line::Record);
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
    fn skip_line(&mut self) -> io::Result<Line> {
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
