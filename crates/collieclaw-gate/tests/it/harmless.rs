//! What is harmless is not refused (C7.3c).

use collieclaw_gate::{Autonomy, Decision, Weight, judge_shell};

use crate::changing_lines::CHANGES;
use crate::harmless_lines::{DECIDED, LISTED_TOO, refused};
use crate::looking_lines::LOOKS;
use crate::world::{World, heaviest, policy, shell};

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

/// One that is not refused any more belongs in another table.
#[test]
fn what_is_refused_by_decision_is_refused() {
    for (line, _) in DECIDED {
        // All that matters is listed.
        let verdict = shell(line, Autonomy::Supervised, &format!("{LISTED_TOO} xargs"));
        assert_eq!(verdict.decision, Decision::Deny, "{line:?}");
        assert!(heaviest(&verdict).0 == Weight::High, "{line:?}: {:?}", verdict.reasons);
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
    assert_eq!(told, DECIDED.iter().map(row).collect::<Vec<_>>());
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
