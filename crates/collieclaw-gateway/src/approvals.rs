//! What waits for somebody: calls that need a yes, and questions that want words. Silence, a client that has gone and the
//! emergency stop are a no.

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
    AlwaysOption, ApprovalAnswer, ApprovalPrompt, OperatorQuestion, OperatorReply,
};
use collieclaw_gate::RiskLevel;
use collieclaw_providers::cancel::CancelFlag;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub(super) use handlers::{answer, list};

/// What waits, as it is shown.
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
    /// A call that needs a yes.
    Approval {
        tool: String,
        arguments: Value,
        /// What a yes has to repeat; the receipt of the call has the same.
        args_hash: String,
        risk: RiskLevel,
        reasons: Vec<ApprovalReason>,
        /// Whether a yes can be for good.
        lasting: bool,
    },
    /// A question of the model, which is answered in words and approves nothing.
    Question { question: String, choices: Vec<String> },
}

/// Why the gate asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ApprovalReason {
    code: &'static str,
    detail: String,
}

/// What somebody said.
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

/// What nobody has answered yet, by its id.
pub(super) struct ApprovalQueue {
    timeout: Duration,
    pending: Mutex<BTreeMap<String, ApprovalEntry>>,
}

/// What is asked now. Dropped, it is no longer.
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

    /// Asks for a yes; `None` when what is asked about has no form that a yes could be bound to.
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
                risk: asked.verdict.risk,
                reasons: asked.verdict.reasons.iter().map(reason).collect(),
                lasting: asked.always_option == AlwaysOption::Offered,
            },
        )
    }

    /// Asks for words.
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
    /// Waits for an answer, the end of patience, the end of the turn or the emergency stop, whichever is first.
    pub(super) fn wait_for_decision(self, turn: &CancelFlag, home: &AgentHome) -> ApprovalAnswer {
        let watched = CancelFlag::new().and_then(|stop| Ok((estop::EstopWatch::start(home, &stop)?, stop)));
        // Whoever can't be stopped is not asked.
        let Ok((_watch, stop)) = watched else { return ApprovalAnswer::NobodyAvailable };
        let _stopped = stop.on_cancel(self.deny_callback());
        match self.wait_for_answer(turn) {
            Some(SubmittedAnswer::Yes) => ApprovalAnswer::Yes,
            Some(SubmittedAnswer::Always) => ApprovalAnswer::Always,
            Some(SubmittedAnswer::No | SubmittedAnswer::Text(_)) => ApprovalAnswer::No,
            None => ApprovalAnswer::NobodyAvailable,
        }
    }

    /// Waits for words as long as somebody wants them.
    pub(super) fn wait_for_text(self, call: &CancelFlag) -> OperatorReply {
        match self.wait_for_answer(call) {
            Some(SubmittedAnswer::Text(words)) => OperatorReply::Text(words),
            Some(_) => OperatorReply::NoAnswer,
            None => OperatorReply::NobodyAvailable,
        }
    }

    fn wait_for_answer(&self, cancel: &CancelFlag) -> Option<SubmittedAnswer> {
        let _cancelled = cancel.on_cancel(self.deny_callback());
        let patience = self.deadline.saturating_duration_since(Instant::now());
        self.answers.recv_timeout(patience).ok().or_else(|| {
            // From here on nobody is told that an answer counts; whoever was told so a moment ago is heard.
            self.queue.lock_pending().remove(&self.view.id);
            self.answers.try_recv().ok()
        })
    }

    fn deny_callback(&self) -> impl FnOnce() + Send + 'static {
        let word = self.answer_sender.clone();
        move || {
            // Whoever has answered before is heard.
            let _ = word.try_send(SubmittedAnswer::No);
        }
    }
}

impl Drop for OpenApproval<'_> {
    fn drop(&mut self) {
        self.queue.lock_pending().remove(&self.view.id);
    }
}
