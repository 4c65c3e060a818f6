//! Moves an entry between two open folders. If they are on different file systems, the entry is copied and then
//! removed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat, readlinkat, renameat,
    renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::list::read_folder_names;
use super::{FileError, file_type};

/// The limits of a copy to another file system. A larger entry stays where it is.
const MAX_COPIED_ENTRIES: usize = 10_000;
const MAX_COPIED_BYTES: u64 = 256 << 20;

/// The maximum depth of folders in a copy.
const MAX_DEPTH: usize = 64;

/// An open folder and a name in it.
type FolderEntry<'e> = (BorrowedFd<'e>, &'e OsStr);

/// A check that fails when the call has to stop.
type TimeCheck<'c> = &'c dyn Fn() -> Result<(), FileError>;

/// Moves an entry. Nothing is replaced, and no symlink is followed.
pub(super) fn transfer_entry(
    from: FolderEntry<'_>,
    to: FolderEntry<'_>,
    check_time: TimeCheck<'_>,
) -> Result<(), FileError> {
    let renamed = match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Some network file systems don't support this flag. One of the folders is CollieClaw's own, and the caller
        // has checked that the name is free.
        Err(Errno::INVAL | Errno::NOSYS) => renameat(from.0, from.1, to.0, to.1),
        renamed => renamed,
    };
    match renamed {
        Err(Errno::XDEV) => {}
        Err(Errno::EXIST) => return Err(FileError::Exists),
        renamed => return Ok(renamed?),
    }
    let mut budget = CopyBudget { entries: MAX_COPIED_ENTRIES, bytes: MAX_COPIED_BYTES, check_time };
    let copied = budget.copy_entry(from, to, MAX_DEPTH);
    if let Err(error) = copied {
        // A part of the copy that can't be removed does no harm.
        let _ = remove_entry(to, MAX_DEPTH);
        return Err(error);
    }
    remove_entry(from, MAX_DEPTH).map_err(FileError::PartlyRemoved)
}

/// The remaining work of a copy.
struct CopyBudget<'c> {
    entries: usize,
    bytes: u64,
    check_time: TimeCheck<'c>,
}

impl CopyBudget<'_> {
    fn copy_entry(
        &mut self,
        from: FolderEntry<'_>,
        to: FolderEntry<'_>,
        depth: usize,
    ) -> Result<(), FileError> {
        (self.check_time)()?;
        self.entries = self.entries.checked_sub(1).ok_or(FileError::TooLarge)?;
        let status = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&status) {
            FileType::Symlink => {
                let target = readlinkat(from.0, from.1, Vec::new())?;
                Ok(symlinkat(target, to.0, to.1)?)
            }
            FileType::RegularFile => self.copy_file(from, to),
            FileType::Directory => {
                self.copy_folder(from, to, depth.checked_sub(1).ok_or(FileError::TooLarge)?)
            }
            _ => Err(FileError::NotAFile),
        }
    }

    fn copy_file(&mut self, from: FolderEntry<'_>, to: FolderEntry<'_>) -> Result<(), FileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut source = File::from(openat(from.0, from.1, flags, Mode::empty())?);
        let status = fstat(&source)?;
        if file_type(&status) != FileType::RegularFile {
            return Err(FileError::ChangedMeanwhile);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut target = File::from(openat(to.0, to.1, flags, Mode::from_raw_mode(0o600))?);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = source.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            self.bytes = self.bytes.checked_sub(count as u64).ok_or(FileError::TooLarge)?;
            target.write_all(buffer.get(..count).unwrap_or_default())?;
            (self.check_time)()?;
        }
        fchmod(&target, Mode::from_raw_mode(status.st_mode & 0o777))?;
        Ok(target.sync_all()?)
    }

    fn copy_folder(
        &mut self,
        from: FolderEntry<'_>,
        to: FolderEntry<'_>,
        depth: usize,
    ) -> Result<(), FileError> {
        let source = open_subfolder(from)?;
        let mode = fstat(&source)?.st_mode & 0o777;
        mkdirat(to.0, to.1, Mode::from_raw_mode(0o700))?;
        let target = open_subfolder(to)?;
        let found = read_folder_names(&source, self.entries)?;
        if found.truncated {
            return Err(FileError::TooLarge);
        }
        for name in &found.names {
            self.copy_entry((source.as_fd(), name), (target.as_fd(), name), depth)?;
        }
        Ok(fchmod(&target, Mode::from_raw_mode(mode))?)
    }
}

fn open_subfolder((folder, name): FolderEntry<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// Removes a file, a symlink, or a folder with its content.
fn remove_entry(entry: FolderEntry<'_>, depth: usize) -> Result<(), Errno> {
    match unlinkat(entry.0, entry.1, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        removed => return removed,
    }
    let folder = open_subfolder(entry)?;
    let depth = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
    for name in read_folder_names(&folder, usize::MAX)?.names {
        remove_entry((folder.as_fd(), &name), depth)?;
    }
    unlinkat(entry.0, entry.1, AtFlags::REMOVEDIR)
}
