//! Files of this repository, found when the tests run: the place they were built at may be gone.

use std::path::PathBuf;

/// A path below this crate.
pub(crate) fn path(relative: &str) -> PathBuf {
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    PathBuf::from(root).join(relative)
}

/// The text of a file below this crate.
pub(crate) fn text(relative: &str) -> String {
    let path = path(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares with what a file of this crate holds. Set `SHEPHERD_UPDATE_SNAPSHOTS` to write it instead, then read what
/// has changed.
pub(crate) fn assert_snapshot(relative: &str, found: &str) {
    let path = path(relative);
    if std::env::var_os("SHEPHERD_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} says otherwise; SHEPHERD_UPDATE_SNAPSHOTS=1 writes it anew\n\n--- found\n{found}\n--- expected\n{expected}",
        path.display()
    );
}
