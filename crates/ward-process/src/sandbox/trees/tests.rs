use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A workspace with a folder, beside something precious.
fn workspace() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("workspace/a/out")).unwrap();
    fs::create_dir_all(place.path().join("precious/out")).unwrap();
    place
}

/// Where the tree `path` is found if `writable` can be written; both are relative to the place.
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
fn links_in_a_writable_tree_lead_nowhere() {
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
fn no_detour_hides_a_writable_tree() {
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
    // What is one folder up depends on where the program moves this one meanwhile.
    check_refused(&place, &["workspace"], "workspace/a/../a/out", "workspace");
}

#[test]
fn links_of_links_end_somewhere() {
    let place = workspace();
    symlink("second", place.path().join("first")).unwrap();
    symlink("first", place.path().join("second")).unwrap();
    let error = resolved_path(&place, &[], "first").unwrap_err();
    assert!(matches!(error, SandboxError::Tree { source, .. } if source.raw_os_error() == Some(libc::ELOOP)));
}
