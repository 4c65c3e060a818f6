//! Creates the private temporary folder of a sandbox, and removes it safely even if the program was hostile.

pub(super) mod abandoned;

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RawDir, Uid};
use rustix::io::Errno;

use super::SandboxError;
use super::trees::SandboxTrees;
use crate::process_spec::TreeLifetime;

/// Prefix of the names of all private folders.
const PREFIX: &str = "ward-";

/// Number of names to try before giving up. A name includes the time in nanoseconds, so the first is nearly
/// always free.
const NAMES_TRIED: u64 = 1_000;

/// Number of passes over the folder before giving up. One is enough unless a process still writes into the
/// folder.
const PASSES: usize = 8;

/// Number of entries to remove before giving up, many times what a large build leaves behind.
const ENTRIES_REMOVED: u32 = 4_000_000;

/// Time to spend before giving up. A caller that waits for the end of a tree waits for the removal too.
const TIME_TO_REMOVE: Duration = Duration::from_secs(10);

/// Number of folder names in memory at once, so that a program that makes millions of folders can't exhaust
/// our memory.
const FOLDERS_AT_ONCE: usize = 1_024;

/// Size of the buffer for directory entries, large enough for an entry with the longest name.
const ENTRIES_BUFFER_BYTES: usize = 8 * 1024;

/// A handle on a folder of mode 0700. Dropping the handle keeps the folder, because the program that uses the
/// folder may outlive the supervisor.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl PrivateFolder {
    /// Creates a folder in `parent`. The path to `parent` must satisfy the same rule on symlinks as the trees
    /// of the sandbox.
    pub(super) fn create_in(
        parent: &Path,
        lifetime: TreeLifetime,
        trees: &SandboxTrees,
    ) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::Temporary { path: parent.to_owned(), source };
        let folder = trees.open_unlisted(parent).map_err(|error| match error {
            SandboxError::Tree { source, .. } => failed(source),
            other => other,
        })?;
        create_folder(parent, lifetime, folder.as_fd()).map_err(|errno| failed(errno.into()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the variables for a program that finds the folder at this path, and its home at another one.
    pub(super) fn environment(path: &Path, home: &Path) -> Vec<(OsString, OsString)> {
        [("TMPDIR", path), ("TMP", path), ("TEMP", path), ("HOME", home)]
            .map(|(name, path)| (name.into(), path.into()))
            .into()
    }

    /// Removes the folder and returns true if it is gone. To be called when the program that used the folder
    /// has ended. If another process of the same user keeps filling the folder, the rest stays behind, which
    /// is private and harmless.
    pub(super) fn remove(&self) -> bool {
        self.remove_within(&mut RemovalBudget::new(ENTRIES_REMOVED, TIME_TO_REMOVE))
    }

    fn remove_within(&self, budget: &mut RemovalBudget) -> bool {
        let emptied = remove_contents(self.handle.as_fd(), budget);
        matches!(emptied.and_then(|()| rustix::fs::rmdir(&self.path)), Ok(()) | Err(Errno::NOENT))
    }

    pub(super) fn change_owner(&self, user: u32, group: u32) -> Result<(), SandboxError> {
        rustix::fs::fchown(&self.handle, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
            .map_err(|errno| SandboxError::Temporary { path: self.path.clone(), source: errno.into() })
            .inspect_err(|_| _ = self.remove())
    }
}

impl AsFd for PrivateFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The number of entries and the time that a removal may still use.
#[derive(Debug)]
struct RemovalBudget {
    entries: u32,
    deadline: Instant,
}

impl RemovalBudget {
    fn new(entries: u32, time: Duration) -> Self {
        Self { entries, deadline: Instant::now() + time }
    }

    /// Counts an entry against the budget. Once this has failed, every later call fails too.
    fn count_entry(&mut self) -> Result<(), Errno> {
        self.entries = self.entries.checked_sub(1).ok_or(Errno::TIMEDOUT)?;
        if Instant::now() < self.deadline { Ok(()) } else { Err(Errno::TIMEDOUT) }
    }
}

/// Creates a folder whose name was never used before, so that an old tree record can't point to a newer
/// folder.
fn create_folder(
    parent: &Path,
    lifetime: TreeLifetime,
    folder: BorrowedFd<'_>,
) -> Result<PrivateFolder, Errno> {
    for _ in 0..NAMES_TRIED {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let prefix = match lifetime {
            TreeLifetime::Independent => PREFIX,
            TreeLifetime::DiesWithSupervisor => abandoned::PREFIX,
        };
        let name = format!("{prefix}{}-{now:x}", std::process::id());
        match rustix::fs::mkdirat(folder, &name, Mode::RWXU) {
            Err(Errno::EXIST) => continue,
            result => result?,
        }
        let handle = open_directory(folder, &name)?;
        if !abandoned::lock_new_folder(&handle)? {
            continue;
        }
        return Ok(PrivateFolder { path: parent.join(name), handle });
    }
    Err(Errno::EXIST)
}

/// Removes a folder and its content, and returns true if the folder is gone. To be called when the program
/// that wrote there has ended.
///
/// The program may be hostile and may have nested folders deeply, removed permissions or placed symlinks. No
/// symlink is followed, depth uses neither stack nor descriptors, and the work is limited; files beyond the
/// limit stay behind.
#[must_use]
pub fn remove_folder(path: &Path) -> bool {
    match open_for_removal(rustix::fs::CWD, path) {
        Ok(handle) => PrivateFolder { path: path.to_owned(), handle }.remove(),
        Err(errno) => errno == Errno::NOENT,
    }
}

/// Removes the private folder of a tree that has ended, known only by its path. A symlink in its place is not
/// followed, and a folder whose name lacks the prefix of private folders is kept.
pub(crate) fn remove_private_folder(path: &Path) {
    let is_ours = path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let _ = is_ours && remove_folder(path);
}

fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Removes everything in `root` without following symlinks. Nested folders are moved up into `root` until
/// there are none, so two descriptors are enough for a tree of any depth.
fn remove_contents(root: BorrowedFd<'_>, budget: &mut RemovalBudget) -> Result<(), Errno> {
    rustix::fs::fchmod(root, Mode::RWXU)?;
    let mut moved = 0_u64;
    let mut result = Ok(());
    for _ in 0..PASSES {
        result = flatten_all(root, &mut moved, budget);
        // Other errors may be caused by a process that changes the folder at the same time; a later pass may
        // succeed.
        if matches!(result, Ok(()) | Err(Errno::TIMEDOUT)) {
            break;
        }
    }
    result
}

fn flatten_all(root: BorrowedFd<'_>, moved: &mut u64, budget: &mut RemovalBudget) -> Result<(), Errno> {
    loop {
        let folders = remove_files(root, budget)?;
        if folders.is_empty() {
            return Ok(());
        }
        folders.iter().try_for_each(|name| flatten(root, name, moved, budget))?;
    }
}

/// Empties the folder `name` of `root` by moving its folders into `root`, and removes it.
fn flatten(
    root: BorrowedFd<'_>,
    name: &CStr,
    moved: &mut u64,
    budget: &mut RemovalBudget,
) -> Result<(), Errno> {
    budget.count_entry()?;
    let folder = open_for_removal(root, name)?;
    loop {
        let folders = remove_files(folder.as_fd(), budget)?;
        if folders.is_empty() {
            return rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR);
        }
        for inner in folders {
            // Moving a folder changes its `..` entry, which requires write permission on the folder itself
            // (`rename(2)`, `EACCES`). Opening it for removal grants that permission.
            drop(open_for_removal(folder.as_fd(), inner.as_c_str())?);
            move_to_root(folder.as_fd(), &inner, root, moved, budget)?;
        }
    }
}

fn move_to_root(
    from: BorrowedFd<'_>,
    name: &CStr,
    root: BorrowedFd<'_>,
    moved: &mut u64,
    budget: &mut RemovalBudget,
) -> Result<(), Errno> {
    loop {
        budget.count_entry()?;
        *moved += 1;
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(from, name, root, format!(".removed-{moved}"), flags) {
            Err(Errno::EXIST) => {}
            result => return result,
        }
    }
}

/// Opens a folder after restoring our permissions on it, which the program may have removed. The mode is
/// changed through an `O_PATH` handle, so that a symlink that is placed there meanwhile is not followed.
fn open_for_removal(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let by_handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
    std::fs::set_permissions(by_handle, PermissionsExt::from_mode(0o700))
        .map_err(|error| errno_of(&error))?;
    open_directory(&handle, c".")
}

/// Removes all files and returns names of folders, at most [`FOLDERS_AT_ONCE`]. The list is empty only if the
/// folder is empty now.
fn remove_files(folder: BorrowedFd<'_>, budget: &mut RemovalBudget) -> Result<Vec<std::ffi::CString>, Errno> {
    rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(ENTRIES_BUFFER_BYTES);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut folders = Vec::new();
    while let Some(entry) = entries.next() {
        if folders.len() >= FOLDERS_AT_ONCE {
            break;
        }
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        budget.count_entry()?;
        let file_type = match entry.file_type() {
            FileType::Unknown => {
                let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(status.st_mode)
            }
            known => known,
        };
        if file_type == FileType::Directory {
            folders.push(name.to_owned());
        } else {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
        }
    }
    Ok(folders)
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
