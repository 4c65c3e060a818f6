//! Approvals: the gateway looks for a remembered one first, then asks the operator.

use collieclaw_gate::{ApprovalQuestion, ApprovalSource, GateVerdict, Permit};
use serde_json::json;

use super::{CallInProgress, ToolGateway, ToolOffer, ToolRequest};
use crate::events::AgentEvent;
use crate::receipts::{IntentStage, ReceiptError, hash_json};
use crate::runtime::operator::{ApprovalAnswer, ApprovalPrompt, NoQuestions, PermanentApproval, TurnControl};
use crate::security::{ApprovalCall, ApprovalStore, ApprovalSubject};
use crate::tools::{CallPreview, PreparedCall};

/// The reason why a call that needs an approval got no permit.
pub(super) enum NotApproved {
    /// The operator said no.
    Refused(GateVerdict),
    NoOperator(GateVerdict),
    /// The operator was not asked, because the intent could not be written.
    Unrecorded(ReceiptError),
    /// The operator was not asked, because the call can't do its work.
    WouldFail(String),
}

impl ToolGateway {
    /// Obtains a permit for exactly the call in question.
    pub(super) fn obtain_permit(
        &self,
        question: ApprovalQuestion,
        prepared: Option<&dyn PreparedCall>,
        call: &mut CallInProgress<'_>,
        control: &mut TurnControl<'_>,
    ) -> Result<Permit, NotApproved> {
        let request = call.request;
        let approvals = ApprovalStore::new(self.home.approvals());
        let subject = self.approval_subject(&question, request);
        match subject.as_ref().map(|subject| approvals.find(subject)) {
            Some(Ok(Some(approval))) => {
                call.attempt.approval_id = Some(approval.id);
                return Ok(question.approve_remembered());
            }
            Some(Err(error)) => self.report_error(&error),
            Some(Ok(None)) | None => {}
        }
        if !control.operator.is_available() {
            return Err(NotApproved::NoOperator(question.refuse()));
        }
        let context = self.tool_context(control.cancel, &NoQuestions, self.bounds);
        let preview = match prepared.map_or(CallPreview::None, |prepared| prepared.preview(&context)) {
            CallPreview::None => None,
            CallPreview::Shown(preview) => Some(preview),
            // The error may quote the file, so a call of a tool that isn't offered is asked about first.
            CallPreview::WouldFail(error) if request.offer == ToolOffer::Unlisted => {
                Some(format!("this call would fail: {error}"))
            }
            CallPreview::WouldFail(error) => return Err(NotApproved::WouldFail(error)),
        };
        self.write_intent(call, IntentStage::AwaitingApproval).map_err(NotApproved::Unrecorded)?;
        let permanent_approval =
            if subject.is_some() { PermanentApproval::Offered } else { PermanentApproval::NotOffered };
        let prompt = ApprovalPrompt {
            tool: request.tool,
            arguments: request.arguments,
            preview: preview.as_deref(),
            verdict: question.verdict(),
            permanent_approval,
        };
        match (control.operator.ask_approval(&prompt), subject) {
            (ApprovalAnswer::Yes, _) | (ApprovalAnswer::Always, None) => {}
            (ApprovalAnswer::Always, Some(subject)) => match approvals.remember(subject) {
                Ok(approval) => call.attempt.approval_id = Some(approval.id),
                // The approval counts for this call only, and the operator is asked again the next time.
                Err(error) => self.report_error(&error),
            },
            (ApprovalAnswer::No, _) => return Err(NotApproved::Refused(question.refuse())),
            (ApprovalAnswer::Unavailable, _) => return Err(NotApproved::NoOperator(question.refuse())),
        }
        Ok(question.approve())
    }

    /// Returns the subject that a lasting approval would cover. `None` for a tool that is not on the list of the
    /// channel: a lasting approval would put the tool there.
    fn approval_subject(
        &self,
        question: &ApprovalQuestion,
        request: ToolRequest<'_>,
    ) -> Option<ApprovalSubject> {
        let tool = match request.offer {
            ToolOffer::Listed | ToolOffer::Step(_) => self.rules.find_tool(request.tool)?,
            ToolOffer::Unlisted => return None,
        };
        let described = json!({ "description": tool.description(), "parameters": tool.parameters_schema() });
        let call = ApprovalCall {
            tool: request.tool,
            tool_hash: hash_json(&described).ok()?,
            arguments: request.arguments,
            workspace: &self.rules.policy.workspace,
            policy_hash: &self.policy_hash(),
        };
        ApprovalSubject::from_question(question, &call)
    }

    fn report_error(&self, error: &dyn std::error::Error) {
        self.events.emit(AgentEvent::Trouble { what: &ward_diag::ErrorChain(error).to_string() });
    }
}

/// Returns the word that receipts have for the approver.
pub(super) fn approver_name(approved: ApprovalSource) -> &'static str {
    match approved {
        ApprovalSource::Rules => "rules",
        ApprovalSource::Operator => "operator",
        ApprovalSource::Remembered => "remembered",
    }
}
