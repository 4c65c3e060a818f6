//! Reading a log from its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::chain::MAX_RECORD_BYTES;

/// A page of records; most reads need one.
const CHUNK_BYTES: usize = 4096;

/// Where the last complete line ends; what follows it is torn.
pub(crate) fn find_last_line_end(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES as u64);
        let chunk = read_range(file, start, end)?;
        if let Some(newline) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Where the line ends that has the byte at `from`, behind its newline; `most` follows a newline.
pub(crate) fn find_line_end(file: &File, from: u64, most: u64) -> io::Result<u64> {
    let mut start = from;
    while start < most {
        let end = most.min(start + CHUNK_BYTES as u64);
        let chunk = read_range(file, start, end)?;
        if let Some(newline) = chunk.iter().position(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        start = end;
    }
    Ok(most)
}

/// The bytes from `start` to `current_offset`.
pub(crate) fn read_range(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// The lines of a file, the last one first.
pub(crate) struct LinesFromEnd<'a> {
    file: &'a File,
    /// Everything from here on has been handed out.
    end: u64,
}

impl<'a> LinesFromEnd<'a> {
    /// Begins at `current_offset`, which must follow a newline or be 0.
    pub(crate) fn new(file: &'a File, end: u64) -> Self {
        Self { file, end }
    }

    /// Where the line begins that was handed out last.
    pub(crate) fn current_offset(&self) -> u64 {
        self.end
    }

    /// The line before, without its newline; `None` at the beginning of the file.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(line_end) = self.end.checked_sub(1) else { return Ok(None) };
        let mut line = Vec::new();
        let mut start = line_end;
        while start > 0 {
            let chunk_start = start.saturating_sub(CHUNK_BYTES as u64);
            let chunk = read_range(self.file, chunk_start, start)?;
            let newline = chunk.iter().rposition(|byte| *byte == b'\n');
            let kept = newline.map_or(0, |newline| newline + 1);
            line.splice(0..0, chunk.get(kept..).unwrap_or_default().iter().copied());
            start = chunk_start + kept as u64;
            if newline.is_some() {
                break;
            }
            if line.len() > MAX_RECORD_BYTES {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the last line is longer than any record",
                ));
            }
        }
        self.end = start;
        Ok(Some(line))
    }
}
