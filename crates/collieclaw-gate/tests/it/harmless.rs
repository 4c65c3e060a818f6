//! Harmless lines are not refused (C7.3c).

use collieclaw_gate::{AutonomyLevel, GateDecision, ReasonWeight, judge_shell};

use crate::harmless_cases::{EXTRA_ALLOWED, REFUSED_BY_DECISION, refused_lines};
use crate::modifying_cases::MODIFYING_LINES;
use crate::readonly_cases::READ_ONLY_LINES;
use crate::test_machine::{GateTestMachine, heaviest_reasons, judge_line, policy};

#[test]
fn harmless_lines_are_asked_about_and_run_at_readonly_if_they_only_read() {
    let refused = refused_lines();
    assert!(
        refused.is_empty(),
        "{} of {}:\n{}",
        refused.len(),
        READ_ONLY_LINES.len() + MODIFYING_LINES.len(),
        refused.join("\n")
    );
}

/// A line that the gate no longer refuses belongs in another table.
#[test]
fn lines_refused_by_decision_are_refused() {
    for (line, _) in REFUSED_BY_DECISION {
        // List every program of these lines, so that the line itself is the reason.
        let verdict = judge_line(line, AutonomyLevel::Supervised, &format!("{EXTRA_ALLOWED} xargs"));
        assert_eq!(verdict.decision, GateDecision::Deny, "{line:?}");
        assert!(heaviest_reasons(&verdict).0 == ReasonWeight::High, "{line:?}: {:?}", verdict.reasons);
    }
}

#[test]
fn the_documentation_lists_the_lines_refused_by_decision() {
    const SECURITY: &str = include_str!("../../../../docs/collieclaw-security.md");
    let table = SECURITY.lines().skip_while(|line| !line.starts_with("| Refused, though harmless")).skip(2);
    let documented: Vec<_> = table.take_while(|line| line.starts_with('|')).map(str::to_owned).collect();
    let row = |(line, reason): &(&str, &str)| {
        let quoted = if line.contains('`') { format!("`` {line} ``") } else { format!("`{line}`") };
        format!("| {} | {reason} |", quoted.replace('|', "\\|"))
    };
    assert_eq!(documented, REFUSED_BY_DECISION.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn lines_that_may_run_have_a_plan() {
    for line in READ_ONLY_LINES.iter().chain(MODIFYING_LINES) {
        let judged =
            judge_shell(line, AutonomyLevel::Supervised, &policy(EXTRA_ALLOWED), &GateTestMachine::new());
        assert_eq!(judged.plan.is_some(), judged.verdict.decision != GateDecision::Deny, "{line:?}");
    }
}

#[test]
fn the_tables_have_at_least_300_harmless_lines() {
    assert!(
        READ_ONLY_LINES.len() + MODIFYING_LINES.len() >= 300,
        "{}",
        READ_ONLY_LINES.len() + MODIFYING_LINES.len()
    );
}
