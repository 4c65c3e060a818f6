//! Reads a page of the audit log, from any position.
//!
//! Sequence numbers rise from line to line, so a binary search finds the position: a page from the middle of a log of
//! years costs what it returns, and a few lines more.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value};
use shepherd_api::{AuditEvent, AuditKind, AuditRecord};
use ward_ledger::RECOVERY_FIELD;

use super::tail::{AuditLink, closed_segments};
use super::{AuditAnchor, AuditLogError};
use crate::error::StoreError;
use crate::folder::audit_log_path;
use crate::record::record_to_event;
use crate::store::AUDIT_PAGE_BYTES;

/// Ranges shorter than this are read through instead of being halved again.
const READ_THROUGH_BYTES: u64 = 32 << 10;

/// Returns the same as [`Store::read_audit`](crate::Store::read_audit), but needs only the store's folder: a long page
/// then delays no batch.
///
/// # Errors
/// The log can't be read, or a line is damaged.
pub fn read_audit_log(folder: &Path, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
    let path = audit_log_path(folder);
    read_page(&path, after.unwrap_or(0), limit).map_err(|source| StoreError::ReadAudit { path, source })
}

/// Reads at most `limit` records after the sequence number `after`, each of which must follow the one before it.
fn read_page(log: &Path, after: u64, limit: u32) -> Result<Vec<AuditRecord>, AuditLogError> {
    let mut segments = closed_segments(log)?;
    segments.push(log.to_owned());
    let mut page = AuditPage { after, limit: limit as usize, bytes: 0, before: None, records: Vec::new() };
    let first = first_segment(&segments, after)?;
    for (index, path) in segments.iter().enumerate().skip(first) {
        let read = |source| AuditLogError::Read { path: path.clone(), source };
        let Some(mut segment) = AuditSegmentReader::open(path).map_err(read)? else { continue };
        if index == first {
            segment.seek_to(after).map_err(read)?;
        }
        while !page.is_full() {
            let Some(line) = segment.next_line().map_err(read)? else { break };
            page.push_line(&line).ok_or_else(|| AuditLogError::InvalidLine {
                path: path.clone(),
                after: page.last_sequence(),
            })?;
        }
    }
    Ok(page.records)
}

/// Finds the last segment that begins at or before the record `after`, by binary search.
fn first_segment(segments: &[PathBuf], after: u64) -> Result<usize, AuditLogError> {
    let (mut low, mut high) = (0, segments.len());
    while high - low > 1 {
        let middle = low.midpoint(high);
        let Some(path) = segments.get(middle) else { break };
        let read = |source| AuditLogError::Read { path: path.clone(), source };
        let line = match AuditSegmentReader::open(path).map_err(read)? {
            Some(mut segment) => segment.next_line().map_err(read)?,
            None => None,
        };
        match line.as_deref().and_then(AuditLink::parse) {
            Some(link) if link.anchor.sequence <= after => low = middle,
            // A segment without a record is the last one.
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The records that were read so far.
struct AuditPage {
    after: u64,
    limit: usize,
    bytes: usize,
    /// The previous record, and the time at which it was written.
    before: Option<(AuditAnchor, Timestamp)>,
    records: Vec<AuditRecord>,
}

impl AuditPage {
    fn is_full(&self) -> bool {
        self.records.len() >= self.limit || self.bytes >= AUDIT_PAGE_BYTES
    }

    fn last_sequence(&self) -> u64 {
        self.before.map_or(self.after, |(before, _)| before.sequence)
    }

    /// Returns `None` if the line does not follow the previous one.
    fn push_line(&mut self, line: &[u8]) -> Option<()> {
        let link = AuditLink::parse(line)?;
        // A page may begin anywhere, and a log begins at number 1.
        let fits = match self.before {
            Some((before, _)) => {
                (link.anchor.sequence, link.previous_hash) == (before.sequence + 1, before.hash)
            }
            None => link.anchor.sequence <= self.after.saturating_add(1),
        };
        if !fits {
            return None;
        }
        let sequence = link.anchor.sequence;
        let shown = displayed_event(link.content, self.before.map_or(Timestamp::UNIX_EPOCH, |(_, at)| at));
        self.before = Some((link.anchor, shown.at));
        if sequence > self.after {
            self.bytes += line.len();
            self.records.push(AuditRecord { sequence, line: shown });
        }
        Some(())
    }
}

/// Reads the event of a line. The ledger's recovery records and events of a newer version become notes, so that every
/// number has its record. The ledger has no clock, so its record gets the time of the previous line.
fn displayed_event(record: Map<String, Value>, before: Timestamp) -> AuditEvent {
    let note = |at, actor: &str, title: &str, value: &Value| {
        let what = AuditKind::Note { text: format!("{title}: {value}") };
        AuditEvent { at, actor: actor.to_owned(), what }
    };
    if let Some(recovery) = record.get(RECOVERY_FIELD) {
        return note(before, "policy", "the audit log was repaired", recovery);
    }
    match record_to_event(record.clone()) {
        Ok(event) => event,
        Err(_) => {
            let text = |name: &str| record.get(name).and_then(Value::as_str);
            let at = text("at").and_then(|at| at.parse().ok()).unwrap_or(before);
            let actor = text("actor").unwrap_or("unknown").to_owned();
            note(at, &actor, "unknown event of a newer version", &Value::Object(record))
        }
    }
}

/// A file of the log.
struct AuditSegmentReader {
    reader: BufReader<File>,
    length: u64,
}

impl AuditSegmentReader {
    /// Returns `None` if the file doesn't exist, as before the first event.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => {
                let length = file.metadata()?.len();
                Ok(Some(Self { reader: BufReader::new(file), length }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the next complete line; a line without an end is still being written.
    fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        Ok((line.pop() == Some(b'\n')).then_some(line))
    }

    /// Moves to a line at or shortly before the number `sequence`.
    fn seek_to(&mut self, sequence: u64) -> io::Result<()> {
        let (mut low, mut high) = (0, self.length);
        // A line that was written meanwhile may begin beyond the end that was found.
        while high.saturating_sub(low) > READ_THROUGH_BYTES {
            let middle = low.midpoint(high);
            let (start, line) = self.next_line_from(middle)?;
            match line.as_deref().and_then(AuditLink::parse) {
                Some(link) if link.anchor.sequence <= sequence => low = start,
                // An unreadable line counts as well: reading on from there finds it again and reports it.
                _ => high = middle,
            }
        }
        self.reader.seek(SeekFrom::Start(low)).map(drop)
    }

    /// Returns the first line that begins at or after an offset, with its position.
    fn next_line_from(&mut self, offset: u64) -> io::Result<(u64, Option<Vec<u8>>)> {
        self.reader.seek(SeekFrom::Start(offset.saturating_sub(1)))?;
        if offset > 0 {
            let rest = self.reader.read_until(b'\n', &mut Vec::new())?;
            return Ok((offset - 1 + rest as u64, self.next_line()?));
        }
        Ok((0, self.next_line()?))
    }
}

#[cfg(test)]
mod tests {
    use ward_ledger::{Ledger, LedgerOptions};

    use super::*;
    use crate::audit::audit_format;
    use crate::conformance::sample::note_event;
    use crate::record::event_to_record;

    #[test]
    fn a_log_that_grows_while_it_is_read_is_read() {
        // S13.3b: the last line was long and half written when its length was taken.
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let (mut ledger, _) = Ledger::open(&log, LedgerOptions::new(audit_format())).unwrap();
        let mut long = note_event(1);
        long.what = AuditKind::Note { text: "x".repeat(100_000) };
        ledger.append(event_to_record(&long).unwrap()).unwrap();
        ledger.append(event_to_record(&note_event(2)).unwrap()).unwrap();
        let mut segment = AuditSegmentReader::open(&log).unwrap().unwrap();
        segment.length = 80_000;
        segment.seek_to(2).unwrap();
        let line = segment.next_line().unwrap().unwrap();
        assert_eq!(AuditLink::parse(&line).unwrap().anchor.sequence, 2);
    }
}
