//! Gives a workspace's `CARGO_HOME` the crates that the user has already downloaded, so that `cargo build --offline`
//! works.
//!
//! The index is copied, because cargo writes to it. Each downloaded crate is a symlink to the user's file, which the
//! sandbox shows for reading: nothing that runs in the workspace can change the user's own files. Cargo unpacks the
//! sources into the workspace's cache.
//!
//! Commands can write to the cache, and this code runs outside of the sandbox. So it follows no symlink there and writes
//! to no file that was there before.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, statat, symlinkat, unlinkat};
use rustix::io::Errno;

/// The largest file of an index that is copied. The files of the sparse index are a few kilobytes each.
const MAX_INDEX_FILE_BYTES: u64 = 8 << 20;

/// The depth of an index: the registry, `.cache`, two folders of letters, and the file.
const MAX_INDEX_DEPTH: usize = 6;

/// The file whose time says when the crates were added.
const MARK: &str = ".seeded";

/// Adds the crates of `user` to `own`. A crate that can't be added is missing offline, and cargo says so.
pub(super) fn seed_cargo_home(user: &Path, own: &Path) {
    let Ok(own) = CacheFolder::open(own) else { return };
    if !is_newer(user, &own) {
        return;
    }
    for registry in folders_in(&user.join("registry/cache")) {
        if let Ok(to) = own.create_folders(&["registry".as_ref(), "cache".as_ref(), &registry]) {
            link_entries(&user.join("registry/cache").join(&registry), &to, |_| true);
        }
    }
    for registry in folders_in(&user.join("registry/index")) {
        if let Ok(to) = own.create_folders(&["registry".as_ref(), "index".as_ref(), &registry]) {
            copy_index(&user.join("registry/index").join(&registry), &to, MAX_INDEX_DEPTH);
        }
    }
    if let Ok(to) = own.create_folders(&["git".as_ref(), "db".as_ref()]) {
        link_entries(&user.join("git/db"), &to, |entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    }
    // Without the mark, the next start seeds again.
    let _ = own.write_file(MARK.as_ref(), b"");
}

/// Returns whether the user has downloaded crates since the mark was made.
fn is_newer(user: &Path, own: &CacheFolder) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|known| known.modified()).ok();
    let Some(CacheEntry::File(seeded)) = own.find(MARK.as_ref()) else {
        return user.join("registry").is_dir();
    };
    let registries = folders_in(&user.join("registry/cache"));
    let caches = registries.iter().map(|name| user.join("registry/cache").join(name));
    caches
        .chain([user.join("git/db")])
        .filter_map(|folder| changed(&folder))
        .any(|time: SystemTime| time > seeded)
}

fn folders_in(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.file_name()).collect()
}

fn link_entries(from: &Path, to: &CacheFolder, is_wanted: impl Fn(&fs::DirEntry) -> bool) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten().filter(is_wanted) {
        // An existing file is the same crate, or one that the workspace has downloaded itself.
        let _ = symlinkat(entry.path(), &to.0, entry.file_name());
    }
}

/// Copies an index, except for large files and repositories. Existing files are kept if they are newer.
fn copy_index(from: &Path, to: &CacheFolder, depth: usize) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Ok(known) = entry.metadata() else { continue };
        if known.is_dir() && name != ".git" && depth > 1 {
            if let Ok(below) = to.create_folders(&[&name]) {
                copy_index(&entry.path(), &below, depth - 1);
            }
        } else if known.is_file() && known.len() <= MAX_INDEX_FILE_BYTES {
            let is_current = match to.find(&name) {
                None => false,
                Some(CacheEntry::File(time)) => Some(time) >= known.modified().ok(),
                Some(CacheEntry::Other) => true,
            };
            if !is_current && let Ok(content) = fs::read(entry.path()) {
                let _ = to.write_file(&name, &content);
            }
        }
    }
}

/// A folder of the cache, to which commands can write.
struct CacheFolder(OwnedFd);

/// An entry of a cache folder.
enum CacheEntry {
    /// A file, with the time of its last change.
    File(SystemTime),
    /// A folder, a symlink or something else.
    Other,
}

impl CacheFolder {
    const FLAGS: OFlags =
        OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    fn open(path: &Path) -> Result<Self, Errno> {
        openat(CWD, path, Self::FLAGS, Mode::empty()).map(Self)
    }

    /// Opens a folder below this one, and creates those that are missing on the way. Fails at a symlink.
    fn create_folders(&self, names: &[&OsStr]) -> Result<Self, Errno> {
        let mut folder = openat(&self.0, ".", Self::FLAGS, Mode::empty())?;
        for name in names {
            match mkdirat(&folder, *name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            folder = openat(&folder, *name, Self::FLAGS, Mode::empty())?;
        }
        Ok(Self(folder))
    }

    fn find(&self, name: &OsStr) -> Option<CacheEntry> {
        let status = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Some(CacheEntry::Other);
        }
        let seconds = Duration::from_secs(u64::try_from(status.st_mtime).unwrap_or(0));
        let rest = Duration::from_nanos(status.st_mtime_nsec);
        let time = SystemTime::UNIX_EPOCH.checked_add(seconds.saturating_add(rest));
        Some(time.map_or(CacheEntry::Other, CacheEntry::File))
    }

    /// Writes a new file in place of whatever has this name.
    fn write_file(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?).write_all(content)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn seeding_follows_no_symlink_that_a_command_has_made() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in
            ["user/registry/cache/a", "user/registry/index/a/.cache", "user/git/db/r", "own", "outside"]
        {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("user/registry/cache/a/x.crate"), "crate").unwrap();
        fs::write(at("user/registry/index/a/.cache/x"), "index").unwrap();
        fs::write(at("diary"), "kept").unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        File::options().write(true).open(at("diary")).unwrap().set_modified(old).unwrap();
        symlink(at("diary"), at("own/.seeded")).unwrap();
        symlink(at("outside"), at("own/registry")).unwrap();
        seed_cargo_home(&at("user"), &at("own"));
        assert_eq!(fs::read_to_string(at("diary")).unwrap(), "kept");
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);
        symlink(at("outside"), at("linked")).unwrap();
        seed_cargo_home(&at("user"), &at("linked"));
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);

        fs::remove_file(at("own/registry")).unwrap();
        fs::remove_file(at("own/.seeded")).unwrap();
        seed_cargo_home(&at("user"), &at("own"));
        assert_eq!(fs::read_to_string(at("own/registry/cache/a/x.crate")).unwrap(), "crate");
        assert_eq!(fs::read_to_string(at("own/registry/index/a/.cache/x")).unwrap(), "index");
        assert!(at("own/git/db/r").is_symlink() && at("own/.seeded").is_file());
    }
}
