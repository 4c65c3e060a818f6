//! The policies that come with Shepherd (S7.4).

use shepherd_config::load;

use crate::fixture;

#[test]
fn the_policies_in_the_repository_load() {
    for (name, entries) in [("family.toml", 9), ("minimal.toml", 1)] {
        let loaded = load(name, &fixture::text(&format!("../../policies/{name}")))
            .unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(loaded.policy.entries().len(), entries, "{name}");
    }
}
