//! The log of receipts: every attempt at a call leaves exactly one receipt, chained to the receipt before (C8).
//!
//! Before a tool runs, and before the operator is asked about a call, the gateway writes an *intent* into a separate
//! file, which stays locked while the process lives. If the process dies, the next process that opens the log turns the
//! intent into a receipt: `failed` if the tool had begun, `denied` if the operator was still being asked. So no tool runs
//! without a trace.

mod error;
mod executed_commands;
mod intent;
mod reason;
mod receipt;
mod run_history;
mod signing;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use ward_ledger::verify::LogCompleteness;
use ward_ledger::{Ledger, LedgerFormat, Sha256Hash};

pub use error::ReceiptError;
pub use executed_commands::{ExecutedCommand, ExecutedCommands};
pub use intent::{CallIntent, IntentStage};
pub use reason::ReceiptReason;
pub use receipt::{CallAttempt, CallEnding, Receipt, ReceiptStatus};
pub use run_history::{
    AGENT_STEP, APPROVED_STEP, CANCELLED_RUN, RERUN_STEP, RunHistory, SKIPPED_STEP, StepReceipt,
    StepReceiptKind,
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

/// Returns the format of the log; see `docs/collieclaw-receipts.md`.
///
/// # Panics
/// Never: the ledger accepts the name, which is a constant.
#[must_use]
pub fn ledger_format() -> LedgerFormat {
    LedgerFormat::new("receipt_hash").expect("the ledger doesn't reserve the name `receipt_hash`")
}

impl ReceiptLog {
    /// Opens the log and writes the receipts of calls that a crash interrupted. Returns the log and a sentence about each
    /// repair.
    ///
    /// # Errors
    /// Fails if the log can't be used. Then no tool may run.
    pub fn open(
        path: &Path,
        signing: &ReceiptSigning,
        intents: PathBuf,
    ) -> Result<(Self, Vec<String>), ReceiptError> {
        let mut repairs = Vec::from_iter(signing.create_key(path)?);
        let (log, recovery) = signing.open(path, LogAdoption::Nothing)?;
        if !recovery.is_clean() {
            repairs.push(
                "the receipt log ended in a half-written line, which was moved to a separate file".to_owned(),
            );
        }
        let mut receipts = Self { log: Some(log), signing: signing.clone(), intents };
        let settled = receipts.settle_abandoned(path)?;
        if settled > 0 {
            let calls = if settled == 1 {
                "1 interrupted call".to_owned()
            } else {
                format!("{settled} interrupted calls")
            };
            repairs.push(format!("wrote the receipts of {calls}"));
        }
        Ok((receipts, repairs))
    }

    /// Creates a log that writes nothing, for a configuration with receipts switched off.
    #[must_use]
    pub fn disabled() -> Self {
        Self { log: None, signing: ReceiptSigning::Off, intents: PathBuf::new() }
    }

    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.log.is_some()
    }

    /// Returns whether receipts carry a signature.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        matches!(self.signing, ReceiptSigning::With { .. })
    }

    /// Writes to disk that a call is about to reach this stage.
    ///
    /// # Errors
    /// Fails if the intent can't be written. Then the operator must not be asked, and the tool must not run.
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

    /// Writes the receipt of a call and removes its intent, if there is one.
    ///
    /// # Errors
    /// Fails if the receipt can't be written. Then the result must not reach the model. The intent stays, and a later
    /// process turns it into a receipt.
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

    /// Writes the receipt of a call without an intent.
    ///
    /// # Errors
    /// Fails if the receipt can't be written.
    pub fn write_receipt(&mut self, attempt: &CallAttempt, ending: &CallEnding) -> Result<(), ReceiptError> {
        self.append(receipt::receipt_record(attempt, ending))
    }

    /// Returns the history of a procedure's run. Verifies the whole log first, because a broken log proves nothing.
    ///
    /// # Errors
    /// Fails if the log can't be read or is broken.
    pub fn run_history(&self, run: &str) -> Result<RunHistory, ReceiptError> {
        let mut history = RunHistory::default();
        let Some(log) = &self.log else { return Ok(history) };
        let key = self.signing.key()?;
        let report = ward_ledger::verify(log.path(), &ledger_format(), key.as_ref());
        let report = report.map_err(|error| ReceiptError::Verify(Box::new(error)))?;
        if !(report.is_sound() && matches!(report.completeness, LogCompleteness::Complete { .. })) {
            return Err(ReceiptError::BrokenChain { log: log.path().to_owned() });
        }
        let entries = ward_ledger::read(log.path(), &ledger_format());
        for entry in entries.map_err(|error| ReceiptError::Read(Box::new(error)))?.flatten() {
            history.add_receipt(run, &entry.record);
        }
        Ok(history)
    }

    /// Returns whether any process runs a call of this run, or asks the operator about one.
    ///
    /// # Errors
    /// Fails if the intents can't be read.
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
        let abandoned = intent::find_abandoned(&self.intents).map_err(failed)?;
        if abandoned.is_empty() {
            return Ok(0);
        }
        let mut known = std::collections::BTreeSet::new();
        // Lines that can't be read are skipped: `receipt verify` reports them, and here they can only cause a second receipt.
        for entry in
            ward_ledger::read(log, &ledger_format()).map_err(|e| ReceiptError::Read(Box::new(e)))?.flatten()
        {
            known.extend(entry.record.get("id").and_then(Value::as_str).map(str::to_owned));
        }
        let mut settled = 0;
        for AbandonedIntent { stage, intent, attempt } in abandoned {
            if known.insert(attempt.id.clone()) {
                self.write_receipt(&attempt, &CallEnding::interrupted(stage))?;
                settled += 1;
            }
            intent.remove();
        }
        Ok(settled)
    }
}

/// Accepts a log without its head or without signatures, because the operator has checked it. The acceptance is
/// recorded in the log.
///
/// # Errors
/// Fails if the log can't be used.
pub fn adopt_log(path: &Path, signing: &ReceiptSigning) -> Result<(), ReceiptError> {
    signing.create_key_with(path, LogAdoption::Everything)?;
    signing.open(path, LogAdoption::Everything).map(drop)
}

/// Returns the SHA-256 of a JSON value in canonical form (RFC 8785).
///
/// # Errors
/// Fails if the value has no canonical form.
pub fn hash_json(value: &Value) -> Result<String, ReceiptError> {
    let text = serde_json_canonicalizer::to_vec(value).map_err(|e| ReceiptError::Arguments(e.to_string()))?;
    Ok(Sha256Hash::of(&[&text]).to_string())
}

/// Returns the SHA-256 of a text.
#[must_use]
pub fn hash_text(text: &str) -> String {
    Sha256Hash::of(&[text.as_bytes()]).to_string()
}
