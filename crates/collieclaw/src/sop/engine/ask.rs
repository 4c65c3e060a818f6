//! A step that asks the model.

use serde_json::json;

use super::{Came, Engine, Halt, SopError, ended};
use crate::estop;
use crate::providers::hinted;
use crate::receipts::{AGENT_STEP, CALL_DENIED, Ending, NO_ANSWER, Status};
use crate::runtime::{Attended, By, Deed, Fate, OfStep, Report, TurnError};
use crate::sop::Step;
use crate::sop::entry::{End, Ended, Entry};
use crate::sop::journal::{Durable, Run};
use crate::sop::prompt::message;

/// What came of a question, and what its receipt says.
struct Answered {
    came: Result<Came, SopError>,
    ending: Ending,
    /// Nothing has happened.
    void: bool,
}

impl Engine<'_> {
    pub(super) fn ask(
        &self,
        step: &Step,
        prompt: &str,
        run: &mut Run,
        attended: &mut Attended<'_>,
    ) -> Result<Came, SopError> {
        let door = &self.runtime.door;
        let text = message(self.sop, &step.id, prompt, run);
        let about = json!({ "message": text });
        let (name, sop_hash) = (run.header.run.clone(), run.header.sop_hash.clone());
        let of_step = OfStep { id: &step.id, sop_hash: &sop_hash };
        let deed = Deed { run: &name, step: Some(of_step), name: AGENT_STEP, about: &about, by: By::Rules };
        // The model would answer without tools, and that is not what was written down.
        if estop::is_set(&door.home) {
            door.note(deed, &Ending::new(Status::Denied, "").because("estop"))?;
            return Ok(stopped(step, Fate::Stopped));
        }
        run.write(Entry::Began { step: step.id.clone() }, Durable::Now)?;
        let begun = door.begin(deed)?;
        let hint = hinted(self.sop.hint.as_deref());
        let report = self.runtime.turn_with(&hint, &name, &text, attended);
        let answered = answered(step, report)?;
        let receipt_id = door.end(begun, &answered.ending)?;
        if answered.void {
            run.write(Entry::Void { step: step.id.clone() }, Durable::Now)?;
        }
        answered.came.map(|came| match came {
            Came::Ended(ended) => Came::Ended(Ended { receipt_id, ..ended }),
            halted @ Came::Halted(_) => halted,
        })
    }
}

/// What a turn came to. Without a receipt of one of its calls nothing is concluded.
fn answered(step: &Step, report: Report) -> Result<Answered, SopError> {
    let Report { answer, fates, kept, .. } = report;
    let nothing = fates.is_empty();
    let halted = [Fate::Stopped, Fate::Cancelled].into_iter().find(|fate| fates.contains(fate));
    let denied = fates.iter().any(|fate| matches!(fate, Fate::Denied | Fate::NobodyToAsk));
    let over = |end, status, reason, text: String| {
        let ending = Ending::new(status, &text).because(reason);
        Answered { came: Ok(Came::Ended(ended(step, end, text))), ending, void: false }
    };
    Ok(match answer {
        Err(TurnError::Receipt(error)) => return Err(error.into()),
        Err(TurnError::Cancelled) => {
            let status = if nothing { Status::Denied } else { Status::Failed };
            let ending = Ending::new(status, "").because("cancelled");
            Answered { came: Ok(stopped(step, Fate::Cancelled)), ending, void: nothing }
        }
        Err(error) if nothing => {
            let ending = Ending::new(Status::Failed, "").because(NO_ANSWER);
            Answered { came: Err(error.into()), ending, void: true }
        }
        Err(error) => over(End::Failed, Status::Failed, "step-failed", format!("error: {error}")),
        Ok(text) => match (halted, kept) {
            (Some(fate), _) => {
                let reason = if fate == Fate::Stopped { "estop" } else { "cancelled" };
                let ending = Ending::new(Status::Failed, &text).because(reason);
                Answered { came: Ok(stopped(step, fate)), ending, void: false }
            }
            (None, Err(error)) => {
                let ending = Ending::new(Status::Failed, &text).because("step-failed");
                Answered { came: Err(error.into()), ending, void: false }
            }
            (None, Ok(())) if denied => over(End::Denied, Status::Failed, CALL_DENIED, text),
            (None, Ok(())) => over(End::Done, Status::Allowed, "answered", text),
        },
    })
}

fn stopped(step: &Step, fate: Fate) -> Came {
    Came::Halted(Halt::Stopped { step: step.id.clone(), fate })
}
