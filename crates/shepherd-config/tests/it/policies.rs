//! The policies in `policies/` (S7.4).

use shepherd_config::{STARTER_POLICY, load};
use shepherd_core::policy::RunPolicy;

use crate::fixture;

#[test]
fn the_policies_in_the_repository_load() {
    for (name, entries) in
        [("all-keys.toml", 10), ("family.toml", 5), ("minimal.toml", 1), ("starter.toml", 7)]
    {
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

/// Returns the lines of a policy without comments and empty lines.
fn rules_only(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// A parent who fills in the installed policy has the rules that the guide shows.
// S7.4
#[test]
fn the_installed_policy_filled_in_is_the_one_of_the_guide() {
    let minimal = fixture::text("../../policies/minimal.toml");
    let people = commented_out(&minimal);
    let filled_in = minimal.replacen("[[entries]]", &format!("{people}[[entries]]"), 1);
    for page in ["install.md", "policy.md"] {
        let guide = fixture::text(&format!("../../docs/{page}"));
        let block = guide.split("policy\n").find(|part| part.starts_with("config_version")).unwrap();
        let shown = block.split("```").next().unwrap();
        assert_eq!(rules_only(&filled_in), rules_only(shown), "{page}");
    }
    let loaded = load("minimal.toml", &filled_in).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(loaded.policy.rules().profiles.len(), 1);
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

/// A family can use its policy on any desktop: nothing in it needs a compositor, or another account than the child's.
#[test]
fn the_family_policy_needs_no_screen_and_no_account_of_its_own() {
    let loaded = load("family.toml", &fixture::text("../../policies/family.toml")).unwrap();
    assert_eq!(loaded.policy.rules().compositor, None);
    for entry in loaded.policy.entries() {
        assert_eq!(entry.run, RunPolicy::default(), "{}", entry.entry_id);
    }
    let accounts = loaded.policy.rules().profiles.values().map(|profile| profile.accounts.len());
    assert_eq!(accounts.collect::<Vec<_>>(), [1, 1]);
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
