//! Finds files of this repository at run time, because the tests may run elsewhere than they were built.

use std::path::PathBuf;

/// Returns a path below this crate.
pub(crate) fn path(relative: &str) -> PathBuf {
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    PathBuf::from(root).join(relative)
}

/// Reads a file below this crate.
pub(crate) fn text(relative: &str) -> String {
    let path = path(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares a text with a snapshot file of this crate. With `SHEPHERD_UPDATE_SNAPSHOTS` set, writes the snapshot instead;
/// review the changes afterwards.
pub(crate) fn assert_snapshot(relative: &str, found: &str) {
    let path = path(relative);
    if std::env::var_os("SHEPHERD_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} differs; SHEPHERD_UPDATE_SNAPSHOTS=1 updates it\n\n--- found\n{found}\n--- expected\n{expected}",
        path.display()
    );
}
