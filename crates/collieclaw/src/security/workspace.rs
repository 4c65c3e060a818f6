//! The folder the agent works in, as a handle: what is opened through it can't lie outside.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// A handle on the workspace.
#[derive(Debug)]
pub struct Workspace {
    folder: OwnedFd,
    path: PathBuf,
}

impl Workspace {
    /// Opens it. Links on the way to it are the operator's, and followed.
    ///
    /// # Errors
    /// When it is not there or no folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let folder = openat(CWD, &path, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder, path })
    }

    /// Where it is, with all links followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
