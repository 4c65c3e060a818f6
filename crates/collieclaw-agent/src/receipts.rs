//! What every attempted call leaves behind: one receipt, chained to the one before (C8).
//!
//! A call that is to run, or that somebody is asked about, leaves an *intent* first, in a file of its own that stays
//! locked while its process lives. What a crash leaves of it becomes a `failed` receipt, or a `denied` one if it was still
//! being asked about, when the next process opens the receipts. So every attempt has exactly one, and no tool runs of which
//! nothing is known.

mod error;
mod intent;
mod receipt;
mod run_history;
mod signing;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ward_ledger::verify::LogCompleteness;
use ward_ledger::{Ledger, LedgerFormat, Sha256Hash};

pub use error::ReceiptError;
pub use intent::{CallIntent, IntentStage};
pub use receipt::{CallAttempt, CallEnding, Receipt, ReceiptStatus};
pub use run_history::{
    AGENT_STEP, APPROVED_STEP, CANCELLED_RUN, REASON_CALL_DENIED, REASON_DECIDED, REASON_NO_ANSWER,
    RERUN_STEP, RunHistory, SKIPPED_STEP, StepReceipt, StepReceiptKind,
};
pub use signing::ReceiptSigning;

use intent::AbandonedIntent;
use signing::LogAdoption;

/// The log of receipts.
pub struct ReceiptLog {
    log: Option<Ledger>,
    signing: ReceiptSigning,
    intents: PathBuf,
}

/// The form of the log: see `docs/collieclaw-receipts.md`.
///
/// # Panics
/// Never: the name is a constant that the ledger takes.
#[must_use]
pub fn ledger_format() -> LedgerFormat {
    LedgerFormat::new("receipt_hash").expect("a name that the ledger doesn't use itself")
}

impl ReceiptLog {
    /// Opens the log and settles what a crash has left. What had to be put right is told in sentences.
    ///
    /// # Errors
    /// When the log can't be used; then no tool may run.
    pub fn open(
        path: &Path,
        signing: &ReceiptSigning,
        intents: PathBuf,
    ) -> Result<(Self, Vec<String>), ReceiptError> {
        let mut told = Vec::from_iter(signing.make_key(path)?);
        let (log, recovery) = signing.open(path, LogAdoption::Nothing)?;
        if !recovery.is_clean() {
            told.push("the log of receipts had a half-written end, which was set aside".to_owned());
        }
        let mut receipts = Self { log: Some(log), signing: signing.clone(), intents };
        let settled = receipts.settle_abandoned(path)?;
        if settled > 0 {
            told.push(format!("calls that were interrupted and have their receipt now: {settled}"));
        }
        Ok((receipts, told))
    }

    /// The operator wants none.
    #[must_use]
    pub fn disabled() -> Self {
        Self { log: None, signing: ReceiptSigning::Off, intents: PathBuf::new() }
    }

    /// Whether receipts are written.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.log.is_some()
    }

    /// Whether they carry a signature.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        matches!(self.signing, ReceiptSigning::With { .. })
    }

    /// Makes durable that a call comes to this stage, before it does.
    ///
    /// # Errors
    /// When it can't be: then nobody may be asked, and nothing may run.
    pub fn write_intent(
        &self,
        intent: &mut CallIntent,
        attempt: &CallAttempt,
        stage: IntentStage,
    ) -> Result<(), ReceiptError> {
        if self.log.is_none() {
            return Ok(());
        }
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        intent.advance(stage, attempt, &self.intents).map_err(failed)
    }

    /// Makes durable how a call has ended that may have left an intent.
    ///
    /// # Errors
    /// When it can't be: then the result must not reach the model. The intent stays, and is settled later.
    pub fn finish_intent(
        &mut self,
        intent: CallIntent,
        attempt: &CallAttempt,
        ending: &CallEnding,
    ) -> Result<(), ReceiptError> {
        self.write_receipt(attempt, ending)?;
        intent.remove();
        Ok(())
    }

    /// Makes durable how a call ended that left none.
    ///
    /// # Errors
    /// When it can't be.
    pub fn write_receipt(&mut self, attempt: &CallAttempt, ending: &CallEnding) -> Result<(), ReceiptError> {
        self.append(receipt::receipt_record(attempt, ending))
    }

    /// What the log tells of a procedure's run, if every link of it holds: else anybody could have written it.
    ///
    /// # Errors
    /// When the log can't be read, or can't be relied on.
    pub fn run_history(&self, run: &str) -> Result<RunHistory, ReceiptError> {
        let mut trail = RunHistory::default();
        let Some(log) = &self.log else { return Ok(trail) };
        let key = self.signing.key()?;
        let report = ward_ledger::verify(log.path(), &ledger_format(), key.as_ref());
        let report = report.map_err(|error| ReceiptError::Verify(Box::new(error)))?;
        if !(report.is_sound() && matches!(report.completeness, LogCompleteness::Complete { .. })) {
            return Err(ReceiptError::BrokenChain { log: log.path().to_owned() });
        }
        let entries = ward_ledger::read(log.path(), &ledger_format());
        for entry in entries.map_err(|error| ReceiptError::Read(Box::new(error)))?.flatten() {
            trail.add_receipt(run, &entry.record);
        }
        Ok(trail)
    }

    /// Whether a call of a run is under way or asked about, in whatever process.
    ///
    /// # Errors
    /// When that can't be told.
    pub fn is_run_in_progress(&self, run: &str) -> Result<bool, ReceiptError> {
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        let attempts = intent::find_in_progress(&self.intents).map_err(failed)?;
        Ok(attempts.iter().any(|attempt| attempt.conversation_id == run))
    }

    fn append(&mut self, record: Map<String, Value>) -> Result<(), ReceiptError> {
        match &mut self.log {
            None => Ok(()),
            Some(log) => log.append(record).map(drop).map_err(|e| ReceiptError::Append(Box::new(e))),
        }
    }

    fn settle_abandoned(&mut self, log: &Path) -> Result<usize, ReceiptError> {
        let failed = |source| ReceiptError::Intent { folder: self.intents.clone(), source };
        let left = intent::find_abandoned(&self.intents).map_err(failed)?;
        if left.is_empty() {
            return Ok(0);
        }
        let mut known = std::collections::BTreeSet::new();
        // A fault of the log is for `receipt verify` to name; here it only hides that a call is known already.
        for entry in
            ward_ledger::read(log, &ledger_format()).map_err(|e| ReceiptError::Read(Box::new(e)))?.flatten()
        {
            known.extend(entry.record.get("id").and_then(Value::as_str).map(str::to_owned));
        }
        let mut settled = 0;
        for AbandonedIntent { stage, intent, attempt } in left {
            if known.insert(attempt.id.clone()) {
                self.write_receipt(&attempt, &CallEnding::interrupted(stage))?;
                settled += 1;
            }
            intent.remove();
        }
        Ok(settled)
    }
}

/// Goes on with a log as it is, without its head or without signatures, because somebody has looked at it. The log
/// records it.
///
/// # Errors
/// When the log can't be used.
pub fn adopt_log(path: &Path, signing: &ReceiptSigning) -> Result<(), ReceiptError> {
    signing.make_key_with(path, LogAdoption::Everything)?;
    signing.open(path, LogAdoption::Everything).map(drop)
}

/// The hash of any JSON value in its canonical form (RFC 8785).
///
/// # Errors
/// When it has none.
pub fn hash_json(value: &Value) -> Result<String, ReceiptError> {
    let text = serde_json_canonicalizer::to_vec(value).map_err(|e| ReceiptError::Arguments(e.to_string()))?;
    Ok(Sha256Hash::of(&[&text]).to_string())
}

/// The hash of a text, as it is.
#[must_use]
pub fn hash_text(text: &str) -> String {
    Sha256Hash::of(&[text.as_bytes()]).to_string()
}
