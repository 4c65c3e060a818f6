//! Who says yes to what the gate asks about: what was remembered, then whoever is there.

use collieclaw_gate::{Approved, Permit, Question, Verdict};
use serde_json::json;

use super::{Door, Fate, Offer, Passage, Wish};
use crate::events::Event;
use crate::receipts::{ReceiptError, Stage, hash_of};
use crate::runtime::operator::{Answer, Asked, Attended, Lasting};
use crate::security::{Approvals, Subject, Subjected};

/// Why there is no permit.
pub(super) enum NotApproved {
    /// A no, or nobody; and how it ends.
    Refused(Verdict, Fate),
    /// Nobody was asked: what becomes of the call could not be kept.
    Unrecorded(ReceiptError),
}

impl Door {
    /// A permit for exactly what was asked about.
    pub(super) fn asked(
        &self,
        question: Question,
        passage: &mut Passage<'_>,
        attended: &mut Attended<'_>,
    ) -> Result<Permit, NotApproved> {
        let wish = passage.wish;
        let approvals = Approvals::new(self.home.approvals());
        let subject = self.subject(&question, wish);
        match subject.as_ref().map(|subject| approvals.find(subject)) {
            Some(Ok(Some(approval))) => {
                passage.attempt.approval_id = Some(approval.id);
                return Ok(question.approve_again());
            }
            Some(Err(error)) => self.trouble(&error),
            Some(Ok(None)) | None => {}
        }
        if !attended.operator.is_there() {
            return Err(NotApproved::Refused(question.refuse(), Fate::NobodyToAsk));
        }
        self.intend(passage, Stage::Asked).map_err(NotApproved::Unrecorded)?;
        let lasting = if subject.is_some() { Lasting::Offered } else { Lasting::NotOffered };
        let asked =
            Asked { tool: wish.tool, arguments: wish.arguments, verdict: question.verdict(), lasting };
        match (attended.operator.ask(&asked), subject) {
            (Answer::Yes, _) | (Answer::Always, None) => {}
            (Answer::Always, Some(subject)) => match approvals.remember(subject) {
                Ok(approval) => passage.attempt.approval_id = Some(approval.id),
                // This once it was said; the next time is asked again.
                Err(error) => self.trouble(&error),
            },
            (Answer::No, _) => return Err(NotApproved::Refused(question.refuse(), Fate::Denied)),
            (Answer::Nobody, _) => return Err(NotApproved::Refused(question.refuse(), Fate::NobodyToAsk)),
        }
        Ok(question.approve())
    }

    /// `None` for a tool that is not on the list of whoever asks: a yes for good would put it there.
    fn subject(&self, question: &Question, wish: Wish<'_>) -> Option<Subject> {
        let tool = match wish.offer {
            Offer::Listed | Offer::Step(_) => self.rules.tool(wish.tool)?,
            Offer::Unlisted => return None,
        };
        let described = json!({ "description": tool.description(), "parameters": tool.parameters_schema() });
        let call = Subjected {
            tool: wish.tool,
            tool_hash: hash_of(&described).ok()?,
            arguments: wish.arguments,
            workspace: &self.rules.policy.workspace,
            policy_hash: &self.rules.policy_hash,
        };
        Subject::of(question, &call)
    }

    fn trouble(&self, error: &dyn std::error::Error) {
        self.events.tell(Event::Trouble { what: &ward_diag::Chain(error).to_string() });
    }
}

/// In receipts.
pub(super) fn word(approved: Approved) -> &'static str {
    match approved {
        Approved::Rules => "rules",
        Approved::Operator => "operator",
        Approved::Remembered => "remembered",
    }
}
