//! What makes programs that the operator starts in the workspace later run something else. Where it is there, the sandbox
//! keeps it as it is; where it is not, nothing in the kernel keeps a command from making it, so it is set aside afterwards.
//!
//! Everything is done beneath handles from before the line: a command may have put a link where a folder was.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, fstat, openat, renameat_with, statat};
use rustix::io::Errno;

use super::super::room::STEERING;

/// The folders that hold such things, as they were before the line.
pub(super) struct Steering {
    folders: Vec<(PathBuf, Before)>,
}

enum Before {
    /// There was nothing.
    Nothing,
    /// There was a link, or a file that names another place: what is there is not the workspace's.
    Elsewhere,
    /// It was there, without these.
    Folder { handle: OwnedFd, missing: Vec<&'static OsStr> },
}

impl Steering {
    /// Looks before a line begins that may write.
    pub(super) fn look(workspace: &Path) -> Self {
        let paths = STEERING.iter().map(Path::new);
        let mut names: BTreeMap<&Path, Vec<&'static OsStr>> = BTreeMap::new();
        for (folder, name) in paths.filter_map(|path| Some((path.parent()?, path.file_name()?))) {
            names.entry(folder).or_default().push(name);
        }
        let looked = |(folder, names): (&Path, Vec<&'static OsStr>)| {
            let path = workspace.join(folder);
            let before = match opened(&path) {
                Ok(handle) => {
                    let missing = names.into_iter().filter(|name| !is_there(&handle, name)).collect();
                    Before::Folder { handle, missing }
                }
                Err(Errno::NOENT) => Before::Nothing,
                Err(_) => Before::Elsewhere,
            };
            (path, before)
        };
        Self { folders: names.into_iter().map(looked).collect() }
    }

    /// Sets aside what has come since. What is told of it, a line each.
    pub(super) fn set_aside(self) -> Vec<String> {
        self.folders.iter().flat_map(|(path, before)| before.set_aside(path)).collect()
    }
}

impl Before {
    fn set_aside(&self, path: &Path) -> Vec<String> {
        let mut told = Vec::new();
        let (handle, missing) = match self {
            Self::Elsewhere => return told,
            Self::Nothing => {
                if path.symlink_metadata().is_ok() {
                    told.push(format!(
                        "collieclaw: `{}` is new: programs that are started here obey its settings",
                        path.display()
                    ));
                }
                return told;
            }
            Self::Folder { handle, missing } => (handle, missing),
        };
        if !is_still(path, handle) {
            told.push(format!(
                "collieclaw: `{}` is another one now: look before you use programs that obey it",
                path.display()
            ));
        }
        for name in missing.iter().filter(|name| is_there(handle, name)) {
            let which = path.join(name);
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
