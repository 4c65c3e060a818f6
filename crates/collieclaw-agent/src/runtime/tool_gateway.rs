//! The only way to run a tool. Every call goes through the same steps in the same order: arguments, gate, approval,
//! emergency stop, intent, run, receipt.
//!
//! A tool runs only with a [`CallGrant`], which only [`ToolGateway::call`] creates. Every attempt leaves exactly one
//! receipt. The text that the model gets is hashed into the receipt before the model sees it.

mod approval;
mod attempt;
mod finish;
mod model_text;
mod offer;
mod step;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use collieclaw_gate::plan::ShellPlan;
use collieclaw_gate::{GateOutcome, GatePolicy, GateVerdict, Permit, RiskLevel};
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::net::SearchService;
use serde_json::Value;

use super::call_outcome::{CallFault, FinishedCall};
use super::operator::{ProgressNotice, QuestionChannel, QuestionOnlyOperator, TurnControl};
use super::program_offer::RuleUpdates;
use super::rules::CallRules;
use crate::estop;
use crate::events::{AgentEvent, EventSink};
use crate::home::AgentHome;
use crate::memory::ConversationMemory;
use crate::receipts::{CallAttempt, CallIntent, IntentStage, ReceiptError, ReceiptLog};
use crate::security::WorkspaceHandle;
use crate::tools::{PreparedCall, ToolBounds, ToolContext, ToolchainAccess, truncate_text};

use approval::NotApproved;
pub use step::{ActionInProgress, DecidedBy, SopRunAction};

/// The right to run one prepared call, once. Only the gateway creates a grant, after gate, approval, stop and intent:
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
    /// Returns the plan of a shell command; `None` for other tools, and for a command that only a real shell can run.
    #[must_use]
    pub fn plan(&self) -> Option<&ShellPlan> {
        self.permit.plan()
    }

    #[must_use]
    pub fn risk(&self) -> RiskLevel {
        self.permit.verdict().risk
    }
}

/// The gateway to the tools, with everything that a call needs.
pub struct ToolGateway {
    pub rules: CallRules,
    pub workspace: WorkspaceHandle,
    pub memory: ConversationMemory,
    /// The web search service, if one is configured.
    pub search: Option<SearchService>,
    pub bounds: ToolBounds,
    /// Toolchains of the workspace in the user's home.
    pub toolchain: ToolchainAccess,
    /// The home of the agent, where the emergency stop and the approvals are.
    pub home: AgentHome,
    pub receipts: RefCell<ReceiptLog>,
    pub events: Rc<EventSink>,
    /// Changes of the rules since the gateway was created.
    pub rule_updates: RuleUpdates,
}

/// A request to run a tool, before the gate has seen it.
#[derive(Debug, Clone, Copy)]
pub struct ToolRequest<'r> {
    pub conversation_id: &'r str,
    pub tool: &'r str,
    /// The arguments, not checked yet.
    pub arguments: &'r Value,
    pub offer: ToolOffer<'r>,
}

/// The relation of a requested tool to the channel's list of tools (`tools_allow`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOffer<'o> {
    /// The tool is on the list of the channel.
    Listed,
    /// The operator wrote the call into a procedure, as a step.
    Step(StepRef<'o>),
    /// The tool is not on the list of the channel, so it never runs without an approval.
    Unlisted,
}

/// A step of a procedure, as receipts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRef<'s> {
    pub id: &'s str,
    /// The SHA-256 of the procedure's text.
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

/// The limit for the name of a tool, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// A call on its way through the gateway.
struct CallInProgress<'p> {
    request: ToolRequest<'p>,
    attempt: CallAttempt,
    intent: CallIntent,
}

impl ToolGateway {
    /// Runs a tool, if the gate and the operator allow it.
    ///
    /// # Errors
    /// Only if the intent or the receipt can't be written. Then the tool didn't run, or its result is not passed on.
    pub fn call(
        &self,
        request: ToolRequest<'_>,
        control: &mut TurnControl<'_>,
    ) -> Result<FinishedCall, ReceiptError> {
        // No tool has a longer name. A model could write anything here, so the rest is not copied into logs.
        let name = truncate_text(request.tool, MAX_NAME_BYTES);
        let request = ToolRequest { tool: &name, ..request };
        let ToolRequest { tool, arguments, conversation_id: conversation, .. } = request;
        self.events.emit(AgentEvent::ToolRequested { tool, conversation });
        let finished = self.process_request(request, control)?;
        control.operator.notify(ProgressNotice::CallEnded { tool, arguments, call: &finished });
        Ok(finished)
    }

    fn process_request(
        &self,
        request: ToolRequest<'_>,
        control: &mut TurnControl<'_>,
    ) -> Result<FinishedCall, ReceiptError> {
        let call = self.begin_call(request)?;
        let prepared = match self.rules.prepare(request) {
            Ok(prepared) => prepared,
            Err(bad) => return self.fail_before_run(call, bad.into()),
        };
        let outcome = self.evaluate(prepared.as_deref(), request);
        let mut call = call.with_verdict(outcome.verdict());
        let outcome = self.offer_programs(outcome, prepared.as_deref(), &mut call, control);
        let mut call = call.with_verdict(outcome.verdict());
        let permit = match outcome {
            GateOutcome::Denied(verdict) => return self.deny(call, &verdict),
            GateOutcome::Allowed(permit) => permit,
            GateOutcome::NeedsApproval(_) if estop::is_set(&self.home) => {
                return self.stop(call, CancelReason::Estop);
            }
            GateOutcome::NeedsApproval(_) if control.cancel.reason().is_some() => {
                return self.stop(call, CancelReason::Operator);
            }
            GateOutcome::NeedsApproval(question) => {
                match self.obtain_permit(question, prepared.as_deref(), &mut call, control) {
                    Ok(permit) => permit,
                    Err(NotApproved::WouldFail(error)) => {
                        return self.fail_before_run(call, CallFault::WouldFail(error));
                    }
                    Err(NotApproved::Unrecorded(error)) => return self.fail_unrecorded(call, error),
                    Err(_) if control.cancel.reason().is_some() => {
                        return self.stop(call, CancelReason::Operator);
                    }
                    Err(_) if estop::is_set(&self.home) => return self.stop(call, CancelReason::Estop),
                    Err(NotApproved::Refused(verdict)) => return self.refuse(call, &verdict),
                    Err(NotApproved::NoOperator(verdict)) => {
                        return self.deny_without_operator(call, &verdict);
                    }
                }
            }
        };
        approval::approver_name(permit.approved_by()).clone_into(&mut call.attempt.approver);
        match prepared {
            Some(prepared) => self.run_call(call, prepared, permit, control),
            // The gate denies calls of tools that don't exist, so this is only a second line of defence.
            None => self.fail_before_run(call, CallFault::NoSuchTool),
        }
    }

    fn begin_call<'p>(&self, request: ToolRequest<'p>) -> Result<CallInProgress<'p>, ReceiptError> {
        let name = attempt::receipt_name(request.tool);
        let attempt =
            self.new_attempt(request.conversation_id, &name, request.arguments, request.offer.step())?;
        Ok(CallInProgress { request, attempt, intent: CallIntent::default() })
    }

    /// Returns the limits of a call. The output of a procedure's step goes to later steps, which need all of it.
    fn call_bounds(&self, request: ToolRequest<'_>) -> ToolBounds {
        match request.offer {
            ToolOffer::Step(_) => {
                ToolBounds { max_output_bytes: self.bounds.max_response_bytes, ..self.bounds }
            }
            ToolOffer::Listed | ToolOffer::Unlisted => self.bounds,
        }
    }

    fn run_call(
        &self,
        mut call: CallInProgress<'_>,
        prepared: Box<dyn PreparedCall>,
        permit: Permit,
        control: &mut TurnControl<'_>,
    ) -> Result<FinishedCall, ReceiptError> {
        let ToolRequest { tool, arguments, .. } = call.request;
        // A call that can't be stopped must not run.
        let watched =
            CancelFlag::new().and_then(|cancel| Ok((estop::EstopWatch::start(&self.home, &cancel)?, cancel)));
        let (watch, cancel) = match watched {
            Ok(watched) => watched,
            Err(error) => return self.fail_before_run(call, CallFault::OutOfResources(error.to_string())),
        };
        let call_cancel = cancel.clone();
        let _cancelled_with_the_turn =
            control.cancel.on_cancel(move || call_cancel.raise(CancelReason::Operator));
        if let Some(by) = cancel.reason() {
            return self.stop(call, by);
        }
        self.events.emit(AgentEvent::ToolApproved { tool, approver: &call.attempt.approver });
        if let Err(error) = self.write_intent(&mut call, IntentStage::Started) {
            return self.fail_unrecorded(call, error);
        }
        control.operator.notify(ProgressNotice::CallStarted { tool, arguments });
        let started = Instant::now();
        let questioner = QuestionOnlyOperator::new(&mut *control.operator);
        let bounds = self.call_bounds(call.request);
        let updated = self.rule_updates.current();
        let (policy, toolchain) = match &updated {
            Some(updated) => (&updated.policy, &updated.toolchain),
            None => (&self.rules.policy, &self.toolchain),
        };
        let context = ToolContext { policy, toolchain, ..self.tool_context(&cancel, &questioner, bounds) };
        let result = prepared.invoke(CallGrant { permit }, &context);
        let elapsed = started.elapsed();
        drop(watch);
        // An MCP server watches the emergency stop itself and may have ended the tool before our watch noticed.
        let stopped_by = cancel.reason().or_else(|| estop::is_set(&self.home).then_some(CancelReason::Estop));
        self.finish_run(call, result, elapsed, stopped_by)
    }

    fn tool_context<'c>(
        &'c self,
        cancel: &'c CancelFlag,
        questioner: &'c dyn QuestionChannel,
        bounds: ToolBounds,
    ) -> ToolContext<'c> {
        ToolContext {
            policy: &self.rules.policy,
            workspace: &self.workspace,
            memory: &self.memory,
            search: self.search.as_ref(),
            cancel,
            questioner,
            bounds,
            toolchain: &self.toolchain,
        }
    }

    /// Judges a request by the rules in force.
    fn evaluate(&self, prepared: Option<&dyn PreparedCall>, request: ToolRequest<'_>) -> GateOutcome {
        self.with_policy(|policy| self.rules.evaluate_by(policy, prepared, request))
    }

    /// Calls a function with the policy in force.
    pub(super) fn with_policy<T>(&self, read: impl FnOnce(&GatePolicy) -> T) -> T {
        match self.rule_updates.current() {
            Some(updated) => read(&updated.policy),
            None => read(&self.rules.policy),
        }
    }

    /// Returns the hash of the policy in force.
    #[must_use]
    pub fn policy_hash(&self) -> String {
        self.rule_updates
            .current()
            .map_or_else(|| self.rules.policy_hash.clone(), |updated| updated.policy_hash.clone())
    }

    fn write_intent(&self, call: &mut CallInProgress<'_>, stage: IntentStage) -> Result<(), ReceiptError> {
        self.receipts.borrow().write_intent(&mut call.intent, &call.attempt, stage)
    }
}

impl CallInProgress<'_> {
    fn with_verdict(self, verdict: &GateVerdict) -> Self {
        Self { attempt: self.attempt.with_verdict(verdict), ..self }
    }
}
