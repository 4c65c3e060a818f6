//! The report of which parts of a sandbox the kernel enforces, readable for people and for programs.

use std::fmt;

use serde::Serialize;

use super::SandboxStrictness;

/// The state of one part of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SandboxPartStatus {
    /// The kernel enforces this part.
    InForce {
        /// Mechanisms that enforce this part, such as `Landlock ABI 7`.
        by: String,
    },
    /// The kernel enforces this part with a known gap.
    Partial {
        /// Mechanisms that enforce this part.
        by: String,
        /// Action that stays possible for the program.
        gap: String,
        /// Change that would close the gap.
        cure: String,
    },
    /// This part is not enforced on this machine.
    Missing {
        /// Reason, as found on this machine.
        why: String,
        /// Change that would help.
        cure: String,
    },
    /// The sandbox did not request this part.
    NotAsked,
}

impl SandboxPartStatus {
    /// Returns true if this part is fully enforced or was not requested.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        matches!(self, Self::InForce { .. } | Self::NotAsked)
    }
}

impl fmt::Display for SandboxPartStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InForce { by } => write!(f, "enforced ({by})"),
            Self::Partial { by, gap, cure } => write!(f, "enforced with a gap ({by}): {gap}; {cure}"),
            Self::Missing { why, cure } => write!(f, "not enforced: {why}; {cure}"),
            Self::NotAsked => f.write_str("not requested"),
        }
    }
}

/// The state of all parts of a sandbox. `Display` gives a line for each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// Only the listed trees can be read, written or executed.
    pub filesystem: SandboxPartStatus,
    /// Files outside of writable trees keep their mode, owner, times and attributes.
    pub metadata: SandboxPartStatus,
    /// No connection leaves the sandbox, over any protocol.
    pub network: SandboxPartStatus,
    /// Dangerous system calls that ordinary tools don't need are refused.
    pub syscalls: SandboxPartStatus,
    /// Processes outside of the sandbox can't be signalled.
    pub signals: SandboxPartStatus,
    /// The program has no capabilities and can't gain any.
    pub privileges: SandboxPartStatus,
    /// The temporary folder is private and is removed afterwards.
    pub temporary: SandboxPartStatus,
}

impl SandboxReport {
    /// Returns the parts with their names, in display order.
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

    /// Returns true if every requested part is enforced without a gap.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing_parts(SandboxStrictness::Everything).is_empty()
    }

    /// Returns the names of the parts that this strictness demands and that are not fully enforced.
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
    fn display_shows_a_line_for_each_part() {
        assert_eq!(
            report().to_string(),
            "filesystem: enforced (Landlock ABI 7)\nmetadata: not requested\nnetwork: not requested\n\
             syscalls: not enforced: no seccomp; another kernel\nsignals: enforced with a gap (a): b; c\n\
             privileges: not requested\ntemporary: not requested"
        );
    }

    #[test]
    fn json_has_the_state_of_each_part() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["filesystem"], serde_json::json!({"state": "in_force", "by": "Landlock ABI 7"}));
        assert_eq!(json["network"], serde_json::json!({"state": "not_asked"}));
        assert_eq!(json["syscalls"]["cure"], "another kernel");
    }

    #[test]
    fn one_gap_makes_a_report_incomplete() {
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
