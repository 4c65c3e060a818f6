//! Errors of the engine, and their form in the protocol: a code for programs and a sentence for people.

use std::fmt::Display;
use std::time::Duration;

use shepherd_api::{ApiError, ErrorCode};
use shepherd_util::{BudgetId, EntryId, GrantId, HumanDuration, ProfileId, RequestId};

use crate::policy::{MinuteOfDay, ModeName};

/// The reason why a grant or a time request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("the policy allows at most {} more on that day", HumanDuration(*.left))]
    AboveCeiling { left: Duration },
    #[error("the policy allows no opening after {latest}")]
    TooLate { latest: MinuteOfDay },
    #[error("a grant can be for at most a year")]
    TooMuch,
    #[error("the grant would lapse before it begins")]
    EmptyPeriod,
    /// Extra time for an entry whose only limits are its hours, if any.
    #[error(
        "`{0}` has no quota, budget, longest run or break that extra time could raise; `shepherd grant --open-until \
         20:00 --entry {0}` keeps it open until 20:00"
    )]
    NothingToExtend(EntryId),
    #[error("the budget `{0}` has no limit on those days that extra time could raise")]
    BudgetWithoutLimit(BudgetId),
    #[error(
        "no entry has a limit that extra time could raise; `shepherd grant --open-until 20:00` keeps entries open until 20:00"
    )]
    NoLimits,
    #[error("`{0}` isn't available for `{1}`")]
    NotForProfile(EntryId, ProfileId),
    #[error("no such entry `{0}`")]
    UnknownEntry(EntryId),
    #[error("no such budget `{0}`")]
    UnknownBudget(BudgetId),
    #[error("no such profile `{0}`")]
    UnknownProfile(ProfileId),
    /// The grant doesn't exist, or was revoked.
    #[error("no such grant `{0}`")]
    UnknownGrant(GrantId),
    #[error("no such request `{0}`")]
    UnknownRequest(RequestId),
    #[error("the grant `{0}` already exists")]
    GrantExists(GrantId),
    #[error("the request `{0}` already exists")]
    RequestExists(RequestId),
    #[error("too many requests are open; wait for an answer")]
    TooManyRequests,
    #[error("a request can be for at most a day")]
    RequestTooLong,
    #[error("the request has already been decided")]
    AlreadyDecided,
    #[error("nothing is running")]
    NoSession,
    #[error("the session is already being ended")]
    SessionEnding,
    #[error("could not record the grant: {0}")]
    StoreUnavailable(String),
}

/// The reason why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("no such entry `{0}`")]
    UnknownEntry(EntryId),
    #[error("the time range ends before it begins")]
    EmptyRange,
    #[error("the time range is longer than {days} days")]
    RangeTooLong { days: u16 },
}

/// The policy has no such mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such mode `{mode}`; {}", describe_modes(.known))]
pub struct UnknownModeError {
    pub mode: ModeName,
    /// The modes of the policy.
    pub known: Vec<ModeName>,
}

fn describe_modes(known: &[ModeName]) -> String {
    match known {
        [] => "the policy has no modes".to_owned(),
        known => format!("the modes are `{}`", known.join("`, `")),
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
            // The daemon makes up these ids, so a client can't cause this.
            GrantError::GrantExists(_) | GrantError::RequestExists(_) => ErrorCode::Internal,
            GrantError::TooManyRequests => ErrorCode::RateLimited,
            GrantError::TooMuch
            | GrantError::RequestTooLong
            | GrantError::NothingToExtend(_)
            | GrantError::BudgetWithoutLimit(_)
            | GrantError::NoLimits
            | GrantError::NotForProfile(..) => ErrorCode::InvalidCommand,
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

/// Turns an error text, which is in lower case, into a sentence.
fn as_sentence(error: &impl Display) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
