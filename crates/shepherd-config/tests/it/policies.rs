//! The policies in `policies/` (S7.4).

use shepherd_config::{STARTER_POLICY, load};

use crate::fixture;

#[test]
fn the_policies_in_the_repository_load() {
    for (name, entries) in [("family.toml", 9), ("minimal.toml", 1), ("starter.toml", 7)] {
        let loaded = load(name, &fixture::text(&format!("../../policies/{name}")))
            .unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(loaded.policy.entries().len(), entries, "{name}");
    }
}

/// Returns the tables that are commented out.
fn commented_out(text: &str) -> String {
    let tables = text.split("\n\n").filter(|block| block.starts_with("# ["));
    let lines = tables.flat_map(str::lines).map(|line| line.strip_prefix("# ").unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

// S7.4
#[test]
fn the_starter_policy_still_loads_with_its_real_programs() {
    let commented = commented_out(STARTER_POLICY);
    assert!(commented.contains("tuxmath") && commented.contains("[access]"), "{commented}");
    let loaded = load("starter.toml", &format!("{STARTER_POLICY}\n{commented}"))
        .unwrap_or_else(|report| panic!("{report}"));
    assert_eq!((loaded.policy.entries().len(), loaded.examples), (10, 6));
}

/// The starter policy uses only programs that every machine has, so that a new user can try it at once.
#[test]
fn the_starter_policy_starts_nothing_that_has_to_be_installed() {
    let loaded = load("starter.toml", STARTER_POLICY).unwrap();
    for entry in loaded.policy.entries() {
        let shepherd_api::EntryKind::Process { argv, .. } = &entry.kind else { panic!("{entry:?}") };
        assert!(["sleep", "sh"].contains(&argv[0].as_str()), "{argv:?}");
        assert!(entry.limits.max_run.is_some_and(|longest| longest.as_secs() <= 60), "{entry:?}");
    }
}
