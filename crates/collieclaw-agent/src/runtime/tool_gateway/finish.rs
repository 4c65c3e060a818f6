//! The end of a call: event, receipt, and the text that the model gets.

use std::time::Duration;

use collieclaw_gate::GateVerdict;

use super::{CallInProgress, DecidedBy, MAX_NAME_BYTES, ToolGateway, ToolRequest, model_text};
use crate::events::AgentEvent;
use crate::receipts::{CallEnding, ReceiptError, ReceiptReason};
use crate::runtime::call_outcome::{CallFault, CallOutcome, FinishedCall, ToolRun};
use crate::tools::{ToolEnd, ToolResult, truncate_text};
use collieclaw_providers::cancel::CancelReason;

impl ToolGateway {
    /// Finishes a call whose tool ran.
    pub(super) fn finish_run(
        &self,
        mut call: CallInProgress<'_>,
        result: ToolResult,
        elapsed: Duration,
        stopped_by: Option<CancelReason>,
    ) -> Result<FinishedCall, ReceiptError> {
        let text = model_text::result_text(&result, self.call_bounds(call.request).max_output_bytes);
        let ToolResult { end, output, metadata, sandbox, commands } = result;
        let keeps_output =
            call.request.offer.step().is_some() && output.len() <= self.bounds.max_response_bytes;
        let run = ToolRun { elapsed, metadata, sandbox, commands };
        let outcome = CallOutcome::of_run(run, &end, stopped_by, keeps_output.then_some(output));
        let ending = self.write_receipt(&mut call, &outcome, &text)?;
        self.emit_run_end(call.request.tool, &end, &outcome);
        Ok(self.deliver_result(call, outcome, text, &ending))
    }

    /// Finishes a call that is rejected because too many others wait. The gate has not judged it.
    ///
    /// # Errors
    /// Only if the receipt can't be written.
    pub fn reject(&self, request: ToolRequest<'_>) -> Result<FinishedCall, ReceiptError> {
        let name = truncate_text(request.tool, MAX_NAME_BYTES);
        let request = ToolRequest { tool: &name, ..request };
        let call = self.begin_call(request)?;
        self.fail_before_run(call, CallFault::TooManyCalls)
    }

    fn emit_run_end(&self, tool: &str, end: &ToolEnd, outcome: &CallOutcome) {
        self.events.emit(match (outcome, end) {
            (CallOutcome::Stopped { by: CancelReason::Estop, .. }, _) => AgentEvent::EstopTriggered { tool },
            (_, ToolEnd::Failed(error)) => AgentEvent::ToolFailed { tool, error },
            (_, ToolEnd::Cancelled) => {
                AgentEvent::ToolFailed { tool, error: ReceiptReason::Cancelled.code() }
            }
            (_, ToolEnd::Done) => {
                let elapsed = outcome.tool_run().map_or(Duration::ZERO, |run| run.elapsed);
                let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                AgentEvent::ToolCompleted { tool, milliseconds }
            }
        });
    }

    /// Finishes a call whose intent could not be written, with the error that says why.
    pub(super) fn fail_unrecorded(
        &self,
        call: CallInProgress<'_>,
        error: ReceiptError,
    ) -> Result<FinishedCall, ReceiptError> {
        self.fail_before_run(call, CallFault::NoIntent)?;
        Err(error)
    }

    pub(super) fn fail_before_run(
        &self,
        call: CallInProgress<'_>,
        fault: CallFault,
    ) -> Result<FinishedCall, ReceiptError> {
        let error = fault.to_string();
        self.events.emit(AgentEvent::ToolFailed { tool: call.request.tool, error: &error });
        self.finish_without_run(call, CallOutcome::NotRun(fault), model_text::error_text(&error))
    }

    /// Finishes a call that the gate denied.
    pub(super) fn deny(
        &self,
        call: CallInProgress<'_>,
        verdict: &GateVerdict,
    ) -> Result<FinishedCall, ReceiptError> {
        self.emit_denial(&call, verdict, &model_text::deciding_reason(verdict));
        let outcome = CallOutcome::Denied { by: DecidedBy::Rules };
        self.finish_without_run(call, outcome, model_text::denied_text(verdict))
    }

    /// Finishes a call that the operator refused.
    pub(super) fn refuse(
        &self,
        call: CallInProgress<'_>,
        verdict: &GateVerdict,
    ) -> Result<FinishedCall, ReceiptError> {
        self.emit_denial(&call, verdict, "the operator said no");
        let outcome = CallOutcome::Denied { by: DecidedBy::Operator };
        self.finish_without_run(call, outcome, model_text::refused_text())
    }

    /// Finishes a call that needs an approval while no operator is available.
    pub(super) fn deny_without_operator(
        &self,
        call: CallInProgress<'_>,
        verdict: &GateVerdict,
    ) -> Result<FinishedCall, ReceiptError> {
        self.emit_denial(&call, verdict, "the call needs an approval, and no operator is available");
        self.finish_without_run(call, CallOutcome::NoOperator, model_text::no_operator_text())
    }

    /// Finishes a call that was stopped before its tool ran.
    pub(super) fn stop(
        &self,
        call: CallInProgress<'_>,
        by: CancelReason,
    ) -> Result<FinishedCall, ReceiptError> {
        let tool = call.request.tool;
        let text = match by {
            CancelReason::Estop => {
                self.events.emit(AgentEvent::EstopTriggered { tool });
                model_text::stopped_text()
            }
            CancelReason::Operator => {
                let (reason, detail) = (&ReceiptReason::Cancelled, "the operator cancelled the call");
                self.events.emit(AgentEvent::ToolDenied { tool, reason, detail });
                model_text::cancelled_text()
            }
        };
        self.finish_without_run(call, CallOutcome::Stopped { by, began: None }, text)
    }

    fn emit_denial(&self, call: &CallInProgress<'_>, verdict: &GateVerdict, detail: &str) {
        let reason = ReceiptReason::from(verdict);
        self.events.emit(AgentEvent::ToolDenied { tool: call.request.tool, reason: &reason, detail });
    }

    fn finish_without_run(
        &self,
        mut call: CallInProgress<'_>,
        outcome: CallOutcome,
        text: String,
    ) -> Result<FinishedCall, ReceiptError> {
        let ending = self.write_receipt(&mut call, &outcome, &text)?;
        Ok(self.deliver_result(call, outcome, text, &ending))
    }

    fn write_receipt(
        &self,
        call: &mut CallInProgress<'_>,
        outcome: &CallOutcome,
        text: &str,
    ) -> Result<CallEnding, ReceiptError> {
        let ending = outcome.ending(text);
        let intent = std::mem::take(&mut call.intent);
        self.receipts.borrow_mut().finish_intent(intent, &call.attempt, &ending)?;
        Ok(ending)
    }

    fn deliver_result(
        &self,
        call: CallInProgress<'_>,
        outcome: CallOutcome,
        text: String,
        ending: &CallEnding,
    ) -> FinishedCall {
        let receipt_id = self.emit_receipt(call.attempt, ending);
        FinishedCall { outcome, text, receipt_id }
    }
}
