//! The surroundings of tools: where the workspace is, what kinds of files it contains, and missing files (C7.4, C7.6).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use collieclaw_agent::security::{FileError, ListingDepth, OutputMode, WorkspaceHandle};
use collieclaw_gate::{AutonomyLevel, PathBounds};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use crate::test_workspace::{SECRET, TestWorkspace};

#[test]
fn nothing_runs_in_another_folder_that_was_put_in_the_place_of_the_workspace() {
    let workshop = TestWorkspace::new();
    let desk = workshop.gateway();
    assert_eq!(desk.shell("pwd").exit_code(), 0);
    let moved = workshop.home.join("moved");
    fs::rename(&workshop.path, &moved).unwrap();
    symlink(workshop.home.join("other"), &workshop.path).unwrap();
    for put in ["a link", "a folder", "nothing"] {
        let came = desk.shell("ls");
        assert!(came.status == "failed" && !came.text.contains("diary"), "{put}: {came:?}");
        assert!(came.text.contains("was moved or replaced"), "{put}: {came:?}");
        match put {
            "a link" => {
                fs::remove_file(&workshop.path).unwrap();
                fs::create_dir(&workshop.path).unwrap();
            }
            _ => fs::remove_dir(&workshop.path).unwrap_or_default(),
        }
    }
    fs::rename(&moved, &workshop.path).unwrap();
    assert_eq!(desk.shell("pwd").exit_code(), 0);
}

#[test]
fn what_the_kernel_shows_as_a_file_is_none_wherever_it_is() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.bounds = PathBounds::Anywhere;
    let refused = workshop.access().open_for_reading(Path::new("/proc/self/environ"));
    assert!(matches!(refused, Err(FileError::Refused(_))), "{refused:?}");
    // No rule names this place; it acts like a mount.
    let mount = WorkspaceHandle::open(Path::new("/proc/self")).unwrap();
    for bounds in [PathBounds::Anywhere, PathBounds::Workspace] {
        workshop.policy = collieclaw_gate::GatePolicy {
            workspace: mount.path().to_owned(),
            bounds,
            ..workshop.policy.clone()
        };
        let access = mount.access_under(&workshop.policy);
        for file in ["environ", "comm"] {
            let read = access.open_for_reading(&mount.path().join(file));
            assert!(matches!(read, Err(FileError::PseudoFile)), "{file}: {read:?}");
        }
        let written = access.open_for_output(&mount.path().join("comm"), OutputMode::Append);
        assert!(matches!(written, Err(FileError::PseudoFile)), "{written:?}");
        assert!(access.list(&mount.path().join("task"), ListingDepth::Shallow, 10).is_err());
    }
}

#[test]
fn folders_deeper_than_any_path_are_listed_as_far_as_they_can_be() {
    let workshop = TestWorkspace::new();
    workshop.write("beside/file", "");
    let open =
        |at: &_, name: &str| openat(at, name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut at = openat(CWD, &workshop.path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    // Short names, so that some paths can be opened but are too long to be resolved.
    let name = "deeper";
    for _ in 0..700 {
        mkdirat(&at, name, Mode::RWXU).unwrap();
        at = open(&at, name);
    }
    let listing = workshop.access().list(&workshop.path, ListingDepth::Recursive, 1_000).unwrap();
    assert!(listing.truncated);
    assert!(listing.entries.iter().any(|entry| entry.path == Path::new("beside/file")), "{listing:?}");
    assert!(listing.entries.len() > 10, "{listing:?}");
    drop(at);
    assert!(ward_process::sandbox::remove_folder(&workshop.path));
}

#[test]
fn what_is_forbidden_but_not_there_is_not_made_by_a_line_that_nobody_can_judge() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.autonomy = AutonomyLevel::Full;
    workshop.policy.forbidden_paths.push(workshop.path.join(".vault"));
    workshop.write("attack.sh", "mkdir .vault && echo x > .vault/key");
    let desk = workshop.gateway();
    for line in ["bash attack.sh", "x=.va; mkdir ${x}ult", "for i in 1; do ls; done"] {
        let came = desk.shell(line);
        assert!(
            came.status == "failed" && came.text.contains("so the sandbox can't block it"),
            "{line}: {came:?}"
        );
        assert!(!workshop.path.join(".vault").exists(), "{line}");
    }
    assert_eq!(desk.shell("ls && cp attack.sh copy").exit_code(), 0);
    fs::create_dir(workshop.path.join(".vault")).unwrap();
    assert_ne!(desk.shell("bash attack.sh").exit_code(), 0);
    assert_eq!(fs::read_dir(workshop.path.join(".vault")).unwrap().count(), 0);
}

#[test]
fn what_is_forbidden_is_not_reached_by_moving_the_folder_around_it() {
    let mut workshop = TestWorkspace::new();
    workshop.policy.autonomy = AutonomyLevel::Full;
    workshop.write("a/b/secret", SECRET);
    workshop.policy.forbidden_paths.push(workshop.path.join("a/b/secret"));
    workshop.write("attack.sh", "mv a c; mv a/b d; mv a/b a/e; true");
    let desk = workshop.gateway();
    assert_eq!(desk.shell("mv a c").status, "denied");
    assert_eq!(desk.shell("bash attack.sh").exit_code(), 0);
    for line in ["cat c/b/secret d/secret a/e/secret", "grep -r the ."] {
        let came = desk.shell(line);
        assert!(!came.text.contains(SECRET), "{line}: {came:?}");
    }
    assert_eq!(workshop.text("a/b/secret"), SECRET);
}
