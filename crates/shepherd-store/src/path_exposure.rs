//! The folders above a store. A user who can write to one of them can rename the store's folder and put an empty one or
//! another store in its place; no file within the store can reveal that.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The sticky bit: everybody may create files in the folder, but rename only their own.
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A folder above a store in which another user than root and the daemon's can rename things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposedPath {
    /// The path of the folder.
    pub path: PathBuf,
    /// The other user.
    pub to: ExposedTo,
}

/// The users who can rename things in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExposedTo {
    /// Another user, who owns the folder.
    Owner(u32),
    /// The group or everybody, by these permission bits.
    Mode(u32),
}

impl fmt::Display for ExposedPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.to {
            ExposedTo::Owner(owner) => write!(
                formatter,
                "{path} belongs to user {owner}, who can replace the folder of the store; \
                 keep the store where only root and the daemon's user can write"
            ),
            ExposedTo::Mode(mode) => write!(
                formatter,
                "{path} has mode {mode:04o}, so other users can replace the folder of the store; \
                 run `chmod go-w {path}`"
            ),
        }
    }
}

/// Returns every such folder above `folder`, which need not exist; symlinks on the way are followed.
pub(crate) fn find_exposed_ancestors(folder: &Path, user: u32) -> io::Result<Vec<ExposedPath>> {
    let written = std::path::absolute(folder)?;
    let mut above: Vec<PathBuf> = written.ancestors().skip(1).map(Path::to_owned).collect();
    if let Some(there) = written.ancestors().find(|path| path.exists()) {
        let real = fs::canonicalize(there)?;
        let skipped = usize::from(there == written);
        above.extend(real.ancestors().skip(skipped).map(Path::to_owned));
    }
    above.sort();
    above.dedup();
    let mut found = Vec::new();
    for path in above {
        // A missing folder can't be renamed; one that can't be inspected is refused when it is opened.
        if let Ok(metadata) = fs::metadata(&path) {
            found.extend(check_exposure(&metadata, user).map(|to| ExposedPath { path, to }));
        }
    }
    Ok(found)
}

/// Returns the same for a file to be read: every folder above it, and the file itself, that others can change.
///
/// # Errors
/// The path can't be inspected.
pub fn find_exposed_for_file(file: &Path, user: u32) -> io::Result<Vec<ExposedPath>> {
    let mut found = find_exposed_ancestors(file, user)?;
    if let Ok(metadata) = fs::metadata(file) {
        // The sticky bit protects the files in a folder, not a single file.
        let mode = metadata.permissions().mode() & 0o7777;
        let writable = (mode & WRITABLE_BY_OTHERS != 0).then_some(ExposedTo::Mode(mode));
        found.extend(
            check_exposure(&metadata, user).or(writable).map(|to| ExposedPath { path: file.to_owned(), to }),
        );
    }
    Ok(found)
}

fn check_exposure(metadata: &Metadata, user: u32) -> Option<ExposedTo> {
    let (owner, mode) = (metadata.uid(), metadata.permissions().mode() & 0o7777);
    if owner != user && owner != 0 {
        return Some(ExposedTo::Owner(owner));
    }
    (mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0).then_some(ExposedTo::Mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_user_is_exposed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = fs::metadata(folder.path()).unwrap();
        assert_eq!(check_exposure(&metadata, metadata.uid()), None);
        let stranger = metadata.uid() + 1;
        // A file of root is safe, no matter which user runs the daemon.
        let expected = (metadata.uid() != 0).then_some(ExposedTo::Owner(metadata.uid()));
        assert_eq!(check_exposure(&metadata, stranger), expected);
    }

    #[test]
    fn a_file_that_others_can_write_is_exposed_also_where_they_can_rename_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let found = || find_exposed_for_file(&file, user).unwrap();
        set(&file, 0o644);
        assert_eq!(found(), []);
        set(&file, 0o1666);
        assert_eq!(found(), [ExposedPath { path: file.clone(), to: ExposedTo::Mode(0o1666) }]);
        set(&file, 0o644);
        set(folder.path(), 0o770);
        assert_eq!(found(), [ExposedPath { path: folder.path().to_owned(), to: ExposedTo::Mode(0o770) }]);
    }

    #[test]
    fn every_folder_above_counts_and_the_store_itself_does_not() {
        let parent = tempfile::tempdir().unwrap();
        let way = parent.path().join("outer/inner");
        fs::create_dir_all(way.join("store")).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let found = |folder: &Path| find_exposed_ancestors(folder, user).unwrap();
        set(&way.join("store"), 0o777);
        assert_eq!(found(&way.join("store")), []);
        set(way.parent().unwrap(), 0o770);
        let expected = [ExposedPath { path: way.parent().unwrap().to_owned(), to: ExposedTo::Mode(0o770) }];
        assert_eq!(found(&way.join("store")), expected);
        assert_eq!(found(&way.join("not/there")), expected);
        // A symlink in a safe folder leads there.
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(way.join("store"), &link).unwrap();
        assert_eq!(found(&link), expected);
        set(way.parent().unwrap(), 0o1777);
        assert_eq!(found(&way.join("store")), []);
    }
}
