//! Errors about receipts, each with what the operator can do about it.

use std::path::PathBuf;

use thiserror::Error;
use ward_ledger::verify::LedgerVerifyError;
use ward_ledger::{KeyId, LedgerKeyError, LedgerOpenError};

/// The reason why a receipt can't be written or relied on. The call doesn't run then.
#[derive(Debug, Error)]
pub enum ReceiptError {
    #[error("could not open the receipts")]
    Open(#[source] Box<LedgerOpenError>),
    #[error("could not sign the receipts")]
    Key(#[from] LedgerKeyError),
    /// The log is signed, and its key is missing.
    #[error("the receipts are signed with key {key_id}, but {} is missing", .key.display())]
    KeyMissing { key: PathBuf, key_id: KeyId },
    /// The key file holds another key than the one that signed the log.
    #[error("the receipts are signed with key {key_id}, but {} holds key {given}", .key.display())]
    KeyReplaced { key: PathBuf, key_id: KeyId, given: KeyId },
    /// This home has signed a log, and that log is missing.
    #[error("the receipts are signed with key {key_id}, but their log {} is missing", .log.display())]
    LogMissing { log: PathBuf, key_id: KeyId },
    /// The file that names the key of this home can't be read.
    #[error("{} does not say which key signed the receipts", .path.display())]
    KeyRecordUnreadable { path: PathBuf },
    #[error("could not write the receipt")]
    Append(#[source] Box<ward_ledger::LedgerAppendError>),
    #[error("could not read the receipts")]
    Read(#[source] Box<ward_ledger::LedgerReadError>),
    #[error("could not verify the receipts")]
    Verify(#[source] Box<LedgerVerifyError>),
    /// The log was changed outside CollieClaw.
    #[error("the chain of receipts in {} is broken, so it proves nothing about what was done", .log.display())]
    BrokenChain { log: PathBuf },
    #[error("could not write the call intent to {}", .folder.display())]
    Intent { folder: PathBuf, source: std::io::Error },
    /// The arguments have no canonical form.
    #[error("could not hash the arguments: {0}")]
    Arguments(String),
}

impl From<LedgerOpenError> for ReceiptError {
    fn from(error: LedgerOpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

const KEY_CURE: &str = "restore the key from a backup; or check the log, move it away with its head if it is signed, and \
                        run `collieclaw receipt adopt --yes`";

impl ReceiptError {
    /// Returns what the operator can do about the error, where the error doesn't say it itself.
    #[must_use]
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            Self::KeyMissing { .. }
            | Self::KeyReplaced { .. }
            | Self::Key(LedgerKeyError::Content { .. } | LedgerKeyError::NotRegular { .. }) => Some(KEY_CURE),
            Self::LogMissing { .. } => Some(
                "restore the log and its head from a backup; if you moved the log away yourself, run `collieclaw receipt \
                 adopt --yes` to start a new one",
            ),
            Self::BrokenChain { .. } => {
                Some("`collieclaw receipt verify` shows the first broken link; compare the log with a backup")
            }
            Self::KeyRecordUnreadable { .. } => Some(
                "check the log with `collieclaw receipt verify`, then run `collieclaw receipt adopt --yes`",
            ),
            Self::Open(error) => match **error {
                LedgerOpenError::KeyNeeded { .. } => Some(
                    "set `receipts.signed = true` again; or move the log away with its head to start a new one",
                ),
                LedgerOpenError::WrongKey { .. } => Some(KEY_CURE),
                LedgerOpenError::NotSigned { .. } => Some(
                    "the signatures were removed, or an older log was put in place: restore the log from a backup, or \
                     check it and run `collieclaw receipt adopt --yes`",
                ),
                LedgerOpenError::HeadMissing { .. } => Some(
                    "restore the head from a backup, or check the log and run `collieclaw receipt adopt --yes`",
                ),
                _ => None,
            },
            _ => None,
        }
    }
}
