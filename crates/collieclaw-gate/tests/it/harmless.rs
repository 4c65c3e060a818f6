//! What is harmless is not refused (C7.3c).

use collieclaw_gate::{AutonomyLevel, GateDecision, ReasonWeight, judge_shell};

use crate::harmless_cases::{LISTED_TOO, REFUSED_BY_DECISION, refused_lines};
use crate::modifying_cases::MODIFYING_LINES;
use crate::readonly_cases::READ_ONLY_LINES;
use crate::test_machine::{GateTestMachine, heaviest_reasons, judge_line, policy};

#[test]
fn what_is_harmless_is_asked_about_and_runs_at_readonly_if_it_only_looks() {
    let refused = refused_lines();
    assert!(
        refused.is_empty(),
        "{} of {}:\n{}",
        refused.len(),
        READ_ONLY_LINES.len() + MODIFYING_LINES.len(),
        refused.join("\n")
    );
}

/// One that is not refused any more belongs in another table.
#[test]
fn what_is_refused_by_decision_is_refused() {
    for (line, _) in REFUSED_BY_DECISION {
        // All that matters is listed.
        let verdict = judge_line(line, AutonomyLevel::Supervised, &format!("{LISTED_TOO} xargs"));
        assert_eq!(verdict.decision, GateDecision::Deny, "{line:?}");
        assert!(heaviest_reasons(&verdict).0 == ReasonWeight::High, "{line:?}: {:?}", verdict.reasons);
    }
}

#[test]
fn the_documentation_lists_what_is_refused_by_decision() {
    const SECURITY: &str = include_str!("../../../../docs/collieclaw-security.md");
    let table = SECURITY.lines().skip_while(|line| !line.starts_with("| Refused, though harmless")).skip(2);
    let told: Vec<_> = table.take_while(|line| line.starts_with('|')).map(str::to_owned).collect();
    let row = |(line, reason): &(&str, &str)| {
        let quoted = if line.contains('`') { format!("`` {line} ``") } else { format!("`{line}`") };
        format!("| {} | {reason} |", quoted.replace('|', "\\|"))
    };
    assert_eq!(told, REFUSED_BY_DECISION.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn what_may_run_has_a_plan() {
    for line in READ_ONLY_LINES.iter().chain(MODIFYING_LINES) {
        let judged =
            judge_shell(line, AutonomyLevel::Supervised, &policy(LISTED_TOO), &GateTestMachine::new());
        assert_eq!(judged.plan.is_some(), judged.verdict.decision != GateDecision::Deny, "{line:?}");
    }
}

#[test]
fn the_tables_are_as_long_as_they_should_be() {
    assert!(
        READ_ONLY_LINES.len() + MODIFYING_LINES.len() >= 300,
        "{}",
        READ_ONLY_LINES.len() + MODIFYING_LINES.len()
    );
}
