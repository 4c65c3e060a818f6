//! The key that receipts are signed with (C8.3): when it is made, and what its absence means.
//!
//! A key takes its place only after the chain that was there before is signed with it. So a key beside an unsigned chain
//! was never the work of an upgrade, and is refused. Once a log is signed, the home remembers with which key: a log that
//! lost its signatures together with its head and the key is not taken for one that never had them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ward_ledger::{
    HeadRecovery, KeyId, Ledger, LedgerKey, LedgerKeyError, LedgerOpenError, LedgerOptions, LedgerRecovery,
};

use super::{ReceiptError, ledger_format};

/// Whether receipts are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptSigning {
    /// They are not. A chain that was signed once can't be continued like this.
    Off,
    /// With the key in this file, which is made where there is none.
    With {
        /// Of mode 0600.
        key: PathBuf,
    },
}

/// What somebody has decided about a chain that the ledger would not continue by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogAdoption {
    Nothing,
    /// What is there, as it is.
    Everything,
}

/// The name of a key that has not signed the chain yet.
const UNFINISHED: &str = "new";

/// Where it is remembered, beside the key, that a log of this home is signed, and with which key.
const REMEMBERED: &str = "signed";

impl ReceiptSigning {
    /// The key to check a chain with; `None` where there is none, or none is wanted.
    ///
    /// # Errors
    /// When there is one that can't be used, and when it is gone or another one than has signed.
    pub fn key(&self) -> Result<Option<LedgerKey>, ReceiptError> {
        let Self::With { key: file } = self else { return Ok(None) };
        let given = self.load_key()?;
        match (given, remembered_key(file)?) {
            (None, Some(key_id)) => Err(ReceiptError::KeyMissing { key: file.clone(), key_id }),
            (Some(given), Some(key_id)) if given.id() != key_id => {
                Err(ReceiptError::KeyReplaced { key: file.clone(), key_id, given: given.id() })
            }
            (given, _) => Ok(given),
        }
    }

    /// Whether a log that is not there was never begun.
    ///
    /// # Errors
    /// When this home has signed one, and it is gone.
    pub fn check_never_started(&self, log: &Path) -> Result<(), ReceiptError> {
        let Self::With { key } = self else { return Ok(()) };
        match remembered_key(key)? {
            Some(key_id) => Err(ReceiptError::LogMissing { log: log.to_owned(), key_id }),
            None => Ok(()),
        }
    }

    /// Makes the key where there is none, and signs with it what is in the log already. What was done is told in
    /// sentences.
    ///
    /// # Errors
    /// When it can't be made, and when it is gone: then the chain is signed, and a new key would not do.
    pub fn make_key(&self, log: &Path) -> Result<Option<String>, ReceiptError> {
        self.make_key_with(log, LogAdoption::Nothing)
    }

    pub(super) fn open(
        &self,
        log: &Path,
        adopting: LogAdoption,
    ) -> Result<(Ledger, LedgerRecovery), ReceiptError> {
        let (options, key) = match adopting {
            LogAdoption::Nothing => {
                if !exists(log) && is_log_missing(log) {
                    self.check_never_started(log)?;
                }
                (LedgerOptions::new(ledger_format()), self.key()?)
            }
            LogAdoption::Everything => {
                (LedgerOptions::new(ledger_format()).adopt_without_head().adopt_unsigned(), self.load_key()?)
            }
        };
        let (options, key_id) = match key {
            Some(key) => (options.with_key(key.clone()), Some(key.id())),
            None => (options, None),
        };
        let opened = Ledger::open(log, options)?;
        if let Some(key_id) = key_id {
            self.remember_key(key_id)?;
        }
        Ok(opened)
    }

    /// The key that is there, whatever is remembered.
    fn load_key(&self) -> Result<Option<LedgerKey>, LedgerKeyError> {
        match self {
            Self::With { key } if exists(key) => LedgerKey::load(key).map(Some),
            Self::With { .. } | Self::Off => Ok(None),
        }
    }

    pub(super) fn make_key_with(
        &self,
        log: &Path,
        adopting: LogAdoption,
    ) -> Result<Option<String>, ReceiptError> {
        let Self::With { key: file } = self else { return Ok(None) };
        if exists(file) {
            return Ok(None);
        }
        let failed = |step| move |source| LedgerKeyError::File { step, path: file.clone(), source };
        // Several processes may come first; one of them makes it.
        let folder = locked_folder(file)?;
        if exists(file) {
            return Ok(None);
        }
        let unfinished = file.with_extension(UNFINISHED);
        if adopting == LogAdoption::Nothing
            && let Some(key_id) = remembered_key(file)?
            && !(exists(&unfinished) && LedgerKey::load(&unfinished)?.id() == key_id)
        {
            return Err(ReceiptError::KeyMissing { key: file.clone(), key_id });
        }
        let told = sign_log(log, &unfinished, adopting).map_err(|error| match error {
            ReceiptError::Open(error) => match *error {
                LedgerOpenError::WrongKey { key_id, .. } => {
                    // It has signed nothing, and would only be in the way of the right one.
                    let _ = fs::remove_file(&unfinished);
                    ReceiptError::KeyMissing { key: file.clone(), key_id }
                }
                other => other.into(),
            },
            other => other,
        })?;
        fs::rename(&unfinished, file).map_err(failed("name"))?;
        folder.sync_all().map_err(failed("make durable"))?;
        Ok(told)
    }

    /// From now on a home without this key, or without a log, is one from which they were taken.
    fn remember_key(&self, key_id: KeyId) -> Result<(), ReceiptError> {
        let Self::With { key: file } = self else { return Ok(()) };
        if matches!(remembered_key(file), Ok(Some(known)) if known == key_id) {
            return Ok(());
        }
        let folder = locked_folder(file)?;
        let path = file.with_extension(REMEMBERED);
        let unfinished = path.with_extension(format!("{REMEMBERED}-{UNFINISHED}"));
        let written = fs::write(&unfinished, format!("{key_id}\n"))
            .and_then(|()| File::open(&unfinished)?.sync_all())
            .and_then(|()| fs::rename(&unfinished, &path))
            .and_then(|()| folder.sync_all());
        written.map_err(|source| {
            LedgerKeyError::File { step: "note the use of", path: file.clone(), source }.into()
        })
    }
}

/// Which key has signed in this home, if one has.
fn remembered_key(key: &Path) -> Result<Option<KeyId>, ReceiptError> {
    let path = key.with_extension(REMEMBERED);
    let damaged = || ReceiptError::KeyRecordUnreadable { path: path.clone() };
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => Err(damaged()),
        Ok(text) => KeyId::from_hex(text.trim_ascii_end()).map(Some).ok_or_else(damaged),
    }
}

/// The folder of a file; others who want it wait until this is dropped.
fn locked_folder(file: &Path) -> Result<File, LedgerKeyError> {
    let failed = |step| move |source| LedgerKeyError::File { step, path: file.to_owned(), source };
    let folder = file.parent().unwrap_or(Path::new("/"));
    let folder = File::open(folder).map_err(failed("open the folder of"))?;
    folder.lock().map_err(failed("lock the folder of"))?;
    Ok(folder)
}

/// Whether nothing of a log is there.
fn is_log_missing(log: &Path) -> bool {
    matches!(ward_ledger::read(log, &ledger_format()), Err(ward_ledger::LedgerReadError::NoLog { .. }))
}

/// Signs the chain with the key in a file that is made where there is none.
fn sign_log(log: &Path, file: &Path, adopting: LogAdoption) -> Result<Option<String>, ReceiptError> {
    let key = LedgerKey::load_or_create(file)?;
    if is_log_missing(log) {
        return Ok(None);
    }
    let options = LedgerOptions::new(ledger_format()).with_key(key).adopt_unsigned();
    let options = match adopting {
        LogAdoption::Nothing => options,
        LogAdoption::Everything => options.adopt_without_head(),
    };
    let (_, recovery) = Ledger::open(log, options)?;
    let told = "receipts are signed from here on; those before were taken as they are";
    Ok((recovery.head == HeadRecovery::Signed).then(|| told.to_owned()))
}

/// A link that leads nowhere is there, too: it is no key, and nothing is made in its place.
fn exists(file: &Path) -> bool {
    !matches!(fs::symlink_metadata(file), Err(error) if error.kind() == io::ErrorKind::NotFound)
}
