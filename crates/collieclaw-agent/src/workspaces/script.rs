//! The content hash of scripts that the operator allows.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ward_ledger::Sha256Hash;

/// The maximum size of a script or program of the workspace that can be allowed. It is read before every run.
pub const MAX_SCRIPT_BYTES: u64 = 64 << 20;

/// Returns the SHA-256 of a regular file, in hexadecimal digits.
///
/// # Errors
/// Fails if the file can't be read, is no regular file, or is larger than [`MAX_SCRIPT_BYTES`].
pub fn hash_file(path: &Path) -> io::Result<String> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let known = file.metadata()?;
    if !known.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if known.len() > MAX_SCRIPT_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 64 MiB"));
    }
    let mut content = Vec::new();
    file.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut content)?;
    Ok(Sha256Hash::of(&[&content]).to_string())
}
