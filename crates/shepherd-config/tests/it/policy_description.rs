//! `policy show` (S7.4): the policy in plain sentences.

use shepherd_config::{describe_policy, load};

use crate::fixture;

#[test]
fn the_family_policy_is_described_as_in_the_fixture() {
    let loaded = load("family.toml", &fixture::text("../../policies/family.toml")).unwrap();
    fixture::assert_snapshot("tests/it/family.txt", &describe_policy(&loaded.policy));
}
