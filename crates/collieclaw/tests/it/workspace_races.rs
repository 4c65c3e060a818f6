//! C7.4: changing the meaning of a path between its check and its use gains nothing.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collieclaw_agent::security::{FileError, OutputMode, WalkFilter, WalkStep};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::test_workspace::{SECRET, TestWorkspace};

const ROUNDS: usize = 4_000;

/// The time limit: a busy machine may pause the swapping thread for long, always with the same meaning of the path.
const MAX_DURATION: Duration = Duration::from_secs(60);

/// A guard that ends the swapping even if the work panics; otherwise the test would hang instead of failing.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps the meaning of a path for as long as the work runs.
fn while_swapped(test_workspace: &TestWorkspace, swap: impl Fn(&Path) + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap(&test_workspace.path);
            }
        });
        let _done = SetOnDrop(&done);
        work();
    });
}

/// Makes `target` alternate between a file of ours and a symlink to the secret.
fn swap_last(path: &Path) {
    let [target, next] = ["target", "next"].map(|name| path.join(name));
    fs::write(&next, "inside").unwrap();
    fs::rename(&next, &target).unwrap();
    std::os::unix::fs::symlink("../secret", &next).unwrap();
    fs::rename(&next, &target).unwrap();
}

/// Makes `folder` alternate between our folder and a symlink to its parent, which has a file of the same name.
fn swap_folder(path: &Path) {
    let [folder, link] = ["folder", "link"].map(|name| path.join(name));
    renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
}

fn read_in_rounds(test_workspace: &TestWorkspace, path: &str) -> usize {
    let place = test_workspace.path.join(path);
    let (mut reads, mut rounds, begun) = (0, 0, Instant::now());
    while rounds < ROUNDS || (reads == 0 && begun.elapsed() < MAX_DURATION) {
        rounds += 1;
        let Ok(file) = test_workspace.access().open_for_reading(&place) else { continue };
        let mut text = String::new();
        fs::File::from(file).read_to_string(&mut text).unwrap();
        assert!(!text.contains(SECRET), "it was read outside");
        reads += 1;
    }
    reads
}

fn write_in_rounds(test_workspace: &TestWorkspace, path: &str) -> usize {
    let place = test_workspace.path.join(path);
    let mut writes = 0;
    for round in 0..ROUNDS {
        let output = if round % 2 == 0 { OutputMode::Truncate } else { OutputMode::Append };
        writes += usize::from(
            test_workspace
                .access()
                .open_for_output(&place, output)
                .is_ok_and(|file| rustix::io::write(&file, b"overwritten").is_ok()),
        );
        // Each write is synced to the disk, so fewer rounds have to be enough.
        if round % 16 == 0 {
            writes += usize::from(test_workspace.access().replace(&place, b"overwritten").is_ok());
        }
    }
    assert_eq!(fs::read_to_string(test_workspace.home.join("secret")).unwrap(), SECRET);
    writes
}

#[test]
fn a_file_that_turns_into_a_link_is_never_read_or_written_outside() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("target", "inside");
    while_swapped(&test_workspace, swap_last, || {
        assert!(read_in_rounds(&test_workspace, "target") > 0, "it was never a file");
        write_in_rounds(&test_workspace, "target");
    });
}

#[test]
fn a_folder_that_turns_into_a_link_is_never_read_or_written_outside() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("folder/secret", "inside");
    test_workspace.link("..", "link");
    while_swapped(&test_workspace, swap_folder, || {
        assert!(read_in_rounds(&test_workspace, "folder/secret") > 0, "it was never a folder");
        write_in_rounds(&test_workspace, "folder/secret");
    });
}

/// The walk judges each file before it is opened, and the folder may be moved in between.
#[test]
fn a_folder_that_is_moved_during_a_walk_is_judged_where_it_is() {
    for to in ["home/workspace/closed", "home/elsewhere"] {
        let mut test_workspace = TestWorkspace::new();
        test_workspace.write("folder/file", "inside");
        let folder = test_workspace.path.join("folder");
        let moved = test_workspace.home.parent().unwrap().join(to);
        test_workspace.policy.forbidden_paths.push(test_workspace.path.join("closed"));
        let mut opened = Vec::new();
        let filter = WalkFilter { hidden: true, ignored: true };
        let extent = test_workspace.access().walk(&folder, filter, &mut |file| {
            assert!(file.open().is_ok());
            fs::rename(&folder, &moved).unwrap();
            opened.push(file.open().map(drop));
            Ok(WalkStep::Continue)
        });
        assert!(extent.is_ok(), "{extent:?}");
        assert!(matches!(opened[..], [Err(FileError::Refused(_))]), "{to}: {opened:?}");
    }
}
