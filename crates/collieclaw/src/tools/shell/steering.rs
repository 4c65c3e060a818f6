//! What makes programs that the operator starts in the workspace later run something else. Where it is there, the sandbox
//! keeps it as it is; where it is not, nothing in the kernel keeps a command from making it, so it is set aside afterwards.
//!
//! Everything is done beneath handles from before the line: a command may have put a link where a folder was.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, fstat, openat, renameat_with, statat};
use rustix::io::Errno;

use super::super::room::STEERING;

/// A folder that holds such things, as it was before the line.
pub(super) struct Steering {
    folders: Vec<Folder>,
}

struct Folder {
    path: PathBuf,
    /// `None` if it was not there.
    handle: Option<OwnedFd>,
    /// What was missing in it.
    missing: Vec<OsString>,
}

impl Steering {
    /// Looks before a line begins that may write.
    pub(super) fn look(workspace: &Path) -> Self {
        let mut folders: Vec<Folder> = Vec::new();
        for path in STEERING.iter().map(|name| workspace.join(name)) {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let known = folders.iter().position(|folder| folder.path == parent);
            let place = known.unwrap_or_else(|| {
                folders.push(Folder {
                    path: parent.to_owned(),
                    handle: opened(parent).ok(),
                    missing: Vec::new(),
                });
                folders.len() - 1
            });
            let Some(folder) = folders.get_mut(place) else { continue };
            if folder.handle.as_ref().is_some_and(|handle| !is_there(handle, name)) {
                folder.missing.push(name.to_owned());
            }
        }
        Self { folders }
    }

    /// Sets aside what has come since. What is told of it, a line each.
    pub(super) fn set_aside(self) -> Vec<String> {
        self.folders.iter().flat_map(Folder::set_aside).collect()
    }
}

impl Folder {
    fn set_aside(&self) -> Vec<String> {
        let path = self.path.display();
        let Some(handle) = &self.handle else {
            let new = self.path.symlink_metadata().is_ok();
            let told =
                format!("collieclaw: `{path}` is new: programs that are started here obey its settings");
            return new.then_some(told).into_iter().collect();
        };
        let mut told = Vec::new();
        if !is_still(&self.path, handle) {
            told.push(format!(
                "collieclaw: `{path}` is another one now: look before you use programs that obey it"
            ));
        }
        for name in self.missing.iter().filter(|name| is_there(handle, name)) {
            let which = self.path.join(name);
            told.push(match aside(handle, name) {
                Ok(place) => format!(
                    "collieclaw: `{}` would steer other programs; it was set aside as {}",
                    which.display(),
                    place.display()
                ),
                Err(error) => format!(
                    "collieclaw: `{}` steers other programs, and can't be set aside ({error}): remove it before you \
                     use them here",
                    which.display()
                ),
            });
        }
        told
    }
}

fn opened(folder: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, folder, flags, Mode::empty())
}

fn is_there(folder: &OwnedFd, name: &OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn is_still(path: &Path, handle: &OwnedFd) -> bool {
    let identity = |folder: &OwnedFd| fstat(folder).map(|status| (status.st_dev, status.st_ino));
    opened(path).and_then(|now| Ok(identity(&now)? == identity(handle)?)).unwrap_or(false)
}

/// Beside it, under a name that means nothing to anyone.
fn aside(folder: &OwnedFd, name: &OsStr) -> Result<PathBuf, Errno> {
    /// More than anyone makes in a day.
    const MOST: u32 = 1_000;
    for number in 1..=MOST {
        let mut place = name.to_owned();
        place.push(format!(".set-aside-{number}"));
        match renameat_with(folder, name, folder, &place, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            renamed => return renamed.map(|()| place.into()),
        }
    }
    Err(Errno::EXIST)
}
