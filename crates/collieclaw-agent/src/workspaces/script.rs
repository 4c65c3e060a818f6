//! Reads scripts and programs of the workspace, and computes the hash with which the operator allows them.

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
    read_program_file(path).map(|content| Sha256Hash::of(&[&content]).to_string())
}

/// Reads a script or a program. A pipe in its place doesn't block.
///
/// # Errors
/// Fails if the file can't be read, is no regular file, or is larger than [`MAX_SCRIPT_BYTES`].
pub(crate) fn read_program_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let known = file.metadata()?;
    if !known.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut content = Vec::new();
    file.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 64 MiB"));
    }
    Ok(content)
}
