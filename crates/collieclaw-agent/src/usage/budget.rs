//! Limits on the usage of models.

use jiff::Zoned;
use serde::Serialize;
use thiserror::Error;

use super::amount::CostAmount;
use super::report::UsageTotals;

/// The configured limits. A limit that isn't set doesn't apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UsageBudget {
    /// Tokens read and written by all conversations, from midnight to midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Tokens read and written by one conversation in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_conversation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_day: Option<u64>,
    /// Minutes spent waiting for providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes_per_day: Option<u64>,
    /// The cost according to the configured prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<CostAmount>,
}

/// The error for a limit that is reached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("usage limit reached: {used} of {limit} {what} (`limits.{key}`); {again}")]
pub struct LimitReached {
    /// The limit's key in the configuration.
    pub key: &'static str,
    what: &'static str,
    used: String,
    limit: String,
    again: String,
    /// The seconds until the limit resets, if it resets by itself.
    pub seconds: Option<u64>,
}

const MILLISECONDS_PER_MINUTE: u64 = 60_000;

impl UsageBudget {
    /// Returns true if at least one limit is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Checks that one more request is within the limits, given the usage of today and of this conversation.
    ///
    /// # Errors
    /// Fails with the limit that is reached and the time at which it resets.
    pub fn check(
        &self,
        today: &UsageTotals,
        conversation: &UsageTotals,
        now: &Zoned,
    ) -> Result<(), LimitReached> {
        let minutes = today.milliseconds / MILLISECONDS_PER_MINUTE;
        let reached = |used: u64, limit: Option<u64>| limit.filter(|limit| used >= *limit);
        let daily = [
            ("calls_per_day", "calls today", today.calls, self.calls_per_day),
            ("tokens_per_day", "tokens today", today.tokens(), self.tokens_per_day),
            ("minutes_per_day", "minutes of waiting today", minutes, self.minutes_per_day),
        ];
        for (key, what, used, limit) in daily {
            if let Some(limit) = reached(used, limit) {
                let (used, limit) = (used.to_string(), limit.to_string());
                return Err(LimitReached {
                    key,
                    what,
                    used,
                    limit,
                    again: renewal_message(now),
                    seconds: seconds_until_midnight(now),
                });
            }
        }
        if let Some(limit) = self.cost_per_day.filter(|limit| today.cost >= *limit) {
            let (used, limit) = (today.cost.to_string(), limit.to_string());
            return Err(LimitReached {
                key: "cost_per_day",
                what: "spent today",
                used,
                limit,
                again: renewal_message(now),
                seconds: seconds_until_midnight(now),
            });
        }
        if let Some(limit) = reached(conversation.tokens(), self.tokens_per_conversation) {
            return Err(LimitReached {
                key: "tokens_per_conversation",
                what: "tokens in this conversation",
                used: conversation.tokens().to_string(),
                limit: limit.to_string(),
                again: "a new conversation has its own limit".to_owned(),
                seconds: None,
            });
        }
        Ok(())
    }
}

/// Returns the seconds until the end of this day, which may be shorter or longer than 24 hours.
fn seconds_until_midnight(now: &Zoned) -> Option<u64> {
    let midnight = now.tomorrow().and_then(|tomorrow| tomorrow.start_of_day()).ok()?;
    // Rounded up, so that a retry never comes too early.
    u64::try_from(midnight.duration_since(now).as_secs() + 1).ok()
}

/// Formats the time until the limit resets, such as `the limit resets at midnight, in 5 h 12 min`.
fn renewal_message(now: &Zoned) -> String {
    let minutes = seconds_until_midnight(now).map_or(0, |seconds| seconds / 60 + 1);
    format!("the limit resets at midnight, in {} h {} min", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-16T18:47:30+01:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn a_reached_limit_says_when_it_resets() {
        let today =
            UsageTotals { calls: 3, prompt_tokens: 60, completion_tokens: 40, ..UsageTotals::default() };
        let check = |budget: UsageBudget| budget.check(&today, &today, &now()).map_err(|it| it.to_string());
        assert_eq!(check(UsageBudget::default()), Ok(()));
        assert_eq!(check(UsageBudget { tokens_per_day: Some(101), ..UsageBudget::default() }), Ok(()));
        assert_eq!(
            check(UsageBudget { tokens_per_day: Some(100), ..UsageBudget::default() }).unwrap_err(),
            "usage limit reached: 100 of 100 tokens today (`limits.tokens_per_day`); the limit resets at midnight, in 5 h 13 min"
        );
        assert_eq!(
            check(UsageBudget { tokens_per_conversation: Some(7), ..UsageBudget::default() }).unwrap_err(),
            "usage limit reached: 100 of 7 tokens in this conversation (`limits.tokens_per_conversation`); a new conversation has \
             its own limit"
        );
        let nothing = UsageBudget { calls_per_day: Some(0), ..UsageBudget::default() };
        assert!(nothing.check(&UsageTotals::default(), &UsageTotals::default(), &now()).is_err());
    }

    #[test]
    fn days_of_other_lengths_end_at_midnight() {
        let spring: Zoned = "2026-03-29T00:30:00+01:00[Europe/Berlin]".parse().unwrap();
        assert_eq!(renewal_message(&spring), "the limit resets at midnight, in 22 h 31 min");
        let spent = UsageBudget { calls_per_day: Some(0), ..UsageBudget::default() };
        let seconds = |budget: UsageBudget| {
            let used = UsageTotals { prompt_tokens: 9, ..UsageTotals::default() };
            budget.check(&used, &used, &spring).unwrap_err().seconds
        };
        assert_eq!(seconds(spent), Some(22 * 3600 + 30 * 60 + 1));
        assert_eq!(seconds(UsageBudget { tokens_per_conversation: Some(1), ..UsageBudget::default() }), None);
    }
}
