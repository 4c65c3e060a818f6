//! The rules by which a call is judged. They can't run anything: `policy explain` uses only this module.

use collieclaw_gate::{GateOutcome, GatePolicy, GateRequest, MachineFacts, judge, judge_unlisted};

use super::tool_gateway::{ToolOffer, ToolRequest};
use crate::tools::{BadArguments, PreparedCall, Tool};

/// The tools, the operator's policy, and the facts about this machine: everything that a verdict depends on.
pub struct CallRules {
    pub tools: Vec<Box<dyn Tool>>,
    pub policy: GatePolicy,
    /// The SHA-256 of the policy, for receipts.
    pub policy_hash: String,
    pub facts: Box<dyn MachineFacts>,
}

impl CallRules {
    /// Returns the gate's answer to a request, without running, opening or asking anything.
    ///
    /// # Errors
    /// Fails if the arguments don't fit the tool.
    pub fn evaluate(&self, request: ToolRequest<'_>) -> Result<GateOutcome, BadArguments> {
        let prepared = self.prepare(request)?;
        Ok(self.evaluate_by(&self.policy, prepared.as_deref(), request))
    }

    /// Returns the tool with this name.
    #[must_use]
    pub fn find_tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// Checks the arguments of a request. `None` if there is no such tool.
    pub(super) fn prepare(
        &self,
        request: ToolRequest<'_>,
    ) -> Result<Option<Box<dyn PreparedCall>>, BadArguments> {
        self.find_tool(request.tool).map(|tool| tool.prepare(request.arguments)).transpose()
    }

    /// Judges a prepared request by a policy, which may be newer than that of these rules.
    pub(super) fn evaluate_by(
        &self,
        policy: &GatePolicy,
        prepared: Option<&dyn PreparedCall>,
        request: ToolRequest<'_>,
    ) -> GateOutcome {
        match (prepared, request.offer) {
            (None, _) => judge(GateRequest::NotOffered(request.tool), policy, &*self.facts),
            (Some(prepared), ToolOffer::Listed | ToolOffer::Step(_)) => {
                judge(prepared.call(), policy, &*self.facts)
            }
            (Some(prepared), ToolOffer::Unlisted) => {
                judge_unlisted(request.tool, prepared.call(), policy, &*self.facts)
            }
        }
    }
}
