//! What waits for somebody: calls that need a yes, and questions that want words. Silence, a client that has gone and the
//! emergency stop are a no.

mod answering;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collieclaw_gate::Risk;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::cancel::Cancel;
use crate::estop;
use crate::home::Home;
use crate::ids;
use crate::receipts::hash_of;
use crate::runtime::{Answer, Asked, Lasting, Posed, Reply};

pub(super) use answering::{answer, list};

/// What waits, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) conversation_id: String,
    #[serde(flatten)]
    pub(super) what: What,
    pub(super) asked_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum What {
    /// A call that needs a yes.
    Approval {
        tool: String,
        arguments: Value,
        /// What a yes has to repeat; the receipt of the call has the same.
        args_hash: String,
        risk: Risk,
        reasons: Vec<Reason>,
        /// Whether a yes can be for good.
        lasting: bool,
    },
    /// A question of the model, which is answered in words and approves nothing.
    Question { question: String, choices: Vec<String> },
}

/// Why the gate asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    code: &'static str,
    detail: String,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Yes,
    Always,
    No,
    Words(String),
}

struct Waiting {
    shown: Shown,
    word: SyncSender<Word>,
}

/// What nobody has answered yet, by its id.
pub(super) struct Approvals {
    patience: Duration,
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

/// What is asked now. Dropped, it is no longer.
pub(super) struct Open<'a> {
    approvals: &'a Approvals,
    pub(super) shown: Shown,
    until: Instant,
    word: SyncSender<Word>,
    words: Receiver<Word>,
}

impl Approvals {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, waiting: Mutex::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.waiting().len()
    }

    /// Asks for a yes; `None` when what is asked about has no form that a yes could be bound to.
    pub(super) fn ask(&self, conversation_id: &str, asked: &Asked<'_>) -> Option<Open<'_>> {
        let reason =
            |reason: &collieclaw_gate::Reason| Reason { code: reason.code(), detail: reason.detail() };
        self.open(
            conversation_id,
            What::Approval {
                tool: asked.tool.to_owned(),
                arguments: asked.arguments.clone(),
                args_hash: hash_of(asked.arguments).ok()?,
                risk: asked.verdict.risk,
                reasons: asked.verdict.reasons.iter().map(reason).collect(),
                lasting: asked.lasting == Lasting::Offered,
            },
        )
    }

    /// Asks for words.
    pub(super) fn pose(&self, conversation_id: &str, posed: &Posed<'_>) -> Option<Open<'_>> {
        let (question, choices) = (posed.text.to_owned(), posed.choices.to_vec());
        self.open(conversation_id, What::Question { question, choices })
    }

    fn open(&self, conversation_id: &str, what: What) -> Option<Open<'_>> {
        let asked_at = Timestamp::now();
        let shown = Shown {
            id: ids::fresh("approval"),
            conversation_id: conversation_id.to_owned(),
            what,
            asked_at,
            expires_at: asked_at.checked_add(self.patience).ok()?,
        };
        let (word, words) = sync_channel(1);
        let waiting = Waiting { shown: shown.clone(), word: word.clone() };
        self.waiting().insert(shown.id.clone(), waiting);
        Some(Open { approvals: self, shown, until: Instant::now() + self.patience, word, words })
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open<'_> {
    /// Waits for an answer, the end of patience, the end of the turn or the emergency stop, whichever is first.
    pub(super) fn decided(self, turn: &Cancel, home: &Home) -> Answer {
        let watched = Cancel::new().and_then(|stop| Ok((estop::Watch::start(home, &stop)?, stop)));
        // Whoever can't be stopped is not asked.
        let Ok((_watch, stop)) = watched else { return Answer::Nobody };
        let _stopped = stop.at_once(self.no());
        match self.heard(turn) {
            Some(Word::Yes) => Answer::Yes,
            Some(Word::Always) => Answer::Always,
            Some(Word::No | Word::Words(_)) => Answer::No,
            None => Answer::Nobody,
        }
    }

    /// Waits for words as long as somebody wants them.
    pub(super) fn said(self, call: &Cancel) -> Reply {
        match self.heard(call) {
            Some(Word::Words(words)) => Reply::Said(words),
            Some(_) => Reply::Nothing,
            None => Reply::Nobody,
        }
    }

    fn heard(&self, cancel: &Cancel) -> Option<Word> {
        let _cancelled = cancel.at_once(self.no());
        let patience = self.until.saturating_duration_since(Instant::now());
        self.words.recv_timeout(patience).ok().or_else(|| {
            // From here on nobody is told that an answer counts; whoever was told so a moment ago is heard.
            self.approvals.waiting().remove(&self.shown.id);
            self.words.try_recv().ok()
        })
    }

    fn no(&self) -> impl FnOnce() + Send + 'static {
        let word = self.word.clone();
        move || {
            // Whoever has answered before is heard.
            let _ = word.try_send(Word::No);
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.approvals.waiting().remove(&self.shown.id);
    }
}
