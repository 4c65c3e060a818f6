//! Explanations of the rules for an entry, and the times at which it can be launched (S3.10).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shepherd_util::{EntryId, ProfileId};

use crate::{EntryView, Millis, ReasonCode};

/// The results of every rule about an entry at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationView {
    /// The moment that is explained.
    pub at: Timestamp,
    /// The profile that is explained.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// The overall result.
    pub entry: EntryView,
    /// Each rule, in the order of evaluation.
    pub rules: Vec<RuleView>,
}

/// A rule with its facts and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// The stable name: the code of the reason that the rule can give, or of a limit such as `max-run`.
    pub rule: String,
    /// The facts, for people.
    #[serde(rename = "looked_at")]
    pub facts: String,
    /// The result of the rule.
    pub outcome: RuleOutcomeView,
}

impl RuleView {
    /// Returns the remark that the rule about hours appends to its facts if the policy sets a time zone. A client in
    /// the same zone leaves the remark out.
    #[must_use]
    pub fn policy_zone_remark(zone: &str) -> String {
        format!(" (the policy's time zone is {zone})")
    }
}

/// The result of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RuleOutcomeView {
    /// The rule allows the launch.
    Passes,
    /// The rule allows the launch for a limited time.
    Limits {
        /// The longest run that the rule allows.
        at_most: Millis,
    },
    /// The rule allows the launch until a given moment.
    LimitsUntil {
        /// The moment at which the permission ends.
        until: Timestamp,
    },
    /// The rule denies the launch.
    Refuses {
        /// The reason for the denial.
        reason: ReasonCode,
    },
}

/// The times at which entries can be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineView {
    /// The start of the period.
    pub from: Timestamp,
    /// The end of the period.
    pub to: Timestamp,
    /// The profile that is described.
    #[schemars(with = "String")]
    pub profile: ProfileId,
    /// Each entry, in the order of the policy.
    pub entries: Vec<EntryTimeline>,
    /// The profile's bedtimes in the range, in order. A grant may open entries in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bedtimes: Vec<TimeInterval>,
}

/// The times at which one entry can be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryTimeline {
    /// The id of the entry.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// The label that people read.
    pub label: String,
    /// The intervals in order; they don't touch, and none is empty.
    pub intervals: Vec<TimeInterval>,
    /// The other entry that has to be used first each day, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlock: Option<UnlockView>,
    /// The intervals in which only the use of that other entry is missing, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlockable: Vec<TimeInterval>,
}

/// The use of another entry that unlocks an entry for the rest of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnlockView {
    /// The entry that has to be used.
    #[schemars(with = "String")]
    pub entry_id: EntryId,
    /// The label of that entry.
    pub label: String,
    /// The time for which that entry has to be used on a day.
    pub needed: Millis,
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeInterval {
    /// The first moment of the interval.
    pub from: Timestamp,
    /// The first moment after the interval.
    pub to: Timestamp,
}
