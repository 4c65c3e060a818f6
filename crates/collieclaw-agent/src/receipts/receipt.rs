//! A receipt: the attempt at a call, the decision about it, and hashes of its arguments and its result.

use collieclaw_gate::GateVerdict;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::executed_commands::ExecutedCommands;
use super::intent::IntentStage;
use super::reason::ReceiptReason;

/// The attempt at a call, with everything that is known before the tool runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAttempt {
    /// `receipt-` and 32 hex digits.
    pub id: String,
    /// The time of the attempt, in UTC.
    pub timestamp: Timestamp,
    pub conversation_id: String,
    pub tool: String,
    /// The SHA-256 of the arguments in canonical JSON.
    pub args_hash: String,
    pub risk: String,
    /// The decision of the gate.
    pub decision: String,
    /// The first reason of the gate.
    #[serde(rename = "reason_code")]
    pub reason: ReceiptReason,
    /// The approver of the call: `rules`, `operator`, `remembered` (the operator, earlier), or `none`.
    pub approver: String,
    /// The lasting approval that this call created or used.
    #[serde(default)]
    pub approval_id: Option<String>,
    /// The step of a procedure.
    #[serde(default)]
    pub step_id: Option<String>,
    /// The SHA-256 of that procedure's text.
    #[serde(default)]
    pub sop_hash: Option<String>,
    /// The SHA-256 of the policy in force, in canonical JSON.
    pub policy_hash: String,
}

/// The part of a receipt that says how the call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnding {
    pub status: ReceiptStatus,
    /// The SHA-256 of the text that the model gets.
    pub result_hash: String,
    /// The SHA-256 of the output that a step of a procedure gives to later steps, where it differs from that text.
    pub output_hash: Option<String>,
    /// The reason that replaces the reason of the attempt in the receipt.
    pub reason: Option<ReceiptReason>,
    /// The parts of the sandbox that were in force, if there was a sandbox.
    pub sandbox: Option<String>,
    /// The connections of commands through the proxy, if there was a proxy.
    pub network: Option<Value>,
    /// The programs that the tool ran and that were judged one by one (C17).
    pub commands: ExecutedCommands,
}

/// The final status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptStatus {
    /// The tool ran and did its work.
    Allowed,
    /// The tool did not run.
    Denied,
    /// The tool could not run, or ran and failed, or was interrupted.
    Failed,
}

/// A receipt as stored in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The whole record.
    #[serde(flatten)]
    pub record: Map<String, Value>,
}

/// The value of every field that can't be read from a damaged intent.
const UNKNOWN_VALUE: &str = "unknown";

/// The field `sandbox` in the receipt of a tool that ran without a sandbox.
const NO_SANDBOX: &str = "none";

impl ReceiptStatus {
    /// Returns the value of the field `status` in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Allowed, Self::Denied, Self::Failed].into_iter().find(|status| status.as_str() == word)
    }
}

impl CallAttempt {
    /// Creates the attempt for a call whose intent can't be read.
    pub(super) fn unreadable(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            timestamp: Timestamp::now(),
            conversation_id: UNKNOWN_VALUE.to_owned(),
            tool: UNKNOWN_VALUE.to_owned(),
            args_hash: super::hash_text(""),
            risk: "high".to_owned(),
            decision: UNKNOWN_VALUE.to_owned(),
            reason: ReceiptReason::Unknown,
            approver: UNKNOWN_VALUE.to_owned(),
            approval_id: None,
            step_id: None,
            sop_hash: None,
            policy_hash: super::hash_text(""),
        }
    }

    /// Adds the verdict of the gate.
    #[must_use]
    pub fn with_verdict(self, verdict: &GateVerdict) -> Self {
        Self {
            risk: verdict.risk.to_string(),
            decision: verdict.decision.to_string(),
            reason: verdict.into(),
            ..self
        }
    }
}

impl CallEnding {
    /// Creates the ending of a call without a sandbox. `result` is the text that the model gets.
    #[must_use]
    pub fn new(status: ReceiptStatus, result: &str) -> Self {
        let result_hash = super::hash_text(result);
        Self {
            status,
            result_hash,
            output_hash: None,
            reason: None,
            sandbox: None,
            network: None,
            commands: ExecutedCommands::default(),
        }
    }

    /// Replaces the attempt's reason.
    #[must_use]
    pub fn with_reason(self, reason: ReceiptReason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// Creates the ending of a call whose process died at this stage.
    pub(super) fn interrupted(stage: IntentStage) -> Self {
        let status = match stage {
            IntentStage::Started => ReceiptStatus::Failed,
            IntentStage::AwaitingApproval => ReceiptStatus::Denied,
        };
        Self::new(status, "").with_reason(ReceiptReason::Interrupted)
    }
}

pub(super) fn receipt_record(attempt: &CallAttempt, ending: &CallEnding) -> Map<String, Value> {
    let reason = ending.reason.as_ref().unwrap_or(&attempt.reason);
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
        ("reason_code", reason.code()),
        ("approver", &attempt.approver),
        ("sandbox", ending.sandbox.as_deref().unwrap_or(NO_SANDBOX)),
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
    let network = ending.network.iter().map(|network| ("network".to_owned(), network.clone()));
    let commands = ending.commands.to_json().map(|commands| ("commands".to_owned(), commands));
    members.into_iter().chain(others).chain(network).chain(commands).collect()
}
