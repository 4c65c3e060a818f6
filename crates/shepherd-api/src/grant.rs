//! Grants and requests as clients see them (S2.7).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{BudgetId, EntryId, GrantId, ProfileId, RequestId};

use crate::Millis;

/// What a grant or a count of use is about.
///
/// It is part of a command: what is not understood is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum EntryScope {
    /// Everything together.
    Everything {},
    /// One entry.
    Entry {
        /// Which.
        #[schemars(with = "String")]
        entry_id: EntryId,
    },
    /// A budget and all entries that draw on it.
    Budget {
        /// Which.
        #[schemars(with = "String")]
        budget_id: BudgetId,
    },
}

/// What a grant gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum GrantKind {
    /// So much more.
    Extra {
        /// How much.
        amount: Millis,
    },
    /// Open until then, whatever the windows say.
    OpenUntil {
        /// Until when.
        until: Timestamp,
    },
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantView {
    /// Its name.
    #[schemars(with = "String")]
    pub grant_id: GrantId,
    /// For whom; everybody if absent.
    #[schemars(with = "Option<String>")]
    pub profile: Option<ProfileId>,
    /// For what.
    pub scope: EntryScope,
    /// What is given.
    pub gift: GrantKind,
    /// Who gave it.
    pub by: String,
    /// Why.
    pub why: Option<String>,
    /// When it was given.
    pub given_at: Timestamp,
    /// From when it holds.
    pub valid_from: Timestamp,
    /// When it lapses.
    pub lapses_at: Timestamp,
    /// When it was taken back, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl EntryScope {
    /// Whether an entry that draws on these budgets is in it.
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
    /// Whether it holds at a moment.
    #[must_use]
    pub fn is_valid_at(&self, at: Timestamp) -> bool {
        self.valid_from <= at && at < self.lapses_at && self.revoked_at.is_none_or(|revoked| at < revoked)
    }

    /// Whether it is for this profile.
    #[must_use]
    pub fn is_for(&self, profile: &ProfileId) -> bool {
        self.profile.as_ref().is_none_or(|whose| whose == profile)
    }
}

/// A child's request for time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeRequestView {
    /// Its name.
    #[schemars(with = "String")]
    pub request_id: RequestId,
    /// Who asks.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// For what.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// How much.
    pub amount: Millis,
    /// Why.
    pub note: Option<String>,
    /// When.
    pub asked_at: Timestamp,
    /// When it lapses if nobody answers.
    pub lapses_at: Timestamp,
    /// Where it is in its life.
    pub state: TimeRequestState,
}

/// The life of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TimeRequestState {
    /// Nobody has looked at it.
    Asked,
    /// Somebody has.
    Seen,
    /// Yes.
    Granted {
        /// By this grant.
        #[schemars(with = "String")]
        grant_id: GrantId,
    },
    /// No.
    Denied {
        /// Why not.
        why: Option<String>,
    },
    /// Nobody answered in time.
    Lapsed,
}

impl TimeRequestState {
    /// Whether it still waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Asked | Self::Seen)
    }
}
