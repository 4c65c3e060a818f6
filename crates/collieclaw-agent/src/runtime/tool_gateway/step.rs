//! Actions of a procedure's run other than tool calls: asking the model, and decisions of the operator. Each action
//! leaves one receipt, as a call does.

use serde_json::Value;

use super::{StepRef, ToolGateway};
use crate::events::AgentEvent;
use crate::receipts::{CallAttempt, CallEnding, CallIntent, IntentStage, ReceiptError};

/// An action of a procedure's run that is not a tool call and leaves a receipt.
#[derive(Debug, Clone, Copy)]
pub struct SopRunAction<'a> {
    pub run: &'a str,
    /// `None` for an action about the whole run.
    pub step: Option<StepRef<'a>>,
    /// The name that the receipt has instead of a tool's name.
    pub name: &'a str,
    /// The value that the receipt has instead of a call's arguments.
    pub arguments: &'a Value,
    pub decided_by: DecidedBy,
}

/// The source of a decision about a call or an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The rules decided, and the operator was not asked.
    Rules,
    Operator,
}

/// An action that has begun and has no receipt yet.
#[must_use = "an action that has begun needs a receipt"]
pub struct ActionInProgress {
    attempt: CallAttempt,
    intent: CallIntent,
}

impl ToolGateway {
    /// Writes the intent of an action to disk.
    ///
    /// # Errors
    /// Fails if the intent can't be written. Then the action must not begin.
    pub fn begin_action(&self, action: SopRunAction<'_>) -> Result<ActionInProgress, ReceiptError> {
        let attempt = self.action_attempt(action)?;
        let mut intent = CallIntent::default();
        self.receipts.borrow().write_intent(&mut intent, &attempt, IntentStage::Started)?;
        Ok(ActionInProgress { attempt, intent })
    }

    /// Writes the receipt of an action that has ended, and returns its id; `None` if receipts are off.
    ///
    /// # Errors
    /// Fails if the receipt can't be written.
    pub fn finish_action(
        &self,
        in_progress: ActionInProgress,
        ending: &CallEnding,
    ) -> Result<Option<String>, ReceiptError> {
        self.receipts.borrow_mut().finish_intent(in_progress.intent, &in_progress.attempt, ending)?;
        Ok(self.emit_receipt(in_progress.attempt, ending))
    }

    /// Writes the receipt of an action that takes no time, and so needs no intent.
    ///
    /// # Errors
    /// Fails if the receipt can't be written.
    pub fn record_action(
        &self,
        action: SopRunAction<'_>,
        ending: &CallEnding,
    ) -> Result<Option<String>, ReceiptError> {
        let attempt = self.action_attempt(action)?;
        self.receipts.borrow_mut().write_receipt(&attempt, ending)?;
        Ok(self.emit_receipt(attempt, ending))
    }

    fn action_attempt(&self, action: SopRunAction<'_>) -> Result<CallAttempt, ReceiptError> {
        let approver = match action.decided_by {
            DecidedBy::Rules => "rules",
            DecidedBy::Operator => "operator",
        };
        Ok(CallAttempt {
            risk: "low".to_owned(),
            decision: "allow".to_owned(),
            approver: approver.to_owned(),
            ..self.new_attempt(action.run, action.name, action.arguments, action.step)?
        })
    }

    pub(super) fn emit_receipt(&self, attempt: CallAttempt, ending: &CallEnding) -> Option<String> {
        let receipt = self.receipts.borrow().is_enabled().then_some(attempt.id)?;
        self.events.emit(AgentEvent::ReceiptWritten { receipt: &receipt, status: ending.status });
        Some(receipt)
    }
}
