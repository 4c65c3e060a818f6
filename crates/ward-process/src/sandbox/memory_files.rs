//! Files of a sandbox that exist in memory only: a private `/dev/shm`, and replacements for system files.

use std::path::PathBuf;

/// A private `/dev/shm`, and files of the system that are replaced by text of ours.
///
/// The files live in a file system in memory that ends with the sandbox. It needs a mount namespace; without
/// one, `/dev/shm` stays closed and the replaced files stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFiles {
    /// Bytes that `/dev/shm` holds at most. Programs use it for semaphores and shared memory.
    pub max_bytes: u64,
    /// Files that the program finds instead of the system's files. Nothing happens at a path that has no
    /// regular file.
    pub replacements: Vec<FileReplacement>,
}

/// The text that a sandboxed program reads at a path of the system, such as a short `/etc/passwd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReplacement {
    /// Path of the replaced file.
    pub path: PathBuf,
    /// Content that every user in the sandbox may read and none may change.
    pub content: Vec<u8>,
}
