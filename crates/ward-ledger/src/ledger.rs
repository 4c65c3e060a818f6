//! The appender: the only way that lines get into a log.

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

/// A record that is in the log for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRecord {
    /// Its number, from 1.
    pub sequence: u64,
    /// Its hash.
    pub hash: Sha256Hash,
}

/// A log, open for appending. Any number of processes may have the same log open.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    options: LedgerOptions,
    head: File,
    head_identity: FileIdentity,
    /// The end of the chain as this process last saw it; `None` when it must look again.
    tip: Option<ChainTip>,
    /// What must be in the log as long as this writer lives.
    last_seen: Option<LastSeenRecord>,
    recoveries: Vec<LedgerRecovery>,
}

impl Ledger {
    /// Opens the log at `path` and makes it where there is none; its folder must be there. Puts
    /// aside what a crash left half-written, checks the last records against the head, and appends
    /// a record of what it had to put right.
    ///
    /// # Errors
    /// When the files can't be used, and when the log is not fit to be continued.
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
        let looked = ledger.load_tip();
        ledger.unlock();
        ledger.tip = Some(looked?);
        // Somebody has decided about the log as it was now, not about what may yet happen to it.
        ledger.options.adoption = AdoptionOptions::default();
        let recovery = ledger.recoveries.pop().unwrap_or(LedgerRecovery::NOTHING);
        Ok((ledger, recovery))
    }

    /// Where the log is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What appends since the last call had to put right after other processes.
    pub fn take_recoveries(&mut self) -> Vec<LedgerRecovery> {
        mem::take(&mut self.recoveries)
    }

    /// Appends one record; when this returns, it is on disk.
    ///
    /// # Errors
    /// When the record is not fit, or can't be written.
    pub fn append(&mut self, record: Map<String, Value>) -> Result<AppendedRecord, LedgerAppendError> {
        let appended = self.append_all(vec![record])?;
        Ok(*appended.first().expect("one record was given"))
    }

    /// Appends records in their order with one wait for the disk; on an error, none of them.
    /// A crash in the middle may leave the first few.
    ///
    /// # Errors
    /// When a record is not fit, or they can't be written.
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
        // Until all has gone well this process doesn't claim to know the end of the chain.
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
        // The new head may have reached the disk, and would promise a record that is gone.
        Err(match head::write_head(&self.head, (tip.sequence, tip.hash), tip.segment, key) {
            Ok(()) => error,
            Err(rollback) => error.with_rollback_error(rollback),
        })
    }

    /// The end of the chain as it is on disk now, in order. Needs the lock.
    fn load_tip(&mut self) -> Result<ChainTip, LedgerOpenError> {
        let key = self.options.key.as_ref();
        let reader = &RecordReader::new(&self.options.format, key);
        let search = TipSearch { log: &self.path, head_file: &self.head, reader, key };
        if let Some(tip) = self.tip.take()
            && search.is_current_tip(&tip).map_err(|source| self.file_error("look at", source))?
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
        // After the record: it would have to be made again if the head already vouched for the
        // records before it. When this fails, the next opener finds the head behind.
        head::write_head(&self.head, (tip.sequence, tip.hash), tip.segment, key)
            .map_err(|source| self.file_error("write the head of", source))?;
        self.last_seen = LastSeenRecord::from_tip(&tip);
        self.recoveries.push(recovery);
        Ok(tip)
    }

    /// Makes the recovery a part of the log.
    fn append_recovery_record(
        &self,
        tip: &mut ChainTip,
        recovery: &LedgerRecovery,
    ) -> Result<(), LedgerOpenError> {
        let fault = |source| LedgerOpenError::Recovery { path: self.path.clone(), source: Box::new(source) };
        let told = serde_json::to_value(recovery).expect("numbers and names are JSON");
        let fields = Map::from_iter([(RECOVERY_FIELD.to_owned(), told)]);
        let place = (tip.sequence + 1, tip.hash);
        let SealedRecord { line, hash } =
            seal_unrestricted(&self.options.format, self.options.key.as_ref(), place, fields)
                .map_err(|source| fault(LedgerAppendError::Record { index: 0, source }))?;
        tip.write(&self.path, &line).map_err(fault)?;
        tip.advance(line.len() as u64, &AppendedRecord { sequence: place.0, hash });
        Ok(())
    }

    fn lock(&mut self) -> Result<(), LedgerOpenError> {
        loop {
            self.head.lock().map_err(|source| self.file_error("lock the head of", source))?;
            let now = files::stat_path(&files::head_path(&self.path));
            if matches!(now, Ok(Some((identity, _))) if identity == self.head_identity) {
                return Ok(());
            }
            // Somebody removed or exchanged the head; a lock on the old one keeps nobody out.
            self.unlock();
            let now = now.map_err(|source| self.file_error("look at the head of", source))?;
            self.tip = None;
            if let (Some(known), None) = (self.last_seen, now) {
                return Err(self.missing_head_error(known));
            }
            (self.head, self.head_identity) = open_head(&self.path)?;
        }
    }

    fn unlock(&mut self) {
        // Closing the file gives the lock back in any case; there is nothing to do about an error.
        if self.head.unlock().is_err() {
            self.tip = None;
        }
    }

    /// A writer that knows of records doesn't make a new head.
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

/// The lines of all records, chained on to the tip.
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
