//! Gives a workspace's `CARGO_HOME` the crates that the user has already downloaded, so that `cargo build --offline`
//! works.
//!
//! The index is copied, because cargo writes to it. Each downloaded crate is a symlink to the user's file, which the
//! sandbox shows for reading: nothing that runs in the workspace can change the user's own files. Cargo unpacks the
//! sources into the workspace's cache.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::SystemTime;

/// The largest file of an index that is copied. The files of the sparse index are a few kilobytes each.
const MAX_INDEX_FILE_BYTES: u64 = 8 << 20;

/// The depth of an index: the registry, `.cache`, two folders of letters, and the file.
const MAX_INDEX_DEPTH: usize = 6;

/// Adds the crates of `user` to `own`. A crate that can't be added is missing offline, and cargo says so.
pub(super) fn seed_cargo_home(user: &Path, own: &Path) {
    let mark = own.join(".seeded");
    if !is_newer(user, &mark) {
        return;
    }
    for registry in folders_in(&user.join("registry/cache")) {
        link_files(&user.join("registry/cache").join(&registry), &own.join("registry/cache").join(&registry));
    }
    for registry in folders_in(&user.join("registry/index")) {
        let (from, to) =
            (user.join("registry/index").join(&registry), own.join("registry/index").join(&registry));
        copy_index(&from, &to, MAX_INDEX_DEPTH);
    }
    if fs::create_dir_all(own.join("git/db")).is_ok() {
        for repository in folders_in(&user.join("git/db")) {
            let _ = symlink(user.join("git/db").join(&repository), own.join("git/db").join(&repository));
        }
    }
    // The next start seeds again.
    let _ = fs::write(mark, "");
}

/// Returns whether the user has downloaded crates since the mark was made.
fn is_newer(user: &Path, mark: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|known| known.modified()).ok();
    let Some(seeded) = changed(mark) else { return user.join("registry").is_dir() };
    let registries = folders_in(&user.join("registry/cache"));
    let caches = registries.iter().map(|name| user.join("registry/cache").join(name));
    caches
        .chain([user.join("git/db")])
        .filter_map(|folder| changed(&folder))
        .any(|time: SystemTime| time > seeded)
}

fn folders_in(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.file_name()).collect()
}

fn link_files(from: &Path, to: &Path) {
    if fs::create_dir_all(to).is_err() {
        return;
    }
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        // An existing file is the same crate, or one that the workspace has downloaded itself.
        let _ = symlink(entry.path(), to.join(entry.file_name()));
    }
}

/// Copies an index, except for large files and repositories. Existing files are kept if they are newer.
fn copy_index(from: &Path, to: &Path, depth: usize) {
    if depth == 0 || fs::create_dir_all(to).is_err() {
        return;
    }
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let Ok(known) = entry.metadata() else { continue };
        if known.is_dir() && entry.file_name() != ".git" {
            copy_index(&source, &target, depth - 1);
        } else if known.is_file() && known.len() <= MAX_INDEX_FILE_BYTES {
            let is_current = target
                .symlink_metadata()
                .is_ok_and(|there| !there.is_file() || there.modified().ok() >= known.modified().ok());
            if !is_current {
                let _ = fs::copy(&source, &target);
            }
        }
    }
}
