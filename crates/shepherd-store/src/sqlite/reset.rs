//! Resets a store after damage: an act of an administrator, which the audit log records.
//!
//! Sound parts stay: after damage of the database the audit log continues, and after damage of the log the usage
//! counts.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use shepherd_api::{AuditEvent, AuditKind};
use ward_ledger::{Ledger, LedgerOptions, Sha256Hash, verify};

use super::SqliteStore;
use super::create::create_database;
use super::open::SqliteDatabase;
use crate::audit::{AuditAnchor, AuditLogError, audit_format};
use crate::error::StoreOpenError;
use crate::folder::StoreFolder;
use crate::quarantine::quarantine_files;
use crate::store::Store;

/// The author of a reset, with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetRequest {
    /// The identity of the author, for the audit log.
    pub name: String,
    /// The author's reason.
    pub reason: String,
}

/// The outcome of a reset for a part of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetPartOutcome {
    /// The part was sound and stays.
    Kept,
    /// The part was replaced.
    Recreated,
}

/// The result of a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the administrator has to know what was replaced and where the old files are"]
pub struct ResetReport {
    /// Usage, cooldowns and the rest of the database. After a replacement, no usage is known.
    pub database: ResetPartOutcome,
    /// The audit log.
    pub audit: ResetPartOutcome,
    /// The place of the damaged files, if there are any left.
    pub kept_in: Option<PathBuf>,
}

impl SqliteStore {
    /// Sets a damaged database or audit log aside and creates a new one.
    ///
    /// # Errors
    /// The store is sound, or the new one can't be created.
    pub fn reset_damaged(
        folder: &Path,
        administrator: &ResetRequest,
        now: Timestamp,
    ) -> Result<(Self, ResetReport), StoreOpenError> {
        let folder = StoreFolder::claim(folder)?;
        if folder.list_contents()?.is_never_used() {
            return Err(StoreOpenError::NotDamaged { path: folder.path().to_owned() });
        }
        let (database, report) = match SqliteDatabase::open(&folder, now) {
            Ok(database) => renew_audit(&folder, database, now)?,
            Err(StoreOpenError::Damaged(damage)) => {
                let kept_in = damage.kept.folder().map(Path::to_owned);
                renew_database(&folder, kept_in, now)?
            }
            Err(other) => return Err(other),
        };
        let (audit, _) = database.open_audit(&folder)?;
        let mut store = database.into_store(audit, folder);
        store.append_audit(AuditEvent {
            at: now,
            actor: administrator.name.clone(),
            what: AuditKind::Note { text: describe_reset(&report, &administrator.reason) },
        })?;
        Ok((store, report))
    }
}

/// The database is sound; the log is damaged, or both don't match.
fn renew_audit(
    folder: &StoreFolder,
    mut database: SqliteDatabase,
    now: Timestamp,
) -> Result<(SqliteDatabase, ResetReport), StoreOpenError> {
    let opened = database.open_audit(folder);
    let whole = verified_log_end(folder)?;
    let (audit, kept_in) = match (opened, whole) {
        (Ok(_), Some(_)) => return Err(StoreOpenError::NotDamaged { path: folder.path().to_owned() }),
        (Err(StoreOpenError::Audit { source: AuditLogError::AheadOfDatabase { .. }, .. }), Some(end)) => {
            // The database is an older copy. Its usage counts, and its outbox has long been in the log.
            database.set_audit_anchor(folder, end, &[])?;
            (ResetPartOutcome::Kept, None)
        }
        (Err(StoreOpenError::Audit { source, path }), _) if !source.is_damage() => {
            return Err(StoreOpenError::Audit { source, path });
        }
        (Ok(_) | Err(StoreOpenError::Audit { .. }), _) => {
            let kept_in = quarantine_audit_log(folder, now)?;
            let outbox = database.read_outbox(folder)?;
            database.set_audit_anchor(folder, AuditAnchor::default(), &outbox)?;
            (ResetPartOutcome::Recreated, kept_in)
        }
        (Err(other), _) => return Err(other),
    };
    Ok((database, ResetReport { database: ResetPartOutcome::Kept, audit, kept_in }))
}

/// The database is lost; a sound log continues.
fn renew_database(
    folder: &StoreFolder,
    kept_in: Option<PathBuf>,
    now: Timestamp,
) -> Result<(SqliteDatabase, ResetReport), StoreOpenError> {
    let (audit, end, kept_in) = match verified_log_end(folder)? {
        Some(end) => (ResetPartOutcome::Kept, end, kept_in),
        None => (
            ResetPartOutcome::Recreated,
            AuditAnchor::default(),
            quarantine_audit_log(folder, now)?.or(kept_in),
        ),
    };
    create_database(folder, &folder.list_contents()?, end)?;
    let database = SqliteDatabase::open(folder, now)?;
    Ok((database, ResetReport { database: ResetPartOutcome::Recreated, audit, kept_in }))
}

/// Returns the end of the log if every link is valid.
fn verified_log_end(folder: &StoreFolder) -> Result<Option<AuditAnchor>, StoreOpenError> {
    if folder.list_contents()?.audit.is_empty() {
        return Ok(None);
    }
    let path = folder.audit_log_path();
    let fault = |source| StoreOpenError::Audit { path: path.clone(), source };
    // Opening recovers a half-written line that a crash left.
    match Ledger::open(&path, LedgerOptions::new(audit_format())).map_err(AuditLogError::from) {
        Ok(_) => {}
        Err(source) if source.is_damage() => return Ok(None),
        Err(source) => return Err(fault(source)),
    }
    let report = verify(&path, &audit_format(), None).map_err(|error| fault(AuditLogError::Verify(error)))?;
    let end = AuditAnchor { sequence: report.records, hash: report.last_hash.unwrap_or(Sha256Hash::GENESIS) };
    Ok(report.is_sound().then_some(end))
}

fn quarantine_audit_log(folder: &StoreFolder, now: Timestamp) -> Result<Option<PathBuf>, StoreOpenError> {
    let names = folder.list_contents()?.audit;
    if names.is_empty() {
        return Ok(None);
    }
    let file_error =
        |source| StoreOpenError::File { step: "move aside", path: folder.audit_log_path(), source };
    quarantine_files(folder.path(), &names, now).map(Some).map_err(file_error)
}

fn describe_reset(report: &ResetReport, reason: &str) -> String {
    let what = match (report.database, report.audit) {
        (ResetPartOutcome::Recreated, ResetPartOutcome::Kept) => {
            "the database was replaced, so earlier usage is lost"
        }
        (ResetPartOutcome::Recreated, ResetPartOutcome::Recreated) => {
            "the database and the audit log were replaced, so earlier usage and events are lost"
        }
        (ResetPartOutcome::Kept, ResetPartOutcome::Recreated) => "the audit log was replaced; usage is kept",
        (ResetPartOutcome::Kept, ResetPartOutcome::Kept) => {
            "an older copy of the database is used, so later usage is lost"
        }
    };
    let kept = report.kept_in.as_ref().and_then(|folder| folder.file_name());
    let kept = kept.map(|name| format!("; the damaged files are in {}", name.display())).unwrap_or_default();
    format!("{what}{kept}: {reason}")
}
