//! What is harmless is not refused (C7.3c).

use collieclaw_gate::{Autonomy, Decision, judge_shell};

use crate::changing_lines::CHANGES;
use crate::harmless_lines::{LISTED_TOO, refused};
use crate::looking_lines::LOOKS;
use crate::world::{World, policy};

#[test]
fn what_is_harmless_is_asked_about_and_runs_at_readonly_if_it_only_looks() {
    let refused = refused();
    assert!(
        refused.is_empty(),
        "{} of {}:\n{}",
        refused.len(),
        LOOKS.len() + CHANGES.len(),
        refused.join("\n")
    );
}

#[test]
fn what_may_run_has_a_plan() {
    for line in LOOKS.iter().chain(CHANGES) {
        let judged = judge_shell(line, Autonomy::Supervised, &policy(LISTED_TOO), &World::new());
        assert_eq!(judged.plan.is_some(), judged.verdict.decision != Decision::Deny, "{line:?}");
    }
}

#[test]
fn the_tables_are_as_long_as_they_should_be() {
    assert!(LOOKS.len() + CHANGES.len() >= 300, "{}", LOOKS.len() + CHANGES.len());
}
