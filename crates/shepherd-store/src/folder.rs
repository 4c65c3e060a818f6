//! The folder of a store: its files, and the lock that gives it to one daemon.
//!
//! `shepherd.db` with SQLite's `-wal` and `-shm`, `shepherd.db.head` with its generation and checksum, `audit.log` with
//! its own head and segments, `shepherd.pulse` with the last heartbeat, `shepherd.lock`, and `damaged-…` folders with
//! files that had to be set aside.
//!
//! The lock file is empty until there is a database. From then on it contains a mark, so that a folder from which
//! everything else was removed isn't taken for a new one.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::error::StoreOpenError;
use crate::path_exposure::{ExposedPath, find_exposed_ancestors};
use crate::quarantine::DAMAGED;

const DATABASE: &str = "shepherd.db";
const AUDIT_LOG: &str = "audit.log";
const LOCK_FILE: &str = "shepherd.lock";
const HEARTBEAT_FILE: &str = "shepherd.pulse";
/// A database that is being created; it gets its final name when it is complete.
const UNFINISHED_DATABASE: &str = "new-shepherd.db";

/// The mark in the lock file once there is a database. Any content counts, so a half-written mark does too.
const INITIALIZED_MARK: &[u8] = b"There is a store in this folder.\n";

/// Permission bits that let other users change a folder or file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Returns the path of a store's audit log.
#[must_use]
pub fn audit_log_path(folder: &Path) -> PathBuf {
    folder.join(AUDIT_LOG)
}

pub(crate) fn heartbeat_path(folder: &Path) -> PathBuf {
    folder.join(HEARTBEAT_FILE)
}

/// A folder that no other process uses while this value lives.
#[derive(Debug)]
pub(crate) struct StoreFolder {
    path: PathBuf,
    /// Folders in which others could replace the store's folder.
    exposed: Vec<ExposedPath>,
    lock: File,
}

impl StoreFolder {
    /// Claims the folder, and creates it where there is none and no other user can have removed it.
    pub(crate) fn claim(folder: &Path) -> Result<Self, StoreOpenError> {
        let file_error = |step| move |source| StoreOpenError::File { step, path: folder.to_owned(), source };
        let user = geteuid().as_raw();
        let exposed = find_exposed_ancestors(folder, user).map_err(file_error("find"))?;
        if let Some(exposed) = exposed.first().filter(|_| !folder.exists()) {
            return Err(StoreOpenError::Exposed { path: folder.to_owned(), exposed: exposed.clone() });
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(file_error("create"))?;
        // SQLite is opened without following symlinks, which also applies to the folders above the file.
        let path = fs::canonicalize(folder).map_err(file_error("find"))?;
        check_private(&path, &fs::metadata(&path).map_err(file_error("look at"))?, user)?;
        let lock_path = path.join(LOCK_FILE);
        let lock = private_open_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|source| StoreOpenError::File { step: "open", path: lock_path.clone(), source })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreOpenError::InUse { path }),
            Err(TryLockError::Error(source)) => {
                return Err(StoreOpenError::File { step: "lock", path: lock_path, source });
            }
        }
        let claimed = Self { path, exposed, lock };
        for name in claimed.list_contents()?.file_names() {
            let path = claimed.path.join(name);
            let metadata = fs::symlink_metadata(&path).map_err(|source| StoreOpenError::File {
                step: "look at",
                path: path.clone(),
                source,
            })?;
            check_private(&path, &metadata, user)?;
        }
        Ok(claimed)
    }

    /// Marks in the lock file that there is a database, so that its absence isn't taken for a new folder.
    pub(crate) fn mark_initialized(&self) -> Result<(), StoreOpenError> {
        let mark = || {
            if self.is_initialized()? {
                return Ok(());
            }
            self.lock.write_all_at(INITIALIZED_MARK, 0)?;
            self.lock.sync_all()?;
            sync_folder(&self.path)
        };
        mark().map_err(|source| StoreOpenError::File {
            step: "write",
            path: self.path.join(LOCK_FILE),
            source,
        })
    }

    fn is_initialized(&self) -> io::Result<bool> {
        Ok(self.lock.metadata()?.len() > 0)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn exposed_paths(&self) -> &[ExposedPath] {
        &self.exposed
    }

    pub(crate) fn database_path(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn unfinished_database_path(&self) -> PathBuf {
        self.path.join(UNFINISHED_DATABASE)
    }

    pub(crate) fn head_path(&self) -> PathBuf {
        self.path.join(format!("{DATABASE}.head"))
    }

    pub(crate) fn audit_log_path(&self) -> PathBuf {
        audit_log_path(&self.path)
    }

    /// Returns what the folder contains now.
    pub(crate) fn list_contents(&self) -> Result<StoreFolderContents, StoreOpenError> {
        let look = || {
            let mut contents = StoreFolderContents {
                is_initialized: self.is_initialized()?,
                ..StoreFolderContents::default()
            };
            for entry in fs::read_dir(&self.path)? {
                // Our names are all ASCII; a name that isn't text belongs to another program.
                let Ok(name) = entry?.file_name().into_string() else { continue };
                if name.starts_with(UNFINISHED_DATABASE) {
                    contents.unfinished.push(name);
                } else if name.starts_with(DATABASE) {
                    contents.database.push(name);
                } else if name.starts_with(AUDIT_LOG) {
                    contents.audit.push(name);
                } else if name.starts_with(DAMAGED) {
                    contents.damaged.push(name);
                } else if name == LOCK_FILE {
                    contents.lock = Some(name);
                } else if name == HEARTBEAT_FILE {
                    contents.pulse = Some(name);
                }
            }
            contents.damaged.sort();
            Ok(contents)
        };
        look().map_err(|source| StoreOpenError::File { step: "list", path: self.path.clone(), source })
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        // A program that another thread is starting shares our files and thus the lock until its `execve`, so closing
        // ours would not be enough. If this fails, the lock ends with the process.
        self.lock.unlock().ok();
    }
}

/// The files of a store, by what they belong to.
#[derive(Debug, Default)]
pub(crate) struct StoreFolderContents {
    pub(crate) database: Vec<String>,
    pub(crate) audit: Vec<String>,
    pub(crate) unfinished: Vec<String>,
    /// Folders with files that were set aside, oldest first.
    pub(crate) damaged: Vec<String>,
    lock: Option<String>,
    pulse: Option<String>,
    /// True if the lock file marks a database.
    is_initialized: bool,
}

impl StoreFolderContents {
    /// Returns whether there has never been a store here, as far as can be known.
    pub(crate) fn is_never_used(&self) -> bool {
        !self.is_initialized && self.database.is_empty() && self.audit.is_empty() && self.damaged.is_empty()
    }

    fn file_names(&self) -> impl Iterator<Item = &String> {
        let lists = [&self.database, &self.audit, &self.unfinished, &self.damaged];
        lists.into_iter().flatten().chain(&self.lock).chain(&self.pulse)
    }

    pub(crate) fn has_database(&self) -> bool {
        self.database.iter().any(|name| name == DATABASE)
    }
}

/// Refuses a file that any user but `user` and root can change.
fn check_private(path: &Path, metadata: &Metadata, user: u32) -> Result<(), StoreOpenError> {
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(StoreOpenError::Owner { path: path.to_owned(), owner, user });
    }
    let mode = metadata.permissions().mode() & 0o7777;
    // The mode of a symlink has no meaning, and symlinks are refused when they are opened.
    if !metadata.is_symlink() && mode & WRITABLE_BY_OTHERS != 0 {
        return Err(StoreOpenError::Mode { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Opens a file for us alone, and never through a symlink.
pub(crate) fn private_open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_user_are_not_private() {
        let folder = tempfile::tempdir().unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(65_534), None).unwrap();
        }
        let metadata = fs::metadata(folder.path()).unwrap();
        let owner = metadata.uid();
        check_private(folder.path(), &metadata, owner).unwrap();
        for user in [0, owner + 1] {
            let refused = check_private(folder.path(), &metadata, user).unwrap_err();
            assert!(matches!(refused, StoreOpenError::Owner { .. }), "{refused}");
        }
    }
}
