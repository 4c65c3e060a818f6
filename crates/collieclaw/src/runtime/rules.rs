//! What a call is judged by, apart from everything that could run it: `policy explain` has only this.

use collieclaw_gate::{Call, Facts, GatePolicy, Ruling, judge, judge_unlisted};

use super::door::{Offer, Wish};
use crate::tools::{BadArguments, Prepared, Tool};

/// What a call is judged by.
pub struct Rules {
    /// The tools there are.
    pub tools: Vec<Box<dyn Tool>>,
    /// The operator's rules.
    pub policy: GatePolicy,
    /// Their hash, for receipts.
    pub policy_hash: String,
    /// What the gate is told of the world.
    pub facts: Box<dyn Facts>,
}

impl Rules {
    /// What the gate says. Nothing is run, opened or asked.
    ///
    /// # Errors
    /// When the arguments don't fit, with what doesn't.
    pub fn ruling(&self, wish: Wish<'_>) -> Result<Ruling, BadArguments> {
        let prepared = self.prepare(wish)?;
        Ok(self.judged(prepared.as_deref(), wish))
    }

    /// The tool of a name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// `None` for a tool that there isn't.
    pub(super) fn prepare(&self, wish: Wish<'_>) -> Result<Option<Box<dyn Prepared>>, BadArguments> {
        self.tool(wish.tool).map(|tool| tool.prepare(wish.arguments)).transpose()
    }

    pub(super) fn judged(&self, prepared: Option<&dyn Prepared>, wish: Wish<'_>) -> Ruling {
        match (prepared, wish.offer) {
            (None, _) => judge(Call::NotOffered(wish.tool), &self.policy, &*self.facts),
            (Some(prepared), Offer::Listed | Offer::Step(_)) => {
                judge(prepared.call(), &self.policy, &*self.facts)
            }
            (Some(prepared), Offer::Unlisted) => {
                judge_unlisted(wish.tool, prepared.call(), &self.policy, &*self.facts)
            }
        }
    }
}
