//! What a procedure does beside calling tools: it asks the model, and takes decisions of the operator's. Each leaves one
//! receipt, as a call does.

use serde_json::Value;

use super::{StepRef, ToolGateway};
use crate::events::AgentEvent;
use crate::receipts::{CallAttempt, CallEnding, CallIntent, IntentStage, ReceiptError};

/// What a receipt is to be about.
#[derive(Debug, Clone, Copy)]
pub struct ProcedureAction<'d> {
    /// The run.
    pub run: &'d str,
    /// The step, if it is of one.
    pub step: Option<StepRef<'d>>,
    /// What stands for the name of a tool.
    pub name: &'d str,
    /// What stands for its arguments.
    pub arguments: &'d Value,
    /// Who has decided on it.
    pub decided_by: DecidedBy,
}

/// Who has decided on something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The rules, without a question.
    Rules,
    /// Whoever sits in front of it.
    Operator,
}

/// A deed that has begun.
#[must_use = "a deed that has begun has to be concluded"]
pub struct ActionInProgress {
    attempt: CallAttempt,
    intent: CallIntent,
}

impl ToolGateway {
    /// Makes durable that something begins.
    ///
    /// # Errors
    /// When it can't be: then it must not begin.
    pub fn begin_action(&self, deed: ProcedureAction<'_>) -> Result<ActionInProgress, ReceiptError> {
        let attempt = self.action_attempt(deed)?;
        let mut intent = CallIntent::default();
        self.receipts.borrow().write_intent(&mut intent, &attempt, IntentStage::Started)?;
        Ok(ActionInProgress { attempt, intent })
    }

    /// Makes durable how it ended. Its receipt; `None` if receipts are off.
    ///
    /// # Errors
    /// When it can't be.
    pub fn finish_action(
        &self,
        begun: ActionInProgress,
        ending: &CallEnding,
    ) -> Result<Option<String>, ReceiptError> {
        self.receipts.borrow_mut().finish_intent(begun.intent, &begun.attempt, ending)?;
        Ok(self.report_receipt(begun.attempt, ending))
    }

    /// Makes durable what takes no time.
    ///
    /// # Errors
    /// When it can't be.
    pub fn record_action(
        &self,
        deed: ProcedureAction<'_>,
        ending: &CallEnding,
    ) -> Result<Option<String>, ReceiptError> {
        let attempt = self.action_attempt(deed)?;
        self.receipts.borrow_mut().write_receipt(&attempt, ending)?;
        Ok(self.report_receipt(attempt, ending))
    }

    fn action_attempt(&self, deed: ProcedureAction<'_>) -> Result<CallAttempt, ReceiptError> {
        let approver = match deed.decided_by {
            DecidedBy::Rules => "rules",
            DecidedBy::Operator => "operator",
        };
        Ok(CallAttempt {
            risk: "low".to_owned(),
            decision: "allow".to_owned(),
            approver: approver.to_owned(),
            ..self.new_attempt(deed.run, deed.name, deed.arguments, deed.step)?
        })
    }

    pub(super) fn report_receipt(&self, attempt: CallAttempt, ending: &CallEnding) -> Option<String> {
        let receipt = self.receipts.borrow().is_enabled().then_some(attempt.id)?;
        self.events.emit(AgentEvent::ReceiptWritten { receipt: &receipt, status: ending.status.as_str() });
        Some(receipt)
    }
}
