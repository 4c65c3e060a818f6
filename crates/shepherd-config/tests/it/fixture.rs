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
