//! Grants and requests as clients see them (S2.7).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{BudgetId, EntryId, GrantId, ProfileId, RequestId};

use crate::Millis;

/// The entries that a grant or a usage record covers.
///
/// This type is part of a command, so an unknown variant is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EntryScope {
    /// All entries together.
    Everything {},
    /// A single entry.
    Entry {
        /// The id of the entry.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// A budget, with all entries that use it.
    Budget {
        /// The id of the budget.
        #[schemars(with = "String")]
        budget_id: BudgetId,
    },
}

/// The extra permission that a grant gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum GrantKind {
    /// Extra time on top of the limits.
    Extra {
        /// The amount of extra time.
        amount: Millis,
    },
    /// Open hours until a given moment, whatever the windows say.
    OpenUntil {
        /// The end of the open hours.
        until: Timestamp,
    },
}

/// A grant as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantView {
    /// The id of the grant.
    #[schemars(with = "String")]
    pub grant_id: GrantId,
    /// The profile that gets the grant; everybody if absent.
    #[schemars(with = "Option<String>")]
    pub profile: Option<ProfileId>,
    /// The entries that the grant covers.
    pub scope: EntryScope,
    /// The extra permission.
    pub gift: GrantKind,
    /// The author of the grant.
    pub by: String,
    /// The author's reason.
    pub why: Option<String>,
    /// The time at which the grant was made.
    pub given_at: Timestamp,
    /// The start of the grant.
    pub valid_from: Timestamp,
    /// The time at which the grant lapses.
    pub lapses_at: Timestamp,
    /// The time at which the grant was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl EntryScope {
    /// Returns whether the scope includes an entry that uses these budgets.
    #[must_use]
    pub fn includes(&self, entry: &EntryId, budgets: &[BudgetId]) -> bool {
        match self {
            Self::Everything {} => true,
            Self::Entry { entry_id } => entry_id == entry,
            Self::Budget { budget_id } => budgets.contains(budget_id),
        }
    }
}

impl GrantView {
    /// Returns whether the grant is valid at a moment.
    #[must_use]
    pub fn is_valid_at(&self, at: Timestamp) -> bool {
        self.valid_from <= at && at < self.lapses_at && self.revoked_at.is_none_or(|revoked| at < revoked)
    }

    /// Returns whether the grant is for this profile.
    #[must_use]
    pub fn is_for(&self, profile: &ProfileId) -> bool {
        self.profile.as_ref().is_none_or(|whose| whose == profile)
    }
}

/// A child's request for time, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeRequestView {
    /// The id of the request.
    #[schemars(with = "String")]
    pub request_id: RequestId,
    /// The profile that asks.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The entry that the time is for.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// The requested amount of time.
    pub amount: Millis,
    /// The child's note.
    pub note: Option<String>,
    /// The time at which the request was made.
    pub asked_at: Timestamp,
    /// The time at which the request lapses without an answer.
    pub lapses_at: Timestamp,
    /// The current state of the request.
    pub state: TimeRequestState,
}

/// The states of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TimeRequestState {
    /// A new request that no parent has seen.
    Asked,
    /// A parent has seen the request.
    Seen,
    /// A parent granted the request.
    Granted {
        /// The grant that was made.
        #[schemars(with = "String")]
        grant_id: GrantId,
    },
    /// A parent denied the request.
    Denied {
        /// The parent's reason.
        why: Option<String>,
    },
    /// The request lapsed without an answer.
    Lapsed,
}

impl TimeRequestState {
    /// Returns whether the request still waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Asked | Self::Seen)
    }
}
