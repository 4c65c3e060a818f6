//! Loads every policy shown in `docs/policy.md`.

use shepherd_config::{json_schema, load};

use crate::fixture;
use crate::schema::{as_json, schema_mismatch};

/// Returns the blocks marked as policies, with `config_version` added where a block leaves it out.
pub(crate) fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "```toml policy" {
            blocks
                .push(lines.by_ref().take_while(|line| line.trim() != "```").collect::<Vec<_>>().join("\n"));
        }
    }
    let complete = |block: String| {
        if block.contains("config_version") { block } else { format!("config_version = 1\n{block}") }
    };
    blocks.into_iter().map(complete).collect()
}

#[test]
fn every_policy_in_the_documentation_loads() {
    let blocks = blocks(&fixture::text("../../docs/policy.md"));
    assert!(blocks.len() >= 10, "{}", blocks.len());
    for text in blocks {
        load("docs/policy.md", &text).unwrap_or_else(|report| panic!("{text}\n\n{report}"));
        assert_eq!(schema_mismatch(&as_json(&text), &json_schema(), "policy"), None, "{text}");
    }
}

#[test]
fn every_key_is_explained_in_the_documentation() {
    let text = fixture::text("../../docs/policy.md");
    let mut keys = std::collections::BTreeSet::new();
    crate::schema::keys_of_schema(&json_schema(), "", &mut keys);
    let missing: Vec<&String> =
        keys.iter().filter(|path| !text.contains(crate::schema::last_segment(path))).collect();
    assert_eq!(missing, Vec::<&String>::new());
}
