//! The dry run: judges every step of a procedure without running it.

use collieclaw_gate::{GateRequest, GateVerdict, NetworkReach, RiskLevel, WriteAccess};
use serde_json::Value;

use super::engine::SopEngine;
use super::{SopStep, StepAction};
use crate::runtime::{StepRef, ToolOffer, ToolRequest};
use crate::tools::BadArguments;

/// The result of a dry run for one step.
#[derive(Debug)]
pub enum DryRunResult {
    /// The verdict about the call of the step.
    Judged(GateVerdict),
    /// The arguments no longer fit the tool.
    InvalidArguments(BadArguments),
    /// The step would ask the model, and each call of the model would be judged then.
    AsksModel,
    /// The run would wait for an approval.
    AwaitsApproval,
}

impl<'e> SopEngine<'e> {
    /// Judges every step. Nothing runs.
    #[must_use]
    pub fn dry_run(&self) -> Vec<(&'e SopStep, DryRunResult)> {
        self.sop.steps.iter().map(|step| (step, self.dry_run_step(step))).collect()
    }

    fn dry_run_step(&self, step: &SopStep) -> DryRunResult {
        match (&step.action, expected_call(step)) {
            (_, Some((tool, arguments))) => {
                let offer = ToolOffer::Step(StepRef { id: &step.id, sop_hash: "" });
                let request = ToolRequest { conversation_id: "", tool, arguments: &arguments, offer };
                match self.runtime.tool_gateway.rules.evaluate(request) {
                    Ok(outcome) => DryRunResult::Judged(outcome.verdict().clone()),
                    Err(bad) => DryRunResult::InvalidArguments(bad),
                }
            }
            (StepAction::Approval { .. }, None) => DryRunResult::AwaitsApproval,
            (StepAction::Agent { .. } | StepAction::Tool { .. }, None) => DryRunResult::AsksModel,
        }
    }

    /// Returns whether a step changes nothing, however often it runs. For a tool of a plugin or an MCP server a low risk is
    /// not enough: the operator may have given a low risk to a tool that writes.
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

/// Returns the call of a step, with a placeholder for the content that an earlier step would give.
fn expected_call(step: &SopStep) -> Option<(&str, Value)> {
    let content = step.content_from().map(|from| format!("the output of the step `{from}`"));
    step.call_arguments(content.as_deref())
}
