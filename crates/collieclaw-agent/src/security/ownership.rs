//! Checks of file ownership.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Returns true if a file or folder belongs to the current user or to root, and neither its group nor others may write
/// to it.
#[must_use]
pub fn is_securely_owned(metadata: &Metadata) -> bool {
    let owners = [0, rustix::process::geteuid().as_raw()];
    owners.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0
}
