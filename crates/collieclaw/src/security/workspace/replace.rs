//! Writing a file: beside the old one, then in its place, so that nobody ever sees half of it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use data_encoding::HEXLOWER;
use rustix::fs::{
    Access as Right, AtFlags, Mode, OFlags, RenameFlags, Stat, accessat, fchmod, fchown, fstat, linkat,
    mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::{ATTEMPTS, Access, FileError, one_name, place_of, regular, split};

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// There was no such file.
    Created,
    /// There was one.
    Replaced,
}

/// Where a file goes.
struct Target {
    folder: OwnedFd,
    name: OsString,
    /// The file that is there now.
    before: Option<Stat>,
}

impl Access<'_> {
    /// Makes a file, or replaces it as a whole. Folders that are missing on the way are made. A link is followed to the
    /// file that it leads to, as everybody expects who edits through it; one that leads nowhere is an error.
    ///
    /// # Errors
    /// When it is no regular file, has another name somewhere, or is out of reach.
    pub fn replace(&self, path: &Path, content: &[u8]) -> Result<Written, FileError> {
        for _ in 0..ATTEMPTS {
            match self.target(path).and_then(|target| self.put(&target, content)) {
                Err(FileError::Unsteady) => {}
                put => return put,
            }
        }
        Err(FileError::Unsteady)
    }

    fn target(&self, path: &Path) -> Result<Target, FileError> {
        match self.handle(path) {
            Ok(handle) => self.existing(&handle, path),
            Err(FileError::Missing) => self.new_target(path),
            Err(error) => Err(error),
        }
    }

    fn existing(&self, handle: &OwnedFd, path: &Path) -> Result<Target, FileError> {
        let status = regular(handle)?;
        one_name(&status, path)?;
        let place = place_of(handle.as_fd())?;
        let (parent, name) = split(&place)?;
        let folder = self.folder(parent)?;
        self.judge_new(path, &place_of(folder.as_fd())?.join(&name))?;
        let there = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| FileError::Unsteady)?;
        if (there.st_dev, there.st_ino) != (status.st_dev, status.st_ino) {
            return Err(FileError::Unsteady);
        }
        // Whoever may not write to it may not replace it, either.
        accessat(&folder, &name, Right::WRITE_OK, AtFlags::EACCESS)?;
        Ok(Target { folder, name, before: Some(status) })
    }

    fn new_target(&self, path: &Path) -> Result<Target, FileError> {
        let (parent, name) = split(path)?;
        let folder = self.folder_made(parent)?;
        self.judge_new(path, &place_of(folder.as_fd())?.join(&name))?;
        match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(Target { folder, name, before: None }),
            Ok(status) if super::kind(&status) == rustix::fs::FileType::Symlink => {
                Err(FileError::LeadsNowhere)
            }
            Ok(_) => Err(FileError::Unsteady),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A folder, made with those above it if it is missing.
    fn folder_made(&self, path: &Path) -> Result<OwnedFd, FileError> {
        match self.folder(path) {
            Err(FileError::Missing) => {}
            found => return found,
        }
        let parent = path.parent().ok_or(FileError::Missing)?;
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(FileError::Missing);
        };
        let above = self.folder_made(parent)?;
        self.judge_new(path, &place_of(above.as_fd())?.join(name))?;
        match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => sync(&above)?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&above, name, flags, Mode::empty())?)
    }

    fn put(&self, target: &Target, content: &[u8]) -> Result<Written, FileError> {
        let sibling = sibling_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What replaces a private file is never readable for others, not even for a moment.
        let mode = if target.before.is_some() { 0o600 } else { 0o666 };
        let file = openat(&target.folder, &sibling, flags, Mode::from_raw_mode(mode))?;
        let put = fill(file, content, target.before.as_ref())
            // Whoever was told before now that it was given up finds nothing changed.
            .and_then(|()| self.goes_on())
            .and_then(|()| take_place(target, &sibling));
        if let Err(error) = put {
            // What can't be removed either is litter of ours, beside the untouched file.
            let _ = unlinkat(&target.folder, &sibling, AtFlags::empty());
            return Err(error);
        }
        sync(&target.folder)?;
        Ok(if target.before.is_some() { Written::Replaced } else { Written::Created })
    }
}

/// Gives the sibling the name of the target. A file that was not there when we looked is not replaced.
fn take_place(target: &Target, sibling: &OsStr) -> Result<(), FileError> {
    let Target { folder, name, before } = target;
    if before.is_some() {
        return Ok(renameat(folder, sibling, folder, name)?);
    }
    let taken = match renameat_with(folder, sibling, folder, name, RenameFlags::NOREPLACE) {
        // Some file systems of networks can't. A second name is never put over another file, either.
        Err(Errno::INVAL | Errno::NOSYS) => linkat(folder, sibling, folder, name, AtFlags::empty())
            .and_then(|()| unlinkat(folder, sibling, AtFlags::empty())),
        taken => taken,
    };
    match taken {
        Err(Errno::EXIST) => Err(FileError::Unsteady),
        taken => Ok(taken?),
    }
}

/// Makes the names in a folder durable.
fn sync(folder: &OwnedFd) -> Result<(), FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::fsync(openat(folder, c".", flags, Mode::empty())?)?)
}

fn fill(file: OwnedFd, content: &[u8], before: Option<&Stat>) -> Result<(), FileError> {
    if let Some(before) = before {
        let ours = fstat(&file)?;
        if (ours.st_uid, ours.st_gid) != (before.st_uid, before.st_gid) {
            let user = rustix::fs::Uid::from_raw(before.st_uid);
            let group = rustix::fs::Gid::from_raw(before.st_gid);
            // Only root can give a file away; from others the new file is their own.
            let _ = fchown(&file, Some(user), Some(group));
        }
        fchmod(&file, Mode::from_raw_mode(before.st_mode & 0o777))?;
    }
    let mut file = File::from(file);
    file.write_all(content)?;
    file.sync_all()?;
    Ok(())
}

/// A name that nobody could have guessed and put there.
fn sibling_name() -> Result<OsString, FileError> {
    let mut random = [0_u8; 12];
    getrandom::fill(&mut random).map_err(|error| FileError::Kernel(std::io::Error::other(error)))?;
    Ok(OsStr::new(&format!(".{}.collieclaw", HEXLOWER.encode(&random))).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::Workspace;
    use collieclaw_gate::{Autonomy, Bounds, GatePolicy};

    #[test]
    fn a_file_that_somebody_made_meanwhile_is_not_called_new_nor_replaced_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let policy = GatePolicy {
            autonomy: Autonomy::Supervised,
            workspace: workspace.path().to_owned(),
            bounds: Bounds::Workspace,
            user_home: "/nowhere".into(),
            own_home: "/nowhere".into(),
            own_files: Vec::new(),
            forbidden_paths: Vec::new(),
            forbidden_commands: [].into(),
            allowed_commands: [].into(),
            allowed_domains: Vec::new(),
        };
        let access = workspace.under(&policy);
        let place = workspace.path().join("file");
        let target = access.target(&place).unwrap();
        std::fs::write(&place, "somebody's").unwrap();
        let put = access.put(&target, b"ours");
        assert!(matches!(put, Err(FileError::Unsteady)), "{put:?}");
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "somebody's");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no sibling is left");
        assert_eq!(access.replace(&place, b"ours").unwrap(), Written::Replaced);
    }
}
