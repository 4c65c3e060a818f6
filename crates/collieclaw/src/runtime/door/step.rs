//! What a procedure does beside calling tools: it asks the model, and takes decisions of the operator's. Each leaves one
//! receipt, as a call does.

use serde_json::Value;

use super::{Door, OfStep};
use crate::events::Event;
use crate::receipts::{Attempt, Ending, Intent, ReceiptError, Stage};

/// What a receipt is to be about.
#[derive(Debug, Clone, Copy)]
pub struct Deed<'d> {
    /// The run.
    pub run: &'d str,
    /// The step, if it is of one.
    pub step: Option<OfStep<'d>>,
    /// What stands for the name of a tool.
    pub name: &'d str,
    /// What stands for its arguments.
    pub about: &'d Value,
    /// Who has decided on it.
    pub by: By,
}

/// Who has decided on something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The rules, without a question.
    Rules,
    /// Whoever sits in front of it.
    Operator,
}

/// A deed that has begun.
#[must_use = "a deed that has begun has to be concluded"]
pub struct Begun {
    attempt: Attempt,
    intent: Intent,
}

impl Door {
    /// Makes durable that something begins.
    ///
    /// # Errors
    /// When it can't be: then it must not begin.
    pub fn begin(&self, deed: Deed<'_>) -> Result<Begun, ReceiptError> {
        let attempt = self.deed(deed)?;
        let mut intent = Intent::default();
        self.receipts.borrow().intend(&mut intent, &attempt, Stage::Begun)?;
        Ok(Begun { attempt, intent })
    }

    /// Makes durable how it ended. Its receipt; `None` if receipts are off.
    ///
    /// # Errors
    /// When it can't be.
    pub fn end(&self, begun: Begun, ending: &Ending) -> Result<Option<String>, ReceiptError> {
        self.receipts.borrow_mut().conclude(begun.intent, &begun.attempt, ending)?;
        Ok(self.written(begun.attempt, ending))
    }

    /// Makes durable what takes no time.
    ///
    /// # Errors
    /// When it can't be.
    pub fn note(&self, deed: Deed<'_>, ending: &Ending) -> Result<Option<String>, ReceiptError> {
        let attempt = self.deed(deed)?;
        self.receipts.borrow_mut().write(&attempt, ending)?;
        Ok(self.written(attempt, ending))
    }

    fn deed(&self, deed: Deed<'_>) -> Result<Attempt, ReceiptError> {
        let approver = match deed.by {
            By::Rules => "rules",
            By::Operator => "operator",
        };
        Ok(Attempt {
            risk: "low".to_owned(),
            decision: "allow".to_owned(),
            approver: approver.to_owned(),
            ..self.fresh(deed.run, deed.name, deed.about, deed.step)?
        })
    }

    pub(super) fn written(&self, attempt: Attempt, ending: &Ending) -> Option<String> {
        let receipt = self.receipts.borrow().are_written().then_some(attempt.id)?;
        self.events.tell(Event::ReceiptWritten { receipt: &receipt, status: ending.status.word() });
        Some(receipt)
    }
}
