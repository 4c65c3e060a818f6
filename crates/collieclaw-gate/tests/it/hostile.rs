//! What is hostile doesn't pass (C7.2, C7.3).

use crate::blocked_lines::BLOCKED;
use crate::high_lines::HIGH;
use crate::hostile_lines::passed;

#[test]
fn what_destroys_reaches_out_or_hides_is_stopped_for_the_right_reason() {
    let passed = passed();
    assert!(passed.is_empty(), "{} of {}:\n{}", passed.len(), BLOCKED.len() + HIGH.len(), passed.join("\n"));
}

#[test]
fn the_table_is_as_long_as_it_should_be() {
    assert!(BLOCKED.len() + HIGH.len() >= 400, "{}", BLOCKED.len() + HIGH.len());
}
