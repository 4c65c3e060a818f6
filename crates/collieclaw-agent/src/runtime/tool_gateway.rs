//! The one way to run a tool: arguments, gate, approval, stop, intent, run, receipt; in this order, with no way around. A
//! question has an intent of its own.
//!
//! A tool runs only with a [`CallGrant`], which only [`ToolGateway::call`] makes. Every attempt leaves exactly one receipt, and
//! what the model gets to see was hashed into it before.

mod approval;
mod attempt;
mod model_text;
mod step;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collieclaw_gate::plan::ShellPlan;
use collieclaw_gate::{GateOutcome, GateVerdict, Permit, RiskLevel};
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::net::SearchService;
use serde_json::{Map, Value};

use super::operator::{OperatorContext, ProgressNotice, QuestionOnlyOperator};
use super::rules::CallRules;
use crate::estop;
use crate::events::{AgentEvent, EventSink};
use crate::home::AgentHome;
use crate::memory::ConversationMemory;
use crate::receipts::{
    CallAttempt, CallEnding, CallIntent, IntentStage, ReceiptError, ReceiptLog, ReceiptStatus, hash_text,
};
use crate::security::WorkspaceHandle;
use crate::tools::{PreparedCall, ToolBounds, ToolContext, ToolEnd, ToolResult, truncate_text};

use approval::NotApproved;
pub use step::{ActionInProgress, DecidedBy, ProcedureAction};

/// The right to run one prepared call, once. Only the door makes one, after gate, approval, stop and intent:
///
/// ```compile_fail,E0451
/// use collieclaw_agent::runtime::CallGrant;
/// fn forge(permit: collieclaw_gate::Permit) -> CallGrant {
///     CallGrant { permit }
/// }
/// ```
#[derive(Debug)]
pub struct CallGrant {
    permit: Permit,
}

impl CallGrant {
    /// What a shell line runs; `None` for other tools, and for a line that only a real shell can run.
    #[must_use]
    pub fn plan(&self) -> Option<&ShellPlan> {
        self.permit.plan()
    }

    /// What the gate thinks of it.
    #[must_use]
    pub fn risk(&self) -> RiskLevel {
        self.permit.verdict().risk
    }
}

/// The door, and all that is behind it.
pub struct ToolGateway {
    /// What is judged by.
    pub rules: CallRules,
    /// Where tools work.
    pub workspace: WorkspaceHandle,
    /// What was said before.
    pub memory: ConversationMemory,
    /// Who is asked what the web knows, if anybody is.
    pub search: Option<SearchService>,
    /// The limits.
    pub bounds: ToolBounds,
    /// Where the emergency stop is.
    pub home: AgentHome,
    /// What calls leave behind.
    pub receipts: RefCell<ReceiptLog>,
    /// Who is told.
    pub events: Rc<EventSink>,
}

/// A call that somebody wants.
#[derive(Debug, Clone, Copy)]
pub struct ToolRequest<'w> {
    /// In which conversation.
    pub conversation_id: &'w str,
    /// The tool.
    pub tool: &'w str,
    /// Its arguments, as they came.
    pub arguments: &'w Value,
    /// Whether whoever wants it was offered it.
    pub offer: ToolOffer<'w>,
}

/// Whether a tool was offered to whoever asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOffer<'o> {
    /// It was.
    Listed,
    /// The operator has written it down, as a step of a procedure.
    Step(StepRef<'o>),
    /// It is not on the list of the channel: it is never run without somebody's yes.
    Unlisted,
}

/// Which step of which procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRef<'s> {
    /// The step's id.
    pub id: &'s str,
    /// The hash of the procedure's text.
    pub sop_hash: &'s str,
}

impl<'o> ToolOffer<'o> {
    fn step(self) -> Option<StepRef<'o>> {
        match self {
            Self::Step(step) => Some(step),
            Self::Listed | Self::Unlisted => None,
        }
    }
}

/// What came of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOutcome {
    /// How it ended.
    pub status: CallStatus,
    /// What the model gets.
    pub text: String,
    /// What the tool itself returned, if it worked, without facts such as an exit code; else the same text.
    pub output: String,
    /// Facts that the tool told of it, such as an exit code.
    pub metadata: Map<String, Value>,
    /// Its receipt; `None` if receipts are off.
    pub receipt_id: Option<String>,
    /// How long it ran; not how long somebody was asked.
    pub took: Duration,
}

impl CallOutcome {
    /// Of a call that did not run.
    pub(super) fn not_run(fate: CallStatus, text: String, receipt_id: Option<String>) -> Self {
        Self {
            status: fate,
            output: text.clone(),
            text,
            metadata: Map::new(),
            receipt_id,
            took: Duration::ZERO,
        }
    }

    /// Whether it ran, however it ended.
    #[must_use]
    pub fn did_run(&self) -> bool {
        !self.took.is_zero()
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// It ran, and worked.
    Done,
    /// It ran, and didn't; or its arguments don't fit.
    Failed,
    /// A rule or the operator said no.
    Denied,
    /// It needs a yes, and nobody is there.
    NobodyToAsk,
    /// The emergency stop.
    Stopped,
    /// The operator cancelled it.
    Cancelled,
}

impl CallStatus {
    /// Its word for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::NobodyToAsk => "nobody-to-ask",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Of a tool's name.
const MAX_NAME_BYTES: usize = 64;

/// A call on its way through the door.
struct CallInProgress<'p> {
    request: ToolRequest<'p>,
    attempt: CallAttempt,
    intent: CallIntent,
}

impl ToolGateway {
    /// Lets a call pass, or not. Only a receipt that can't be written is an error: then nothing ran, or what it
    /// returned is not passed on.
    ///
    /// # Errors
    /// When there can be no receipt.
    pub fn call(
        &self,
        wish: ToolRequest<'_>,
        attended: &mut OperatorContext<'_>,
    ) -> Result<CallOutcome, ReceiptError> {
        // No tool has a longer name; whatever else a model writes there is not repeated everywhere.
        let name = truncate_text(wish.tool, MAX_NAME_BYTES);
        let wish = ToolRequest { tool: &name, ..wish };
        self.events.emit(AgentEvent::ToolRequested { tool: wish.tool, conversation: wish.conversation_id });
        let outcome = self.process_request(wish, attended)?;
        attended.operator.notify(ProgressNotice::CallEnded {
            tool: wish.tool,
            arguments: wish.arguments,
            outcome: &outcome,
        });
        Ok(outcome)
    }

    fn process_request(
        &self,
        wish: ToolRequest<'_>,
        attended: &mut OperatorContext<'_>,
    ) -> Result<CallOutcome, ReceiptError> {
        let name = attempt::receipt_name(wish.tool);
        let attempt = self.new_attempt(wish.conversation_id, &name, wish.arguments, wish.offer.step())?;
        let passage = CallInProgress { request: wish, attempt, intent: CallIntent::default() };
        let prepared = match self.rules.prepare(wish) {
            Ok(prepared) => prepared,
            Err(bad) => return self.fail_before_run(passage, &bad.to_string(), "bad-arguments"),
        };
        let ruling = self.rules.evaluate_prepared(prepared.as_deref(), wish);
        let mut passage = passage.with_verdict(ruling.verdict());
        let permit = match ruling {
            GateOutcome::Denied(verdict) => return self.deny(passage, &verdict),
            GateOutcome::Allowed(permit) => permit,
            GateOutcome::NeedsApproval(_) if estop::is_set(&self.home) => return self.stop(passage),
            GateOutcome::NeedsApproval(_) if attended.cancel.reason().is_some() => {
                return self.cancel(passage);
            }
            GateOutcome::NeedsApproval(question) => {
                match self.obtain_permit(question, &mut passage, attended) {
                    Ok(permit) => permit,
                    Err(NotApproved::Unrecorded(error)) => return self.fail_unrecorded(passage, error),
                    Err(_) if attended.cancel.reason().is_some() => return self.cancel(passage),
                    Err(_) if estop::is_set(&self.home) => return self.stop(passage),
                    Err(NotApproved::Refused(verdict, fate)) => return self.refuse(passage, &verdict, fate),
                }
            }
        };
        approval::approver_name(permit.approved_by()).clone_into(&mut passage.attempt.approver);
        match prepared {
            Some(prepared) => self.run_call(passage, prepared, permit, attended),
            // The gate lets no tool pass that there isn't.
            None => self.fail_before_run(passage, "there is no such tool", "bad-arguments"),
        }
    }

    fn run_call(
        &self,
        mut passage: CallInProgress<'_>,
        prepared: Box<dyn PreparedCall>,
        permit: Permit,
        attended: &mut OperatorContext<'_>,
    ) -> Result<CallOutcome, ReceiptError> {
        let wish = passage.request;
        // Whoever can't be stopped runs nothing.
        let watched =
            CancelFlag::new().and_then(|cancel| Ok((estop::EstopWatch::start(&self.home, &cancel)?, cancel)));
        let (watch, cancel) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                let fault = format!("the machine is out of descriptors or threads: {error}");
                return self.fail_before_run(passage, &fault, "no-means");
            }
        };
        let call = cancel.clone();
        let _cancelled_with_the_turn = attended.cancel.on_cancel(move || call.raise(CancelReason::Operator));
        match cancel.reason() {
            Some(CancelReason::Estop) => return self.stop(passage),
            Some(CancelReason::Operator) => return self.cancel(passage),
            None => {}
        }
        let approver = passage.attempt.approver.as_str();
        self.events.emit(AgentEvent::ToolApproved { tool: wish.tool, approver });
        if let Err(error) = self.write_intent(&mut passage, IntentStage::Started) {
            return self.fail_unrecorded(passage, error);
        }
        attended.operator.notify(ProgressNotice::CallStarted { tool: wish.tool, arguments: wish.arguments });
        let started = Instant::now();
        let questioner = QuestionOnlyOperator::new(&mut *attended.operator);
        let context = ToolContext {
            policy: &self.rules.policy,
            workspace: &self.workspace,
            memory: &self.memory,
            search: self.search.as_ref(),
            cancel: &cancel,
            questioner: &questioner,
            bounds: self.bounds,
        };
        let result = prepared.invoke(CallGrant { permit }, &context);
        drop(watch);
        let text = model_text::result_text(&result, self.bounds.max_response_bytes);
        // A server has a watch of its own, which may have ended it before ours has looked.
        let why = cancel.reason().or_else(|| estop::is_set(&self.home).then_some(CancelReason::Estop));
        let (fate, ending) = classify_end(&result, why, &text);
        let whole = fate == CallStatus::Done && result.output.len() <= self.bounds.max_response_bytes;
        // What a step gives to later ones is vouched for as well.
        let gives = whole && wish.offer.step().is_some();
        let ending = CallEnding { output_hash: gives.then(|| hash_text(&result.output)), ..ending };
        self.write_receipt(&mut passage, &ending)?;
        let took = started.elapsed();
        self.report_end(&passage, &result, fate, took);
        let outcome = self.build_outcome(passage, fate, text, &ending);
        let output = if whole { result.output } else { outcome.output };
        // A clock that is too coarse for it must not make it one that never began.
        let took = took.max(Duration::from_nanos(1));
        Ok(CallOutcome { took, output, metadata: result.metadata, ..outcome })
    }

    fn report_end(
        &self,
        passage: &CallInProgress<'_>,
        result: &ToolResult,
        fate: CallStatus,
        took: Duration,
    ) {
        let tool = passage.request.tool;
        match (&result.end, fate) {
            (_, CallStatus::Stopped) => self.events.emit(AgentEvent::EstopTriggered { tool }),
            (ToolEnd::Failed(error), _) => self.events.emit(AgentEvent::ToolFailed { tool, error }),
            (ToolEnd::Cancelled, _) => self.events.emit(AgentEvent::ToolFailed { tool, error: "cancelled" }),
            (ToolEnd::Done, _) => {
                let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                self.events.emit(AgentEvent::ToolCompleted { tool, milliseconds });
            }
        }
    }

    fn write_intent(&self, passage: &mut CallInProgress<'_>, stage: IntentStage) -> Result<(), ReceiptError> {
        self.receipts.borrow().write_intent(&mut passage.intent, &passage.attempt, stage)
    }

    fn write_receipt(
        &self,
        passage: &mut CallInProgress<'_>,
        ending: &CallEnding,
    ) -> Result<(), ReceiptError> {
        let intent = std::mem::take(&mut passage.intent);
        self.receipts.borrow_mut().finish_intent(intent, &passage.attempt, ending)
    }

    fn fail_unrecorded(
        &self,
        passage: CallInProgress<'_>,
        error: ReceiptError,
    ) -> Result<CallOutcome, ReceiptError> {
        self.fail_before_run(passage, "that it is attempted can't be written down", "no-intent")?;
        Err(error)
    }

    fn fail_before_run(
        &self,
        passage: CallInProgress<'_>,
        fault: &str,
        code: &'static str,
    ) -> Result<CallOutcome, ReceiptError> {
        self.events.emit(AgentEvent::ToolFailed { tool: passage.request.tool, error: fault });
        self.finish_without_run(passage, CallStatus::Failed, model_text::error_text(fault), Some(code))
    }

    fn deny(&self, passage: CallInProgress<'_>, verdict: &GateVerdict) -> Result<CallOutcome, ReceiptError> {
        self.report_denial(&passage, verdict);
        self.finish_without_run(passage, CallStatus::Denied, model_text::denied_text(verdict), None)
    }

    fn refuse(
        &self,
        passage: CallInProgress<'_>,
        verdict: &GateVerdict,
        fate: CallStatus,
    ) -> Result<CallOutcome, ReceiptError> {
        self.report_denial(&passage, verdict);
        let (text, code) = match fate {
            CallStatus::NobodyToAsk => (model_text::nobody_text(verdict), "nobody-to-ask"),
            _ => (model_text::refused_text(), "operator-refused"),
        };
        self.finish_without_run(passage, fate, text, Some(code))
    }

    fn stop(&self, passage: CallInProgress<'_>) -> Result<CallOutcome, ReceiptError> {
        self.events.emit(AgentEvent::EstopTriggered { tool: passage.request.tool });
        self.finish_without_run(passage, CallStatus::Stopped, model_text::stopped_text(), Some("estop"))
    }

    fn cancel(&self, passage: CallInProgress<'_>) -> Result<CallOutcome, ReceiptError> {
        let (tool, detail) = (passage.request.tool, "the operator cancelled it");
        self.events.emit(AgentEvent::ToolDenied { tool, reason: "cancelled", detail });
        self.finish_without_run(
            passage,
            CallStatus::Cancelled,
            model_text::cancelled_text(),
            Some("cancelled"),
        )
    }

    fn report_denial(&self, passage: &CallInProgress<'_>, verdict: &GateVerdict) {
        let (reason, detail) =
            verdict.reasons.first().map(|first| (first.code(), first.detail())).unwrap_or_default();
        self.events.emit(AgentEvent::ToolDenied { tool: passage.request.tool, reason, detail: &detail });
    }

    /// The receipt of a call that did not run; without a code of its own it has the gate's.
    fn finish_without_run(
        &self,
        mut passage: CallInProgress<'_>,
        fate: CallStatus,
        text: String,
        reason_code: Option<&'static str>,
    ) -> Result<CallOutcome, ReceiptError> {
        let status = if fate == CallStatus::Failed { ReceiptStatus::Failed } else { ReceiptStatus::Denied };
        let ending = CallEnding { reason_code, ..CallEnding::new(status, &text) };
        self.write_receipt(&mut passage, &ending)?;
        Ok(self.build_outcome(passage, fate, text, &ending))
    }

    fn build_outcome(
        &self,
        passage: CallInProgress<'_>,
        fate: CallStatus,
        text: String,
        ending: &CallEnding,
    ) -> CallOutcome {
        let receipt_id = self.report_receipt(passage.attempt, ending);
        CallOutcome::not_run(fate, text, receipt_id)
    }
}

fn classify_end(result: &ToolResult, why: Option<CancelReason>, text: &str) -> (CallStatus, CallEnding) {
    let (fate, status, reason_code) = match (&result.end, why) {
        // What was done before the stop came is done, and said.
        (ToolEnd::Done, _) => (CallStatus::Done, ReceiptStatus::Allowed, None),
        (ToolEnd::Failed(_), None) => (CallStatus::Failed, ReceiptStatus::Failed, Some("tool-failed")),
        (_, Some(CancelReason::Estop)) => (CallStatus::Stopped, ReceiptStatus::Failed, Some("estop")),
        (ToolEnd::Failed(_) | ToolEnd::Cancelled, Some(CancelReason::Operator))
        | (ToolEnd::Cancelled, None) => (CallStatus::Cancelled, ReceiptStatus::Failed, Some("cancelled")),
    };
    let sandbox = result.sandbox.clone().unwrap_or_else(|| "none".to_owned());
    (fate, CallEnding { reason_code, sandbox, ..CallEnding::new(status, text) })
}

impl CallInProgress<'_> {
    fn with_verdict(self, verdict: &GateVerdict) -> Self {
        let code = verdict.reasons.first().map_or("not-judged", |reason| reason.code());
        Self { attempt: self.attempt.with_verdict(verdict.risk, verdict.decision, code), ..self }
    }
}
