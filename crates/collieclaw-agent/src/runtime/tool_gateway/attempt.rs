//! The attempt at a call, as recorded in its intent and its receipt before the gate has judged it.

use jiff::Timestamp;
use serde_json::Value;

use super::{MAX_NAME_BYTES, StepRef, ToolGateway};
use crate::ids;
use crate::receipts::{CallAttempt, ReceiptError, ReceiptReason, hash_json};
use crate::tools::{is_tool_name, truncate_text};
use ward_terminal::escape_line;

impl ToolGateway {
    pub(super) fn new_attempt(
        &self,
        conversation_id: &str,
        tool: &str,
        arguments: &Value,
        step: Option<StepRef<'_>>,
    ) -> Result<CallAttempt, ReceiptError> {
        Ok(CallAttempt {
            id: ids::random_id("receipt"),
            timestamp: Timestamp::now(),
            conversation_id: conversation_id.to_owned(),
            tool: tool.to_owned(),
            args_hash: hash_json(arguments)?,
            risk: "high".to_owned(),
            decision: "deny".to_owned(),
            reason: ReceiptReason::NotJudged,
            approver: "none".to_owned(),
            approval_id: None,
            step_id: step.map(|step| step.id.to_owned()),
            sop_hash: step.map(|step| step.sop_hash.to_owned()),
            policy_hash: self.policy_hash(),
        })
    }
}

/// Returns the name of a requested tool for the receipt. A name that no tool can have is marked as such:
/// otherwise a model could ask for `run:cancelled`, and the receipt would look like a decision of the operator.
pub(super) fn receipt_name(asked_for: &str) -> String {
    match is_tool_name(asked_for) {
        true => asked_for.to_owned(),
        false => format!("(not a tool name: {})", truncate_text(&escape_line(asked_for), MAX_NAME_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use super::receipt_name;

    #[test]
    fn a_name_that_no_tool_can_have_is_marked_in_the_receipt() {
        assert_eq!(receipt_name("flock__count"), "flock__count");
        assert_eq!(receipt_name("run:cancelled"), "(not a tool name: run:cancelled)");
        assert_eq!(receipt_name("a\u{1b}[2J\n"), "(not a tool name: a\\u{1b}[2J\\n)");
        assert_eq!(receipt_name(""), "(not a tool name: )");
        assert!(receipt_name(&"\u{1b}".repeat(64)).len() < 100);
    }
}
