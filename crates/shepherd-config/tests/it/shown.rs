//! `policy show` (S7.4): the policy in plain sentences.

use insta::{assert_snapshot, with_settings};
use shepherd_config::{load, show};

use crate::fixture;

#[test]
fn the_family_policy_reads_like_a_letter() {
    let loaded = load("family.toml", &fixture::text("../../policies/family.toml")).unwrap();
    with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        assert_snapshot!("family", show(&loaded.policy));
    });
}
