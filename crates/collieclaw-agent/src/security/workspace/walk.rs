//! Walks through a folder and everything below it, in the order of the names. Symlinks are not followed, and paths
//! that no tool may touch are skipped.

mod ignore_rules;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, statat};

use super::list::read_folder_names;
use super::{
    FileAccess, FileError, file_type, open_path, pseudo_filesystem, real_path, reopen, require_regular_file,
};
use ignore_rules::IgnoreRules;

/// The maximum number of entries that one walk looks at.
pub const MAX_WALKED_ENTRIES: usize = 200_000;

/// The maximum depth of folders. Each level of the walk keeps a folder open.
const MAX_DEPTH: usize = 100;

/// Folders of version control systems, which are never entered.
const REPOSITORY_FOLDERS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// The entries that a walk leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkFilter {
    /// True if names that start with a dot are included.
    pub hidden: bool,
    /// True if entries are included that `.gitignore` and `.ignore` exclude.
    pub ignored: bool,
}

/// A file or a symlink that a walk has found.
pub struct WalkedFile<'w> {
    /// The path relative to the folder in which the walk began.
    pub path: PathBuf,
    pub status: Stat,
    /// The absolute path, which was judged.
    place: PathBuf,
    access: &'w FileAccess<'w>,
    folder: &'w OpenFolder,
    name: &'w OsStr,
}

/// A path that the walk has judged, and the file system of its folder.
#[derive(Clone, Copy)]
struct JudgedPlace<'w> {
    path: &'w Path,
    device: u64,
}

/// The decision of a visitor whether the walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkStep {
    Continue,
    Stop,
}

/// The extent of a walk that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkExtent {
    /// The number of entries that the walk looked at.
    pub entries: usize,
    /// True if a limit kept the walk from looking at everything.
    pub incomplete: bool,
}

/// A folder that the walk is in.
struct OpenFolder {
    handle: OwnedFd,
    /// The number of the folder's file system.
    device: u64,
    /// The path relative to the beginning of the walk.
    below: PathBuf,
    real: PathBuf,
    /// The names that are left, in reverse order.
    names: Vec<OsString>,
}

impl WalkedFile<'_> {
    /// Opens the file for reading.
    ///
    /// # Errors
    /// Fails if the entry is no longer a regular file, or if a rule forbids it.
    pub fn open(&self) -> Result<File, FileError> {
        let judged = JudgedPlace { path: &self.place, device: self.folder.device };
        self.access.open_in_folder(&self.folder.handle, self.name, Some(judged))
    }

    /// Returns true for a regular file.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        file_type(&self.status) == FileType::RegularFile
    }
}

impl FileAccess<'_> {
    /// Calls `visit` for every file and symlink below a folder, until it stops the walk.
    ///
    /// # Errors
    /// Fails if the folder can't be opened, if the call was cancelled, or if `visit` fails.
    pub fn walk(
        &self,
        path: &Path,
        filter: WalkFilter,
        visit: &mut dyn FnMut(&WalkedFile<'_>) -> Result<WalkStep, FileError>,
    ) -> Result<WalkExtent, FileError> {
        let root = self.open_folder(path)?;
        let mut extent = WalkExtent { entries: 0, incomplete: false };
        let real = real_path(root.as_fd())?;
        let mut rules = if filter.ignored { IgnoreRules::none() } else { IgnoreRules::above(self, &real) };
        let mut open = vec![self.enter(&root, PathBuf::new(), real, &mut extent)?];
        rules.enter(self, open.last());
        loop {
            self.check_time()?;
            let depth = open.len();
            let Some(folder) = open.last_mut() else { break };
            let Some(name) = folder.names.pop() else {
                open.pop();
                rules.leave();
                continue;
            };
            // Entries that were removed in the meantime are skipped.
            let Ok(status) = statat(&folder.handle, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_folder = file_type(&status) == FileType::Directory;
            let place = folder.real.join(&name);
            if is_left_out(&name, filter)
                || rules.is_ignored(&place, is_folder)
                || self.check_place(&place).is_err()
            {
                continue;
            }
            let below = folder.below.join(&name);
            if is_folder {
                if depth == MAX_DEPTH {
                    extent.incomplete = true;
                } else if let Some(entered) =
                    self.enter_subfolder(&folder.handle, &name, below, &mut extent)?
                {
                    open.push(entered);
                    rules.enter(self, open.last());
                }
                continue;
            }
            if !matches!(file_type(&status), FileType::RegularFile | FileType::Symlink) {
                continue;
            }
            let file = WalkedFile { path: below, status, place, access: self, folder, name: &name };
            if visit(&file)? == WalkStep::Stop {
                break;
            }
        }
        Ok(extent)
    }

    /// Opens a folder for the walk. `None` if it can't be read, or if no tool may touch it.
    fn enter_subfolder(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        below: PathBuf,
        extent: &mut WalkExtent,
    ) -> Result<Option<OpenFolder>, FileError> {
        let without_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let Ok(handle) = open_path(parent, Path::new(name), without_links) else { return Ok(None) };
        let Ok(real) = real_path(handle.as_fd()) else {
            extent.incomplete = true;
            return Ok(None);
        };
        if self.check_place(&real).is_err() || pseudo_filesystem::is_on_pseudo_filesystem(&handle)? {
            return Ok(None);
        }
        match self.enter(&handle, below, real, extent) {
            Ok(folder) => Ok(Some(folder)),
            Err(error @ FileError::Stopped(_)) => Err(error),
            // A folder that can't be read is skipped.
            Err(_) => Ok(None),
        }
    }

    fn enter(
        &self,
        folder: &OwnedFd,
        below: PathBuf,
        real: PathBuf,
        extent: &mut WalkExtent,
    ) -> Result<OpenFolder, FileError> {
        self.check_time()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(folder, c".", flags, Mode::empty())?;
        let device = fstat(&handle)?.st_dev;
        let found = read_folder_names(&handle, MAX_WALKED_ENTRIES.saturating_sub(extent.entries))?;
        extent.entries += found.names.len();
        extent.incomplete |= found.truncated;
        let names = found.names.into_iter().rev().collect();
        Ok(OpenFolder { handle, device, below, real, names })
    }

    /// Opens a regular file of an open folder. A symlink is not followed. A file that is still where it was judged is not
    /// judged again.
    fn open_in_folder(
        &self,
        folder: &OwnedFd,
        name: &OsStr,
        judged: Option<JudgedPlace<'_>>,
    ) -> Result<File, FileError> {
        let without_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let handle = open_path(folder, Path::new(name), without_links)?;
        let status = require_regular_file(&handle)?;
        let real = real_path(handle.as_fd())?;
        if judged.is_none_or(|judged| judged.path != real) {
            self.check_place(&real)?;
        }
        // The walk enters no pseudo file system, but a single file can be mounted from one.
        if judged.is_none_or(|judged| judged.device != status.st_dev)
            && pseudo_filesystem::is_on_pseudo_filesystem(&handle)?
        {
            return Err(FileError::PseudoFile);
        }
        Ok(File::from(reopen(&handle, OFlags::RDONLY)?))
    }
}

fn is_left_out(name: &OsStr, filter: WalkFilter) -> bool {
    let is_hidden = name.as_bytes().starts_with(b".");
    (is_hidden && !filter.hidden) || REPOSITORY_FOLDERS.iter().any(|folder| name == *folder)
}
