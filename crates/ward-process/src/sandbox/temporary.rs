//! A private temporary folder, and its removal after a program that may have hated us.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RawDir, Uid};
use rustix::io::Errno;

use super::SandboxError;

/// What the names of all these folders begin with.
const PREFIX: &str = "ward-";

/// Names tried before giving up. They change by the nanosecond, so that the first is nearly always
/// free.
const NAMES_TRIED: u64 = 1_000;

/// Passes over the folder before giving up. One is enough unless somebody still writes into it.
const PASSES: usize = 8;

/// Space for directory entries; at least one of the longest name fits.
const ENTRIES_BUFFER_BYTES: usize = 8 * 1024;

/// A folder of mode 0700. It outlives this handle, because the program that uses it may.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl PrivateFolder {
    pub(super) fn make_in(parent: &Path) -> Result<Self, SandboxError> {
        make(parent)
            .map_err(|errno| SandboxError::Temporary { path: parent.to_owned(), source: errno.into() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        ["TMPDIR", "TMP", "TEMP", "HOME"].map(|name| (name.into(), self.path.clone().into())).into()
    }

    /// To be called when nothing is left of the program that used it.
    pub(super) fn remove(&self) {
        // A folder that can't be removed is litter in the temporary folder, private and harmless.
        if empty(self.handle.as_fd()).is_ok() {
            let _ = rustix::fs::rmdir(&self.path);
        }
    }

    pub(super) fn give_to(&self, user: u32, group: u32) -> Result<(), SandboxError> {
        rustix::fs::fchown(&self.handle, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
            .map_err(|errno| SandboxError::Temporary { path: self.path.clone(), source: errno.into() })
            // Nobody will use it then.
            .inspect_err(|_| self.remove())
    }
}

/// No earlier folder had the name, so that an old record of one can't be taken for a later one.
fn make(parent: &Path) -> Result<PrivateFolder, Errno> {
    for _ in 0..NAMES_TRIED {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = parent.join(format!("{PREFIX}{}-{now:x}", std::process::id()));
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Err(Errno::EXIST) => continue,
            result => result?,
        }
        let handle = open_directory(rustix::fs::CWD, &path)?;
        return Ok(PrivateFolder { path, handle });
    }
    Err(Errno::EXIST)
}

/// Removes the folder of a tree that has ended, known only by its path. A link in its place is not
/// followed, and what does not have the name of such a folder is left alone.
pub(crate) fn remove_private_folder(path: &Path) {
    let is_ours = path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    if is_ours && let Ok(handle) = open_for_removal(rustix::fs::CWD, path) {
        PrivateFolder { path: path.to_owned(), handle }.remove();
    }
}

fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Removes everything in `root`, never following a link, with two descriptors however deep the tree
/// is: folders inside folders are moved up into `root` until there are none.
fn empty(root: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fchmod(root, Mode::RWXU)?;
    let mut moved = 0_u64;
    let mut result = Ok(());
    for _ in 0..PASSES {
        result = loop {
            let folders = match remove_files(root) {
                Ok(folders) if folders.is_empty() => return Ok(()),
                Ok(folders) => folders,
                Err(errno) => break Err(errno),
            };
            if let Err(errno) = folders.iter().try_for_each(|name| flatten(root, name, &mut moved)) {
                break Err(errno);
            }
        };
    }
    result
}

/// Empties the folder `name` of `root` by moving its folders into `root`, and removes it.
fn flatten(root: BorrowedFd<'_>, name: &CStr, moved: &mut u64) -> Result<(), Errno> {
    let folder = open_for_removal(root, name)?;
    for inner in remove_files(folder.as_fd())? {
        // Moving a folder changes its `..`, which takes the right to write to it.
        drop(open_for_removal(folder.as_fd(), inner.as_c_str())?);
        move_up(folder.as_fd(), &inner, root, moved)?;
    }
    rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR)
}

fn move_up(from: BorrowedFd<'_>, name: &CStr, root: BorrowedFd<'_>, moved: &mut u64) -> Result<(), Errno> {
    loop {
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

/// Removes what is not a folder and returns the names of the folders.
fn remove_files(folder: BorrowedFd<'_>) -> Result<Vec<std::ffi::CString>, Errno> {
    rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(ENTRIES_BUFFER_BYTES);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut folders = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
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
