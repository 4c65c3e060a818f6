//! What every attempted call leaves behind: one receipt, chained to the one before (C8).
//!
//! A call that is to run, or that somebody is asked about, leaves an *intent* first, in a file of its own that stays
//! locked while its process lives. What a crash leaves of it becomes a `failed` receipt, or a `denied` one if it was still
//! being asked about, when the next process opens the receipts. So every attempt has exactly one, and no tool runs of which
//! nothing is known.

mod error;
mod intent;
mod receipt;
mod signing;
mod trail;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ward_ledger::verify::Completeness;
use ward_ledger::{Format, Hash, Ledger};

pub use error::ReceiptError;
pub use intent::{Intent, Stage};
pub use receipt::{Attempt, Ending, Receipt, Status};
pub use signing::Signing;
pub use trail::{
    AGENT_STEP, APPROVED_STEP, CALL_DENIED, CANCELLED_RUN, DECIDED, Mark, NO_ANSWER, RERUN_STEP,
    SKIPPED_STEP, Trace, Trail,
};

use intent::Left;
use signing::Adopting;

/// The log of receipts.
pub struct Receipts {
    log: Option<Ledger>,
    signing: Signing,
    intents: PathBuf,
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
        let mut receipts = Self { log: Some(log), signing: signing.clone(), intents };
        let settled = receipts.settle(path)?;
        if settled > 0 {
            told.push(format!("calls that were interrupted and have their receipt now: {settled}"));
        }
        Ok((receipts, told))
    }

    /// The operator wants none.
    #[must_use]
    pub fn off() -> Self {
        Self { log: None, signing: Signing::Off, intents: PathBuf::new() }
    }

    /// Whether receipts are written.
    #[must_use]
    pub fn are_written(&self) -> bool {
        self.log.is_some()
    }

    /// Whether they carry a signature.
    #[must_use]
    pub fn are_signed(&self) -> bool {
        matches!(self.signing, Signing::With { .. })
    }

    /// Makes durable that a call comes to this stage, before it does.
    ///
    /// # Errors
    /// When it can't be: then nobody may be asked, and nothing may run.
    pub fn intend(&self, intent: &mut Intent, attempt: &Attempt, stage: Stage) -> Result<(), ReceiptError> {
        if self.log.is_none() {
            return Ok(());
        }
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        intent.reach(stage, attempt, &self.intents).map_err(failed)
    }

    /// Makes durable how a call has ended that may have left an intent.
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

    /// Makes durable how a call ended that left none.
    ///
    /// # Errors
    /// When it can't be.
    pub fn write(&mut self, attempt: &Attempt, ending: &Ending) -> Result<(), ReceiptError> {
        self.append(receipt::record(attempt, ending))
    }

    /// What the log tells of a procedure's run, if every link of it holds: else anybody could have written it.
    ///
    /// # Errors
    /// When the log can't be read, or can't be relied on.
    pub fn of_run(&self, run: &str) -> Result<Trail, ReceiptError> {
        let mut trail = Trail::default();
        let Some(log) = &self.log else { return Ok(trail) };
        let key = self.signing.key()?;
        let report = ward_ledger::verify(log.path(), &format(), key.as_ref());
        let report = report.map_err(|error| ReceiptError::Verify(Box::new(error)))?;
        if !(report.is_sound() && matches!(report.completeness, Completeness::Complete { .. })) {
            return Err(ReceiptError::NotSound { log: log.path().to_owned() });
        }
        let entries = ward_ledger::read(log.path(), &format());
        for entry in entries.map_err(|error| ReceiptError::Read(Box::new(error)))?.flatten() {
            trail.take(run, &entry.record);
        }
        Ok(trail)
    }

    /// Whether a call of a run is under way or asked about, in whatever process.
    ///
    /// # Errors
    /// When that can't be told.
    pub fn is_under_way(&self, run: &str) -> Result<bool, ReceiptError> {
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        let attempts = intent::under_way(&self.intents).map_err(failed)?;
        Ok(attempts.iter().any(|attempt| attempt.conversation_id == run))
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
        for Left { stage, intent, attempt } in left {
            if known.insert(attempt.id.clone()) {
                self.write(&attempt, &Ending::interrupted(stage))?;
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
