//! The folder the agent works in, as a handle: what is opened through it can't lie outside.
//!
//! Every way to a file is the same (C7.4): the kernel resolves the path beneath the handle and gives a handle that can't
//! read yet; that handle is looked at (what it is, how many names it has, where it really lies) and judged by the gate's
//! rules; then the very same file is opened for use. There is no moment at which a name could be made to mean something
//! else.

mod error;
mod list;
mod pseudo_filesystem;
mod replace;

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

pub use error::FileError;
pub(crate) use list::read_folder_names;
pub use list::{FolderListing, ListingDepth, ListingEntry, ListingKind};
pub use replace::WriteOutcome;

/// How often a way is tried again that somebody changed while it was walked.
const MAX_ATTEMPTS: usize = 64;

/// A handle on the workspace.
#[derive(Debug)]
pub struct WorkspaceHandle {
    folder: OwnedFd,
    path: PathBuf,
}

/// The files that a policy lets tools reach, all of them opened through the workspace's handle.
#[derive(Debug, Clone, Copy)]
pub struct FileAccess<'a> {
    workspace: &'a WorkspaceHandle,
    policy: &'a GatePolicy,
    patience: Option<&'a CancellableDeadline>,
}

/// What becomes of a file that output is led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// What was in it is gone.
    Truncate,
    /// What comes is put after what was in it.
    Append,
}

impl WorkspaceHandle {
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

    /// Whether its path still leads to it. Somebody else may have put another folder there, or a link.
    #[must_use]
    pub fn is_still_at_path(&self) -> bool {
        let identity = |handle: &OwnedFd| fstat(handle).map(|status| (status.st_dev, status.st_ino));
        let there =
            open_path(CWD, &self.path, ResolveFlags::NO_SYMLINKS).and_then(|handle| identity(&handle));
        there.is_ok() && there == identity(&self.folder)
    }

    /// The way to its files under a policy.
    #[must_use]
    pub fn access_under<'a>(&'a self, policy: &'a GatePolicy) -> FileAccess<'a> {
        FileAccess { workspace: self, policy, patience: None }
    }

    /// Another handle on the same folder.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { folder: self.folder.try_clone()?, path: self.path.clone() })
    }

    /// A handle on what is at an absolute path, if the kernel finds it beneath the workspace.
    fn open_beneath(&self, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let below = path.strip_prefix(&self.path).map_err(|_| Errno::XDEV)?;
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        // Without its slash `file/` would be a file.
        let below = if is_folder_path(path) { below.join("") } else { below.to_owned() };
        open_path(&self.folder, &below, resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
    }
}

impl<'a> FileAccess<'a> {
    /// The same, for work that has to end: what takes many steps goes no further when the time is over.
    #[must_use]
    pub fn with_time_limit(self, patience: &'a CancellableDeadline) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// What a tool's path stands for.
    ///
    /// # Errors
    /// When it is no path.
    pub fn absolute_path(&self, path: &str) -> Result<PathBuf, FileError> {
        Ok(absolute_tool_path(path, self.policy)?)
    }

    /// Whether there is time left.
    fn check_time(&self) -> Result<(), FileError> {
        self.patience.map_or(Ok(()), |patience| patience.remaining().map(drop).map_err(FileError::Stopped))
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// When it is not there, no regular file, or out of reach.
    pub fn open_for_reading(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = self.open_handle(path)?;
        require_regular_file(&handle)?;
        reopen(&handle, OFlags::RDONLY)
    }

    /// A handle on a folder that can't be read through it.
    ///
    /// # Errors
    /// When it is not there, no folder, or out of reach.
    pub fn open_folder(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = self.open_handle(path)?;
        match file_type(&fstat(&handle)?) {
            FileType::Directory => Ok(handle),
            _ => Err(FileError::NotAFolder),
        }
    }

    /// Opens a regular file for output, as a shell's redirection does, and makes it when it is not there.
    ///
    /// # Errors
    /// When it is no regular file, has another name somewhere, or is out of reach.
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
                // Somebody was faster, or a link is there that leads nowhere.
                Err(Errno::EXIST) => {}
                opened => return Ok(opened?),
            }
        }
        Err(FileError::DanglingLink)
    }

    /// The folder of something that is to be made, and its name.
    fn folder_and_name(&self, path: &Path) -> Result<(OwnedFd, OsString), FileError> {
        let (parent, name) = split_file_path(path)?;
        let folder = self.open_folder(parent)?;
        self.check_new_place(path, &real_path(folder.as_fd())?.join(&name))?;
        Ok((folder, name))
    }

    /// A handle on what is at an absolute path, judged where it really lies. Nothing is opened by it.
    fn open_handle(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let handle = match self.policy.bounds {
            PathBounds::Anywhere => open_path(CWD, path, ResolveFlags::NO_MAGICLINKS),
            PathBounds::Workspace => match self.workspace.open_beneath(path, ResolveFlags::empty()) {
                // The kernel lets no absolute link be followed beneath a handle, even if it leads back.
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

    /// Finds out where a path leads, and walks there again beneath the workspace, without any link.
    fn open_through_absolute_link(&self, path: &Path) -> Result<OwnedFd, Errno> {
        if !path.starts_with(&self.workspace.path) {
            // Not even whether it is there.
            return Err(Errno::XDEV);
        }
        let seen = open_path(CWD, path, ResolveFlags::NO_MAGICLINKS)?;
        self.workspace.open_beneath(&real_path(seen.as_fd())?, ResolveFlags::NO_SYMLINKS)
    }

    fn check_place(&self, place: &Path) -> Result<(), FileError> {
        Ok(judge_opened_path(place, self.policy)?)
    }

    /// A place where something is to be made or changed.
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

/// The status of a regular file; anything else is an error.
fn require_regular_file(handle: &OwnedFd) -> Result<Stat, FileError> {
    let status = fstat(handle)?;
    match file_type(&status) {
        FileType::RegularFile => Ok(status),
        FileType::Directory => Err(FileError::IsAFolder),
        _ => Err(FileError::NotAFile),
    }
}

/// What is written through one name must not change what another name means (C7.4).
fn require_single_link(status: &Stat, path: &Path) -> Result<(), FileError> {
    if status.st_nlink > 1 {
        return Err(GateReason::HardLink { path: path.display().to_string() }.into());
    }
    Ok(())
}

fn file_type(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

/// Opens what a handle leads to, whatever its names mean by now. It is a regular file, so that this never waits.
fn reopen(handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, FileError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(openat(CWD, format!("/proc/self/fd/{}", handle.as_raw_fd()), flags, Mode::empty())?)
}

fn open_path(from: impl AsFd, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..MAX_ATTEMPTS {
        // The kernel asks to try again when a folder on the way was moved meanwhile.
        match openat2(&from, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            found => return found,
        }
    }
    Err(Errno::AGAIN)
}

/// Where a handle really leads.
pub(crate) fn real_path(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let text = rustix::fs::readlinkat(CWD, link, Vec::new())?.into_bytes();
    // What is not a file has a name of the kernel's own.
    if text.starts_with(b"/") { Ok(OsString::from_vec(text).into()) } else { Err(Errno::NOENT) }
}

/// A path as a folder and a name in it; one that can only name a folder is an error.
fn split_file_path(path: &Path) -> Result<(&Path, OsString), FileError> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !is_folder_path(path) => Ok((parent, name.to_owned())),
        _ => Err(FileError::IsAFolder),
    }
}

/// Whether a path ends in a way that only a folder's may; `Path` itself doesn't keep that.
fn is_folder_path(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.")
}
