//! The end of the audit log, read back to a place that is known.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ward_ledger::{RECOVERY_FIELD, Sha256Hash, canonical_json, parse_object};

use super::{AuditAnchor, AuditLogError, HASH_FIELD};

/// What is read at first; a batch and a few recoveries fit.
const FIRST_WINDOW: u64 = 64 << 10;

/// What follows an anchor.
#[derive(Debug)]
pub(super) struct AuditTail {
    /// The events, without what the ledger added to them.
    pub(super) events: Vec<Map<String, Value>>,
    /// Where the log ends.
    pub(super) end: AuditAnchor,
}

/// Reads what follows `anchor`, of which at most `limit` may be events.
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

/// Makes sure that the links, the last one first, lead back to the anchor.
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

/// A record, taken apart.
pub(super) struct AuditLink {
    pub(super) anchor: AuditAnchor,
    pub(super) previous_hash: Sha256Hash,
    /// Without what the chain added to it.
    pub(super) content: Map<String, Value>,
}

impl AuditLink {
    /// `None` if it is no record, or not what its hash says.
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

    /// Whether it is one of ours, and not the ledger's own account.
    fn is_event(&self) -> bool {
        !self.content.contains_key(RECOVERY_FIELD)
    }
}

fn parse_hash(value: &Value) -> Option<Sha256Hash> {
    Sha256Hash::from_hex(value.as_str()?.as_bytes())
}

/// The complete lines in the last `window` bytes of a file, and whether they are all that it has. The ledger leaves
/// no torn line; a file that is not there has no lines.
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

/// The closed segments of a log, the oldest first.
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
