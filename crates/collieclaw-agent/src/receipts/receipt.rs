//! A receipt: what was attempted, what was decided, and hashes of what went in and came out.

use collieclaw_gate::{GateDecision, RiskLevel};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::intent::IntentStage;

/// A call that is attempted, as far as it is known before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAttempt {
    /// `receipt-` and 32 hex digits.
    pub id: String,
    /// When it was attempted, in UTC.
    pub timestamp: Timestamp,
    /// In which conversation.
    pub conversation_id: String,
    /// Which tool.
    pub tool: String,
    /// The SHA-256 of the arguments in canonical JSON.
    pub args_hash: String,
    /// How much it can do.
    pub risk: String,
    /// What the gate said.
    pub decision: String,
    /// The code of the first reason.
    pub reason_code: String,
    /// Who said yes: `rules`, `operator`, `remembered` (the operator, earlier), or `none`.
    pub approver: String,
    /// The approval that holds from then on, or held already.
    #[serde(default)]
    pub approval_id: Option<String>,
    /// The step of a procedure.
    #[serde(default)]
    pub step_id: Option<String>,
    /// The SHA-256 of that procedure's text.
    #[serde(default)]
    pub sop_hash: Option<String>,
    /// The SHA-256 of the rules in force, in canonical JSON.
    pub policy_hash: String,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnding {
    /// In one word.
    pub status: ReceiptStatus,
    /// The SHA-256 of the text that the model gets.
    pub result_hash: String,
    /// The SHA-256 of what a step of a procedure gives to later ones, where that is another text.
    pub output_hash: Option<String>,
    /// Another reason than the one of the attempt.
    pub reason_code: Option<&'static str>,
    /// What of the sandbox was in force; `none` where there was none.
    pub sandbox: String,
}

/// How a call ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptStatus {
    /// It ran, and worked.
    Allowed,
    /// It did not run.
    Denied,
    /// It could not run, or did not work, or nobody knows.
    Failed,
}

/// A receipt as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The record, all of it.
    #[serde(flatten)]
    pub record: Map<String, Value>,
}

/// Stands where a damaged file has nothing to tell.
const UNKNOWN_VALUE: &str = "unknown";

impl ReceiptStatus {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

impl CallAttempt {
    /// What is known of a call whose intent can't be read any more.
    pub(super) fn unreadable(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            timestamp: Timestamp::now(),
            conversation_id: UNKNOWN_VALUE.to_owned(),
            tool: UNKNOWN_VALUE.to_owned(),
            args_hash: super::hash_text(""),
            risk: "high".to_owned(),
            decision: UNKNOWN_VALUE.to_owned(),
            reason_code: UNKNOWN_VALUE.to_owned(),
            approver: UNKNOWN_VALUE.to_owned(),
            approval_id: None,
            step_id: None,
            sop_hash: None,
            policy_hash: super::hash_text(""),
        }
    }

    /// With what the gate said.
    #[must_use]
    pub fn with_verdict(self, risk: RiskLevel, decision: GateDecision, reason_code: &str) -> Self {
        Self {
            risk: risk.to_string(),
            decision: decision.to_string(),
            reason_code: reason_code.to_owned(),
            ..self
        }
    }
}

impl CallEnding {
    /// With the text that the model gets.
    #[must_use]
    pub fn new(status: ReceiptStatus, result: &str) -> Self {
        let result_hash = super::hash_text(result);
        Self { status, result_hash, output_hash: None, reason_code: None, sandbox: "none".to_owned() }
    }

    /// With a reason of its own.
    #[must_use]
    pub fn with_reason(self, reason_code: &'static str) -> Self {
        Self { reason_code: Some(reason_code), ..self }
    }

    /// What is known of a call whose process died: how far it had come.
    pub(super) fn interrupted(stage: IntentStage) -> Self {
        let status = match stage {
            IntentStage::Started => ReceiptStatus::Failed,
            IntentStage::AwaitingApproval => ReceiptStatus::Denied,
        };
        Self::new(status, "").with_reason("interrupted")
    }
}

pub(super) fn receipt_record(attempt: &CallAttempt, ending: &CallEnding) -> Map<String, Value> {
    let reason_code = ending.reason_code.unwrap_or(&attempt.reason_code);
    let members = [
        ("id", attempt.id.as_str()),
        ("timestamp", &attempt.timestamp.to_string()),
        ("conversation_id", &attempt.conversation_id),
        ("tool", &attempt.tool),
        ("args_hash", &attempt.args_hash),
        ("result_hash", &ending.result_hash),
        ("status", ending.status.as_str()),
        ("risk", &attempt.risk),
        ("decision", &attempt.decision),
        ("reason_code", reason_code),
        ("approver", &attempt.approver),
        ("sandbox", &ending.sandbox),
        ("policy_hash", &attempt.policy_hash),
    ]
    .map(|(name, value)| (name.to_owned(), Value::from(value)));
    let others = [
        ("approval_id", &attempt.approval_id),
        ("step_id", &attempt.step_id),
        ("sop_hash", &attempt.sop_hash),
        ("output_hash", &ending.output_hash),
    ];
    let others =
        others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
    members.into_iter().chain(others).collect()
}
