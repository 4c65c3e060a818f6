//! The writer of a log. All records are appended through [`Ledger`].

use std::fs::File;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::chain::{RECOVERY_FIELD, SealedRecord, seal, seal_unrestricted};
use crate::error::{LedgerAppendError, LedgerOpenError};
use crate::files::{self, FileIdentity};
use crate::hash::Sha256Hash;
use crate::head;
use crate::record::RecordReader;

mod last_seen;
mod options;
mod recovery;
mod tip;
mod torn_tail;

pub use options::LedgerOptions;
pub use recovery::{HeadRecovery, LedgerRecovery, TornTail};

use last_seen::LastSeenRecord;
use options::AdoptionOptions;
use tip::{ChainTip, TipSearch};

/// The number and hash of a record that is durably in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRecord {
    /// The number of the record, starting at 1.
    pub sequence: u64,
    /// The hash of the record, which the next record refers to.
    pub hash: Sha256Hash,
}

/// A log that is open for appending. Any number of processes may have the same log open.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    options: LedgerOptions,
    head: File,
    head_identity: FileIdentity,
    /// The end of the chain as this process last saw it, or `None` if it has to be read again.
    tip: Option<ChainTip>,
    /// The last record that this writer has seen. It must stay in the log.
    last_seen: Option<LastSeenRecord>,
    recoveries: Vec<LedgerRecovery>,
}

impl Ledger {
    /// Opens the log at `path`, or creates it if it doesn't exist. The folder must exist. If a crash left a
    /// half-written line, moves that line to a file of its own. Checks the last records against the head, and
    /// appends a record about everything that was repaired.
    ///
    /// # Errors
    /// Fails if the files can't be read or written, or if the log is damaged and must not be continued.
    pub fn open(path: &Path, options: LedgerOptions) -> Result<(Self, LedgerRecovery), LedgerOpenError> {
        let (head, head_identity) = open_head(path)?;
        let mut ledger = Self {
            path: path.to_owned(),
            options,
            head,
            head_identity,
            tip: None,
            last_seen: None,
            recoveries: Vec::new(),
        };
        ledger.lock()?;
        let tip = ledger.load_tip();
        ledger.unlock();
        ledger.tip = Some(tip?);
        // The decision to adopt was about the log in its present state, not about later damage.
        ledger.options.adoption = AdoptionOptions::default();
        let recovery = ledger.recoveries.pop().unwrap_or(LedgerRecovery::NOTHING);
        Ok((ledger, recovery))
    }

    /// Returns the path of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the recoveries that appends had to do since the last call, after crashes of other processes.
    pub fn take_recoveries(&mut self) -> Vec<LedgerRecovery> {
        mem::take(&mut self.recoveries)
    }

    /// Appends a record. When this returns, the record is on disk.
    ///
    /// # Errors
    /// Fails if the record contains something that a log can't hold, or can't be written.
    pub fn append(&mut self, record: Map<String, Value>) -> Result<AppendedRecord, LedgerAppendError> {
        let appended = self.append_all(vec![record])?;
        Ok(*appended.first().expect("one record was given"))
    }

    /// Appends several records in order, with a single sync to disk. If it fails, none of them are appended.
    /// A crash in the middle may leave the first few in the log.
    ///
    /// # Errors
    /// Fails if a record contains something that a log can't hold, or if the records can't be written.
    pub fn append_all(
        &mut self,
        records: Vec<Map<String, Value>>,
    ) -> Result<Vec<AppendedRecord>, LedgerAppendError> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        self.lock()?;
        let appended = self.append_locked(records);
        self.unlock();
        appended
    }

    fn append_locked(
        &mut self,
        records: Vec<Map<String, Value>>,
    ) -> Result<Vec<AppendedRecord>, LedgerAppendError> {
        // `load_tip` takes `self.tip`, which stays empty on errors, so that the next append reads the end
        // again.
        let mut tip = self.load_tip()?;
        let (lines, appended) = seal_all(&self.options, &tip, records)?;
        if tip.length > 0 && tip.length + lines.len() as u64 > self.options.max_segment_bytes {
            tip.rotate(&self.path)?;
        }
        tip.write(&self.path, &lines)?;
        let last = appended.last().expect("at least one record was given");
        self.write_head(&tip, last)?;
        tip.advance(lines.len() as u64, last);
        self.last_seen = LastSeenRecord::from_tip(&tip);
        self.tip = Some(tip);
        Ok(appended)
    }

    fn write_head(&self, tip: &ChainTip, last: &AppendedRecord) -> Result<(), LedgerAppendError> {
        let key = self.options.key.as_ref();
        let Err(source) = head::write_head(&self.head, (last.sequence, last.hash), tip.segment, key) else {
            return Ok(());
        };
        let error = tip.roll_back(&self.path, "write the head of", source);
        // The new head may have reached the disk. It would vouch for a record that was rolled back.
        Err(match head::write_head(&self.head, (tip.sequence, tip.hash), tip.segment, key) {
            Ok(()) => error,
            Err(rollback) => error.with_rollback_error(rollback),
        })
    }

    /// Returns the end of the chain as it is on disk now, after any repair. The caller must hold the lock.
    fn load_tip(&mut self) -> Result<ChainTip, LedgerOpenError> {
        let key = self.options.key.as_ref();
        let reader = &RecordReader::new(&self.options.format, key);
        let search = TipSearch { log: &self.path, head_file: &self.head, reader, key };
        if let Some(tip) = self.tip.take()
            && search.is_current_tip(&tip).map_err(|source| self.file_error("inspect", source))?
        {
            return Ok(tip);
        }
        let (mut tip, recovery) = search.find_tip(self.options.adoption, self.last_seen)?;
        if recovery == LedgerRecovery::NOTHING {
            self.last_seen = LastSeenRecord::from_tip(&tip);
            return Ok(tip);
        }
        if !recovery.is_clean() {
            self.append_recovery_record(&mut tip, &recovery)?;
        }
        // The head is written after the recovery record. In the opposite order, a crash in between would
        // leave a head that matches the log, and the recovery would never be recorded. If this write fails,
        // the next opener updates the head.
        head::write_head(&self.head, (tip.sequence, tip.hash), tip.segment, key)
            .map_err(|source| self.file_error("write the head of", source))?;
        self.last_seen = LastSeenRecord::from_tip(&tip);
        self.recoveries.push(recovery);
        Ok(tip)
    }

    /// Appends a record about the recovery to the log.
    fn append_recovery_record(
        &self,
        tip: &mut ChainTip,
        recovery: &LedgerRecovery,
    ) -> Result<(), LedgerOpenError> {
        let recovery_error =
            |source| LedgerOpenError::Recovery { path: self.path.clone(), source: Box::new(source) };
        let report = serde_json::to_value(recovery).expect("numbers and names are JSON");
        let fields = Map::from_iter([(RECOVERY_FIELD.to_owned(), report)]);
        let sequence = tip.sequence + 1;
        let SealedRecord { line, hash } =
            seal_unrestricted(&self.options.format, self.options.key.as_ref(), (sequence, tip.hash), fields)
                .map_err(|source| recovery_error(LedgerAppendError::Record { index: 0, source }))?;
        tip.write(&self.path, &line).map_err(recovery_error)?;
        tip.advance(line.len() as u64, &AppendedRecord { sequence, hash });
        Ok(())
    }

    fn lock(&mut self) -> Result<(), LedgerOpenError> {
        loop {
            self.head.lock().map_err(|source| self.file_error("lock the head of", source))?;
            let now = files::stat_path(&files::head_path(&self.path));
            if matches!(now, Ok(Some((identity, _))) if identity == self.head_identity) {
                return Ok(());
            }
            // The head was removed or replaced, so a lock on the old file no longer excludes other writers.
            self.unlock();
            let now = now.map_err(|source| self.file_error("inspect the head of", source))?;
            self.tip = None;
            if let (Some(known), None) = (self.last_seen, now) {
                return Err(self.missing_head_error(known));
            }
            (self.head, self.head_identity) = open_head(&self.path)?;
        }
    }

    fn unlock(&mut self) {
        // An error needs no handling: closing the file releases the lock in any case.
        if self.head.unlock().is_err() {
            self.tip = None;
        }
    }

    /// Returns the error for a missing head. A writer that has seen records must not create a new head.
    fn missing_head_error(&self, known: LastSeenRecord) -> LedgerOpenError {
        let path = self.path.clone();
        match files::stat_path(&path) {
            Ok(None) => LedgerOpenError::Replaced { path, known: known.sequence },
            _ => LedgerOpenError::HeadMissing { path },
        }
    }

    fn file_error(&self, step: &'static str, source: io::Error) -> LedgerOpenError {
        LedgerOpenError::File { step, path: self.path.clone(), source }
    }
}

fn open_head(log: &Path) -> Result<(File, FileIdentity), LedgerOpenError> {
    let path = files::head_path(log);
    let open = || {
        let new = files::stat_path(&path)?.is_none();
        let file = files::open_or_create(&path)?;
        if new {
            files::sync_parent_folder(&path)?;
        }
        let identity = FileIdentity::from_metadata(&file.metadata()?);
        Ok((file, identity))
    };
    open().map_err(|source| LedgerOpenError::File { step: "open", path: path.clone(), source })
}

/// Seals all records, starting from the tip, and returns their lines.
fn seal_all(
    options: &LedgerOptions,
    tip: &ChainTip,
    records: Vec<Map<String, Value>>,
) -> Result<(Vec<u8>, Vec<AppendedRecord>), LedgerAppendError> {
    let mut lines = Vec::new();
    let mut appended = Vec::with_capacity(records.len());
    let (mut sequence, mut previous) = (tip.sequence, tip.hash);
    for (index, record) in records.into_iter().enumerate() {
        sequence += 1;
        let SealedRecord { line, hash } =
            seal(&options.format, options.key.as_ref(), (sequence, previous), record)
                .map_err(|source| LedgerAppendError::Record { index, source })?;
        lines.extend_from_slice(&line);
        appended.push(AppendedRecord { sequence, hash });
        previous = hash;
    }
    Ok((lines, appended))
}
