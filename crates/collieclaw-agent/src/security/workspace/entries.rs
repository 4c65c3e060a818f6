//! Moving and removing the entries of folders: files, folders and symlinks. A symlink is treated as itself, and its
//! target is never touched.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use collieclaw_gate::judge_moved_entry;
use rustix::fs::{AtFlags, FileType, RenameFlags, Stat, linkat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::replace::sync_folder;
use super::{FileAccess, FileError, file_type, real_path, split_file_path, transfer};

/// The treatment of a file that exists at the new path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTarget {
    Keep,
    /// A file or a symlink is replaced; a folder never is.
    Replace,
}

/// The kind of an entry that was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    Link,
}

/// An entry that was found in its folder.
pub(super) struct FoundEntry {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    pub(super) kind: EntryKind,
}

impl FileAccess<'_> {
    /// Moves an entry to another path. Missing folders are created.
    ///
    /// # Errors
    /// Fails if the entry doesn't exist, if the new path is taken, or if one of them is not allowed.
    pub fn move_entry(
        &self,
        from: &Path,
        to: &Path,
        existing: ExistingTarget,
    ) -> Result<EntryKind, FileError> {
        let entry = self.find_entry(from)?;
        let (folder, name) = self.new_entry_place(to)?;
        let current = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW);
        self.check_time()?;
        match (current, existing) {
            (Err(Errno::NOENT), _) => rename_without_replacing(&entry, &folder, &name)?,
            (Err(errno), _) => return Err(errno.into()),
            (Ok(_), ExistingTarget::Keep) => return Err(FileError::Exists),
            (Ok(status), ExistingTarget::Replace) => {
                if entry.kind == EntryKind::Folder || entry_kind(&status)? == EntryKind::Folder {
                    return Err(FileError::IsAFolder);
                }
                renameat(&entry.folder, &entry.name, &folder, &name)?;
            }
        }
        sync_folder(&entry.folder)?;
        sync_folder(&folder)?;
        Ok(entry.kind)
    }

    /// Moves an entry out of the workspace, to a name in a folder that tools can't reach.
    ///
    /// # Errors
    /// Fails if the entry doesn't exist, is not allowed, or is too large to be copied to another file system.
    pub fn move_entry_out(&self, from: &Path, folder: &OwnedFd, name: &str) -> Result<EntryKind, FileError> {
        let entry = self.find_entry(from)?;
        self.check_time()?;
        let check_time = || self.check_time();
        transfer::transfer_entry(
            (entry.folder.as_fd(), &entry.name),
            (folder.as_fd(), name.as_ref()),
            &check_time,
        )?;
        sync_folder(&entry.folder)?;
        Ok(entry.kind)
    }

    /// Moves an entry from such a folder back into the workspace. An existing file is not replaced.
    ///
    /// # Errors
    /// Fails if the path is taken or not allowed.
    pub fn move_entry_in(&self, folder: &OwnedFd, name: &str, to: &Path) -> Result<(), FileError> {
        let (target, target_name) = self.new_entry_place(to)?;
        match statat(&target, &target_name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(_) => return Err(FileError::Exists),
            Err(errno) => return Err(errno.into()),
        }
        let check_time = || self.check_time();
        transfer::transfer_entry(
            (folder.as_fd(), name.as_ref()),
            (target.as_fd(), &target_name),
            &check_time,
        )?;
        sync_folder(&target)
    }

    /// Finds an entry, and checks that it may be moved away from its place.
    pub(super) fn find_entry(&self, path: &Path) -> Result<FoundEntry, FileError> {
        let path = without_trailing_slash(path);
        let (parent, name) = split_file_path(&path)?;
        let folder = self.open_folder(parent)?;
        judge_moved_entry(&path, &real_path(folder.as_fd())?.join(&name), self.policy)?;
        let status = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FoundEntry { folder, kind: entry_kind(&status)?, name })
    }

    /// Opens or creates the folder for a new entry, and checks that the entry may be put there.
    fn new_entry_place(&self, path: &Path) -> Result<(OwnedFd, OsString), FileError> {
        let path = without_trailing_slash(path);
        let (parent, name) = split_file_path(&path)?;
        let folder = self.create_folder(parent)?;
        self.check_new_place(&path, &real_path(folder.as_fd())?.join(&name))?;
        Ok((folder, name))
    }
}

/// Removes a trailing `/` or `/.`: people write `old/` for a folder.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn entry_kind(status: &Stat) -> Result<EntryKind, FileError> {
    match file_type(status) {
        FileType::RegularFile => Ok(EntryKind::File),
        FileType::Directory => Ok(EntryKind::Folder),
        FileType::Symlink => Ok(EntryKind::Link),
        _ => Err(FileError::NotAFile),
    }
}

fn rename_without_replacing(entry: &FoundEntry, folder: &OwnedFd, name: &OsString) -> Result<(), FileError> {
    let renamed = match renameat_with(&entry.folder, &entry.name, folder, name, RenameFlags::NOREPLACE) {
        // Some network file systems don't support this flag. A hard link replaces nothing either, and a folder can
        // only replace an empty one.
        Err(Errno::INVAL | Errno::NOSYS) if entry.kind == EntryKind::Folder => {
            renameat(&entry.folder, &entry.name, folder, name)
        }
        Err(Errno::INVAL | Errno::NOSYS) => {
            linkat(&entry.folder, &entry.name, folder, name, AtFlags::empty())
                .and_then(|()| unlinkat(&entry.folder, &entry.name, AtFlags::empty()))
        }
        renamed => renamed,
    };
    match renamed {
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(FileError::Exists),
        Err(Errno::INVAL) => Err(FileError::IntoItself),
        renamed => Ok(renamed?),
    }
}
