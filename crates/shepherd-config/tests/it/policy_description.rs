//! `policy show` (S7.4): the policy in plain sentences.

use shepherd_config::{describe_policy, load};

use crate::fixture;

#[test]
fn the_reference_policy_is_described_as_in_the_fixture() {
    let loaded = load("all-keys.toml", &fixture::text("../../policies/all-keys.toml")).unwrap();
    fixture::assert_snapshot("tests/it/all-keys.txt", &describe_policy(&loaded.policy));
}
