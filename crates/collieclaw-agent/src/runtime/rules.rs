//! What a call is judged by, apart from everything that could run it: `policy explain` has only this.

use collieclaw_gate::{GateOutcome, GatePolicy, GateRequest, MachineFacts, judge, judge_unlisted};

use super::tool_gateway::{ToolOffer, ToolRequest};
use crate::tools::{BadArguments, PreparedCall, Tool};

/// What a call is judged by.
pub struct CallRules {
    /// The tools there are.
    pub tools: Vec<Box<dyn Tool>>,
    /// The operator's rules.
    pub policy: GatePolicy,
    /// Their hash, for receipts.
    pub policy_hash: String,
    /// What the gate is told of the world.
    pub facts: Box<dyn MachineFacts>,
}

impl CallRules {
    /// What the gate says. Nothing is run, opened or asked.
    ///
    /// # Errors
    /// When the arguments don't fit, with what doesn't.
    pub fn evaluate(&self, wish: ToolRequest<'_>) -> Result<GateOutcome, BadArguments> {
        let prepared = self.prepare(wish)?;
        Ok(self.evaluate_prepared(prepared.as_deref(), wish))
    }

    /// The tool of a name.
    #[must_use]
    pub fn find_tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// `None` for a tool that there isn't.
    pub(super) fn prepare(
        &self,
        wish: ToolRequest<'_>,
    ) -> Result<Option<Box<dyn PreparedCall>>, BadArguments> {
        self.find_tool(wish.tool).map(|tool| tool.prepare(wish.arguments)).transpose()
    }

    pub(super) fn evaluate_prepared(
        &self,
        prepared: Option<&dyn PreparedCall>,
        wish: ToolRequest<'_>,
    ) -> GateOutcome {
        match (prepared, wish.offer) {
            (None, _) => judge(GateRequest::NotOffered(wish.tool), &self.policy, &*self.facts),
            (Some(prepared), ToolOffer::Listed | ToolOffer::Step(_)) => {
                judge(prepared.call(), &self.policy, &*self.facts)
            }
            (Some(prepared), ToolOffer::Unlisted) => {
                judge_unlisted(wish.tool, prepared.call(), &self.policy, &*self.facts)
            }
        }
    }
}
