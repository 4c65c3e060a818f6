//! What every attempted call leaves behind: one receipt, chained to the one before (C8).
//!
//! A call that is to run leaves an *intent* first, in a file of its own that stays locked while its process lives. What a
//! crash leaves of it becomes a `failed` receipt when the next process opens the receipts. So every attempt has exactly
//! one, and no tool runs of which nothing is known.

mod intent;
mod receipt;
mod signing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use thiserror::Error;
use ward_ledger::{Format, Hash, KeyError, KeyId, Ledger, OpenError};

pub use intent::Intent;
pub use receipt::{Attempt, Ending, Receipt, Status};
pub use signing::Signing;

use signing::Adopting;

/// The log of receipts.
pub struct Receipts {
    log: Option<Ledger>,
    intents: PathBuf,
}

/// Why a receipt can't be written. Then the call does not run.
#[derive(Debug, Error)]
pub enum ReceiptError {
    /// The log can't be opened.
    #[error("the receipts can't be used")]
    Open(#[source] Box<OpenError>),
    /// The key can't be used.
    #[error("the receipts can't be signed")]
    Key(#[from] KeyError),
    /// The chain is signed, and its key is gone.
    #[error("the receipts are signed with key {key_id}, and {} is gone", .key.display())]
    KeyMissing {
        /// Where it was.
        key: PathBuf,
        /// Its name.
        key_id: KeyId,
    },
    /// The log can't be written.
    #[error("the receipt can't be written")]
    Append(#[source] Box<ward_ledger::AppendError>),
    /// The log can't be read.
    #[error("the receipts can't be read")]
    Read(#[source] Box<ward_ledger::ReadError>),
    /// The intent can't be written.
    #[error("that the call begins can't be written down in {}", .folder.display())]
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

impl From<OpenError> for ReceiptError {
    fn from(error: OpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

impl ReceiptError {
    /// What somebody can do about it, where that is not in the error itself.
    #[must_use]
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            Self::KeyMissing { .. } | Self::Key(KeyError::Content { .. } | KeyError::NotRegular { .. }) => {
                Some(
                    "put the key back from a copy; or move the log aside with its head, and the next call begins a new one",
                )
            }
            Self::Open(error) => match **error {
                OpenError::KeyNeeded { .. } => Some(
                    "set `receipts.signed = true` again; or move the log aside with its head, and a new one begins",
                ),
                OpenError::WrongKey { .. } => Some(
                    "put the key back that signed it; or move the log aside with its head, and a new one begins",
                ),
                OpenError::NotSigned { .. } => Some(
                    "somebody has taken the signatures away, or put an older log back: restore it, or look at it and say \
                     `collieclaw receipt adopt --yes`",
                ),
                OpenError::HeadMissing { .. } => {
                    Some("restore it, or look at the log and say `collieclaw receipt adopt --yes`")
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The form of the log: see `docs/collieclaw-receipts.md`.
///
/// # Panics
/// Never: the name is a constant that the ledger takes.
#[must_use]
pub fn format() -> Format {
    Format::new("receipt_hash").expect("a name that the ledger doesn't use itself")
}

impl Receipts {
    /// Opens the log and settles what a crash has left. What had to be put right is told in sentences.
    ///
    /// # Errors
    /// When the log can't be used; then no tool may run.
    pub fn open(
        path: &Path,
        signing: &Signing,
        intents: PathBuf,
    ) -> Result<(Self, Vec<String>), ReceiptError> {
        let mut told = Vec::from_iter(signing.make_key(path)?);
        let (log, recovery) = signing.open(path, Adopting::Nothing)?;
        if !recovery.is_clean() {
            told.push("the log of receipts had a half-written end, which was set aside".to_owned());
        }
        let mut receipts = Self { log: Some(log), intents };
        let settled = receipts.settle(path)?;
        if settled > 0 {
            told.push(format!("{settled} interrupted calls got their receipt (status failed)"));
        }
        Ok((receipts, told))
    }

    /// The operator wants none.
    #[must_use]
    pub fn off() -> Self {
        Self { log: None, intents: PathBuf::new() }
    }

    /// Whether receipts are written.
    #[must_use]
    pub fn are_written(&self) -> bool {
        self.log.is_some()
    }

    /// Makes durable that a call begins.
    ///
    /// # Errors
    /// When it can't be: then the call must not run.
    pub fn intend(&self, attempt: &Attempt) -> Result<Intent, ReceiptError> {
        if self.log.is_none() {
            return Ok(Intent::none());
        }
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        Intent::write(&self.intents, attempt).map_err(failed)
    }

    /// Makes durable how a call that began has ended.
    ///
    /// # Errors
    /// When it can't be: then the result must not reach the model. The intent stays, and is settled later.
    pub fn conclude(
        &mut self,
        intent: Intent,
        attempt: &Attempt,
        ending: &Ending,
    ) -> Result<(), ReceiptError> {
        self.write(attempt, ending)?;
        intent.forget();
        Ok(())
    }

    /// Makes durable how a call ended that never began.
    ///
    /// # Errors
    /// When it can't be.
    pub fn write(&mut self, attempt: &Attempt, ending: &Ending) -> Result<(), ReceiptError> {
        self.append(receipt::record(attempt, ending))
    }

    /// Of each step of a procedure's run the last call that began, as the log tells.
    ///
    /// # Errors
    /// When the log can't be read.
    pub fn of_steps(&self, run: &str) -> Result<BTreeMap<String, String>, ReceiptError> {
        let Some(log) = &self.log else { return Ok(BTreeMap::new()) };
        let entries =
            ward_ledger::read(log.path(), &format()).map_err(|e| ReceiptError::Read(Box::new(e)))?;
        let mut last = BTreeMap::new();
        for entry in entries.flatten() {
            let text = |name| entry.record.get(name).and_then(Value::as_str);
            let began = text("conversation_id") == Some(run) && text("status") != Some(Status::Denied.word());
            if let Some((step, id)) = text("step_id").zip(text("id")).filter(|_| began) {
                last.insert(step.to_owned(), id.to_owned());
            }
        }
        Ok(last)
    }

    fn append(&mut self, record: Map<String, Value>) -> Result<(), ReceiptError> {
        match &mut self.log {
            None => Ok(()),
            Some(log) => log.append(record).map(drop).map_err(|e| ReceiptError::Append(Box::new(e))),
        }
    }

    fn settle(&mut self, log: &Path) -> Result<usize, ReceiptError> {
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        let left = intent::left_behind(&self.intents).map_err(failed)?;
        if left.is_empty() {
            return Ok(0);
        }
        let mut known = std::collections::BTreeSet::new();
        // A fault of the log is for `receipt verify` to name; here it only hides that a call is known already.
        for entry in ward_ledger::read(log, &format()).map_err(|e| ReceiptError::Read(Box::new(e)))?.flatten()
        {
            known.extend(entry.record.get("id").and_then(Value::as_str).map(str::to_owned));
        }
        let mut settled = 0;
        for (intent, attempt) in left {
            if !known.contains(&attempt.id) {
                self.write(&attempt, &Ending::interrupted())?;
                settled += 1;
            }
            intent.forget();
        }
        Ok(settled)
    }
}

/// Goes on with a log as it is, without its head or without signatures, because somebody has looked at it. The log
/// records it.
///
/// # Errors
/// When the log can't be used.
pub fn adopt(path: &Path, signing: &Signing) -> Result<(), ReceiptError> {
    signing.make(path, Adopting::Everything)?;
    signing.open(path, Adopting::Everything).map(drop)
}

/// The hash of any JSON value in its canonical form (RFC 8785).
///
/// # Errors
/// When it has none.
pub fn hash_of(value: &Value) -> Result<String, ReceiptError> {
    let text = serde_json_canonicalizer::to_vec(value).map_err(|e| ReceiptError::Arguments(e.to_string()))?;
    Ok(Hash::of(&[&text]).to_string())
}

/// The hash of a text, as it is.
#[must_use]
pub fn hash_of_text(text: &str) -> String {
    Hash::of(&[text.as_bytes()]).to_string()
}
