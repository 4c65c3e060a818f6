//! The offer to allow programs, after a call was refused only because they are not listed (C16).

use collieclaw_gate::{AutonomyLevel, GateOutcome};

use super::{CallInProgress, ToolGateway};
use crate::estop;
use crate::events::AgentEvent;
use crate::receipts::IntentStage;
use crate::runtime::operator::{AllowAnswer, AllowPrompt, TurnControl};
use crate::tools::PreparedCall;

impl ToolGateway {
    /// Asks the operator to allow the programs of a refused call. If the operator does, the call is judged again by the
    /// new rules, which ask about it as about any other.
    pub(super) fn offer_programs(
        &self,
        outcome: GateOutcome,
        prepared: Option<&dyn PreparedCall>,
        call: &mut CallInProgress<'_>,
        control: &mut TurnControl<'_>,
    ) -> GateOutcome {
        let GateOutcome::Denied(verdict) = &outcome else { return outcome };
        let can_ask = self.with_policy(|policy| policy.autonomy == AutonomyLevel::Supervised)
            && control.operator.is_available()
            && control.cancel.reason().is_none()
            && !estop::is_set(&self.home);
        let missing = verdict.missing_programs().filter(|_| can_ask);
        let programs = missing.as_ref().and_then(|names| self.rule_updates.find_programs(names));
        let (Some(names), Some(programs)) = (missing, programs) else { return outcome };
        let request = call.request;
        // A crash while the operator is asked must leave a receipt, as with an approval.
        if self.write_intent(call, IntentStage::AwaitingApproval).is_err() {
            return outcome;
        }
        let prompt = AllowPrompt { tool: request.tool, arguments: request.arguments, programs: &programs };
        if control.operator.ask_allow(&prompt) != AllowAnswer::Yes {
            return outcome;
        }
        if let Err(error) = self.rule_updates.allow(&names) {
            self.events.emit(AgentEvent::Trouble { what: &format!("could not allow the programs: {error}") });
            return outcome;
        }
        call.attempt.policy_hash = self.policy_hash();
        self.evaluate(prepared, request)
    }
}
