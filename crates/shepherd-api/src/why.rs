//! How the rules came out, and when an entry could be launched (S3.10).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, ProfileId};

use crate::{EntryView, Millis, ReasonCode};

/// Every rule about an entry at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationView {
    /// At which moment.
    pub at: Timestamp,
    /// For whom.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// What came out.
    pub entry: EntryView,
    /// Each rule, in the order in which they are asked.
    pub rules: Vec<RuleView>,
}

/// One rule, what it looked at and how it came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// The stable name: the code of the reason that it could give, or that of a limit such as `max-run`.
    pub rule: String,
    /// For people: the facts.
    pub looked_at: String,
    /// How it came out.
    pub outcome: RuleOutcomeView,
}

/// How a rule came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RuleOutcomeView {
    /// Nothing against it.
    Passes,
    /// Nothing against it, but not for longer than this.
    Limits {
        /// How long.
        at_most: Millis,
    },
    /// Nothing against it, but not beyond this moment.
    LimitsUntil {
        /// When it ends.
        until: Timestamp,
    },
    /// No.
    Refuses {
        /// Why.
        reason: ReasonCode,
    },
}

/// When entries could be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineView {
    /// From this moment.
    pub from: Timestamp,
    /// Up to this one.
    pub to: Timestamp,
    /// For whom.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// Each entry, in the order of the policy.
    pub entries: Vec<EntryTimeline>,
}

/// When one entry could be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryTimeline {
    /// Which entry.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// For people.
    pub label: String,
    /// In order, apart from each other, none empty.
    pub intervals: Vec<TimeInterval>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeInterval {
    /// From this moment on.
    pub from: Timestamp,
    /// Up to this one, which is no longer in it.
    pub to: Timestamp,
}
