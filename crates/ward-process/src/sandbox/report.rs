//! What of a sandbox is in force, and what is missing, for people and for programs.

use std::fmt;

use serde::Serialize;

use super::SandboxStrictness;

/// One part of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SandboxPartStatus {
    /// The kernel enforces it.
    InForce {
        /// The mechanisms, as in `Landlock ABI 7`.
        by: String,
    },
    /// The kernel enforces it with a known gap.
    Partial {
        /// The mechanisms.
        by: String,
        /// What a program can do nevertheless.
        gap: String,
        /// What closes the gap.
        cure: String,
    },
    /// Nothing enforces it here.
    Missing {
        /// The reason, as found on this machine.
        why: String,
        /// What brings it.
        cure: String,
    },
    /// The order did not ask for it.
    NotAsked,
}

impl SandboxPartStatus {
    /// Whether everything that was asked of this part is enforced.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        matches!(self, Self::InForce { .. } | Self::NotAsked)
    }
}

impl fmt::Display for SandboxPartStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InForce { by } => write!(f, "in force ({by})"),
            Self::Partial { by, gap, cure } => write!(f, "in part ({by}): {gap}; {cure}"),
            Self::Missing { why, cure } => write!(f, "missing: {why}; {cure}"),
            Self::NotAsked => f.write_str("not asked for"),
        }
    }
}

/// What a sandbox enforces. `Display` gives one line for each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// Only the listed trees can be read, written or executed.
    pub filesystem: SandboxPartStatus,
    /// Files outside the trees that can be written keep their mode, owner, times and attributes.
    pub metadata: SandboxPartStatus,
    /// No connection leaves the sandbox, over any protocol.
    pub network: SandboxPartStatus,
    /// System calls that no tool needs are refused.
    pub syscalls: SandboxPartStatus,
    /// Processes outside can't be signalled.
    pub signals: SandboxPartStatus,
    /// No capability is held, and none can be gained.
    pub privileges: SandboxPartStatus,
    /// The temporary folder is private and is removed afterwards.
    pub temporary: SandboxPartStatus,
}

impl SandboxReport {
    /// The parts with their names, in the order in which people read them.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, &SandboxPartStatus); 7] {
        [
            ("filesystem", &self.filesystem),
            ("metadata", &self.metadata),
            ("network", &self.network),
            ("syscalls", &self.syscalls),
            ("signals", &self.signals),
            ("privileges", &self.privileges),
            ("temporary", &self.temporary),
        ]
    }

    /// Whether every part that was asked for is enforced without a gap.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing_parts(SandboxStrictness::Everything).is_empty()
    }

    /// The names of the parts that this strictness demands and that are not enforced.
    pub(super) fn missing_parts(&self, strictness: SandboxStrictness) -> Vec<&'static str> {
        let demanded = |part: &SandboxPartStatus| match strictness {
            SandboxStrictness::Everything => true,
            SandboxStrictness::Essentials => {
                !std::ptr::eq(part, &raw const self.metadata) && !std::ptr::eq(part, &raw const self.signals)
            }
            SandboxStrictness::BestEffort => false,
        };
        let parts = self.parts().into_iter();
        parts.filter(|(_, part)| demanded(part) && !part.is_enforced()).map(|(name, _)| name).collect()
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, part)) in self.parts().into_iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{name}: {part}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> SandboxReport {
        SandboxReport {
            filesystem: SandboxPartStatus::InForce { by: "Landlock ABI 7".into() },
            metadata: SandboxPartStatus::NotAsked,
            network: SandboxPartStatus::NotAsked,
            syscalls: SandboxPartStatus::Missing { why: "no seccomp".into(), cure: "another kernel".into() },
            signals: SandboxPartStatus::Partial { by: "a".into(), gap: "b".into(), cure: "c".into() },
            privileges: SandboxPartStatus::NotAsked,
            temporary: SandboxPartStatus::NotAsked,
        }
    }

    #[test]
    fn people_read_one_line_for_each_part() {
        assert_eq!(
            report().to_string(),
            "filesystem: in force (Landlock ABI 7)\nmetadata: not asked for\nnetwork: not asked for\n\
             syscalls: missing: no seccomp; another kernel\nsignals: in part (a): b; c\n\
             privileges: not asked for\ntemporary: not asked for"
        );
    }

    #[test]
    fn programs_read_the_state_of_each_part() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["filesystem"], serde_json::json!({"state": "in_force", "by": "Landlock ABI 7"}));
        assert_eq!(json["network"], serde_json::json!({"state": "not_asked"}));
        assert_eq!(json["syscalls"]["cure"], "another kernel");
    }

    #[test]
    fn one_gap_makes_it_incomplete() {
        let mut report = report();
        assert!(!report.is_complete());
        report.syscalls = SandboxPartStatus::NotAsked;
        assert!(!report.is_complete());
        report.signals = SandboxPartStatus::NotAsked;
        assert!(report.is_complete());
    }

    #[test]
    fn each_strictness_demands_its_parts() {
        let report = report();
        assert_eq!(report.missing_parts(SandboxStrictness::Everything), ["syscalls", "signals"]);
        assert_eq!(report.missing_parts(SandboxStrictness::Essentials), ["syscalls"]);
        assert_eq!(report.missing_parts(SandboxStrictness::BestEffort), [""; 0]);
    }
}
