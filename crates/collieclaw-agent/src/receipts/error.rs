//! Why a receipt can't be written or relied on, and what somebody can do about it.

use std::path::PathBuf;

use thiserror::Error;
use ward_ledger::verify::LedgerVerifyError;
use ward_ledger::{KeyId, LedgerKeyError, LedgerOpenError};

/// Why a receipt can't be written. Then the call does not run.
#[derive(Debug, Error)]
pub enum ReceiptError {
    /// The log can't be opened.
    #[error("the receipts can't be used")]
    Open(#[source] Box<LedgerOpenError>),
    /// The key can't be used.
    #[error("the receipts can't be signed")]
    Key(#[from] LedgerKeyError),
    /// The chain is signed, and its key is gone.
    #[error("the receipts are signed with key {key_id}, and {} is gone", .key.display())]
    KeyMissing {
        /// Where it was.
        key: PathBuf,
        /// Its name.
        key_id: KeyId,
    },
    /// Another key is in its place.
    #[error("the receipts of this home are signed with key {key_id}, and the key given is {given} ({})", .key.display())]
    KeyReplaced {
        /// Where it is.
        key: PathBuf,
        /// The one that has signed.
        key_id: KeyId,
        /// The one that is there.
        given: KeyId,
    },
    /// A signed log was begun, and is gone.
    #[error("the receipts of this home are signed with key {key_id}, and their log {} is gone", .log.display())]
    LogMissing {
        /// Where it should be.
        log: PathBuf,
        /// What it was signed with.
        key_id: KeyId,
    },
    /// Which key has signed can't be told.
    #[error("{} does not say which key has signed the receipts", .path.display())]
    KeyRecordUnreadable {
        /// The file.
        path: PathBuf,
    },
    /// The log can't be written.
    #[error("the receipt can't be written")]
    Append(#[source] Box<ward_ledger::LedgerAppendError>),
    /// The log can't be read.
    #[error("the receipts can't be read")]
    Read(#[source] Box<ward_ledger::LedgerReadError>),
    /// The log can't be checked.
    #[error("the receipts can't be checked")]
    Verify(#[source] Box<LedgerVerifyError>),
    /// The log was changed by somebody else.
    #[error("the chain of receipts in {} is not sound, so nobody can tell from it what was done", .log.display())]
    BrokenChain {
        /// The log.
        log: PathBuf,
    },
    /// The intent can't be written.
    #[error("that the call is attempted can't be written down in {}", .folder.display())]
    Intent {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The arguments have no canonical form.
    #[error("the arguments can't be hashed: {0}")]
    Arguments(String),
}

impl From<LedgerOpenError> for ReceiptError {
    fn from(error: LedgerOpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

const KEY_CURE: &str = "put the key back from a copy; or look at the log, move it aside with its head if it is signed, and \
                        say `collieclaw receipt adopt --yes`";

impl ReceiptError {
    /// What somebody can do about it, where that is not in the error itself.
    #[must_use]
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            Self::KeyMissing { .. }
            | Self::KeyReplaced { .. }
            | Self::Key(LedgerKeyError::Content { .. } | LedgerKeyError::NotRegular { .. }) => Some(KEY_CURE),
            Self::LogMissing { .. } => Some(
                "put it back from a copy with its head; if you have moved it yourself, say `collieclaw receipt adopt --yes`, \
                 and a new one begins",
            ),
            Self::BrokenChain { .. } => {
                Some("`collieclaw receipt verify` names the first broken link; compare with a copy")
            }
            Self::KeyRecordUnreadable { .. } => Some(
                "look at the log (`collieclaw receipt verify`), then say `collieclaw receipt adopt --yes`",
            ),
            Self::Open(error) => match **error {
                LedgerOpenError::KeyNeeded { .. } => Some(
                    "set `receipts.signed = true` again; or move the log aside with its head, and a new one begins",
                ),
                LedgerOpenError::WrongKey { .. } => Some(KEY_CURE),
                LedgerOpenError::NotSigned { .. } => Some(
                    "somebody has taken the signatures away, or put an older log back: restore it, or look at it and say \
                     `collieclaw receipt adopt --yes`",
                ),
                LedgerOpenError::HeadMissing { .. } => {
                    Some("restore it, or look at the log and say `collieclaw receipt adopt --yes`")
                }
                _ => None,
            },
            _ => None,
        }
    }
}
