//! The key that signs receipts (C8.3): when it is created, and what its absence means.
//!
//! A new key gets its final name only after it has signed the existing log. So a key beside an unsigned log can't come
//! from an upgrade, and is refused. Once a log is signed, the home remembers the id of the key: otherwise an attacker could
//! remove the signatures, the head and the key, and the log would look as if it had never been signed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ward_ledger::{
    HeadRecovery, KeyId, Ledger, LedgerKey, LedgerKeyError, LedgerOpenError, LedgerOptions, LedgerRecovery,
};

use super::{ReceiptError, ledger_format};

/// The signing mode of the receipts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptSigning {
    /// Receipts are not signed. A log that was signed once can't be continued this way.
    Off,
    /// Receipts are signed with the key in this file of mode 0600. The file is created if it is missing.
    With { key: PathBuf },
}

/// The operator's decision about a log that the ledger would not continue by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogAdoption {
    Nothing,
    /// Accept the log as it is.
    Everything,
}

/// The extension of a key that has not signed the log yet.
const UNFINISHED: &str = "new";

/// The extension of the file beside the key that holds the id of the key which signed the log of this home.
const REMEMBERED: &str = "signed";

impl ReceiptSigning {
    /// Returns the key that verifies the log; `None` if there is no key yet or signing is off.
    ///
    /// # Errors
    /// Fails if the key can't be used, or the key that signed the log is missing or was replaced.
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

    /// Checks that a missing log never existed.
    ///
    /// # Errors
    /// Fails if this home has signed a log, so that the log was removed.
    pub fn check_never_started(&self, log: &Path) -> Result<(), ReceiptError> {
        let Self::With { key } = self else { return Ok(()) };
        match remembered_key(key)? {
            Some(key_id) => Err(ReceiptError::LogMissing { log: log.to_owned(), key_id }),
            None => Ok(()),
        }
    }

    /// Creates the key if it is missing, and signs the existing log with it. Returns a sentence about what was done.
    ///
    /// # Errors
    /// Fails if the key can't be created, or the key of a signed log is missing: a new key could not continue that log.
    pub fn create_key(&self, log: &Path) -> Result<Option<String>, ReceiptError> {
        self.create_key_with(log, LogAdoption::Nothing)
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

    /// Loads the key file, without comparing the key with the one that the home remembers.
    fn load_key(&self) -> Result<Option<LedgerKey>, LedgerKeyError> {
        match self {
            Self::With { key } if exists(key) => LedgerKey::load(key).map(Some),
            Self::With { .. } | Self::Off => Ok(None),
        }
    }

    pub(super) fn create_key_with(
        &self,
        log: &Path,
        adopting: LogAdoption,
    ) -> Result<Option<String>, ReceiptError> {
        let Self::With { key: file } = self else { return Ok(None) };
        if exists(file) {
            return Ok(None);
        }
        let failed = |step| move |source| LedgerKeyError::File { step, path: file.clone(), source };
        // Several processes may start at once, and only one of them may create the key.
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
        let sentence = sign_log(log, &unfinished, adopting).map_err(|error| match error {
            ReceiptError::Open(error) => match *error {
                LedgerOpenError::WrongKey { key_id, .. } => {
                    // The new key has signed nothing, and would only be in the way of the right key.
                    let _ = fs::remove_file(&unfinished);
                    ReceiptError::KeyMissing { key: file.clone(), key_id }
                }
                other => other.into(),
            },
            other => other,
        })?;
        fs::rename(&unfinished, file).map_err(failed("rename"))?;
        folder.sync_all().map_err(failed("sync the folder of"))?;
        Ok(sentence)
    }

    /// Remembers the key that signed the log. From now on a missing key or a missing log counts as removed.
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
            LedgerKeyError::File { step: "record the use of", path: file.clone(), source }.into()
        })
    }
}

/// Returns the id of the key that signed the log of this home; `None` if the log was never signed.
fn remembered_key(key: &Path) -> Result<Option<KeyId>, ReceiptError> {
    let path = key.with_extension(REMEMBERED);
    let damaged = || ReceiptError::KeyRecordUnreadable { path: path.clone() };
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => Err(damaged()),
        Ok(text) => KeyId::from_hex(text.trim_ascii_end()).map(Some).ok_or_else(damaged),
    }
}

/// Opens and locks the folder of a file. Other processes wait until the returned file is dropped.
fn locked_folder(file: &Path) -> Result<File, LedgerKeyError> {
    let failed = |step| move |source| LedgerKeyError::File { step, path: file.to_owned(), source };
    let folder = file.parent().unwrap_or(Path::new("/"));
    let folder = File::open(folder).map_err(failed("open the folder of"))?;
    folder.lock().map_err(failed("lock the folder of"))?;
    Ok(folder)
}

/// Returns whether no part of a log exists.
fn is_log_missing(log: &Path) -> bool {
    matches!(ward_ledger::read(log, &ledger_format()), Err(ward_ledger::LedgerReadError::NoLog { .. }))
}

/// Signs the log with the key in this file. The file is created if it is missing.
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
    let sentence = "receipts are signed from now on; earlier receipts were accepted unsigned";
    Ok((recovery.head == HeadRecovery::Signed).then(|| sentence.to_owned()))
}

/// Returns whether something has this name. A dangling symlink counts: it is no key, and no key is created in its place.
fn exists(file: &Path) -> bool {
    !matches!(fs::symlink_metadata(file), Err(error) if error.kind() == io::ErrorKind::NotFound)
}
