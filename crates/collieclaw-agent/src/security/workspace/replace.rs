//! Atomic replacement of files: the new content is written to a temporary file and renamed, so a partial file is
//! never visible.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use data_encoding::HEXLOWER;
use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RenameFlags, Stat, accessat, fchmod, fchown, fstat, linkat, mkdirat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::{
    FileAccess, FileError, MAX_ATTEMPTS, real_path, require_regular_file, require_single_link,
    split_file_path,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The file didn't exist before.
    Created,
    Replaced,
}

/// The place of a file that is written.
struct ReplaceTarget {
    folder: OwnedFd,
    name: OsString,
    /// The status of the file that exists now.
    existing: Option<Stat>,
}

impl FileAccess<'_> {
    /// Creates a file, or replaces it atomically. Missing folders are created. A symlink is followed, as
    /// most editors do; a broken symlink is an error.
    ///
    /// # Errors
    /// Fails if the path isn't a regular file, has several hard links, or is not allowed.
    pub fn replace(&self, path: &Path, content: &[u8]) -> Result<WriteOutcome, FileError> {
        for _ in 0..MAX_ATTEMPTS {
            match self.target(path).and_then(|target| self.write_target(&target, content)) {
                Err(FileError::ChangedMeanwhile) => {}
                written => return written,
            }
        }
        Err(FileError::ChangedMeanwhile)
    }

    fn target(&self, path: &Path) -> Result<ReplaceTarget, FileError> {
        match self.open_handle(path) {
            Ok(handle) => self.existing_target(&handle, path),
            Err(FileError::Missing) => self.new_target(path),
            Err(error) => Err(error),
        }
    }

    fn existing_target(&self, handle: &OwnedFd, path: &Path) -> Result<ReplaceTarget, FileError> {
        let status = require_regular_file(handle)?;
        require_single_link(&status, path)?;
        let real = real_path(handle.as_fd())?;
        let (parent, name) = split_file_path(&real)?;
        let folder = self.open_folder(parent)?;
        self.check_new_place(path, &real_path(folder.as_fd())?.join(&name))?;
        let current =
            statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| FileError::ChangedMeanwhile)?;
        if (current.st_dev, current.st_ino) != (status.st_dev, status.st_ino) {
            return Err(FileError::ChangedMeanwhile);
        }
        // A user who may not write to a file must not replace it either.
        accessat(&folder, &name, Access::WRITE_OK, AtFlags::EACCESS)?;
        Ok(ReplaceTarget { folder, name, existing: Some(status) })
    }

    fn new_target(&self, path: &Path) -> Result<ReplaceTarget, FileError> {
        let (parent, name) = split_file_path(path)?;
        let folder = self.create_folder(parent)?;
        self.check_new_place(path, &real_path(folder.as_fd())?.join(&name))?;
        match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(ReplaceTarget { folder, name, existing: None }),
            Ok(status) if super::file_type(&status) == rustix::fs::FileType::Symlink => {
                Err(FileError::DanglingLink)
            }
            Ok(_) => Err(FileError::ChangedMeanwhile),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a folder, or creates it together with its missing parents.
    pub(super) fn create_folder(&self, path: &Path) -> Result<OwnedFd, FileError> {
        match self.open_folder(path) {
            Err(FileError::Missing) => {}
            found => return found,
        }
        let parent = path.parent().ok_or(FileError::Missing)?;
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(FileError::Missing);
        };
        let above = self.create_folder(parent)?;
        self.check_new_place(path, &real_path(above.as_fd())?.join(name))?;
        match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => sync_folder(&above)?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&above, name, flags, Mode::empty())?)
    }

    fn write_target(&self, target: &ReplaceTarget, content: &[u8]) -> Result<WriteOutcome, FileError> {
        let temporary = temporary_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // The replacement of a private file must never be readable for others, not even for a moment.
        let mode = if target.existing.is_some() { 0o600 } else { 0o666 };
        let file = openat(&target.folder, &temporary, flags, Mode::from_raw_mode(mode))?;
        let written = write_content(file, content, target.existing.as_ref())
            // After a timeout was reported, the file must not change any more.
            .and_then(|()| self.check_time())
            .and_then(|()| rename_into_place(target, &temporary));
        if let Err(error) = written {
            // If the temporary file can't be removed, it stays beside the untouched file.
            let _ = unlinkat(&target.folder, &temporary, AtFlags::empty());
            return Err(error);
        }
        sync_folder(&target.folder)?;
        Ok(if target.existing.is_some() { WriteOutcome::Replaced } else { WriteOutcome::Created })
    }
}

/// Renames the temporary file to the target. A file that didn't exist at the first check is not replaced.
fn rename_into_place(target: &ReplaceTarget, temporary: &OsStr) -> Result<(), FileError> {
    let ReplaceTarget { folder, name, existing: before } = target;
    if before.is_some() {
        return Ok(renameat(folder, temporary, folder, name)?);
    }
    let renamed = match renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
        // Some network file systems don't support this flag. A hard link doesn't replace an existing file
        // either.
        Err(Errno::INVAL | Errno::NOSYS) => linkat(folder, temporary, folder, name, AtFlags::empty())
            .and_then(|()| unlinkat(folder, temporary, AtFlags::empty())),
        renamed => renamed,
    };
    match renamed {
        Err(Errno::EXIST) => Err(FileError::ChangedMeanwhile),
        renamed => Ok(renamed?),
    }
}

/// Syncs the names in a folder to disk.
pub(super) fn sync_folder(folder: &OwnedFd) -> Result<(), FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::fsync(openat(folder, c".", flags, Mode::empty())?)?)
}

fn write_content(file: OwnedFd, content: &[u8], before: Option<&Stat>) -> Result<(), FileError> {
    if let Some(before) = before {
        let new = fstat(&file)?;
        if (new.st_uid, new.st_gid) != (before.st_uid, before.st_gid) {
            let user = rustix::fs::Uid::from_raw(before.st_uid);
            let group = rustix::fs::Gid::from_raw(before.st_gid);
            // Only root can change the owner. For other users the new file belongs to them.
            let _ = fchown(&file, Some(user), Some(group));
        }
        fchmod(&file, Mode::from_raw_mode(before.st_mode & 0o777))?;
    }
    let mut file = File::from(file);
    file.write_all(content)?;
    file.sync_all()?;
    Ok(())
}

/// Returns a name that an attacker can't guess.
fn temporary_name() -> Result<OsString, FileError> {
    let mut random = [0_u8; 12];
    getrandom::fill(&mut random).map_err(|error| FileError::Io(std::io::Error::other(error)))?;
    Ok(OsStr::new(&format!(".{}.collieclaw", HEXLOWER.encode(&random))).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::WorkspaceHandle;
    use collieclaw_gate::{AutonomyLevel, GatePolicy, PathBounds};

    #[test]
    fn a_file_created_in_the_meantime_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = WorkspaceHandle::open(folder.path()).unwrap();
        let policy = GatePolicy {
            autonomy: AutonomyLevel::Supervised,
            workspace: workspace.path().to_owned(),
            bounds: PathBounds::Workspace,
            user_home: "/nowhere".into(),
            own_home: "/nowhere".into(),
            own_files: Vec::new(),
            forbidden_paths: Vec::new(),
            forbidden_commands: [].into(),
            allowed_commands: [].into(),
            allowed_domains: Vec::new(),
            command_network: Default::default(),
            pinned_programs: Default::default(),
            allowed_scripts: Default::default(),
            project_programs: Default::default(),
            command_cache: None,
        };
        let access = workspace.access_under(&policy);
        let place = workspace.path().join("file");
        let target = access.target(&place).unwrap();
        std::fs::write(&place, "somebody's").unwrap();
        let put = access.write_target(&target, b"ours");
        assert!(matches!(put, Err(FileError::ChangedMeanwhile)), "{put:?}");
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "somebody's");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no sibling is left");
        assert_eq!(access.replace(&place, b"ours").unwrap(), WriteOutcome::Replaced);
    }
}
