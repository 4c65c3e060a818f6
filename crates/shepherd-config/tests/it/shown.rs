//! `policy show` (S7.4): the policy in plain sentences.

use shepherd_config::{load, show};

use crate::fixture;

#[test]
fn the_family_policy_reads_like_a_letter() {
    let loaded = load("family.toml", &fixture::text("../../policies/family.toml")).unwrap();
    fixture::assert_snapshot("tests/it/family.txt", &show(&loaded.policy));
}
