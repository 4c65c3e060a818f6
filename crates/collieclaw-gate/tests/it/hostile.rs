//! Hostile lines don't pass the gate (C7.2, C7.3).

use crate::blocked_cases::BLOCKED_LINES;
use crate::high_risk_cases::HIGH_RISK_LINES;
use crate::hostile_cases::passed_lines;

#[test]
fn hostile_lines_are_stopped_for_the_right_reason() {
    let passed = passed_lines();
    assert!(
        passed.is_empty(),
        "{} of {}:\n{}",
        passed.len(),
        BLOCKED_LINES.len() + HIGH_RISK_LINES.len(),
        passed.join("\n")
    );
}

#[test]
fn the_tables_have_at_least_400_hostile_lines() {
    assert!(
        BLOCKED_LINES.len() + HIGH_RISK_LINES.len() >= 400,
        "{}",
        BLOCKED_LINES.len() + HIGH_RISK_LINES.len()
    );
}
