//! Fuzz targets. `cargo xtask fuzz shepherd-config` runs them longer.

use shepherd_config::{describe_policy, load_bytes};

use crate::{broken, documentation, fixture, properties};

/// Removes quoted parts and digits from a message, so that faults of the same kind get the same text.
fn kind(text: &str) -> String {
    let unquoted: String = text.split(['`', '"']).step_by(2).collect();
    unquoted.chars().filter(|character| !character.is_ascii_digit()).take(100).collect()
}

#[test]
fn no_policy_makes_the_loader_panic() {
    let good = ["all-keys", "family", "minimal", "starter"]
        .map(|name| fixture::text(&format!("../../policies/{name}.toml")));
    let shown = documentation::blocks(&fixture::text("../../docs/policy.md"));
    let bad = broken::fixtures().into_iter().map(|(_, text)| text);
    let corpus: Vec<Vec<u8>> = good.into_iter().chain(shown).chain(bad).map(String::into_bytes).collect();
    let report = ward_fuzz::run("policy", &corpus, |bytes| match load_bytes("policy.toml", bytes) {
        Ok(loaded) => {
            assert!(!describe_policy(&loaded.policy).is_empty());
            vec![format!("{} entries", loaded.policy.entries().len())]
        }
        Err(report) => {
            properties::check_report(&report);
            report.faults().iter().take(3).map(|fault| kind(fault.message())).collect()
        }
    })
    .unwrap();
    println!("{report}");
}
