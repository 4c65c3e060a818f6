//! Reads the lines of a file from its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::chain::MAX_RECORD_BYTES;

/// The number of bytes per read. Most records fit into a single chunk.
const CHUNK_BYTES: usize = 4096;

/// Returns the end of the last complete line. Any bytes after it are a torn line.
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

/// Returns the end of the line that contains the byte at `from`, after its newline. `limit` must follow a
/// newline.
pub(crate) fn find_line_end(file: &File, from: u64, limit: u64) -> io::Result<u64> {
    let mut start = from;
    while start < limit {
        let end = limit.min(start + CHUNK_BYTES as u64);
        let chunk = read_range(file, start, end)?;
        if let Some(newline) = chunk.iter().position(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        start = end;
    }
    Ok(limit)
}

/// Reads the bytes from `start` to `end`.
pub(crate) fn read_range(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// A reader for the lines of a file, last line first.
pub(crate) struct LinesFromEnd<'a> {
    file: &'a File,
    /// The offset from which on all lines have been returned.
    end: u64,
}

impl<'a> LinesFromEnd<'a> {
    /// Creates a reader that starts at `end`, which must follow a newline or be 0.
    pub(crate) fn new(file: &'a File, end: u64) -> Self {
        Self { file, end }
    }

    /// Returns the start of the line that was returned last.
    pub(crate) fn current_offset(&self) -> u64 {
        self.end
    }

    /// Returns the previous line without its newline, or `None` at the beginning of the file.
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
                    "the line is longer than a record may be",
                ));
            }
        }
        self.end = start;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests;
