//! Goes on with a run, step by step: each through the door, its end on disk before the next begins.

mod ask;

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::entry::{End, Ended, Entry};
use super::error::JournalError;
use super::journal::{Durable, Run};
use super::state::State;
use super::{Action, CONTENT, Sop, Step};
use crate::memory::MemoryError;
use crate::receipts::{Ending, Mark, ReceiptError, Status};
use crate::runtime::{Attended, By, Deed, Fate, Offer, Runtime, TurnError, Wish};

/// Carries out a procedure.
pub struct Engine<'e> {
    /// Where calls and questions to the model go.
    pub runtime: &'e Runtime,
    /// What is carried out.
    pub sop: &'e Sop,
}

/// What is done with a step that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInterrupted {
    /// It runs once more if it only looks; else somebody has to look at what it left.
    Ask,
    /// It runs once more: somebody has looked.
    Rerun,
    /// It counts as done, and gives nothing: somebody has looked.
    Skip,
}

/// Why a run does not go on now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// It is over: finished, failed or cancelled.
    Over(State),
    /// Somebody has to approve.
    Waiting {
        /// Which step.
        step: String,
        /// What they are asked.
        prompt: String,
    },
    /// A step was interrupted, and may have done something.
    Interrupted {
        /// Which.
        step: String,
        /// What its call left behind.
        receipt_id: Option<String>,
    },
    /// It was stopped at this step, and goes on there.
    Stopped {
        /// Which.
        step: String,
        /// How.
        fate: Fate,
    },
}

/// Why a run can't go on.
#[derive(Debug, Error)]
pub enum SopError {
    /// The journal can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A receipt can't be written.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The model has no answer, and nothing has happened.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The memory can't be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What a step came to: an end, or none yet.
enum Came {
    Ended(Ended),
    Halted(Halt),
}

impl Engine<'_> {
    /// Goes on until the run is over, or can't for now.
    ///
    /// # Errors
    /// When something can't be written down, or the model can't be asked.
    pub fn go(
        &self,
        run: &mut Run,
        interrupted: OnInterrupted,
        attended: &mut Attended<'_>,
    ) -> Result<Halt, SopError> {
        let mut trail = self.agreed(run)?;
        loop {
            let id = match run.state(self.sop) {
                // That somebody approved, or that a step began, may be missing in a journal; its receipt is not.
                State::Waiting { step, .. } if trail.mark(&step) == Some(Mark::Approved) => {
                    run.write_approved(&step)?;
                    continue;
                }
                State::Waiting { step, prompt } => return Ok(Halt::Waiting { step, prompt }),
                // Its process died while somebody was asked: the receipt tells that nothing ran.
                State::Interrupted { step } if trail.did_not_run(&step, run.begun(&step)) => {
                    run.write(Entry::Void { step }, Durable::Now)?;
                    continue;
                }
                State::Interrupted { step } => match self.decided(run, &step, interrupted)? {
                    Some(decision) => {
                        trail.steps.remove(&step);
                        run.write(decision, Durable::Now)?;
                        continue;
                    }
                    None => {
                        let receipt_id = trail.steps.remove(&step).map(|trace| trace.id);
                        return Ok(Halt::Interrupted { step, receipt_id });
                    }
                },
                State::Ready { step } if trail.mark(&step).is_some_and(Mark::began) => {
                    run.write(Entry::Began { step }, Durable::Now)?;
                    continue;
                }
                State::Ready { step } => step,
                over => return Ok(Halt::Over(over)),
            };
            let Some(step) = self.sop.steps.iter().find(|step| step.id == id) else {
                return Ok(Halt::Over(State::Finished));
            };
            if attended.cancel.why().is_some() {
                return Ok(Halt::Stopped { step: id, fate: Fate::Cancelled });
            }
            let came = match &step.action {
                Action::Agent { prompt } => self.ask(step, prompt, run, attended)?,
                Action::Tool { .. } | Action::Approval { .. } => self.call(step, run, attended)?,
            };
            match came {
                Came::Ended(ended) => run.write(Entry::Ended(ended), Durable::Now)?,
                Came::Halted(halt) => return Ok(halt),
            }
        }
    }

    fn call(&self, step: &Step, run: &mut Run, attended: &mut Attended<'_>) -> Result<Came, SopError> {
        let content = match step.content_from().map(|from| (from, run.ended(from))) {
            None => None,
            Some((_, Some(Ended { end: End::Done, output, .. }))) => Some(output.clone()),
            Some((from, _)) => {
                let why = format!("error: the step `{from}` has nothing to give, because it did not work");
                return self.not_called(step, run, why);
            }
        };
        let Some((tool, arguments)) = step.arguments(content.as_deref()) else {
            return Ok(Came::Ended(ended(step, End::Done, String::new())));
        };
        // The door makes durable that it begins before anything runs.
        let durable = match self.runtime.door.receipts.borrow().are_written() {
            true => Durable::Later,
            false => Durable::Now,
        };
        run.write(Entry::Began { step: step.id.clone() }, durable)?;
        let outcome = self.wish(run, step, (tool, &arguments), attended)?;
        let end = match outcome.fate {
            Fate::Done => End::Done,
            Fate::Failed => End::Failed,
            Fate::Denied => End::Denied,
            fate @ (Fate::NobodyToAsk | Fate::Stopped | Fate::Cancelled) => {
                // What was stopped while it ran stays begun: nobody knows how far it came.
                if !outcome.began() {
                    run.write(Entry::Void { step: step.id.clone() }, Durable::Now)?;
                }
                return Ok(Came::Halted(Halt::Stopped { step: step.id.clone(), fate }));
            }
        };
        let receipt_id = outcome.receipt_id;
        Ok(Came::Ended(Ended { receipt_id, ..ended(step, end, outcome.output) }))
    }

    /// A call that lacks something is not attempted; the step has its receipt all the same.
    fn not_called(&self, step: &Step, run: &Run, why: String) -> Result<Came, SopError> {
        let (name, about) = step.arguments(None).unwrap_or((CONTENT, Value::Null));
        let of_step = Some(run.of_step(&step.id));
        let deed = Deed { run: &run.header.run, step: of_step, name, about: &about, by: By::Rules };
        let ending = Ending::new(Status::Failed, &why).because("nothing-to-give");
        let receipt_id = self.runtime.door.note(deed, &ending)?;
        Ok(Came::Ended(Ended { receipt_id, ..ended(step, End::Failed, why) }))
    }

    fn wish(
        &self,
        run: &Run,
        step: &Step,
        (tool, arguments): (&str, &Value),
        attended: &mut Attended<'_>,
    ) -> Result<crate::runtime::Outcome, ReceiptError> {
        let conversation_id = run.header.run.as_str();
        let wish = Wish { conversation_id, tool, arguments, offer: Offer::Step(run.of_step(&step.id)) };
        self.runtime.door.call(wish, attended)
    }
}

fn ended(step: &Step, end: End, output: String) -> Ended {
    Ended { step: step.id.clone(), end, output, receipt_id: None, at: Timestamp::now() }
}
