//! What a call costs, in whatever money the provider counts.

use std::fmt;

use collieclaw_providers::TokenUsage;
use serde::{Serialize, Serializer};

/// Money, in billionths of its unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostAmount(pub u64);

/// The price of a token, in billionths; written down as the price of a million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenRate(pub u64);

/// What a provider takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenPrice {
    /// For a million tokens that the model reads.
    #[serde(rename = "price_prompt", skip_serializing_if = "Option::is_none")]
    pub prompt: Option<TokenRate>,
    /// For a million tokens that it writes.
    #[serde(rename = "price_completion", skip_serializing_if = "Option::is_none")]
    pub completion: Option<TokenRate>,
}

impl TokenPrice {
    /// Of one call.
    #[must_use]
    pub fn cost_of(self, usage: TokenUsage) -> CostAmount {
        let part = |rate: Option<TokenRate>, tokens: u64| rate.unwrap_or_default().0.saturating_mul(tokens);
        let prompt = part(self.prompt, usage.prompt_tokens);
        CostAmount(prompt.saturating_add(part(self.completion, usage.completion_tokens)))
    }
}

impl CostAmount {
    /// As a number of units.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nobody pays more than 2^53 billionths with precision")]
    pub fn units(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// From a number of units that a person wrote.
    #[must_use]
    pub fn from_units(units: f64) -> Self {
        Self(round_to_u64(units * 1e9))
    }
}

impl TokenRate {
    /// From the price of a million tokens that a person wrote.
    #[must_use]
    pub fn from_million(price: f64) -> Self {
        Self(round_to_u64(price * 1e3))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast stops at both ends, and that is what is wanted"
)]
fn round_to_u64(number: f64) -> u64 {
    number.round() as u64
}

impl fmt::Display for CostAmount {
    /// With as many digits as there is something to see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            0 | 100_000_000.. => 2,
            1_000_000..100_000_000 => 4,
            _ => 6,
        };
        write!(f, "{:.digits$}", self.units())
    }
}

impl Serialize for CostAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.units())
    }
}

impl Serialize for TokenRate {
    #[expect(clippy::cast_precision_loss, reason = "no price has 2^53 parts")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_its_tokens() {
        let price = TokenPrice {
            prompt: Some(TokenRate::from_million(0.15)),
            completion: Some(TokenRate::from_million(0.6)),
        };
        let usage = TokenUsage { prompt_tokens: 2_000, completion_tokens: 500 };
        assert_eq!(price.cost_of(usage), CostAmount::from_units(0.0006));
        assert_eq!(TokenPrice::default().cost_of(usage), CostAmount(0));
        let endless = TokenUsage { prompt_tokens: u64::MAX, completion_tokens: u64::MAX };
        assert_eq!(price.cost_of(endless), CostAmount(u64::MAX));
    }

    #[test]
    fn amounts_are_shown_with_what_there_is_to_see() {
        let shown = |units| CostAmount::from_units(units).to_string();
        assert_eq!(["0.00", "0.000600", "0.0123", "12.50"], [0.0, 0.0006, 0.0123, 12.5].map(shown));
    }
}
