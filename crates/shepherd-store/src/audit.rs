//! The audit log beside the database (S8.3), and how the two stay together.
//!
//! A batch is committed to the database with its events in a table, the outbox. Then the events are appended to the
//! log. The next batch removes them from the outbox and notes where the log ended: the *anchor*. Whoever opens the
//! store reads the log back to the anchor and appends what a crash kept from it. What stands there must be the first
//! events of the outbox, in order, and the ledger's own accounts of recoveries; anything else was not written by us.

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

/// The format of the audit log, for whoever verifies it.
#[must_use]
pub fn audit_format() -> LedgerFormat {
    LedgerFormat::new(HASH_FIELD).expect("lower-case letters that end in `_hash`")
}

/// A place in the chain: the last record before it.
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

/// Why the audit log can't be continued.
#[derive(Debug, Error)]
pub enum AuditLogError {
    /// The ledger doesn't open it.
    #[error(transparent)]
    Open(#[from] ward_ledger::LedgerOpenError),
    /// The ledger doesn't take the events.
    #[error(transparent)]
    Append(#[from] LedgerAppendError),
    /// It can't be verified.
    #[error(transparent)]
    Verify(#[from] LedgerVerifyError),
    /// Events that were there are gone.
    #[error(
        "it ends with number {found}, and the database knows of {known}: its end was cut off, or it is an older copy"
    )]
    Truncated {
        /// How many the database knows to be there.
        known: u64,
        /// How many there are.
        found: u64,
    },
    /// The system refused.
    #[error("can't read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It does not verify.
    #[error("{fault}")]
    Broken {
        /// The first broken link, or what else is wrong.
        fault: String,
    },
    /// What stands in the log is no record of its chain.
    #[error("{} has after number {after} what nobody wrote there: a line was changed, removed or added", path.display())]
    InvalidLine {
        /// The file.
        path: PathBuf,
        /// The last number that is in order.
        after: u64,
    },
    /// The database is older than the log.
    #[error(
        "it has events after number {known} that the database doesn't know of: the database is an older copy"
    )]
    AheadOfDatabase {
        /// The last that the database knows to be there.
        known: u64,
    },
    /// As long as it should be, and yet another one.
    #[error(
        "what stands there up to number {sequence} is not what the database knows: somebody else wrote it"
    )]
    ContentMismatch {
        /// The number of the event.
        sequence: u64,
    },
}

impl AuditLogError {
    /// Whether the log itself is not what it should be, so that trying again is of no use.
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

/// Where the chain is after each of the records.
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

/// The log and what is still to be appended to it.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    /// `None` after a failure: then the log is opened and compared again.
    ledger: Option<Ledger>,
    /// Where the log ended when it was last in order.
    anchor: AuditAnchor,
    /// What the database has for it from there on.
    outbox: Vec<Map<String, Value>>,
}

impl AuditLog {
    /// Opens the log, makes sure that it is the one that the database knows, and appends what it lacks.
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

    /// Where the log ends.
    pub(crate) fn anchor(&self) -> AuditAnchor {
        self.anchor
    }

    /// What the database has and the log has not.
    pub(crate) fn pending_count(&self) -> usize {
        self.outbox.len()
    }

    /// Takes over what was committed to the outbox; all that was there before is in the log.
    pub(crate) fn enqueue_committed(&mut self, records: Vec<Map<String, Value>>) {
        self.outbox.extend(records);
    }

    /// Appends what waits; when this returns, it is in the log and on disk.
    pub(crate) fn flush_outbox(&mut self) -> Result<(), AuditLogError> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        if self.ledger.is_none() {
            // After a failure, of which the log itself tells if it left a trace there.
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
            // Something else stands before it; the next attempt finds out what.
            (_, found) => {
                self.ledger = None;
                Err(AuditLogError::ContentMismatch { sequence: found.map_or(0, |found| found.sequence) })
            }
        }
    }

    /// Opens the log and leaves in the outbox what it lacks.
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
