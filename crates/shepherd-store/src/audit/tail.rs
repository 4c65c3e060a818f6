//! Reads the end of the audit log back to a known position.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ward_ledger::{RECOVERY_FIELD, Sha256Hash, canonical_json, parse_object};

use super::{AuditAnchor, AuditLogError, HASH_FIELD};

/// The number of bytes of the first read; a batch and a few recovery records fit.
const FIRST_WINDOW: u64 = 64 << 10;

/// The records after an anchor.
#[derive(Debug)]
pub(super) struct AuditTail {
    /// The events, without the members that the ledger added.
    pub(super) events: Vec<Map<String, Value>>,
    /// The end of the log.
    pub(super) end: AuditAnchor,
}

/// Reads the records after `anchor`; at most `limit` of them may be events.
pub(super) fn read_after(log: &Path, anchor: AuditAnchor, limit: usize) -> Result<AuditTail, AuditLogError> {
    let mut links: Vec<AuditLink> = Vec::new();
    let mut segments: Vec<PathBuf> = closed_segments(log)?;
    segments.push(log.to_owned());
    while let Some(segment) = segments.pop() {
        let mut window = FIRST_WINDOW;
        let events_after = links.iter().filter(|link| link.is_event()).count();
        loop {
            let (lines, whole) = last_lines(&segment, window)
                .map_err(|source| AuditLogError::Read { path: segment.clone(), source })?;
            let (mut found, mut events) = (Vec::new(), events_after);
            for line in lines.iter().rev() {
                let link = AuditLink::parse(line)
                    .ok_or(AuditLogError::ContentMismatch { sequence: anchor.sequence })?;
                if link.anchor.sequence <= anchor.sequence {
                    links.extend(found);
                    return verify_links(anchor, Some(link.anchor), links);
                }
                events += usize::from(link.is_event());
                found.push(link);
                if events > limit {
                    return Err(AuditLogError::AheadOfDatabase { known: anchor.sequence });
                }
            }
            if whole {
                links.extend(found);
                break;
            }
            window *= 2;
        }
    }
    verify_links(anchor, None, links)
}

/// Checks that the links lead from the last record back to the anchor.
fn verify_links(
    anchor: AuditAnchor,
    before: Option<AuditAnchor>,
    links: Vec<AuditLink>,
) -> Result<AuditTail, AuditLogError> {
    let mut end = before.unwrap_or_default();
    if end.sequence < anchor.sequence {
        return Err(AuditLogError::Truncated { known: anchor.sequence, found: end.sequence });
    }
    if end != anchor {
        return Err(AuditLogError::ContentMismatch { sequence: anchor.sequence });
    }
    let mut events = Vec::new();
    for link in links.into_iter().rev() {
        if (link.anchor.sequence, link.previous_hash) != (end.sequence + 1, end.hash) {
            return Err(AuditLogError::ContentMismatch { sequence: link.anchor.sequence });
        }
        end = link.anchor;
        if link.is_event() {
            events.push(link.content);
        }
    }
    Ok(AuditTail { events, end })
}

/// The parts of a record.
pub(super) struct AuditLink {
    pub(super) anchor: AuditAnchor,
    pub(super) previous_hash: Sha256Hash,
    /// The record without the members of the chain.
    pub(super) content: Map<String, Value>,
}

impl AuditLink {
    /// Returns `None` if the line is no record, or its hash is wrong.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let mut record = parse_object(line).ok()?;
        let hash = parse_hash(&record.remove(HASH_FIELD)?)?;
        if Sha256Hash::of(&[&canonical_json(&record).ok()?]) != hash {
            return None;
        }
        let sequence = record.remove("sequence")?.as_u64()?;
        let previous_hash = parse_hash(&record.remove("previous_hash")?)?;
        Some(Self { anchor: AuditAnchor { sequence, hash }, previous_hash, content: record })
    }

    /// Returns whether the record is an event, and not a recovery record of the ledger.
    fn is_event(&self) -> bool {
        !self.content.contains_key(RECOVERY_FIELD)
    }
}

fn parse_hash(value: &Value) -> Option<Sha256Hash> {
    Sha256Hash::from_hex(value.as_str()?.as_bytes())
}

/// Returns the complete lines in the last `window` bytes of a file, and whether they are the whole file. The ledger
/// leaves no torn line; a missing file has no lines.
fn last_lines(path: &Path, window: u64) -> io::Result<(Vec<Vec<u8>>, bool)> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), true)),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let start = length.saturating_sub(window);
    let mut bytes = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, start)?;
    let mut lines: Vec<Vec<u8>> =
        bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    if start > 0 && !lines.is_empty() {
        lines.remove(0);
    }
    Ok((lines, start == 0))
}

/// Returns the closed segments of a log, oldest first.
pub(super) fn closed_segments(log: &Path) -> Result<Vec<PathBuf>, AuditLogError> {
    let list = || {
        let prefix = format!("{}.", log.file_name().unwrap_or_default().to_string_lossy());
        let mut segments = Vec::new();
        for entry in fs::read_dir(log.parent().unwrap_or(Path::new(".")))? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(&prefix)).unwrap_or_default();
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
                segments.push(entry.path());
            }
        }
        segments.sort();
        Ok(segments)
    };
    list().map_err(|source| AuditLogError::Read { path: log.to_owned(), source })
}
