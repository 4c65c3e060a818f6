//! The handle on the workspace folder. Files that are opened through it can't be outside the workspace.
//!
//! Every access works in the same way (C7.4). The kernel resolves the path beneath the handle and returns a
//! handle that can't read. That handle is inspected (its type, link count and real path) and judged by the
//! gate's rules. Then the same file is opened for use, so there is no moment at which a path could be
//! redirected.

mod entries;
mod error;
mod list;
mod pseudo_filesystem;
mod replace;
mod transfer;
mod walk;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use collieclaw_gate::{
    GatePolicy, GateReason, PathBounds, absolute_tool_path, judge_opened_path, judge_write_target,
};
use collieclaw_providers::net::CancellableDeadline;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;

pub use entries::{EntryKind, ExistingTarget};
pub use error::FileError;
pub(crate) use list::read_folder_names;
pub use list::{FolderListing, ListingDepth, ListingEntry, ListingKind};
pub use replace::WriteOutcome;
pub use walk::{MAX_WALKED_ENTRIES, WalkExtent, WalkFilter, WalkStep, WalkedFile};

/// The number of retries if another process changes a path while it is resolved.
const MAX_ATTEMPTS: usize = 64;

#[derive(Debug)]
pub struct WorkspaceHandle {
    folder: OwnedFd,
    path: PathBuf,
}

/// Access to the files that a policy allows, always through the workspace's handle.
#[derive(Debug, Clone, Copy)]
pub struct FileAccess<'a> {
    workspace: &'a WorkspaceHandle,
    policy: &'a GatePolicy,
    deadline: Option<&'a CancellableDeadline>,
}

/// The treatment of an existing file that output is redirected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    Truncate,
    Append,
}

impl WorkspaceHandle {
    /// Opens the workspace. Symlinks in its path were made by the operator and are followed.
    ///
    /// # Errors
    /// Fails if the path doesn't exist or isn't a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let folder = openat(CWD, &path, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder, path })
    }

    /// Returns the path of the workspace, with all symlinks resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the path still leads to the opened folder. Another process may have replaced it.
    #[must_use]
    pub fn is_still_at_path(&self) -> bool {
        let identity = |handle: &OwnedFd| fstat(handle).map(|status| (status.st_dev, status.st_ino));
        let current =
            open_path(CWD, &self.path, ResolveFlags::NO_SYMLINKS).and_then(|handle| identity(&handle));
        current.is_ok() && current == identity(&self.folder)
    }

    /// Returns access to files under a policy.
    #[must_use]
    pub fn access_under<'a>(&'a self, policy: &'a GatePolicy) -> FileAccess<'a> {
        FileAccess { workspace: self, policy, deadline: None }
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { folder: self.folder.try_clone()?, path: self.path.clone() })
    }

    /// Returns a handle on an absolute path if the kernel finds it beneath the workspace.
    fn open_beneath(&self, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let below = path.strip_prefix(&self.path).map_err(|_| Errno::XDEV)?;
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        // The slash must be kept; otherwise `file/` would name a file.
        let below = if is_folder_path(path) { below.join("") } else { below.to_owned() };
        open_path(&self.folder, &below, resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
    }
}

impl<'a> FileAccess<'a> {
    /// Adds a deadline, which operations with many steps check between them.
    #[must_use]
    pub fn with_time_limit(self, deadline: &'a CancellableDeadline) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Returns the path of the workspace.
    #[must_use]
    pub(crate) fn workspace_path(&self) -> &'a Path {
        &self.workspace.path
    }

    /// Returns the absolute path for a path in a tool's arguments.
    ///
    /// # Errors
    /// Fails if the text isn't a path.
    pub fn absolute_path(&self, path: &str) -> Result<PathBuf, FileError> {
        Ok(absolute_tool_path(path, self.policy)?)
    }

    /// Fails if the deadline has passed or the call was cancelled.
    ///
    /// # Errors
    /// Fails with [`FileError::Stopped`].
    pub fn check_deadline(&self) -> Result<(), FileError> {
        self.check_time()
    }

    fn check_time(&self) -> Result<(), FileError> {
        self.deadline.map_or(Ok(()), |deadline| deadline.remaining().map(drop).map_err(FileError::Stopped))
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// Fails if the file doesn't exist, isn't a regular file, or is not allowed.
    pub fn open_for_reading(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = self.open_handle(path)?;
        require_regular_file(&handle)?;
        reopen(&handle, OFlags::RDONLY)
    }

    /// Opens a regular file of the workspace for reading, if no part of its path is a symlink.
    ///
    /// # Errors
    /// Fails if the file doesn't exist, isn't a regular file, is behind a symlink, or is not allowed.
    pub fn open_without_links(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = self.workspace.open_beneath(path, ResolveFlags::NO_SYMLINKS)?;
        self.check_place(&real_path(handle.as_fd())?)?;
        require_regular_file(&handle)?;
        if pseudo_filesystem::is_on_pseudo_filesystem(&handle)? {
            return Err(FileError::PseudoFile);
        }
        reopen(&handle, OFlags::RDONLY)
    }

    /// Returns a handle on a folder. The handle can't be used for reading.
    ///
    /// # Errors
    /// Fails if the folder doesn't exist, isn't a folder, or is not allowed.
    pub fn open_folder(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = self.open_handle(path)?;
        match file_type(&fstat(&handle)?) {
            FileType::Directory => Ok(handle),
            _ => Err(FileError::NotAFolder),
        }
    }

    /// Opens a regular file for output, like a redirection in a shell. Creates the file if it doesn't exist.
    ///
    /// # Errors
    /// Fails if the path isn't a regular file, has several hard links, or is not allowed.
    pub fn open_for_output(&self, path: &Path, output: OutputMode) -> Result<OwnedFd, FileError> {
        for _ in 0..MAX_ATTEMPTS {
            match self.open_handle(path) {
                Ok(handle) => {
                    judge_write_target(path, &real_path(handle.as_fd())?)?;
                    return reopen_for_output(&handle, path, output);
                }
                Err(FileError::Missing) => {}
                Err(error) => return Err(error),
            }
            let (folder, name) = self.folder_and_name(path)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let append = if output == OutputMode::Append { OFlags::APPEND } else { OFlags::empty() };
            match openat(&folder, &name, flags | append, Mode::from_raw_mode(0o666)) {
                // Another process created the file, or the path is a broken symlink.
                Err(Errno::EXIST) => {}
                opened => return Ok(opened?),
            }
        }
        Err(FileError::DanglingLink)
    }

    /// Opens the folder of a new file, and returns it with the file's name.
    fn folder_and_name(&self, path: &Path) -> Result<(OwnedFd, OsString), FileError> {
        let (parent, name) = split_file_path(path)?;
        let folder = self.open_folder(parent)?;
        self.check_new_place(path, &real_path(folder.as_fd())?.join(&name))?;
        Ok((folder, name))
    }

    /// Returns a handle on an absolute path after judging its real path. The file itself is not opened.
    fn open_handle(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = match self.policy.bounds {
            PathBounds::Anywhere => open_path(CWD, path, ResolveFlags::NO_MAGICLINKS),
            PathBounds::Workspace => match self.workspace.open_beneath(path, ResolveFlags::empty()) {
                // With `RESOLVE_BENEATH` the kernel follows no absolute symlink, even if it leads back into
                // the workspace.
                Err(Errno::XDEV) => self.open_through_absolute_link(path),
                found => found,
            },
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(Errno::XDEV) => {
                return Err(GateReason::OutsideWorkspace { path: path.display().to_string() }.into());
            }
            Err(errno) => return Err(errno.into()),
        };
        self.check_place(&real_path(handle.as_fd())?)?;
        if pseudo_filesystem::is_on_pseudo_filesystem(&handle)? {
            return Err(FileError::PseudoFile);
        }
        Ok(handle)
    }

    /// Finds the target of a path with absolute symlinks, and opens the target beneath the workspace without
    /// symlinks.
    fn open_through_absolute_link(&self, path: &Path) -> Result<OwnedFd, Errno> {
        if !path.starts_with(&self.workspace.path) {
            // The error must not reveal whether a file outside exists.
            return Err(Errno::XDEV);
        }
        let seen = open_path(CWD, path, ResolveFlags::NO_MAGICLINKS)?;
        self.workspace.open_beneath(&real_path(seen.as_fd())?, ResolveFlags::NO_SYMLINKS)
    }

    fn check_place(&self, place: &Path) -> Result<(), FileError> {
        Ok(judge_opened_path(place, self.policy)?)
    }

    /// Checks a path at which a file is created or changed.
    fn check_new_place(&self, asked: &Path, place: &Path) -> Result<(), FileError> {
        self.check_place(place)?;
        Ok(judge_write_target(asked, place)?)
    }
}

fn reopen_for_output(handle: &OwnedFd, path: &Path, output: OutputMode) -> Result<OwnedFd, FileError> {
    require_single_link(&require_regular_file(handle)?, path)?;
    match output {
        OutputMode::Append => reopen(handle, OFlags::WRONLY | OFlags::APPEND),
        OutputMode::Truncate => {
            let file = reopen(handle, OFlags::WRONLY)?;
            rustix::fs::ftruncate(&file, 0)?;
            Ok(file)
        }
    }
}

/// Returns the status of a regular file. Other types are an error.
fn require_regular_file(handle: &OwnedFd) -> Result<Stat, FileError> {
    let status = fstat(handle)?;
    match file_type(&status) {
        FileType::RegularFile => Ok(status),
        FileType::Directory => Err(FileError::IsAFolder),
        _ => Err(FileError::NotAFile),
    }
}

/// Rejects files with several hard links, because writing would change them under their other names as well
/// (C7.4).
fn require_single_link(status: &Stat, path: &Path) -> Result<(), FileError> {
    if status.st_nlink > 1 {
        return Err(GateReason::HardLink { path: path.display().to_string() }.into());
    }
    Ok(())
}

fn file_type(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

/// Opens the file of a handle, independently of its names. It is a regular file, so opening never blocks.
fn reopen(handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, FileError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(openat(CWD, format!("/proc/self/fd/{}", handle.as_raw_fd()), flags, Mode::empty())?)
}

fn open_path(from: impl AsFd, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..MAX_ATTEMPTS {
        // The kernel returns `EAGAIN` if a folder of the path was moved during the resolution.
        match openat2(&from, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            found => return found,
        }
    }
    Err(Errno::AGAIN)
}

/// Returns the real path of a handle.
pub(crate) fn real_path(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let text = rustix::fs::readlinkat(CWD, link, Vec::new())?.into_bytes();
    // Handles without a file, such as pipes, have a name that is not a path.
    if text.starts_with(b"/") { Ok(OsString::from_vec(text).into()) } else { Err(Errno::NOENT) }
}

/// Splits a path into a folder and a name. Paths that can only name a folder are an error.
fn split_file_path(path: &Path) -> Result<(&Path, OsString), FileError> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !is_folder_path(path) => Ok((parent, name.to_owned())),
        _ => Err(FileError::IsAFolder),
    }
}

/// Returns true if a path ends with `/` or `/.`, which `Path` ignores.
fn is_folder_path(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.")
}
