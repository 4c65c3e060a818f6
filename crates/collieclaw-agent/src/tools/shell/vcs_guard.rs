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

use super::super::tool_sandbox::VCS_CONFIG_PATHS;

/// The folders that hold such things, as they were before the line.
pub(super) struct VcsConfigGuard {
    folders: Vec<(PathBuf, FolderSnapshot)>,
}

enum FolderSnapshot {
    /// There was nothing.
    Missing,
    /// There was a link, or a file that names another place: what is there is not the workspace's.
    Elsewhere,
    /// It was there, without these.
    Folder { handle: OwnedFd, missing: Vec<&'static OsStr> },
}

impl VcsConfigGuard {
    /// Looks before a line begins that may write.
    pub(super) fn snapshot(workspace: &Path) -> Self {
        let paths = VCS_CONFIG_PATHS.iter().map(Path::new);
        let mut names: BTreeMap<&Path, Vec<&'static OsStr>> = BTreeMap::new();
        for (folder, name) in paths.filter_map(|path| Some((path.parent()?, path.file_name()?))) {
            names.entry(folder).or_default().push(name);
        }
        let looked = |(folder, names): (&Path, Vec<&'static OsStr>)| {
            let path = workspace.join(folder);
            let before = match open_folder(&path) {
                Ok(handle) => {
                    let missing = names.into_iter().filter(|name| !exists_in(&handle, name)).collect();
                    FolderSnapshot::Folder { handle, missing }
                }
                Err(Errno::NOENT) => FolderSnapshot::Missing,
                Err(_) => FolderSnapshot::Elsewhere,
            };
            (path, before)
        };
        Self { folders: names.into_iter().map(looked).collect() }
    }

    /// Sets aside what has come since. What is told of it, a line each.
    pub(super) fn set_aside_new_files(self) -> Vec<String> {
        self.folders.iter().flat_map(|(path, before)| before.set_aside_new_files(path)).collect()
    }
}

impl FolderSnapshot {
    fn set_aside_new_files(&self, path: &Path) -> Vec<String> {
        let mut told = Vec::new();
        let (handle, missing) = match self {
            Self::Elsewhere => return told,
            Self::Missing => {
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
        if !is_same_folder(path, handle) {
            told.push(format!(
                "collieclaw: `{}` is another one now: look before you use programs that obey it",
                path.display()
            ));
        }
        for name in missing.iter().filter(|name| exists_in(handle, name)) {
            let which = path.join(name);
            told.push(match rename_aside(handle, name) {
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

fn open_folder(folder: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, folder, flags, Mode::empty())
}

fn exists_in(folder: &OwnedFd, name: &OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn is_same_folder(path: &Path, handle: &OwnedFd) -> bool {
    let identity = |folder: &OwnedFd| fstat(folder).map(|status| (status.st_dev, status.st_ino));
    open_folder(path).and_then(|now| Ok(identity(&now)? == identity(handle)?)).unwrap_or(false)
}

/// Beside it, under a name that means nothing to anyone.
fn rename_aside(folder: &OwnedFd, name: &OsStr) -> Result<PathBuf, Errno> {
    /// More than anyone makes in a day.
    const MAX_ATTEMPTS: u32 = 1_000;
    for number in 1..=MAX_ATTEMPTS {
        let mut place = name.to_owned();
        place.push(format!(".set-aside-{number}"));
        match renameat_with(folder, name, folder, &place, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            renamed => return renamed.map(|()| place.into()),
        }
    }
    Err(Errno::EXIST)
}
