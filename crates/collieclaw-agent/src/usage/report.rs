//! Sums of recorded usage.

use serde::Serialize;

use super::amount::CostAmount;

/// A sum over requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UsageTotals {
    pub calls: u64,
    /// The number of requests without an answer.
    pub failed: u64,
    /// Tokens read by models.
    pub prompt_tokens: u64,
    /// Tokens written by models.
    pub completion_tokens: u64,
    /// The number of requests with estimated tokens, because the server didn't count them or the request was
    /// interrupted.
    pub estimated: u64,
    /// Time spent waiting for providers.
    pub milliseconds: u64,
    /// The cost, with the prices at the time of each request.
    pub cost: CostAmount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    /// By day in the local time zone.
    Day,
    Conversation,
    /// By provider and model.
    Model,
}

/// A sum with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageShare {
    /// A date such as `2026-11-16`, a conversation, or a provider and model such as `local mock`.
    pub name: String,
    #[serde(flatten)]
    pub totals: UsageTotals,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    /// The sums by the requested grouping.
    pub shares: Vec<UsageShare>,
    pub total: UsageTotals,
}

impl UsageTotals {
    /// Returns the number of tokens read and written.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds two sums.
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
