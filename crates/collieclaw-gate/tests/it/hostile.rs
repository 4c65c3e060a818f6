//! What is hostile doesn't pass (C7.2, C7.3).

use crate::blocked_cases::BLOCKED_LINES;
use crate::high_risk_cases::HIGH_RISK_LINES;
use crate::hostile_cases::passed_lines;

#[test]
fn what_destroys_reaches_out_or_hides_is_stopped_for_the_right_reason() {
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
fn the_table_is_as_long_as_it_should_be() {
    assert!(
        BLOCKED_LINES.len() + HIGH_RISK_LINES.len() >= 400,
        "{}",
        BLOCKED_LINES.len() + HIGH_RISK_LINES.len()
    );
}
