//! Grants are records, not edits (S2.7): extra time or a longer window, by whom, why, until when. And what children
//! ask for.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shepherd_util::{BudgetId, EntryId, GrantId, ProfileId, RequestId};

/// Something that the policy does not give by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name.
    pub grant_id: GrantId,
    /// For whom; `None` is everyone.
    pub profile: Option<ProfileId>,
    /// For what.
    pub scope: GrantScope,
    /// What is given.
    pub gift: Gift,
    /// Who gave it.
    pub by: String,
    /// Why.
    pub why: Option<String>,
    /// When it was given.
    pub given_at: Timestamp,
    /// From when it holds: grants work in advance.
    pub valid_from: Timestamp,
    /// When it lapses.
    pub lapses_at: Timestamp,
    /// When it was taken back, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl Grant {
    /// Whether it holds at a moment.
    #[must_use]
    pub fn holds_at(&self, at: Timestamp) -> bool {
        self.valid_from <= at && at < self.lapses_at && self.revoked_at.is_none_or(|revoked| at < revoked)
    }

    /// Whether it is for this profile.
    #[must_use]
    pub fn is_for(&self, profile: &ProfileId) -> bool {
        self.profile.as_ref().is_none_or(|whose| whose == profile)
    }
}

/// What a grant is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Everything.
    All,
    /// One entry: its own quota, and the budgets it draws on while it is the one that runs.
    Entry(EntryId),
    /// A budget and all entries that draw on it.
    Budget(BudgetId),
}

/// What a grant gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gift {
    /// So much more, on the days it holds.
    Extra(Duration),
    /// Open until then, whatever the windows say.
    OpenUntil(Timestamp),
}

/// A child's wish (S2.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRequest {
    /// Its name.
    pub request_id: RequestId,
    /// Who asks.
    pub profile: ProfileId,
    /// For what.
    pub entry_id: EntryId,
    /// How much.
    pub amount: Duration,
    /// Why.
    pub note: Option<String>,
    /// When.
    pub asked_at: Timestamp,
    /// When it lapses if nobody answers.
    pub lapses_at: Timestamp,
    /// Where it is in its life.
    pub state: RequestState,
}

/// The life of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Nobody has looked at it.
    Asked,
    /// Somebody has.
    Seen,
    /// Yes: by this grant.
    Granted(GrantId),
    /// No.
    Denied {
        /// Why not.
        why: Option<String>,
    },
    /// Nobody answered in time.
    Lapsed,
}

impl RequestState {
    /// Whether it still waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Asked | Self::Seen)
    }
}
