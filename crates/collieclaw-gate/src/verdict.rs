//! What the gate says: a decision, a risk, and every reason for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// What happens with a call. The strictest of several wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It runs.
    Allow,
    /// It runs if the operator says yes to exactly this.
    Ask,
    /// It doesn't run.
    Deny,
}

/// How much a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// It looks, and only where it may.
    Low,
    /// It changes something inside the workspace, or runs a listed program.
    Medium,
    /// It does what can't be known beforehand, or what nobody listed.
    High,
}

/// How much the agent may do on its own (C7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Autonomy {
    /// It may only look.
    ReadOnly,
    /// Low runs, medium asks, high is refused.
    Supervised,
    /// All runs that no rule forbids.
    Full,
}

/// What the gate says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use = "a verdict that nobody reads protects nobody"]
pub struct Verdict {
    /// What happens.
    pub decision: Decision,
    /// How much the call can do.
    pub risk: Risk,
    /// Every reason, the strictest first.
    pub reasons: Vec<Reason>,
}

/// More reasons of one weight tell nobody anything new.
const MOST_OF_A_WEIGHT: usize = 32;

/// What was found about a call, before it is decided what follows from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    blocked: Vec<Reason>,
    high: Vec<Reason>,
    medium: Vec<Reason>,
    low: Vec<Reason>,
    /// Kept apart from the reasons, of which some are left out when there are too many.
    heaviest: Option<Weight>,
    changes: bool,
}

impl Findings {
    /// Adds what was found, once.
    pub fn add(&mut self, reason: Reason) {
        let weight = reason.weight();
        self.heaviest = self.heaviest.max(Some(weight));
        self.changes |= !reason.looks_only();
        let kept = match weight {
            Weight::Low => &mut self.low,
            Weight::Medium => &mut self.medium,
            Weight::High => &mut self.high,
            Weight::Blocked => &mut self.blocked,
        };
        if kept.len() < MOST_OF_A_WEIGHT && !kept.contains(&reason) {
            kept.push(reason);
        }
    }

    /// Whether another reason of what can't be known is kept.
    pub(crate) fn have_room(&self) -> bool {
        self.high.len() < MOST_OF_A_WEIGHT
    }

    /// The most that any of them adds to the risk.
    #[must_use]
    pub fn heaviest(&self) -> Weight {
        self.heaviest.unwrap_or(Weight::Low)
    }

    /// The verdict at a level of autonomy (C7.1, C7.2).
    pub fn decide(self, autonomy: Autonomy) -> Verdict {
        let mut reasons = [self.blocked, self.high, self.medium, self.low].concat();
        // Nothing found is not permission: silence means no.
        let heaviest = self.heaviest.unwrap_or_else(|| {
            reasons.push(Reason::NotJudged);
            Weight::Blocked
        });
        let risk = match heaviest {
            Weight::Low => Risk::Low,
            Weight::Medium => Risk::Medium,
            Weight::High | Weight::Blocked => Risk::High,
        };
        let decision = match (heaviest, autonomy) {
            (Weight::Blocked, _) | (Weight::High, Autonomy::Supervised | Autonomy::ReadOnly) => {
                Decision::Deny
            }
            (Weight::Low | Weight::Medium, Autonomy::ReadOnly) if self.changes => Decision::Deny,
            (Weight::Medium, Autonomy::Supervised) => Decision::Ask,
            (Weight::Low | Weight::Medium | Weight::High, _) => Decision::Allow,
        };
        Verdict { decision, risk, reasons }
    }
}

/// What a reason adds to a call's risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Nothing.
    Low,
    /// The operator should see it.
    Medium,
    /// It is only for `full`.
    High,
    /// It is refused at every level.
    Blocked,
}

impl From<Risk> for Weight {
    fn from(risk: Risk) -> Self {
        match risk {
            Risk::Low => Self::Low,
            Risk::Medium => Self::Medium,
            Risk::High => Self::High,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

impl fmt::Display for Autonomy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "readonly",
            Self::Supervised => "supervised",
            Self::Full => "full",
        })
    }
}
