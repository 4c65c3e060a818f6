//! What a step would do, without doing it.

use collieclaw_gate::{Call, Reaches, Risk, Verdict, Writes};
use serde_json::Value;

use super::engine::Engine;
use super::{Action, Step};
use crate::runtime::{OfStep, Offer, Wish};
use crate::tools::BadArguments;

/// What the gate says of a step that is not run.
#[derive(Debug)]
pub enum Rehearsed {
    /// Of its call.
    Judged(Verdict),
    /// The arguments don't fit any more.
    Bad(BadArguments),
    /// The model would be asked, and its calls judged one by one.
    Model,
    /// The run would wait.
    Waits,
}

impl<'e> Engine<'e> {
    /// What each step would come to. Nothing runs.
    #[must_use]
    pub fn rehearse(&self) -> Vec<(&'e Step, Rehearsed)> {
        self.sop.steps.iter().map(|step| (step, self.rehearsed(step))).collect()
    }

    fn rehearsed(&self, step: &Step) -> Rehearsed {
        match (&step.action, supposed(step)) {
            (_, Some((tool, arguments))) => {
                let offer = Offer::Step(OfStep { id: &step.id, sop_hash: "" });
                let wish = Wish { conversation_id: "", tool, arguments: &arguments, offer };
                match self.runtime.door.rules.ruling(wish) {
                    Ok(ruling) => Rehearsed::Judged(ruling.verdict().clone()),
                    Err(bad) => Rehearsed::Bad(bad),
                }
            }
            (Action::Approval { .. }, None) => Rehearsed::Waits,
            (Action::Agent { .. } | Action::Tool { .. }, None) => Rehearsed::Model,
        }
    }

    /// Whether it leaves nothing behind, however often it runs. A low risk is not enough where it is not we who run it:
    /// the operator may trust a tool that writes.
    pub(super) fn only_looks(&self, step: &Step) -> bool {
        let low = matches!(self.rehearsed(step), Rehearsed::Judged(verdict) if verdict.risk == Risk::Low);
        let prepared = supposed(step)
            .and_then(|(tool, arguments)| self.runtime.door.rules.tool(tool)?.prepare(&arguments).ok());
        low && prepared.is_some_and(|prepared| match prepared.call() {
            Call::Foreign(foreign) => {
                foreign.writes == Writes::Nothing && foreign.network == Reaches::Nothing
            }
            _ => true,
        })
    }
}

/// The call of a step, as far as it is known before earlier ones have run.
fn supposed(step: &Step) -> Option<(&str, Value)> {
    let content = step.content_from().map(|from| format!("what the step `{from}` gives"));
    step.arguments(content.as_deref())
}
