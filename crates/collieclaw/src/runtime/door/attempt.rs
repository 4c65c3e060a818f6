//! An attempt, before anything is known of it.

use jiff::Timestamp;

use super::{Door, Wish};
use crate::ids;
use crate::receipts::{Attempt, ReceiptError, hash_of};

impl Door {
    pub(super) fn attempt(&self, wish: Wish<'_>) -> Result<Attempt, ReceiptError> {
        Ok(Attempt {
            id: ids::fresh("receipt"),
            timestamp: Timestamp::now(),
            conversation_id: wish.conversation_id.to_owned(),
            tool: wish.tool.to_owned(),
            args_hash: hash_of(wish.arguments)?,
            risk: "high".to_owned(),
            decision: "deny".to_owned(),
            reason_code: "not-judged".to_owned(),
            approver: "none".to_owned(),
            approval_id: None,
            step_id: wish.offer.step().map(str::to_owned),
            policy_hash: self.rules.policy_hash.clone(),
        })
    }
}
