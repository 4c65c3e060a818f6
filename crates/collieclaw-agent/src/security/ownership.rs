//! Whose a file is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Whether a file or folder belongs to us or to root, and nobody else can write to it.
#[must_use]
pub fn is_securely_owned(metadata: &Metadata) -> bool {
    let owners = [0, rustix::process::geteuid().as_raw()];
    owners.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0
}
