//! The verdict on a call: a decision, a risk level, and all reasons for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reason::GateReason;

/// The decision on a call, ordered from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateDecision {
    Allow,
    /// The call runs only if the operator approves exactly this call.
    Ask,
    Deny,
}

/// The risk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RiskLevel {
    /// The call only reads, and only where tools may read.
    Low,
    /// The call changes something inside the workspace, or runs a listed program.
    Medium,
    /// The call runs an unlisted program, or its effects can't be known beforehand.
    High,
}

/// The operator's setting for how much the agent may do without asking (C7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AutonomyLevel {
    /// Only calls that change nothing run.
    ReadOnly,
    /// Low risk runs, medium risk asks, high risk is refused.
    Supervised,
    /// Every call runs that no rule forbids.
    Full,
}

/// The gate's answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use = "a verdict has no effect until the caller obeys it"]
pub struct GateVerdict {
    pub decision: GateDecision,
    pub risk: RiskLevel,
    /// All reasons, the heaviest first.
    pub reasons: Vec<GateReason>,
}

impl GateVerdict {
    /// Returns the programs without which the call was refused, if nothing else speaks against it: each is not on the
    /// list of allowed commands, or no program of the system has its name. A name with a slash is a file that may be a
    /// script of the workspace.
    #[must_use]
    pub fn missing_programs(&self) -> Option<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        let heavy = self.reasons.iter().filter(|reason| reason.weight() >= ReasonWeight::High);
        for (count, reason) in (1..).zip(heavy) {
            match reason {
                // A full list may have dropped another reason.
                _ if count >= MAX_REASONS_PER_WEIGHT => return None,
                GateReason::UnlistedProgram { name }
                | GateReason::NotInstalled { name }
                | GateReason::ProgramByPath { path: name }
                | GateReason::ChangedScript { path: name } => {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                _ => return None,
            }
        }
        // A file that is named by its path is refused under its last name, too.
        let paths: Vec<String> = names.iter().filter(|name| name.contains('/')).cloned().collect();
        names.retain(|name| !paths.iter().any(|path| path.rsplit('/').next() == Some(name)));
        (self.decision == GateDecision::Deny && !names.is_empty()).then_some(names)
    }
}

/// The number of reasons kept per weight. People don't read longer lists.
const MAX_REASONS_PER_WEIGHT: usize = 32;

/// The reasons found about a call, from which [`GateFindings::decide`] makes the verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateFindings {
    blocked: Vec<GateReason>,
    high: Vec<GateReason>,
    medium: Vec<GateReason>,
    low: Vec<GateReason>,
    /// Stored separately, because surplus reasons are dropped and must still count.
    heaviest: Option<ReasonWeight>,
    changes: bool,
    uses_temporary: bool,
}

impl GateFindings {
    /// Adds a reason, unless the same reason is already there.
    pub fn add(&mut self, reason: GateReason) {
        let weight = reason.weight();
        self.heaviest = self.heaviest.max(Some(weight));
        self.changes |= !reason.is_read_only();
        self.uses_temporary |= matches!(reason, GateReason::UsesTemporary { .. });
        let has_room = self.has_room_for(weight);
        let kept = match weight {
            ReasonWeight::Low => &mut self.low,
            ReasonWeight::Medium => &mut self.medium,
            ReasonWeight::High => &mut self.high,
            ReasonWeight::Blocked => &mut self.blocked,
        };
        if has_room && !kept.contains(&reason) {
            kept.push(reason);
        }
    }

    /// Returns true if the findings would still keep another reason of this weight.
    pub(crate) fn has_room_for(&self, weight: ReasonWeight) -> bool {
        let kept = match weight {
            ReasonWeight::Low => &self.low,
            ReasonWeight::Medium => &self.medium,
            ReasonWeight::High => &self.high,
            ReasonWeight::Blocked => &self.blocked,
        };
        kept.len() < MAX_REASONS_PER_WEIGHT
    }

    /// Returns true if the call uses the temporary folder of the sandbox.
    pub(crate) fn uses_temporary(&self) -> bool {
        self.uses_temporary
    }

    /// Returns true if a reason says that the call changes something.
    pub(crate) fn has_changes(&self) -> bool {
        self.changes
    }

    /// Returns the weight of the heaviest reason.
    #[must_use]
    pub fn heaviest(&self) -> ReasonWeight {
        self.heaviest.unwrap_or(ReasonWeight::Low)
    }

    /// Turns the findings into a verdict at a level of autonomy (C7.1, C7.2).
    pub fn decide(self, autonomy: AutonomyLevel) -> GateVerdict {
        let mut reasons = [self.blocked, self.high, self.medium, self.low].concat();
        // A call without any finding was not judged, and is refused.
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

/// The weight of a reason: how much it adds to the risk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonWeight {
    Low,
    /// The operator should see the call before it runs.
    Medium,
    /// The call runs only at `full`.
    High,
    /// The call is refused at every level.
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
