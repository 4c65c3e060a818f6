//! The one way to run a tool: arguments, gate, approval, stop, intent, run, receipt; in this order, with no way around. A
//! question has an intent of its own.
//!
//! A tool runs only with a [`Granted`], which only [`Door::call`] makes. Every attempt leaves exactly one receipt, and
//! what the model gets to see was hashed into it before.

mod approval;
mod attempt;
mod step;
mod words;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collieclaw_gate::plan::Plan;
use collieclaw_gate::{Permit, Risk, Ruling, Verdict};
use serde_json::{Map, Value};

use super::operator::{Attended, Notice, OnlyWords};
use super::rules::Rules;
use crate::cancel::{Cancel, Why};
use crate::estop;
use crate::events::{Event, Events};
use crate::home::Home;
use crate::memory::Memory;
use crate::net::SearchService;
use crate::receipts::{Attempt, Ending, Intent, ReceiptError, Receipts, Stage, Status, hash_of_text};
use crate::security::Workspace;
use crate::tools::{Context, End, Prepared, ToolBounds, ToolResult, shortened};

use approval::NotApproved;
pub use step::{Begun, By, Deed};

/// The right to run one prepared call, once. Only the door makes one, after gate, approval, stop and intent:
///
/// ```compile_fail,E0451
/// use collieclaw::runtime::Granted;
/// fn forge(permit: collieclaw_gate::Permit) -> Granted {
///     Granted { permit }
/// }
/// ```
#[derive(Debug)]
pub struct Granted {
    permit: Permit,
}

impl Granted {
    /// What a shell line runs; `None` for other tools, and for a line that only a real shell can run.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.permit.plan()
    }

    /// What the gate thinks of it.
    #[must_use]
    pub fn risk(&self) -> Risk {
        self.permit.verdict().risk
    }
}

/// The door, and all that is behind it.
pub struct Door {
    /// What is judged by.
    pub rules: Rules,
    /// Where tools work.
    pub workspace: Workspace,
    /// What was said before.
    pub memory: Memory,
    /// Who is asked what the web knows, if anybody is.
    pub search: Option<SearchService>,
    /// The limits.
    pub bounds: ToolBounds,
    /// Where the emergency stop is.
    pub home: Home,
    /// What calls leave behind.
    pub receipts: RefCell<Receipts>,
    /// Who is told.
    pub events: Rc<Events>,
}

/// A call that somebody wants.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'w> {
    /// In which conversation.
    pub conversation_id: &'w str,
    /// The tool.
    pub tool: &'w str,
    /// Its arguments, as they came.
    pub arguments: &'w Value,
    /// Whether whoever wants it was offered it.
    pub offer: Offer<'w>,
}

/// Whether a tool was offered to whoever asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer<'o> {
    /// It was.
    Listed,
    /// The operator has written it down, as a step of a procedure.
    Step(OfStep<'o>),
    /// It is not on the list of the channel: it is never run without somebody's yes.
    Unlisted,
}

/// Which step of which procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfStep<'s> {
    /// The step's id.
    pub id: &'s str,
    /// The hash of the procedure's text.
    pub sop_hash: &'s str,
}

impl<'o> Offer<'o> {
    fn step(self) -> Option<OfStep<'o>> {
        match self {
            Self::Step(step) => Some(step),
            Self::Listed | Self::Unlisted => None,
        }
    }
}

/// What came of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub fate: Fate,
    /// What the model gets.
    pub text: String,
    /// What the tool itself returned, if it worked, without facts such as an exit code; else the same text.
    pub output: String,
    /// Facts that the tool told of it, such as an exit code.
    pub metadata: Map<String, Value>,
    /// Its receipt; `None` if receipts are off.
    pub receipt_id: Option<String>,
    /// How long it ran; not how long somebody was asked.
    pub took: Duration,
}

impl Outcome {
    /// Of a call that did not run.
    pub(super) fn not_run(fate: Fate, text: String, receipt_id: Option<String>) -> Self {
        Self { fate, output: text.clone(), text, metadata: Map::new(), receipt_id, took: Duration::ZERO }
    }

    /// Whether it ran, however it ended.
    #[must_use]
    pub fn began(&self) -> bool {
        !self.took.is_zero()
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It ran, and worked.
    Done,
    /// It ran, and didn't; or its arguments don't fit.
    Failed,
    /// A rule or the operator said no.
    Denied,
    /// It needs a yes, and nobody is there.
    NobodyToAsk,
    /// The emergency stop.
    Stopped,
    /// The operator cancelled it.
    Cancelled,
}

impl Fate {
    /// Its word for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::NobodyToAsk => "nobody-to-ask",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Of a tool's name.
const LONGEST_NAME: usize = 64;

/// A call on its way through the door.
struct Passage<'p> {
    wish: Wish<'p>,
    attempt: Attempt,
    intent: Intent,
}

impl Door {
    /// Lets a call pass, or not. Only a receipt that can't be written is an error: then nothing ran, or what it
    /// returned is not passed on.
    ///
    /// # Errors
    /// When there can be no receipt.
    pub fn call(&self, wish: Wish<'_>, attended: &mut Attended<'_>) -> Result<Outcome, ReceiptError> {
        // No tool has a longer name; whatever else a model writes there is not repeated everywhere.
        let name = shortened(wish.tool, LONGEST_NAME);
        let wish = Wish { tool: &name, ..wish };
        self.events.tell(Event::ToolRequested { tool: wish.tool, conversation: wish.conversation_id });
        let outcome = self.pass(wish, attended)?;
        attended.operator.notice(Notice::Called {
            tool: wish.tool,
            arguments: wish.arguments,
            outcome: &outcome,
        });
        Ok(outcome)
    }

    fn pass(&self, wish: Wish<'_>, attended: &mut Attended<'_>) -> Result<Outcome, ReceiptError> {
        let name = attempt::receipt_name(wish.tool);
        let attempt = self.fresh(wish.conversation_id, &name, wish.arguments, wish.offer.step())?;
        let passage = Passage { wish, attempt, intent: Intent::default() };
        let prepared = match self.rules.prepare(wish) {
            Ok(prepared) => prepared,
            Err(bad) => return self.not_run(passage, &bad.to_string(), "bad-arguments"),
        };
        let ruling = self.rules.judged(prepared.as_deref(), wish);
        let mut passage = passage.ruled(ruling.verdict());
        let permit = match ruling {
            Ruling::Denied(verdict) => return self.denied(passage, &verdict),
            Ruling::Allowed(permit) => permit,
            Ruling::Asks(_) if estop::is_set(&self.home) => return self.stopped(passage),
            Ruling::Asks(_) if attended.cancel.why().is_some() => return self.cancelled(passage),
            Ruling::Asks(question) => match self.asked(question, &mut passage, attended) {
                Ok(permit) => permit,
                Err(NotApproved::Unrecorded(error)) => return self.unrecorded(passage, error),
                Err(_) if attended.cancel.why().is_some() => return self.cancelled(passage),
                Err(_) if estop::is_set(&self.home) => return self.stopped(passage),
                Err(NotApproved::Refused(verdict, fate)) => return self.refused(passage, &verdict, fate),
            },
        };
        approval::word(permit.approved()).clone_into(&mut passage.attempt.approver);
        match prepared {
            Some(prepared) => self.run(passage, prepared, permit, attended),
            // The gate lets no tool pass that there isn't.
            None => self.not_run(passage, "there is no such tool", "bad-arguments"),
        }
    }

    fn run(
        &self,
        mut passage: Passage<'_>,
        prepared: Box<dyn Prepared>,
        permit: Permit,
        attended: &mut Attended<'_>,
    ) -> Result<Outcome, ReceiptError> {
        let wish = passage.wish;
        // Whoever can't be stopped runs nothing.
        let watched =
            Cancel::new().and_then(|cancel| Ok((estop::Watch::start(&self.home, &cancel)?, cancel)));
        let (watch, cancel) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                let fault = format!("the machine is out of descriptors or threads: {error}");
                return self.not_run(passage, &fault, "no-means");
            }
        };
        let call = cancel.clone();
        let _cancelled_with_the_turn = attended.cancel.at_once(move || call.raise(Why::Operator));
        match cancel.why() {
            Some(Why::Estop) => return self.stopped(passage),
            Some(Why::Operator) => return self.cancelled(passage),
            None => {}
        }
        let approver = passage.attempt.approver.as_str();
        self.events.tell(Event::ToolApproved { tool: wish.tool, approver });
        if let Err(error) = self.intend(&mut passage, Stage::Begun) {
            return self.unrecorded(passage, error);
        }
        attended.operator.notice(Notice::Calls { tool: wish.tool, arguments: wish.arguments });
        let started = Instant::now();
        let questioner = OnlyWords::of(&mut *attended.operator);
        let context = Context {
            policy: &self.rules.policy,
            workspace: &self.workspace,
            memory: &self.memory,
            search: self.search.as_ref(),
            cancel: &cancel,
            questioner: &questioner,
            bounds: self.bounds,
        };
        let result = prepared.invoke(Granted { permit }, &context);
        drop(watch);
        let text = words::result(&result, self.bounds.max_response_bytes);
        // A server has a watch of its own, which may have ended it before ours has looked.
        let why = cancel.why().or_else(|| estop::is_set(&self.home).then_some(Why::Estop));
        let (fate, ending) = ended(&result, why, &text);
        let whole = fate == Fate::Done && result.output.len() <= self.bounds.max_response_bytes;
        // What a step gives to later ones is vouched for as well.
        let gives = whole && wish.offer.step().is_some();
        let ending = Ending { output_hash: gives.then(|| hash_of_text(&result.output)), ..ending };
        self.close(&mut passage, &ending)?;
        let took = started.elapsed();
        self.tell_end(&passage, &result, fate, took);
        let outcome = self.outcome(passage, fate, text, &ending);
        let output = if whole { result.output } else { outcome.output };
        // A clock that is too coarse for it must not make it one that never began.
        let took = took.max(Duration::from_nanos(1));
        Ok(Outcome { took, output, metadata: result.metadata, ..outcome })
    }

    fn tell_end(&self, passage: &Passage<'_>, result: &ToolResult, fate: Fate, took: Duration) {
        let tool = passage.wish.tool;
        match (&result.end, fate) {
            (_, Fate::Stopped) => self.events.tell(Event::EstopTriggered { tool }),
            (End::Failed(error), _) => self.events.tell(Event::ToolFailed { tool, error }),
            (End::Cancelled, _) => self.events.tell(Event::ToolFailed { tool, error: "cancelled" }),
            (End::Done, _) => {
                let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                self.events.tell(Event::ToolCompleted { tool, milliseconds });
            }
        }
    }

    fn intend(&self, passage: &mut Passage<'_>, stage: Stage) -> Result<(), ReceiptError> {
        self.receipts.borrow().intend(&mut passage.intent, &passage.attempt, stage)
    }

    fn close(&self, passage: &mut Passage<'_>, ending: &Ending) -> Result<(), ReceiptError> {
        let intent = std::mem::take(&mut passage.intent);
        self.receipts.borrow_mut().conclude(intent, &passage.attempt, ending)
    }

    fn unrecorded(&self, passage: Passage<'_>, error: ReceiptError) -> Result<Outcome, ReceiptError> {
        self.not_run(passage, "that it is attempted can't be written down", "no-intent")?;
        Err(error)
    }

    fn not_run(
        &self,
        passage: Passage<'_>,
        fault: &str,
        code: &'static str,
    ) -> Result<Outcome, ReceiptError> {
        self.events.tell(Event::ToolFailed { tool: passage.wish.tool, error: fault });
        self.conclude(passage, Fate::Failed, words::error(fault), Some(code))
    }

    fn denied(&self, passage: Passage<'_>, verdict: &Verdict) -> Result<Outcome, ReceiptError> {
        self.tell_denied(&passage, verdict);
        self.conclude(passage, Fate::Denied, words::denied(verdict), None)
    }

    fn refused(&self, passage: Passage<'_>, verdict: &Verdict, fate: Fate) -> Result<Outcome, ReceiptError> {
        self.tell_denied(&passage, verdict);
        let (text, code) = match fate {
            Fate::NobodyToAsk => (words::nobody(verdict), "nobody-to-ask"),
            _ => (words::refused(), "operator-refused"),
        };
        self.conclude(passage, fate, text, Some(code))
    }

    fn stopped(&self, passage: Passage<'_>) -> Result<Outcome, ReceiptError> {
        self.events.tell(Event::EstopTriggered { tool: passage.wish.tool });
        self.conclude(passage, Fate::Stopped, words::stopped(), Some("estop"))
    }

    fn cancelled(&self, passage: Passage<'_>) -> Result<Outcome, ReceiptError> {
        let (tool, detail) = (passage.wish.tool, "the operator cancelled it");
        self.events.tell(Event::ToolDenied { tool, reason: "cancelled", detail });
        self.conclude(passage, Fate::Cancelled, words::cancelled(), Some("cancelled"))
    }

    fn tell_denied(&self, passage: &Passage<'_>, verdict: &Verdict) {
        let (reason, detail) =
            verdict.reasons.first().map(|first| (first.code(), first.detail())).unwrap_or_default();
        self.events.tell(Event::ToolDenied { tool: passage.wish.tool, reason, detail: &detail });
    }

    /// The receipt of a call that did not run; without a code of its own it has the gate's.
    fn conclude(
        &self,
        mut passage: Passage<'_>,
        fate: Fate,
        text: String,
        reason_code: Option<&'static str>,
    ) -> Result<Outcome, ReceiptError> {
        let status = if fate == Fate::Failed { Status::Failed } else { Status::Denied };
        let ending = Ending { reason_code, ..Ending::new(status, &text) };
        self.close(&mut passage, &ending)?;
        Ok(self.outcome(passage, fate, text, &ending))
    }

    fn outcome(&self, passage: Passage<'_>, fate: Fate, text: String, ending: &Ending) -> Outcome {
        let receipt_id = self.written(passage.attempt, ending);
        Outcome::not_run(fate, text, receipt_id)
    }
}

fn ended(result: &ToolResult, why: Option<Why>, text: &str) -> (Fate, Ending) {
    let (fate, status, reason_code) = match (&result.end, why) {
        // What was done before the stop came is done, and said.
        (End::Done, _) => (Fate::Done, Status::Allowed, None),
        (End::Failed(_), None) => (Fate::Failed, Status::Failed, Some("tool-failed")),
        (_, Some(Why::Estop)) => (Fate::Stopped, Status::Failed, Some("estop")),
        (End::Failed(_) | End::Cancelled, Some(Why::Operator)) | (End::Cancelled, None) => {
            (Fate::Cancelled, Status::Failed, Some("cancelled"))
        }
    };
    let sandbox = result.sandbox.clone().unwrap_or_else(|| "none".to_owned());
    (fate, Ending { reason_code, sandbox, ..Ending::new(status, text) })
}

impl Passage<'_> {
    fn ruled(self, verdict: &Verdict) -> Self {
        let code = verdict.reasons.first().map_or("not-judged", |reason| reason.code());
        Self { attempt: self.attempt.ruled(verdict.risk, verdict.decision, code), ..self }
    }
}
