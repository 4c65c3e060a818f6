//! Protection of version control settings, which can make programs that the operator runs later execute
//! commands. Existing files are read-only in the sandbox. The kernel can't keep a command from creating
//! missing ones, so new files are renamed afterwards.
//!
//! All access goes through handles that were opened before the line ran, because a command may have replaced
//! a folder by a symlink.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, fstat, openat, renameat_with, statat};
use rustix::io::Errno;

use super::super::tool_sandbox::VCS_CONFIG_PATHS;

/// The folders with such settings, as they were before the line ran.
pub(super) struct VcsConfigGuard {
    folders: Vec<(PathBuf, FolderSnapshot)>,
}

enum FolderSnapshot {
    /// The folder didn't exist.
    Missing,
    /// The path was a symlink, or a file that refers to another folder. Its target doesn't belong to the
    /// workspace.
    Elsewhere,
    /// The folder existed, without the `missing` files.
    Folder { handle: OwnedFd, missing: Vec<&'static OsStr> },
}

impl VcsConfigGuard {
    /// Records the state before a line runs that may write.
    pub(super) fn snapshot(workspace: &Path) -> Self {
        let paths = VCS_CONFIG_PATHS.iter().map(Path::new);
        let mut names: BTreeMap<&Path, Vec<&'static OsStr>> = BTreeMap::new();
        for (folder, name) in paths.filter_map(|path| Some((path.parent()?, path.file_name()?))) {
            names.entry(folder).or_default().push(name);
        }
        let snapshot = |(folder, names): (&Path, Vec<&'static OsStr>)| {
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
        Self { folders: names.into_iter().map(snapshot).collect() }
    }

    /// Renames new files, and returns one message for each.
    pub(super) fn set_aside_new_files(self) -> Vec<String> {
        self.folders.iter().flat_map(|(path, before)| before.set_aside_new_files(path)).collect()
    }
}

impl FolderSnapshot {
    fn set_aside_new_files(&self, path: &Path) -> Vec<String> {
        let mut messages = Vec::new();
        let (handle, missing) = match self {
            Self::Elsewhere => return messages,
            Self::Missing => {
                if path.symlink_metadata().is_ok() {
                    messages.push(format!(
                        "collieclaw: `{}` is new. Check its settings before you run programs that use them",
                        path.display()
                    ));
                }
                return messages;
            }
            Self::Folder { handle, missing } => (handle, missing),
        };
        if !is_same_folder(path, handle) {
            messages.push(format!(
                "collieclaw: `{}` was replaced. Check its settings before you run programs that use them",
                path.display()
            ));
        }
        for name in missing.iter().filter(|name| exists_in(handle, name)) {
            messages.push(rename_file(handle, name, &path.join(name)));
        }
        messages
    }
}

/// Renames a file that could make other programs run commands, and returns a message.
pub(super) fn rename_file(folder: &OwnedFd, name: &OsStr, file: &Path) -> String {
    match rename_aside(folder, name) {
        Ok(new_name) => format!(
            "collieclaw: `{}` could make other programs run commands, so it was renamed to {}",
            file.display(),
            new_name.display()
        ),
        Err(error) => rename_failure(file, error),
    }
}

/// Returns the message about a file that could not be renamed.
pub(super) fn rename_failure(file: &Path, error: Errno) -> String {
    format!(
        "collieclaw: `{}` could make other programs run commands, and could not be renamed ({error}). Remove it before \
         you run programs here",
        file.display()
    )
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

/// Renames a file within its folder, to a name that no program uses.
fn rename_aside(folder: &OwnedFd, name: &OsStr) -> Result<PathBuf, Errno> {
    /// More names than a command will ever take.
    const MAX_ATTEMPTS: u32 = 1_000;
    for number in 1..=MAX_ATTEMPTS {
        let mut new_name = name.to_owned();
        new_name.push(format!(".set-aside-{number}"));
        match renameat_with(folder, name, folder, &new_name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            renamed => return renamed.map(|()| new_name.into()),
        }
    }
    Err(Errno::EXIST)
}
