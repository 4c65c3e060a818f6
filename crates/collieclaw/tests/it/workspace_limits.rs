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
    let test_workspace = TestWorkspace::new();
    let gateway = test_workspace.gateway();
    assert_eq!(gateway.shell("pwd").exit_code(), 0);
    let moved = test_workspace.home.join("moved");
    fs::rename(&test_workspace.path, &moved).unwrap();
    symlink(test_workspace.home.join("other"), &test_workspace.path).unwrap();
    for put in ["a link", "a folder", "nothing"] {
        let outcome = gateway.shell("ls");
        assert!(outcome.status == "failed" && !outcome.text.contains("diary"), "{put}: {outcome:?}");
        assert!(outcome.text.contains("was moved or replaced"), "{put}: {outcome:?}");
        match put {
            "a link" => {
                fs::remove_file(&test_workspace.path).unwrap();
                fs::create_dir(&test_workspace.path).unwrap();
            }
            _ => fs::remove_dir(&test_workspace.path).unwrap_or_default(),
        }
    }
    fs::rename(&moved, &test_workspace.path).unwrap();
    assert_eq!(gateway.shell("pwd").exit_code(), 0);
}

#[test]
fn kernel_pseudo_files_are_refused_everywhere() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.bounds = PathBounds::Anywhere;
    let refused = test_workspace.access().open_for_reading(Path::new("/proc/self/environ"));
    assert!(matches!(refused, Err(FileError::Refused(_))), "{refused:?}");
    // No rule names this place; it acts like a mount.
    let mount = WorkspaceHandle::open(Path::new("/proc/self")).unwrap();
    for bounds in [PathBounds::Anywhere, PathBounds::Workspace] {
        test_workspace.policy = collieclaw_gate::GatePolicy {
            workspace: mount.path().to_owned(),
            bounds,
            ..test_workspace.policy.clone()
        };
        let access = mount.access_under(&test_workspace.policy);
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
    let test_workspace = TestWorkspace::new();
    test_workspace.write("beside/file", "");
    let open =
        |at: &_, name: &str| openat(at, name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut at =
        openat(CWD, &test_workspace.path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    // Short names, so that some paths can be opened but are too long to be resolved.
    let name = "deeper";
    for _ in 0..700 {
        mkdirat(&at, name, Mode::RWXU).unwrap();
        at = open(&at, name);
    }
    let listing = test_workspace.access().list(&test_workspace.path, ListingDepth::Recursive, 1_000).unwrap();
    assert!(listing.truncated);
    assert!(listing.entries.iter().any(|entry| entry.path == Path::new("beside/file")), "{listing:?}");
    assert!(listing.entries.len() > 10, "{listing:?}");
    drop(at);
    assert!(ward_process::sandbox::remove_folder(&test_workspace.path));
}

#[test]
fn a_line_that_cannot_be_judged_does_not_create_a_forbidden_file() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    test_workspace.policy.forbidden_paths.push(test_workspace.path.join(".vault"));
    test_workspace.write("attack.sh", "mkdir .vault && echo x > .vault/key");
    let gateway = test_workspace.gateway();
    for line in ["bash attack.sh", "x=.va; mkdir ${x}ult", "for i in 1; do ls; done"] {
        let outcome = gateway.shell(line);
        assert!(
            outcome.status == "failed" && outcome.text.contains("so the sandbox can't block it"),
            "{line}: {outcome:?}"
        );
        assert!(!test_workspace.path.join(".vault").exists(), "{line}");
    }
    assert_eq!(gateway.shell("ls && cp attack.sh copy").exit_code(), 0);
    fs::create_dir(test_workspace.path.join(".vault")).unwrap();
    assert_ne!(gateway.shell("bash attack.sh").exit_code(), 0);
    assert_eq!(fs::read_dir(test_workspace.path.join(".vault")).unwrap().count(), 0);
}

#[test]
fn moving_a_parent_folder_does_not_reach_a_forbidden_file() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    test_workspace.write("a/b/secret", SECRET);
    test_workspace.policy.forbidden_paths.push(test_workspace.path.join("a/b/secret"));
    test_workspace.write("attack.sh", "mv a c; mv a/b d; mv a/b a/e; true");
    let gateway = test_workspace.gateway();
    assert_eq!(gateway.shell("mv a c").status, "denied");
    assert_eq!(gateway.shell("bash attack.sh").exit_code(), 0);
    for line in ["cat c/b/secret d/secret a/e/secret", "grep -r the ."] {
        let outcome = gateway.shell(line);
        assert!(!outcome.text.contains(SECRET), "{line}: {outcome:?}");
    }
    assert_eq!(test_workspace.text("a/b/secret"), SECRET);
}
