//! The operator on the other end of a connection: is told what goes on as events, and asked through `/approvals`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::approvals::Shown;
use super::desk::Desk;
use crate::cancel::{Cancel, Why};
use crate::runtime::{Answer, Asked, Fate, Notice, Operator, Posed, Reply};

/// What a client is told of a turn.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// A bit of what the model says.
    Draft(String),
    /// The bits since the last call are void: another provider begins anew.
    DraftVoid,
    /// A call begins.
    Begins { tool: String, arguments: Value },
    /// A call has ended, or was refused.
    Ended(Ended),
    /// Somebody has to say yes, or something.
    Approval(Box<Shown>),
    /// The turn is over.
    Over(Over),
}

/// How a call ended.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ended {
    tool: String,
    arguments: Value,
    fate: &'static str,
    /// What the model was told.
    output: String,
    receipt_id: Option<String>,
    milliseconds: u64,
}

/// How a turn ended.
#[derive(Debug, Clone)]
pub(super) enum Over {
    Answer(String),
    Trouble { code: &'static str, message: String, retry_after: Option<u64> },
}

impl Told {
    /// Its name and what it says, for those who listen.
    pub(super) fn event(&self) -> (&'static str, Value) {
        match self {
            Self::Draft(text) => ("draft", json!({ "text": text })),
            Self::DraftVoid => ("draft", json!({ "void": true })),
            Self::Begins { tool, arguments } => {
                ("tool", json!({ "phase": "begins", "tool": tool, "arguments": arguments }))
            }
            Self::Ended(ended) => {
                let mut value = json!(ended);
                if let Value::Object(members) = &mut value {
                    members.insert("phase".to_owned(), "ended".into());
                }
                ("tool", value)
            }
            Self::Approval(shown) => ("approval", json!(shown)),
            Self::Over(Over::Answer(answer)) => ("answer", json!({ "answer": answer })),
            Self::Over(Over::Trouble { code, message, .. }) => {
                ("error", json!({ "code": code, "message": message }))
            }
        }
    }
}

/// Whoever sent the message.
pub(super) struct Remote {
    pub(super) desk: Arc<Desk>,
    pub(super) conversation: String,
    pub(super) told: Sender<Told>,
    pub(super) cancel: Cancel,
    /// Whether bits were told since the model was asked.
    pub(super) drafted: bool,
}

impl Remote {
    /// A client that has gone is asked and told nothing more, and its turn ends.
    fn tell(&self, told: Told) {
        if self.told.blocking_send(told).is_err() {
            self.cancel.raise(Why::Operator);
        }
    }

    fn count(&self, fate: Fate) {
        self.desk.metrics.tool_calls.add_one();
        if matches!(fate, Fate::Denied | Fate::NobodyToAsk | Fate::Stopped) {
            self.desk.metrics.tool_denials.add_one();
        }
    }
}

impl Operator for Remote {
    fn ask(&mut self, asked: &Asked<'_>) -> Answer {
        let desk = Arc::clone(&self.desk);
        let Some(open) = desk.approvals.ask(&self.conversation, asked) else { return Answer::Nobody };
        self.tell(Told::Approval(Box::new(open.shown.clone())));
        open.decided(&self.cancel, &desk.home)
    }

    fn question(&mut self, question: &Posed<'_>) -> Reply {
        let desk = Arc::clone(&self.desk);
        let Some(open) = desk.approvals.pose(&self.conversation, question) else { return Reply::Nobody };
        self.tell(Told::Approval(Box::new(open.shown.clone())));
        open.said(question.cancel)
    }

    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Thinking => self.drafted = false,
            Notice::Thought => {}
            Notice::Draft(text) => {
                self.drafted = true;
                self.tell(Told::Draft(text.to_owned()));
            }
            Notice::DraftVoid => {
                self.drafted = false;
                self.tell(Told::DraftVoid);
            }
            // Bit by bit it was told already.
            Notice::Says(_) if self.drafted => {}
            Notice::Says(text) => self.tell(Told::Draft(text.to_owned())),
            Notice::Calls { tool, arguments } => {
                self.tell(Told::Begins { tool: tool.to_owned(), arguments: arguments.clone() });
            }
            Notice::Called { tool, arguments, outcome } => {
                self.count(outcome.fate);
                self.tell(Told::Ended(Ended {
                    tool: tool.to_owned(),
                    arguments: arguments.clone(),
                    fate: outcome.fate.word(),
                    output: outcome.text.clone(),
                    receipt_id: outcome.receipt_id.clone(),
                    milliseconds: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
                }));
            }
        }
    }
}
