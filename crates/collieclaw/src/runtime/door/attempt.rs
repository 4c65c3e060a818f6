//! An attempt, before anything is known of it.

use jiff::Timestamp;

use serde_json::Value;

use super::{Door, OfStep};
use crate::ids;
use crate::receipts::{Attempt, ReceiptError, hash_of};

impl Door {
    pub(super) fn fresh(
        &self,
        conversation_id: &str,
        tool: &str,
        arguments: &Value,
        step: Option<OfStep<'_>>,
    ) -> Result<Attempt, ReceiptError> {
        Ok(Attempt {
            id: ids::fresh("receipt"),
            timestamp: Timestamp::now(),
            conversation_id: conversation_id.to_owned(),
            tool: tool.to_owned(),
            args_hash: hash_of(arguments)?,
            risk: "high".to_owned(),
            decision: "deny".to_owned(),
            reason_code: "not-judged".to_owned(),
            approver: "none".to_owned(),
            approval_id: None,
            step_id: step.map(|step| step.id.to_owned()),
            sop_hash: step.map(|step| step.sop_hash.to_owned()),
            policy_hash: self.rules.policy_hash.clone(),
        })
    }
}
