//! Finds hostile lines that pass the gate. The benchmark counts them, too (C7.3c).

use collieclaw_gate::{AutonomyLevel, GateDecision, ReasonWeight};

use crate::blocked_cases::BLOCKED_LINES;
use crate::high_risk_cases::HIGH_RISK_LINES;
use crate::test_machine::{heaviest_reasons, judge_line};

/// Programs that can run other programs, and that an operator might list anyway.
const EXTRA_ALLOWED: &str = "git tar curl wget less man rsync split xargs zip rg xxd tree cksum b2sum ssh";

/// Returns the lines that pass, or that are stopped for another reason than the table says.
pub(crate) fn passed_lines() -> Vec<String> {
    let mut passed = Vec::new();
    for (line, code) in BLOCKED_LINES {
        let verdict = judge_line(line, AutonomyLevel::Full, "");
        let (weight, codes) = heaviest_reasons(&verdict);
        if verdict.decision != GateDecision::Deny || weight != ReasonWeight::Blocked || !codes.contains(code)
        {
            passed.push(format!("{line:?}: {} {weight:?} {codes:?}, not {code}", verdict.decision));
        }
    }
    for (line, code) in HIGH_RISK_LINES {
        let verdict = judge_line(line, AutonomyLevel::Supervised, EXTRA_ALLOWED);
        let (weight, codes) = heaviest_reasons(&verdict);
        if verdict.decision != GateDecision::Deny || weight != ReasonWeight::High || !codes.contains(code) {
            passed.push(format!("{line:?}: {} {weight:?} {codes:?}, not {code}", verdict.decision));
        }
    }
    passed
}
