//! The key that receipts are signed with (C8.3): when it is made, and what its absence means.
//!
//! A key takes its place only after the chain that was there before is signed with it. So a key beside an unsigned chain
//! was never the work of an upgrade, and is refused.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ward_ledger::{HeadRecovery, Key, KeyError, Ledger, OpenError, Options, Recovery};

use super::{ReceiptError, format};

/// Whether receipts are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signing {
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
pub(super) enum Adopting {
    Nothing,
    /// What is there, as it is.
    Everything,
}

/// The name of a key that has not signed the chain yet.
const UNFINISHED: &str = "new";

impl Signing {
    /// The key to check a chain with; `None` where there is none, or none is wanted.
    ///
    /// # Errors
    /// When there is one that can't be used.
    pub fn key(&self) -> Result<Option<Key>, KeyError> {
        match self {
            Self::With { key } if is_there(key) => Key::load(key).map(Some),
            Self::With { .. } | Self::Off => Ok(None),
        }
    }

    /// Makes the key where there is none, and signs with it what is in the log already. What was done is told in
    /// sentences.
    ///
    /// # Errors
    /// When it can't be made, and when it is gone: then the chain is signed, and a new key would not do.
    pub fn make_key(&self, log: &Path) -> Result<Option<String>, ReceiptError> {
        self.make(log, Adopting::Nothing)
    }

    pub(super) fn open(&self, log: &Path, adopting: Adopting) -> Result<(Ledger, Recovery), ReceiptError> {
        let options = match adopting {
            Adopting::Nothing => Options::new(format()),
            Adopting::Everything => Options::new(format()).adopt_without_head().adopt_unsigned(),
        };
        let options = match self.key()? {
            Some(key) => options.with_key(key),
            None => options,
        };
        Ledger::open(log, options).map_err(ReceiptError::from)
    }

    pub(super) fn make(&self, log: &Path, adopting: Adopting) -> Result<Option<String>, ReceiptError> {
        let Self::With { key: file } = self else { return Ok(None) };
        if is_there(file) {
            return Ok(None);
        }
        let failed = |step| move |source| KeyError::File { step, path: file.clone(), source };
        let folder = file.parent().unwrap_or(Path::new("/"));
        let folder = File::open(folder).map_err(failed("open the folder of"))?;
        // Several processes may come first; one of them makes it.
        folder.lock().map_err(failed("lock the folder of"))?;
        if is_there(file) {
            return Ok(None);
        }
        let unfinished = file.with_extension(UNFINISHED);
        let told = sign(log, &unfinished, adopting).map_err(|error| match error {
            ReceiptError::Open(error) => match *error {
                OpenError::WrongKey { key_id, .. } => {
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
}

/// Signs the chain with the key in a file that is made where there is none.
fn sign(log: &Path, file: &Path, adopting: Adopting) -> Result<Option<String>, ReceiptError> {
    let key = Key::load_or_create(file)?;
    if matches!(ward_ledger::read(log, &format()), Err(ward_ledger::ReadError::NoLog { .. })) {
        return Ok(None);
    }
    let options = Options::new(format()).with_key(key).adopt_unsigned();
    let options = match adopting {
        Adopting::Nothing => options,
        Adopting::Everything => options.adopt_without_head(),
    };
    let (_, recovery) = Ledger::open(log, options)?;
    let told = "receipts are signed from here on; those before were taken as they are";
    Ok((recovery.head == HeadRecovery::Signed).then(|| told.to_owned()))
}

/// A link that leads nowhere is there, too: it is no key, and nothing is made in its place.
fn is_there(file: &Path) -> bool {
    !matches!(fs::symlink_metadata(file), Err(error) if error.kind() == io::ErrorKind::NotFound)
}
