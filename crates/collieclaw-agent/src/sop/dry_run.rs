//! What a step would do, without doing it.

use collieclaw_gate::{GateRequest, GateVerdict, NetworkReach, RiskLevel, WriteAccess};
use serde_json::Value;

use super::engine::SopEngine;
use super::{SopStep, StepAction};
use crate::runtime::{StepRef, ToolOffer, ToolRequest};
use crate::tools::BadArguments;

/// What the gate says of a step that is not run.
#[derive(Debug)]
pub enum DryRunResult {
    /// Of its call.
    Judged(GateVerdict),
    /// The arguments don't fit any more.
    InvalidArguments(BadArguments),
    /// The model would be asked, and its calls judged one by one.
    AsksModel,
    /// The run would wait.
    AwaitsApproval,
}

impl<'e> SopEngine<'e> {
    /// What each step would come to. Nothing runs.
    #[must_use]
    pub fn dry_run(&self) -> Vec<(&'e SopStep, DryRunResult)> {
        self.sop.steps.iter().map(|step| (step, self.dry_run_step(step))).collect()
    }

    fn dry_run_step(&self, step: &SopStep) -> DryRunResult {
        match (&step.action, expected_call(step)) {
            (_, Some((tool, arguments))) => {
                let offer = ToolOffer::Step(StepRef { id: &step.id, sop_hash: "" });
                let wish = ToolRequest { conversation_id: "", tool, arguments: &arguments, offer };
                match self.runtime.tool_gateway.rules.evaluate(wish) {
                    Ok(ruling) => DryRunResult::Judged(ruling.verdict().clone()),
                    Err(bad) => DryRunResult::InvalidArguments(bad),
                }
            }
            (StepAction::Approval { .. }, None) => DryRunResult::AwaitsApproval,
            (StepAction::Agent { .. } | StepAction::Tool { .. }, None) => DryRunResult::AsksModel,
        }
    }

    /// Whether it leaves nothing behind, however often it runs. A low risk is not enough where it is not we who run it:
    /// the operator may trust a tool that writes.
    pub(super) fn is_read_only(&self, step: &SopStep) -> bool {
        let low = matches!(self.dry_run_step(step), DryRunResult::Judged(verdict) if verdict.risk == RiskLevel::Low);
        let prepared = expected_call(step).and_then(|(tool, arguments)| {
            self.runtime.tool_gateway.rules.find_tool(tool)?.prepare(&arguments).ok()
        });
        low && prepared.is_some_and(|prepared| match prepared.call() {
            GateRequest::ForeignTool(foreign) => {
                foreign.writes == WriteAccess::None && foreign.network == NetworkReach::None
            }
            _ => true,
        })
    }
}

/// The call of a step, as far as it is known before earlier ones have run.
fn expected_call(step: &SopStep) -> Option<(&str, Value)> {
    let content = step.content_from().map(|from| format!("what the step `{from}` gives"));
    step.call_arguments(content.as_deref())
}
