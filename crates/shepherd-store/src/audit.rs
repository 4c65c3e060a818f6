//! The audit log beside the database (S8.3), and how both stay consistent.
//!
//! A batch is committed to the database with its events in a table, the outbox. Then the events are appended to the
//! log. The next batch removes them from the outbox and stores the end of the log as the *anchor*. Opening the store
//! reads the log from its end back to the anchor and appends the events that a crash left out. The records after the
//! anchor must be the first events of the outbox, in order, and the ledger's own recovery records; any other record
//! was not written by Shepherd.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use thiserror::Error;
use ward_ledger::verify::LedgerVerifyError;
use ward_ledger::{
    Ledger, LedgerAppendError, LedgerFormat, LedgerOptions, LedgerRecovery, SealError, SealedRecord,
    Sha256Hash, seal,
};

mod full_check;
mod page;
mod tail;

pub(crate) use full_check::verify_if_small;
pub use full_check::{AuditCheck, WHOLE_CHECK_BYTES};
pub use page::read_audit_log;

/// The member of a record that holds its own hash.
pub(crate) const HASH_FIELD: &str = "event_hash";

/// The format of the audit log, for programs that verify it.
#[must_use]
pub fn audit_format() -> LedgerFormat {
    LedgerFormat::new(HASH_FIELD).expect("lower-case letters that end in `_hash`")
}

/// A position in the chain, given by the last record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditAnchor {
    pub(crate) sequence: u64,
    pub(crate) hash: Sha256Hash,
}

impl Default for AuditAnchor {
    fn default() -> Self {
        Self { sequence: 0, hash: Sha256Hash::GENESIS }
    }
}

/// The error for an audit log that can't be continued.
#[derive(Debug, Error)]
pub enum AuditLogError {
    /// The ledger can't be opened.
    #[error(transparent)]
    Open(#[from] ward_ledger::LedgerOpenError),
    /// The ledger refuses the events.
    #[error(transparent)]
    Append(#[from] LedgerAppendError),
    /// The log can't be verified.
    #[error(transparent)]
    Verify(#[from] LedgerVerifyError),
    /// Events are missing from the log.
    #[error(
        "it ends with record {found}, but the database expects record {known}: its end was cut off, or it is an older copy"
    )]
    Truncated {
        /// The number of records that the database knows.
        known: u64,
        /// The number of records in the log.
        found: u64,
    },
    /// The operating system refused.
    #[error("could not read {}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The log has a broken link.
    #[error("{fault}")]
    Broken {
        /// The first broken link, or another fault.
        fault: String,
    },
    /// A line of the log is not a record of its chain.
    #[error("{} is damaged after record {after}: a line was changed, removed or added", path.display())]
    InvalidLine {
        /// The path of the file.
        path: PathBuf,
        /// The last valid sequence number.
        after: u64,
    },
    /// The database is older than the log.
    #[error("it has events after record {known} that the database lacks: the database is an older copy")]
    AheadOfDatabase {
        /// The last record that the database knows.
        known: u64,
    },
    /// The log has the right length, but different records.
    #[error("its records up to {sequence} differ from those in the database: another program wrote them")]
    ContentMismatch {
        /// The sequence number of the event.
        sequence: u64,
    },
}

impl AuditLogError {
    /// Returns whether the log itself is damaged, so that a retry can't help.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Open(fault) => !matches!(
                fault,
                ward_ledger::LedgerOpenError::File { .. } | ward_ledger::LedgerOpenError::Recovery { .. }
            ),
            Self::Append(_) | Self::Read { .. } | Self::Verify(_) => false,
            Self::Truncated { .. }
            | Self::Broken { .. }
            | Self::InvalidLine { .. }
            | Self::AheadOfDatabase { .. }
            | Self::ContentMismatch { .. } => true,
        }
    }
}

/// Returns the position of the chain after each record.
pub(crate) fn compute_anchors(
    from: AuditAnchor,
    records: &[Map<String, Value>],
) -> Result<Vec<AuditAnchor>, (usize, SealError)> {
    let format = audit_format();
    let mut anchor = from;
    let mut anchors = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let place = (anchor.sequence + 1, anchor.hash);
        let SealedRecord { hash, .. } =
            seal(&format, None, place, record.clone()).map_err(|error| (index, error))?;
        anchor = AuditAnchor { sequence: anchor.sequence + 1, hash };
        anchors.push(anchor);
    }
    Ok(anchors)
}

/// The log, with the events that still have to be appended.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    /// `None` after a failure: the log is then opened and compared again.
    ledger: Option<Ledger>,
    /// The end of the log when it was last consistent.
    anchor: AuditAnchor,
    /// The events of the outbox from there on.
    outbox: Vec<Map<String, Value>>,
}

impl AuditLog {
    /// Opens the log, checks that it is the one that the database knows, and appends what is missing.
    pub(crate) fn open(
        path: &Path,
        anchor: AuditAnchor,
        outbox: Vec<Map<String, Value>>,
    ) -> Result<(Self, LedgerRecovery), AuditLogError> {
        let mut log = Self { path: path.to_owned(), ledger: None, anchor, outbox };
        let recovery = log.open_ledger()?;
        log.flush_outbox()?;
        Ok((log, recovery))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the end of the log.
    pub(crate) fn anchor(&self) -> AuditAnchor {
        self.anchor
    }

    /// Returns the events that the database has and the log lacks.
    pub(crate) fn pending_count(&self) -> usize {
        self.outbox.len()
    }

    /// Takes the events that were committed to the outbox; all earlier events are in the log.
    pub(crate) fn enqueue_committed(&mut self, records: Vec<Map<String, Value>>) {
        self.outbox.extend(records);
    }

    /// Appends the queued events; when this returns, they are in the log and on disk.
    pub(crate) fn flush_outbox(&mut self) -> Result<(), AuditLogError> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        if self.ledger.is_none() {
            // This follows a failure; if the failure left a trace in the log, the log itself records it.
            drop(self.open_ledger()?);
        }
        let Some(ledger) = self.ledger.as_mut().filter(|_| !self.outbox.is_empty()) else { return Ok(()) };
        let appended = ledger.append_all(self.outbox.clone()).inspect_err(|_| self.ledger = None)?;
        let end = compute_anchors(self.anchor, &self.outbox).ok().and_then(|links| links.last().copied());
        let found = appended.last().map(|last| AuditAnchor { sequence: last.sequence, hash: last.hash });
        match (end, found) {
            (Some(end), Some(found)) if end == found => {
                self.anchor = end;
                self.outbox.clear();
                Ok(())
            }
            // Another record is in its place; the next attempt finds out which.
            (_, found) => {
                self.ledger = None;
                Err(AuditLogError::ContentMismatch { sequence: found.map_or(0, |found| found.sequence) })
            }
        }
    }

    /// Opens the log and leaves the missing events in the outbox.
    fn open_ledger(&mut self) -> Result<LedgerRecovery, AuditLogError> {
        if self.anchor.sequence > 0 && !self.path.exists() && tail::closed_segments(&self.path)?.is_empty() {
            return Err(AuditLogError::Truncated { known: self.anchor.sequence, found: 0 });
        }
        let (ledger, recovery) = Ledger::open(&self.path, LedgerOptions::new(audit_format()))?;
        let found = tail::read_after(&self.path, self.anchor, self.outbox.len())?;
        if !self.outbox.starts_with(&found.events) {
            return Err(AuditLogError::ContentMismatch { sequence: found.end.sequence });
        }
        self.outbox.drain(..found.events.len());
        self.anchor = found.end;
        self.ledger = Some(ledger);
        Ok(recovery)
    }
}
