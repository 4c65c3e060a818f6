//! Beginning anew after damage: an administrator's act, which the audit log tells of.
//!
//! What is sound stays: of a damaged database the audit log goes on, and of a damaged audit log the usage still counts.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use shepherd_api::{AuditEvent, AuditKind};
use ward_ledger::{Hash, Ledger, Options, verify};

use super::SqliteStore;
use super::create::create;
use super::open::Database;
use crate::aside::put_aside;
use crate::audit::{Anchor, AuditFault, audit_format};
use crate::error::OpenError;
use crate::folder::Folder;
use crate::store::Store;

/// Who begins a store anew, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Administrator {
    /// What is known of them, for the audit log.
    pub name: String,
    /// Why they do it.
    pub reason: String,
}

/// What became of a part of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It was sound and goes on.
    Kept,
    /// It is a new one.
    Anew,
}

/// What was begun anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "somebody should be told what is new and where the old is"]
pub struct Begun {
    /// Usage, cooldowns and the rest. Anew means: nothing is known of what was used.
    pub database: Part,
    /// The audit log.
    pub audit: Part,
    /// Where the damaged files are, if there are any left.
    pub kept_in: Option<PathBuf>,
}

impl SqliteStore {
    /// Puts a damaged database or audit log aside and begins a new one in its place.
    ///
    /// # Errors
    /// When the store is in order, and when the new one can't be made.
    pub fn begin_anew(
        folder: &Path,
        administrator: &Administrator,
        now: Timestamp,
    ) -> Result<(Self, Begun), OpenError> {
        let folder = Folder::claim(folder)?;
        if folder.look()?.is_untouched() {
            return Err(OpenError::InOrder { path: folder.path().to_owned() });
        }
        let (database, begun) = match Database::open(&folder, now) {
            Ok(database) => renew_audit(&folder, database, now)?,
            Err(OpenError::Damaged(damage)) => {
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
            what: AuditKind::Note { text: account(&begun, &administrator.reason) },
        })?;
        Ok((store, begun))
    }
}

/// The database is sound; something is wrong with the log, or with the two together.
fn renew_audit(
    folder: &Folder,
    mut database: Database,
    now: Timestamp,
) -> Result<(Database, Begun), OpenError> {
    let opened = database.open_audit(folder);
    let whole = sound_end(folder)?;
    let (audit, kept_in) = match (opened, whole) {
        (Ok(_), Some(_)) => return Err(OpenError::InOrder { path: folder.path().to_owned() }),
        (Err(OpenError::Audit { source: AuditFault::Ahead { .. }, .. }), Some(end)) => {
            // The database is an older copy. What it knows was used, and its outbox is long in the log.
            database.set_audit(folder, end, &[])?;
            (Part::Kept, None)
        }
        (Err(OpenError::Audit { source, path }), _) if !source.is_damage() => {
            return Err(OpenError::Audit { source, path });
        }
        (Ok(_) | Err(OpenError::Audit { .. }), _) => {
            let kept_in = put_audit_aside(folder, now)?;
            let outbox = database.outbox(folder)?;
            database.set_audit(folder, Anchor::default(), &outbox)?;
            (Part::Anew, kept_in)
        }
        (Err(other), _) => return Err(other),
    };
    Ok((database, Begun { database: Part::Kept, audit, kept_in }))
}

/// The database is gone; if the log is sound, it goes on.
fn renew_database(
    folder: &Folder,
    kept_in: Option<PathBuf>,
    now: Timestamp,
) -> Result<(Database, Begun), OpenError> {
    let (audit, end, kept_in) = match sound_end(folder)? {
        Some(end) => (Part::Kept, end, kept_in),
        None => (Part::Anew, Anchor::default(), put_audit_aside(folder, now)?.or(kept_in)),
    };
    create(folder, &folder.look()?, end)?;
    let database = Database::open(folder, now)?;
    Ok((database, Begun { database: Part::Anew, audit, kept_in }))
}

/// Where the log ends, if every link of it holds.
fn sound_end(folder: &Folder) -> Result<Option<Anchor>, OpenError> {
    if folder.look()?.audit.is_empty() {
        return Ok(None);
    }
    let path = folder.audit_log();
    let fault = |source| OpenError::Audit { path: path.clone(), source };
    // Opening puts aside what a crash left half-written.
    match Ledger::open(&path, Options::new(audit_format())).map_err(AuditFault::from) {
        Ok(_) => {}
        Err(source) if source.is_damage() => return Ok(None),
        Err(source) => return Err(fault(source)),
    }
    let report = verify(&path, &audit_format(), None).map_err(|error| fault(AuditFault::Verify(error)))?;
    let end = Anchor { sequence: report.records, hash: report.last_hash.unwrap_or(Hash::GENESIS) };
    Ok(report.is_sound().then_some(end))
}

fn put_audit_aside(folder: &Folder, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let names = folder.look()?.audit;
    if names.is_empty() {
        return Ok(None);
    }
    let file_error = |source| OpenError::File { step: "move aside", path: folder.audit_log(), source };
    put_aside(folder.path(), &names, now).map(Some).map_err(file_error)
}

fn account(begun: &Begun, reason: &str) -> String {
    let what = match (begun.database, begun.audit) {
        (Part::Anew, Part::Kept) => "the database was begun anew, so that nothing is known of earlier usage",
        (Part::Anew, Part::Anew) => {
            "the database and the audit log were begun anew, so that nothing is known of what was before"
        }
        (Part::Kept, Part::Anew) => "the audit log was begun anew; usage is known",
        (Part::Kept, Part::Kept) => "an older copy of the database goes on; later usage is not known",
    };
    let kept = begun.kept_in.as_ref().and_then(|folder| folder.file_name());
    let kept = kept.map(|name| format!("; the damaged files are in {}", name.display())).unwrap_or_default();
    format!("{what}{kept}: {reason}")
}
