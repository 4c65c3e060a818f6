//! A private temporary folder, and its removal after a program that may have hated us.

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

/// What the names of all these folders begin with.
const PREFIX: &str = "ward-";

/// Names tried before giving up. They change by the nanosecond, so that the first is nearly always
/// free.
const NAMES_TRIED: u64 = 1_000;

/// Passes over the folder before giving up. One is enough unless somebody still writes into it.
const PASSES: usize = 8;

/// Entries looked at before giving up: many times what a large build leaves behind.
const ENTRIES_REMOVED: u32 = 4_000_000;

/// Time before giving up. Whoever waits for the end of a tree waits for this too.
const TIME_TO_REMOVE: Duration = Duration::from_secs(10);

/// Names of folders held at once, so that somebody who makes millions of them takes no memory of ours.
const FOLDERS_AT_ONCE: usize = 1_024;

/// Space for directory entries; at least one of the longest name fits.
const ENTRIES_BUFFER_BYTES: usize = 8 * 1024;

/// A folder of mode 0700. It outlives this handle, because the program that uses it may.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl PrivateFolder {
    /// The way to `parent` is subject to the rule for trees.
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

    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        ["TMPDIR", "TMP", "TEMP", "HOME"].map(|name| (name.into(), self.path.clone().into())).into()
    }

    /// To be called when nothing is left of the program that used it. Whether the folder is gone: what
    /// somebody else of its user still fills is left as litter, private and harmless.
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
            // Nobody will use it then.
            .inspect_err(|_| _ = self.remove())
    }
}

impl AsFd for PrivateFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// What a removal may cost.
#[derive(Debug)]
struct RemovalBudget {
    entries: u32,
    deadline: Instant,
}

impl RemovalBudget {
    fn new(entries: u32, time: Duration) -> Self {
        Self { entries, deadline: Instant::now() + time }
    }

    /// To be called for each entry. Once it has failed it will fail again.
    fn count_entry(&mut self) -> Result<(), Errno> {
        self.entries = self.entries.checked_sub(1).ok_or(Errno::TIMEDOUT)?;
        if Instant::now() < self.deadline { Ok(()) } else { Err(Errno::TIMEDOUT) }
    }
}

/// No earlier folder had the name, so that an old record of one can't be taken for a later one.
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

/// Removes a folder and what is in it, though a program that hates us could write there and may have
/// nested, locked or linked it: no link is followed, no depth takes stack or descriptors, and the work is
/// bounded. Whether it is gone; what is left is litter. To be called when that program has ended.
#[must_use]
pub fn remove_folder(path: &Path) -> bool {
    match open_for_removal(rustix::fs::CWD, path) {
        Ok(handle) => PrivateFolder { path: path.to_owned(), handle }.remove(),
        Err(errno) => errno == Errno::NOENT,
    }
}

/// Removes the folder of a tree that has ended, known only by its path. A link in its place is not
/// followed, and what does not have the name of such a folder is left alone.
pub(crate) fn remove_private_folder(path: &Path) {
    let is_ours = path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let _ = is_ours && remove_folder(path);
}

fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Removes everything in `root`, never following a link, with two descriptors however deep the tree
/// is: folders inside folders are moved up into `root` until there are none.
fn remove_contents(root: BorrowedFd<'_>, budget: &mut RemovalBudget) -> Result<(), Errno> {
    rustix::fs::fchmod(root, Mode::RWXU)?;
    let mut moved = 0_u64;
    let mut result = Ok(());
    for _ in 0..PASSES {
        result = flatten_all(root, &mut moved, budget);
        // Anything else may be the work of somebody who is gone by the next pass.
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
            // Moving a folder changes its `..`, which takes the right to write to it.
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

/// Opens a folder after giving us all rights on it, whatever the program took away. The mode is
/// changed through the opened handle, so that a link put there meanwhile is not followed.
fn open_for_removal(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let same = format!("/proc/self/fd/{}", handle.as_raw_fd());
    std::fs::set_permissions(same, PermissionsExt::from_mode(0o700)).map_err(|error| errno_of(&error))?;
    open_directory(&handle, c".")
}

/// Removes what is not a folder and returns names of folders: none only if the folder is empty now.
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
