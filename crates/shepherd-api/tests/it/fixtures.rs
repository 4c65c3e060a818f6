//! Fixture files of the tests.

use std::fs;
use std::path::PathBuf;

/// Returns a path inside the crate, wherever the tests run.
pub(crate) fn crate_path(relative: &str) -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    folder.join(relative)
}

/// Returns the lines of a golden file.
pub(crate) fn golden_lines(name: &str) -> Vec<String> {
    let path = crate_path(&format!("tests/it/golden/{name}.jsonl"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// Returns all golden files.
pub(crate) const GOLDEN_FILES: &[&str] =
    &["client_messages", "commands", "events", "reasons", "replies", "server_messages"];
