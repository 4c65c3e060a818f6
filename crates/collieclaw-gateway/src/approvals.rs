//! Open approvals and questions of running turns. A timeout, a client that disconnects and the emergency stop all count
//! as a denial.

mod handlers;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collieclaw_agent::estop;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::ids;
use collieclaw_agent::receipts::hash_json;
use collieclaw_agent::runtime::{
    ApprovalAnswer, ApprovalPrompt, OperatorQuestion, OperatorReply, PermanentApproval,
};
use collieclaw_gate::RiskLevel;
use collieclaw_providers::cancel::CancelFlag;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub(super) use handlers::{answer, list};

/// An open approval or question, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ApprovalView {
    pub(super) id: String,
    pub(super) conversation_id: String,
    #[serde(flatten)]
    pub(super) what: ApprovalPayload,
    pub(super) asked_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum ApprovalPayload {
    /// A tool call that needs an approval.
    Approval {
        tool: String,
        arguments: Value,
        /// The hash that an approval has to repeat; the receipt of the call contains the same hash.
        args_hash: String,
        /// The effect of the call, such as a diff, if the tool can tell it beforehand.
        #[serde(skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
        risk: RiskLevel,
        reasons: Vec<ApprovalReason>,
        /// True if the call can be approved permanently.
        lasting: bool,
    },
    /// A question of the model, answered with text. The answer approves nothing.
    Question { question: String, choices: Vec<String> },
}

/// The reasons why the gate asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ApprovalReason {
    code: &'static str,
    detail: String,
}

/// An answer of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SubmittedAnswer {
    Yes,
    Always,
    No,
    Text(String),
}

struct ApprovalEntry {
    view: ApprovalView,
    answer_sender: SyncSender<SubmittedAnswer>,
}

/// The open approvals and questions, by id.
pub(super) struct ApprovalQueue {
    timeout: Duration,
    pending: Mutex<BTreeMap<String, ApprovalEntry>>,
}

/// An open entry in the queue; dropping it removes the entry.
pub(super) struct OpenApproval<'a> {
    queue: &'a ApprovalQueue,
    pub(super) view: ApprovalView,
    deadline: Instant,
    answer_sender: SyncSender<SubmittedAnswer>,
    answers: Receiver<SubmittedAnswer>,
}

impl ApprovalQueue {
    pub(super) fn new(patience: Duration) -> Self {
        Self { timeout: patience, pending: Mutex::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.lock_pending().len()
    }

    /// Opens an approval. Returns `None` if the call has no form that an approval could be bound to.
    pub(super) fn request_approval(
        &self,
        conversation_id: &str,
        asked: &ApprovalPrompt<'_>,
    ) -> Option<OpenApproval<'_>> {
        let reason = |reason: &collieclaw_gate::GateReason| ApprovalReason {
            code: reason.code(),
            detail: reason.detail(),
        };
        self.enqueue(
            conversation_id,
            ApprovalPayload::Approval {
                tool: asked.tool.to_owned(),
                arguments: asked.arguments.clone(),
                args_hash: hash_json(asked.arguments).ok()?,
                preview: asked.preview.map(str::to_owned),
                risk: asked.verdict.risk,
                reasons: asked.verdict.reasons.iter().map(reason).collect(),
                lasting: asked.permanent_approval == PermanentApproval::Offered,
            },
        )
    }

    /// Opens a question of the model.
    pub(super) fn ask_question(
        &self,
        conversation_id: &str,
        posed: &OperatorQuestion<'_>,
    ) -> Option<OpenApproval<'_>> {
        let (question, choices) = (posed.text.to_owned(), posed.choices.to_vec());
        self.enqueue(conversation_id, ApprovalPayload::Question { question, choices })
    }

    fn enqueue(&self, conversation_id: &str, what: ApprovalPayload) -> Option<OpenApproval<'_>> {
        let asked_at = Timestamp::now();
        let shown = ApprovalView {
            id: ids::random_id("approval"),
            conversation_id: conversation_id.to_owned(),
            what,
            asked_at,
            expires_at: asked_at.checked_add(self.timeout).ok()?,
        };
        let (word, words) = sync_channel(1);
        let waiting = ApprovalEntry { view: shown.clone(), answer_sender: word.clone() };
        self.lock_pending().insert(shown.id.clone(), waiting);
        Some(OpenApproval {
            queue: self,
            view: shown,
            deadline: Instant::now() + self.timeout,
            answer_sender: word,
            answers: words,
        })
    }

    fn lock_pending(&self) -> MutexGuard<'_, BTreeMap<String, ApprovalEntry>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenApproval<'_> {
    /// Waits for an answer, the timeout, the end of the turn or the emergency stop, whichever comes first.
    pub(super) fn wait_for_decision(self, turn: &CancelFlag, home: &AgentHome) -> ApprovalAnswer {
        let watched = CancelFlag::new().and_then(|stop| Ok((estop::EstopWatch::start(home, &stop)?, stop)));
        // If the turn can't be cancelled, it doesn't ask.
        let Ok((_watch, stop)) = watched else { return ApprovalAnswer::Unavailable };
        let _stopped = stop.on_cancel(self.deny_callback());
        match self.wait_for_answer(turn) {
            Some(SubmittedAnswer::Yes) => ApprovalAnswer::Yes,
            Some(SubmittedAnswer::Always) => ApprovalAnswer::Always,
            Some(SubmittedAnswer::No | SubmittedAnswer::Text(_)) => ApprovalAnswer::No,
            None => ApprovalAnswer::Unavailable,
        }
    }

    /// Waits for the text answer to a question.
    pub(super) fn wait_for_text(self, call: &CancelFlag) -> OperatorReply {
        match self.wait_for_answer(call) {
            Some(SubmittedAnswer::Text(words)) => OperatorReply::Text(words),
            Some(_) => OperatorReply::NoAnswer,
            None => OperatorReply::Unavailable,
        }
    }

    fn wait_for_answer(&self, cancel: &CancelFlag) -> Option<SubmittedAnswer> {
        let _cancelled = cancel.on_cancel(self.deny_callback());
        let patience = self.deadline.saturating_duration_since(Instant::now());
        self.answers.recv_timeout(patience).ok().or_else(|| {
            // From here on, no answer is accepted. An answer that was accepted just before is still used.
            self.queue.lock_pending().remove(&self.view.id);
            self.answers.try_recv().ok()
        })
    }

    fn deny_callback(&self) -> impl FnOnce() + Send + 'static {
        let word = self.answer_sender.clone();
        move || {
            // An answer that arrived earlier is still used.
            let _ = word.try_send(SubmittedAnswer::No);
        }
    }
}

impl Drop for OpenApproval<'_> {
    fn drop(&mut self) {
        self.queue.lock_pending().remove(&self.view.id);
    }
}
