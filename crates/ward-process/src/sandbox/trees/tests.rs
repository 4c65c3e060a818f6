use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Makes a folder with `workspace/a/out`, which a program may change, and `precious/out`, which it must not
/// reach.
fn workspace() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("workspace/a/out")).unwrap();
    fs::create_dir_all(place.path().join("precious/out")).unwrap();
    place
}

/// Opens the tree `path` with the writable trees `writable` and returns where it really is. All paths are
/// relative to `place`.
fn resolved_path(place: &tempfile::TempDir, writable: &[&str], path: &str) -> Result<PathBuf, SandboxError> {
    let write: Vec<_> = writable.iter().map(|tree| place.path().join(tree)).collect();
    let tree = WritableRoots::resolve(&write)?.open(&place.path().join(path))?;
    let real = fs::canonicalize(place.path()).unwrap();
    let text = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&tree.handle)));
    Ok(text.unwrap().strip_prefix(real).unwrap().to_owned())
}

fn check_found(place: &tempfile::TempDir, writable: &[&str], path: &str, expected: &str) {
    assert_eq!(
        resolved_path(place, writable, path).unwrap(),
        Path::new(expected),
        "{path} with {writable:?}"
    );
}

fn check_refused(place: &tempfile::TempDir, writable: &[&str], path: &str, by: &str) {
    match resolved_path(place, writable, path) {
        Err(SandboxError::Link { writable, .. }) => assert!(writable.ends_with(by), "{writable:?}"),
        other => panic!("{path} with {writable:?}: {other:?}"),
    }
}

#[test]
fn folders_in_a_writable_tree_are_found() {
    let place = workspace();
    for writable in [&["workspace"][..], &["workspace", "workspace/a/out"], &["workspace/a/out", "workspace"]]
    {
        check_found(&place, writable, "workspace/a/out", "workspace/a/out");
        check_found(&place, writable, "workspace", "workspace");
    }
}

#[test]
fn symlinks_in_a_writable_tree_are_refused() {
    let place = workspace();
    fs::rename(place.path().join("workspace/a"), place.path().join("workspace/b")).unwrap();
    symlink(place.path().join("precious"), place.path().join("workspace/a")).unwrap();
    symlink("../precious", place.path().join("workspace/relative")).unwrap();
    symlink("b", place.path().join("workspace/within")).unwrap();
    for path in ["workspace/a", "workspace/a/out", "workspace/relative/out", "workspace/within/out"] {
        check_refused(&place, &["workspace"], path, "workspace");
        check_refused(&place, &["workspace", path], path, "workspace");
        check_refused(&place, &[path, "workspace"], path, "workspace");
    }
    check_found(&place, &["precious"], "workspace/a/out", "precious/out");
}

#[test]
fn a_detour_does_not_hide_that_a_tree_is_writable() {
    let place = workspace();
    symlink("workspace", place.path().join("detour")).unwrap();
    symlink("../precious", place.path().join("workspace/link")).unwrap();
    check_found(&place, &["workspace"], "detour/a/out", "workspace/a/out");
    check_found(&place, &["detour"], "workspace/a/out", "workspace/a/out");
    check_found(&place, &["workspace"], "precious/../workspace/a", "workspace/a");
    for path in ["detour/link/out", "precious/../workspace/link", "workspace/link/out"] {
        check_refused(&place, &["workspace"], path, "workspace");
        check_refused(&place, &["detour"], path, "detour");
    }
    // The program could move `a` at the same time, and `..` would then lead elsewhere.
    check_refused(&place, &["workspace"], "workspace/a/../a/out", "workspace");
}

#[test]
fn a_loop_of_symlinks_is_an_error() {
    let place = workspace();
    symlink("second", place.path().join("first")).unwrap();
    symlink("first", place.path().join("second")).unwrap();
    let error = resolved_path(&place, &[], "first").unwrap_err();
    assert!(matches!(error, SandboxError::Tree { source, .. } if source.raw_os_error() == Some(libc::ELOOP)));
}
