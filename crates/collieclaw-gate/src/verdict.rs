//! What the gate says: a decision, a risk, and every reason for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reason::GateReason;

/// What happens with a call. The strictest of several wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateDecision {
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
pub enum RiskLevel {
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
pub enum AutonomyLevel {
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
pub struct GateVerdict {
    /// What happens.
    pub decision: GateDecision,
    /// How much the call can do.
    pub risk: RiskLevel,
    /// Every reason, the strictest first.
    pub reasons: Vec<GateReason>,
}

/// More reasons of one weight tell nobody anything new.
const MAX_REASONS_PER_WEIGHT: usize = 32;

/// What was found about a call, before it is decided what follows from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateFindings {
    blocked: Vec<GateReason>,
    high: Vec<GateReason>,
    medium: Vec<GateReason>,
    low: Vec<GateReason>,
    /// Kept apart from the reasons, of which some are left out when there are too many.
    heaviest: Option<ReasonWeight>,
    changes: bool,
}

impl GateFindings {
    /// Adds what was found, once.
    pub fn add(&mut self, reason: GateReason) {
        let weight = reason.weight();
        self.heaviest = self.heaviest.max(Some(weight));
        self.changes |= !reason.is_read_only();
        let kept = match weight {
            ReasonWeight::Low => &mut self.low,
            ReasonWeight::Medium => &mut self.medium,
            ReasonWeight::High => &mut self.high,
            ReasonWeight::Blocked => &mut self.blocked,
        };
        if kept.len() < MAX_REASONS_PER_WEIGHT && !kept.contains(&reason) {
            kept.push(reason);
        }
    }

    /// Whether another reason of what can't be known is kept.
    pub(crate) fn has_room_for_high(&self) -> bool {
        self.high.len() < MAX_REASONS_PER_WEIGHT
    }

    /// The most that any of them adds to the risk.
    #[must_use]
    pub fn heaviest(&self) -> ReasonWeight {
        self.heaviest.unwrap_or(ReasonWeight::Low)
    }

    /// The verdict at a level of autonomy (C7.1, C7.2).
    pub fn decide(self, autonomy: AutonomyLevel) -> GateVerdict {
        let mut reasons = [self.blocked, self.high, self.medium, self.low].concat();
        // Nothing found is not permission: silence means no.
        let heaviest = self.heaviest.unwrap_or_else(|| {
            reasons.push(GateReason::NotJudged);
            ReasonWeight::Blocked
        });
        let risk = match heaviest {
            ReasonWeight::Low => RiskLevel::Low,
            ReasonWeight::Medium => RiskLevel::Medium,
            ReasonWeight::High | ReasonWeight::Blocked => RiskLevel::High,
        };
        let decision = match (heaviest, autonomy) {
            (ReasonWeight::Blocked, _)
            | (ReasonWeight::High, AutonomyLevel::Supervised | AutonomyLevel::ReadOnly) => GateDecision::Deny,
            (ReasonWeight::Low | ReasonWeight::Medium, AutonomyLevel::ReadOnly) if self.changes => {
                GateDecision::Deny
            }
            (ReasonWeight::Medium, AutonomyLevel::Supervised) => GateDecision::Ask,
            (ReasonWeight::Low | ReasonWeight::Medium | ReasonWeight::High, _) => GateDecision::Allow,
        };
        GateVerdict { decision, risk, reasons }
    }
}

/// What a reason adds to a call's risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonWeight {
    /// Nothing.
    Low,
    /// The operator should see it.
    Medium,
    /// It is only for `full`.
    High,
    /// It is refused at every level.
    Blocked,
}

impl From<RiskLevel> for ReasonWeight {
    fn from(risk: RiskLevel) -> Self {
        match risk {
            RiskLevel::Low => Self::Low,
            RiskLevel::Medium => Self::Medium,
            RiskLevel::High => Self::High,
        }
    }
}

impl fmt::Display for GateDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

impl fmt::Display for AutonomyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "readonly",
            Self::Supervised => "supervised",
            Self::Full => "full",
        })
    }
}
