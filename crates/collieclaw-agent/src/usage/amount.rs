//! Prices of tokens and the cost of a request, in the provider's currency.

use std::fmt;

use collieclaw_providers::TokenUsage;
use serde::{Serialize, Serializer};

/// An amount of money, in billionths of the currency unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostAmount(pub u64);

/// The price of one token, in billionths; configured and shown as the price of a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenRate(pub u64);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenPrice {
    /// The price of a million tokens that the model reads.
    #[serde(rename = "price_prompt", skip_serializing_if = "Option::is_none")]
    pub prompt: Option<TokenRate>,
    /// The price of a million tokens that the model writes.
    #[serde(rename = "price_completion", skip_serializing_if = "Option::is_none")]
    pub completion: Option<TokenRate>,
}

impl TokenPrice {
    /// Returns the cost of one request.
    #[must_use]
    pub fn cost_of(self, usage: TokenUsage) -> CostAmount {
        let part = |rate: Option<TokenRate>, tokens: u64| rate.unwrap_or_default().0.saturating_mul(tokens);
        let prompt = part(self.prompt, usage.prompt_tokens);
        CostAmount(prompt.saturating_add(part(self.completion, usage.completion_tokens)))
    }
}

impl CostAmount {
    /// Returns the amount in currency units.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "amounts above 2^53 billionths need no precision")]
    pub fn units(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Converts a number of currency units from the configuration.
    #[must_use]
    pub fn from_units(units: f64) -> Self {
        Self(round_to_u64(units * 1e9))
    }
}

impl TokenRate {
    /// Converts the price of a million tokens from the configuration.
    #[must_use]
    pub fn from_million(price: f64) -> Self {
        Self(round_to_u64(price * 1e3))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturation is intended")]
fn round_to_u64(number: f64) -> u64 {
    number.round() as u64
}

impl fmt::Display for CostAmount {
    /// Formats the amount with enough digits to show small amounts.
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
    #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^53")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_the_price_of_its_tokens() {
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
    fn small_amounts_are_shown_with_more_digits() {
        let shown = |units| CostAmount::from_units(units).to_string();
        assert_eq!(["0.00", "0.000600", "0.0123", "12.50"], [0.0, 0.0006, 0.0123, 12.5].map(shown));
    }
}
