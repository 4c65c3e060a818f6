//! What was used, added up.

use serde::Serialize;

use super::amount::CostAmount;

/// A sum over calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UsageTotals {
    /// Requests to providers.
    pub calls: u64,
    /// Of these, how many had no answer.
    pub failed: u64,
    /// Read by models.
    pub prompt_tokens: u64,
    /// Written by models.
    pub completion_tokens: u64,
    /// Of how many calls the tokens are an estimate: the server did not count them, or the call was cut off.
    pub estimated: u64,
    /// Spent waiting.
    pub milliseconds: u64,
    /// By the prices of that time.
    pub cost: CostAmount,
}

/// What is added up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    /// Of one day, where this machine is.
    Day,
    /// Of one conversation.
    Conversation,
    /// Of one model of one provider.
    Model,
}

/// A sum with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageShare {
    /// Such as `2026-11-16`, a conversation, or `local mock`.
    pub name: String,
    /// The sum.
    #[serde(flatten)]
    pub totals: UsageTotals,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    /// By what was asked for.
    pub shares: Vec<UsageShare>,
    /// All of it.
    pub total: UsageTotals,
}

impl UsageTotals {
    /// Read and written.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            failed: self.failed.saturating_add(other.failed),
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            estimated: self.estimated.saturating_add(other.estimated),
            milliseconds: self.milliseconds.saturating_add(other.milliseconds),
            cost: CostAmount(self.cost.0.saturating_add(other.cost.0)),
        }
    }
}
