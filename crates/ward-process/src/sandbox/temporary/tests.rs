use std::fs;
use std::os::unix::fs::symlink;

use super::super::Sandbox;
use super::*;

fn create_in(parent: &Path) -> PrivateFolder {
    create_for(parent, TreeLifetime::Independent)
}

fn create_for(parent: &Path, lifetime: TreeLifetime) -> PrivateFolder {
    PrivateFolder::create_in(parent, lifetime, &SandboxTrees::open(&Sandbox::default()).unwrap()).unwrap()
}

fn folder() -> (tempfile::TempDir, PrivateFolder) {
    let parent = tempfile::tempdir().unwrap();
    let folder = create_in(parent.path());
    (parent, folder)
}

/// Removes a folder with six times the usual time, because the disk is shared with other tests.
fn remove(folder: &PrivateFolder) -> bool {
    folder.remove_within(&mut RemovalBudget::new(ENTRIES_REMOVED, TIME_TO_REMOVE * 6))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn the_folder_is_private_and_stays_until_it_is_removed() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
    fs::write(path.join("file"), "kept").unwrap();
    drop(folder);
    assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "kept");
    set_mode(&path, 0o000);
    remove_private_folder(&path);
    assert!(!path.exists());
}

#[test]
fn a_symlink_in_place_of_the_folder_is_not_followed() {
    let (parent, folder) = folder();
    let (path, moved) = (folder.path().to_owned(), parent.path().join("moved"));
    fs::write(path.join("file"), "kept").unwrap();
    fs::rename(&path, &moved).unwrap();
    symlink(&moved, &path).unwrap();
    remove_private_folder(&path);
    assert_eq!(fs::read_to_string(moved.join("file")).unwrap(), "kept");
    assert!(path.is_symlink());
}

#[test]
fn a_folder_without_the_prefix_is_not_removed() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("file"), "kept").unwrap();
    for path in [parent.path().to_owned(), parent.path().join("."), "/".into(), PathBuf::new()] {
        remove_private_folder(&path);
    }
    assert!(parent.path().join("file").exists());
}

#[test]
fn two_folders_get_different_names() {
    let parent = tempfile::tempdir().unwrap();
    let first = create_in(parent.path());
    let second = create_in(parent.path());
    assert_ne!(first.path(), second.path());
}

#[test]
fn removal_does_not_follow_symlinks() {
    let (parent, folder) = folder();
    let precious = parent.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "kept").unwrap();
    set_mode(&precious, 0o750);
    symlink(&precious, folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    symlink(&precious, folder.path().join("inner/link")).unwrap();
    symlink(precious.join("file"), folder.path().join("inner/file")).unwrap();
    let path = folder.path().to_owned();
    assert!(remove(&folder));
    assert!(!path.exists());
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "kept");
    assert_eq!(fs::metadata(&precious).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[test]
fn removal_copes_with_folders_without_permissions() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    fs::create_dir_all(path.join("a/b/c")).unwrap();
    fs::write(path.join("a/b/c/file"), "").unwrap();
    for closed in ["a/b/c", "a/b", "a", ""] {
        set_mode(&path.join(closed), 0o000);
    }
    assert!(remove(&folder));
    assert!(!path.exists());
}

#[test]
fn removal_copes_with_a_tree_deeper_than_any_path_or_descriptor_limit() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    let mut at = open_directory(rustix::fs::CWD, &path).unwrap();
    for _ in 0..3_000 {
        rustix::fs::mkdirat(&at, c"deeper", Mode::RWXU).unwrap();
        at = open_directory(&at, c"deeper").unwrap();
    }
    drop(at);
    assert!(remove(&folder));
    assert!(!path.exists());
}

#[test]
fn removal_copes_with_folders_named_like_its_own_moved_ones() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    fs::create_dir(path.join(".removed-1")).unwrap();
    fs::create_dir_all(path.join("a/b")).unwrap();
    fs::create_dir_all(path.join("a/c")).unwrap();
    assert!(remove(&folder));
    assert!(!path.exists());
}

#[test]
fn removal_copes_with_more_folders_than_it_keeps_in_memory() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    for number in 0..FOLDERS_AT_ONCE + 10 {
        fs::create_dir_all(path.join(format!("inner/{number}"))).unwrap();
    }
    assert!(remove(&folder));
    assert!(!path.exists());
}

#[test]
fn remove_folder_accepts_a_missing_folder_and_keeps_the_target_of_a_symlink() {
    let parent = tempfile::tempdir().unwrap();
    let (precious, link) = (parent.path().join("precious"), parent.path().join("link"));
    fs::create_dir(&precious).unwrap();
    symlink(&precious, &link).unwrap();
    assert!(!remove_folder(&link));
    assert!(precious.exists());
    assert!(remove_folder(&precious));
    assert!(!precious.exists());
    assert!(remove_folder(&precious));
}

#[test]
fn removal_copes_with_many_files() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    for number in 0..2_000 {
        fs::write(path.join(format!("a-rather-long-name-of-a-file-{number}")), "").unwrap();
    }
    assert!(remove(&folder));
    assert!(!path.exists());
}

#[test]
fn removal_gives_up_when_its_budget_is_used_up() {
    let (_parent, folder) = folder();
    let path = folder.path().to_owned();
    for number in 0..20 {
        fs::create_dir_all(path.join(format!("{number}/inner"))).unwrap();
    }
    assert!(!folder.remove_within(&mut RemovalBudget::new(10, TIME_TO_REMOVE)));
    assert!(!folder.remove_within(&mut RemovalBudget::new(ENTRIES_REMOVED, Duration::ZERO)));
    assert!(path.exists());
    assert!(remove(&folder));
}

#[test]
fn heavy_removal_gives_up_on_a_folder_that_is_being_filled() {
    let (_parent, folder) = folder();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (folder, done) = (folder.as_fd(), &done);
            scope.spawn(move || {
                for number in 0_u64.. {
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    // Fails once the folder itself has been removed.
                    let _ = rustix::fs::mkdirat(folder, format!("{thread}-{number}"), Mode::RWXU);
                }
            });
        }
        let start = Instant::now();
        folder.remove_within(&mut RemovalBudget::new(ENTRIES_REMOVED, Duration::from_millis(200)));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    });
    assert!(remove(&folder));
}

/// Returns the pid of a process that has ended.
fn exited_process_id() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Renames a folder as if another process had created it, and puts a file into it.
fn rename_as_created_by(process: u32, folder: PrivateFolder) -> PrivateFolder {
    let name = folder.path.file_name().unwrap().to_str().unwrap();
    let name = name.replace(&std::process::id().to_string(), &process.to_string());
    let path = folder.path.with_file_name(name);
    fs::rename(&folder.path, &path).unwrap();
    fs::create_dir_all(path.join("inner")).unwrap();
    fs::write(path.join("inner/file"), "").unwrap();
    PrivateFolder { path, ..folder }
}

#[test]
fn an_abandoned_folder_is_removed_once_its_lock_is_gone() {
    let parent = tempfile::tempdir().unwrap();
    let folder = rename_as_created_by(
        exited_process_id(),
        create_for(parent.path(), TreeLifetime::DiesWithSupervisor),
    );
    abandoned::remove_abandoned(parent.path());
    assert!(folder.path.exists(), "the folder is still locked");
    let path = folder.path().to_owned();
    set_mode(&path, 0o000);
    drop(folder);
    abandoned::remove_abandoned(parent.path());
    assert!(!path.exists());
}

#[test]
fn folders_that_may_be_in_use_are_not_removed() {
    let parent = tempfile::tempdir().unwrap();
    let precious = parent.path().join("precious");
    fs::create_dir(&precious).unwrap();
    let link = parent.path().join(format!("{}{}-1", abandoned::PREFIX, exited_process_id()));
    symlink(&precious, &link).unwrap();
    let mut kept = vec![precious, link];
    // A program that outlives its supervisor may still use this one.
    kept.push(
        rename_as_created_by(exited_process_id(), create_for(parent.path(), TreeLifetime::Independent)).path,
    );
    // A folder of this process, and one of a process that is alive.
    kept.push(create_for(parent.path(), TreeLifetime::DiesWithSupervisor).path);
    kept.push(rename_as_created_by(1, create_for(parent.path(), TreeLifetime::DiesWithSupervisor)).path);
    for name in ["ward-run-", "ward-run-x-1", "ward-run-1"] {
        kept.push(parent.path().join(name));
        fs::create_dir(parent.path().join(name)).unwrap();
    }
    abandoned::remove_abandoned(parent.path());
    for path in kept {
        assert!(path.symlink_metadata().is_ok(), "{path:?}");
    }
}
