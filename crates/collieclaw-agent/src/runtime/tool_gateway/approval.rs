//! Who says yes to what the gate asks about: what was remembered, then whoever is there.

use collieclaw_gate::{ApprovalQuestion, ApprovalSource, GateVerdict, Permit};
use serde_json::json;

use super::{CallInProgress, CallStatus, ToolGateway, ToolOffer, ToolRequest};
use crate::events::AgentEvent;
use crate::receipts::{IntentStage, ReceiptError, hash_json};
use crate::runtime::operator::{AlwaysOption, ApprovalAnswer, ApprovalPrompt, OperatorContext};
use crate::security::{ApprovalCall, ApprovalStore, ApprovalSubject};

/// Why there is no permit.
pub(super) enum NotApproved {
    /// A no, or nobody; and how it ends.
    Refused(GateVerdict, CallStatus),
    /// Nobody was asked: what becomes of the call could not be kept.
    Unrecorded(ReceiptError),
}

impl ToolGateway {
    /// A permit for exactly what was asked about.
    pub(super) fn obtain_permit(
        &self,
        question: ApprovalQuestion,
        passage: &mut CallInProgress<'_>,
        attended: &mut OperatorContext<'_>,
    ) -> Result<Permit, NotApproved> {
        let wish = passage.request;
        let approvals = ApprovalStore::new(self.home.approvals());
        let subject = self.approval_subject(&question, wish);
        match subject.as_ref().map(|subject| approvals.find(subject)) {
            Some(Ok(Some(approval))) => {
                passage.attempt.approval_id = Some(approval.id);
                return Ok(question.approve_remembered());
            }
            Some(Err(error)) => self.report_error(&error),
            Some(Ok(None)) | None => {}
        }
        if !attended.operator.is_available() {
            return Err(NotApproved::Refused(question.refuse(), CallStatus::NobodyToAsk));
        }
        self.write_intent(passage, IntentStage::AwaitingApproval).map_err(NotApproved::Unrecorded)?;
        let lasting = if subject.is_some() { AlwaysOption::Offered } else { AlwaysOption::NotOffered };
        let asked = ApprovalPrompt {
            tool: wish.tool,
            arguments: wish.arguments,
            verdict: question.verdict(),
            always_option: lasting,
        };
        match (attended.operator.ask_approval(&asked), subject) {
            (ApprovalAnswer::Yes, _) | (ApprovalAnswer::Always, None) => {}
            (ApprovalAnswer::Always, Some(subject)) => match approvals.remember(subject) {
                Ok(approval) => passage.attempt.approval_id = Some(approval.id),
                // This once it was said; the next time is asked again.
                Err(error) => self.report_error(&error),
            },
            (ApprovalAnswer::No, _) => {
                return Err(NotApproved::Refused(question.refuse(), CallStatus::Denied));
            }
            (ApprovalAnswer::NobodyAvailable, _) => {
                return Err(NotApproved::Refused(question.refuse(), CallStatus::NobodyToAsk));
            }
        }
        Ok(question.approve())
    }

    /// `None` for a tool that is not on the list of whoever asks: a yes for good would put it there.
    fn approval_subject(
        &self,
        question: &ApprovalQuestion,
        wish: ToolRequest<'_>,
    ) -> Option<ApprovalSubject> {
        let tool = match wish.offer {
            ToolOffer::Listed | ToolOffer::Step(_) => self.rules.find_tool(wish.tool)?,
            ToolOffer::Unlisted => return None,
        };
        let described = json!({ "description": tool.description(), "parameters": tool.parameters_schema() });
        let call = ApprovalCall {
            tool: wish.tool,
            tool_hash: hash_json(&described).ok()?,
            arguments: wish.arguments,
            workspace: &self.rules.policy.workspace,
            policy_hash: &self.rules.policy_hash,
        };
        ApprovalSubject::from_question(question, &call)
    }

    fn report_error(&self, error: &dyn std::error::Error) {
        self.events.emit(AgentEvent::Trouble { what: &ward_diag::ErrorChain(error).to_string() });
    }
}

/// In receipts.
pub(super) fn approver_name(approved: ApprovalSource) -> &'static str {
    match approved {
        ApprovalSource::Rules => "rules",
        ApprovalSource::Operator => "operator",
        ApprovalSource::Remembered => "remembered",
    }
}
