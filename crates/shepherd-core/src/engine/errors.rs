//! Why something was not done, and how clients are told: a code for programs and a sentence for people, in one place.

use std::fmt::Display;
use std::time::Duration;

use shepherd_api::{ApiError, ErrorCode, ReasonCode};
use shepherd_util::{BudgetId, EntryId, GrantId, HumanDuration, ProfileId, RequestId};

use super::CoreEngine;
use crate::policy::{MinuteOfDay, ModeName};

/// Why nothing was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The policy's ceiling leaves less.
    #[error("the policy allows at most {} more on that day", HumanDuration(*.left))]
    AboveCeiling {
        /// What could still be given.
        left: Duration,
    },
    /// The policy stretches no window that far.
    #[error("the policy opens nothing beyond {latest}")]
    TooLate {
        /// The latest time of day.
        latest: MinuteOfDay,
    },
    /// More than a year.
    #[error("nobody can be given more than a year")]
    TooMuch,
    /// It would be over before it began.
    #[error("it would lapse before it begins")]
    EmptyPeriod,
    /// The policy has no such entry.
    #[error("there is no entry `{0}`")]
    UnknownEntry(EntryId),
    /// The policy has no such budget.
    #[error("there is no budget `{0}`")]
    UnknownBudget(BudgetId),
    /// The policy has no such profile.
    #[error("there is no profile `{0}`")]
    UnknownProfile(ProfileId),
    /// Nobody gave such a grant, or it was taken back.
    #[error("there is no grant `{0}`")]
    UnknownGrant(GrantId),
    /// Nobody asked that.
    #[error("there is no request `{0}`")]
    UnknownRequest(RequestId),
    /// A grant has that name already.
    #[error("there is a grant `{0}` already")]
    GrantExists(GrantId),
    /// A request has that name already.
    #[error("there is a request `{0}` already")]
    RequestExists(RequestId),
    /// A child asks too often.
    #[error("there are enough questions open; wait for an answer")]
    TooManyRequests,
    /// A child asks for too much.
    #[error("nobody can be asked for more than a day")]
    RequestTooLong,
    /// It was answered already.
    #[error("it has been decided already")]
    AlreadyDecided,
    /// Nothing runs.
    #[error("nothing is running")]
    NoSession,
    /// What runs has been told to end.
    #[error("it is being ended already")]
    SessionEnding,
    /// What can't be recorded is not given.
    #[error("nothing can be recorded now: {0}")]
    StoreUnavailable(String),
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The policy has no such entry.
    #[error("there is no entry `{0}`")]
    UnknownEntry(EntryId),
    /// The span is empty or turned round.
    #[error("the span ends before it begins")]
    EmptyRange,
    /// The span is longer than anyone draws.
    #[error("the span is longer than {days} days")]
    RangeTooLong {
        /// The longest.
        days: u16,
    },
}

/// The policy has no such mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode `{0}`")]
pub struct UnknownModeError(pub ModeName);

impl CoreEngine {
    /// A launch that was denied, in the words of the protocol. Times of day are those of the policy's zone.
    #[must_use]
    pub fn denial_error(&self, reasons: Vec<ReasonCode>) -> ApiError {
        let first = reasons.first().map(|reason| reason.sentence(self.zone()));
        ApiError::denied(first.unwrap_or_default(), reasons)
    }
}

impl From<GrantError> for ApiError {
    fn from(error: GrantError) -> Self {
        let code = match &error {
            GrantError::AboveCeiling { .. } | GrantError::TooLate { .. } => ErrorCode::OverCeiling,
            GrantError::EmptyPeriod => ErrorCode::InvalidRange,
            GrantError::UnknownEntry(_) => ErrorCode::UnknownEntry,
            GrantError::UnknownBudget(_) => ErrorCode::UnknownBudget,
            GrantError::UnknownProfile(_) => ErrorCode::UnknownProfile,
            GrantError::UnknownGrant(_) => ErrorCode::UnknownGrant,
            GrantError::UnknownRequest(_) => ErrorCode::UnknownRequest,
            // Names are made up by the daemon.
            GrantError::GrantExists(_) | GrantError::RequestExists(_) => ErrorCode::Internal,
            GrantError::TooManyRequests => ErrorCode::RateLimited,
            GrantError::TooMuch | GrantError::RequestTooLong => ErrorCode::InvalidCommand,
            GrantError::AlreadyDecided => ErrorCode::AlreadyDecided,
            GrantError::NoSession | GrantError::SessionEnding => ErrorCode::NoSession,
            GrantError::StoreUnavailable(_) => ErrorCode::StoreUnavailable,
        };
        Self::new(code, as_sentence(&error))
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let code = match &error {
            QueryError::UnknownEntry(_) => ErrorCode::UnknownEntry,
            QueryError::EmptyRange | QueryError::RangeTooLong { .. } => ErrorCode::InvalidRange,
        };
        Self::new(code, as_sentence(&error))
    }
}

impl From<UnknownModeError> for ApiError {
    fn from(error: UnknownModeError) -> Self {
        Self::new(ErrorCode::UnknownMode, as_sentence(&error))
    }
}

/// Errors say their part in lower case; people read sentences.
fn as_sentence(error: &impl Display) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
