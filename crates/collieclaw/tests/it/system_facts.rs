//! The facts about the real machine that the gate gets.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use collieclaw_agent::security::SystemFacts;
use collieclaw_gate::{GateOutcome, GateRequest, MachineFacts, PathStatus, judge};

use crate::test_workspace::TestWorkspace;

fn look(path: impl AsRef<Path>) -> PathStatus {
    SystemFacts.inspect_path(path.as_ref())
}

#[test]
fn symlinks_are_followed_like_the_kernel_and_missing_files_have_a_path() {
    let test_workspace = TestWorkspace::new();
    let (path, home) = (&test_workspace.path, &test_workspace.home);
    let file = test_workspace.write("src/file", "");
    test_workspace.link("src", "inner");
    test_workspace.link("inner/../../secret", "winding");
    test_workspace.link("/nowhere/at/all", "dangling");
    test_workspace.link("missing", "here");
    test_workspace.link("round", "round");
    test_workspace.link(".", "self");
    let secret = PathStatus::File { leads_to: home.join("secret"), link_count: 1 };
    let nothing = |leads_to: PathBuf| PathStatus::Missing { leads_to };
    for (at, seen) in [
        ("src/file", PathStatus::File { leads_to: file.clone(), link_count: 1 }),
        ("inner/file", PathStatus::File { leads_to: file, link_count: 1 }),
        ("inner", PathStatus::Folder { leads_to: path.join("src") }),
        ("self/self/self", PathStatus::Folder { leads_to: path.clone() }),
        ("winding", secret),
        ("dangling", nothing("/nowhere/at/all".into())),
        ("dangling/more", nothing("/nowhere/at/all/more".into())),
        ("here", nothing(path.join("missing"))),
        ("inner/new/deep", nothing(path.join("src/new/deep"))),
        ("inner/../new", nothing(path.join("new"))),
        ("new/../../etc/x", nothing(home.join("etc/x"))),
        ("round", PathStatus::Unreachable),
        ("src/file/x", PathStatus::Unreachable),
        ("src/file/", PathStatus::Unreachable),
    ] {
        assert_eq!(look(path.join(at)), seen, "{at}");
    }
    assert_eq!(look("/proc/self/root"), PathStatus::Folder { leads_to: "/".into() });
    assert_eq!(look("/dev/null"), PathStatus::Special { leads_to: "/dev/null".into() });
    assert_eq!(look("relative/and/missing"), PathStatus::Unreachable);
}

#[test]
fn inspecting_a_pipe_does_not_block() {
    let test_workspace = TestWorkspace::new();
    let pipe = test_workspace.path.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    assert_eq!(look(&pipe), PathStatus::Special { leads_to: pipe.clone() });
    // Unreadable files are inspected as well.
    let closed = test_workspace.write("closed", "");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).unwrap();
    assert_eq!(look(&closed), PathStatus::File { leads_to: closed.clone(), link_count: 1 });
}

#[test]
fn hard_links_are_counted() {
    let test_workspace = TestWorkspace::new();
    let twin = test_workspace.path.join("twin");
    std::fs::hard_link(test_workspace.home.join("secret"), &twin).unwrap();
    assert_eq!(look(&twin), PathStatus::File { leads_to: twin.clone(), link_count: 2 });
}

#[test]
fn names_come_sorted_by_their_bytes_and_only_as_text() {
    let test_workspace = TestWorkspace::new();
    for name in ["b", "B", "a", ".hidden", "ä"] {
        test_workspace.write(name, "");
    }
    let expected = [".hidden", "B", "a", "b", "ä"].map(str::to_owned);
    assert_eq!(SystemFacts.names_in(&test_workspace.path).as_deref(), Some(expected.as_slice()));
    assert_eq!(SystemFacts.names_in(&test_workspace.path.join("a")), None);
    assert_eq!(SystemFacts.names_in(&test_workspace.path.join("missing")), None);
    std::fs::write(test_workspace.path.join(OsStr::from_bytes(b"\xff")), "").unwrap();
    assert_eq!(SystemFacts.names_in(&test_workspace.path), None);
}

#[test]
fn programs_are_those_of_the_system() {
    let ls = SystemFacts.find_program("ls").unwrap();
    assert_eq!(ls, Path::new("/bin/ls").canonicalize().unwrap());
    for name in ["", ".", "..", "/bin/ls", "../bin/ls", "no-such-program", "ls\0"] {
        assert_eq!(SystemFacts.find_program(name), None, "{name:?}");
    }
}

#[test]
fn the_gate_sees_through_real_links() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("a.txt", "");
    test_workspace.link("/etc/passwd", "passwd");
    test_workspace.link("../.ssh", "keys");
    let code = |call| match judge(call, &test_workspace.policy, &SystemFacts) {
        GateOutcome::Denied(verdict) => verdict.reasons[0].code(),
        GateOutcome::NeedsApproval(_) => "asks",
        GateOutcome::Allowed(_) => "allowed",
    };
    // C15.5, and the same through a symlink.
    assert_eq!(code(GateRequest::FileRead("/etc/passwd")), "forbidden-path");
    assert_eq!(code(GateRequest::FileRead("passwd")), "forbidden-path");
    assert_eq!(code(GateRequest::FileRead("keys/id")), "forbidden-path");
    assert_eq!(code(GateRequest::FileRead("~/other/diary")), "outside-workspace");
    assert_eq!(code(GateRequest::FileRead("a.txt")), "allowed");
    assert_eq!(code(GateRequest::FileWrite("new.txt")), "asks");
    // C15.7.
    assert_eq!(code(GateRequest::Shell("rm -rf /")), "forbidden-command");
    assert_eq!(code(GateRequest::Shell("cat a.txt | wc -l")), "asks");
    assert_eq!(code(GateRequest::Shell("cat passwd")), "forbidden-path");
    assert_eq!(code(GateRequest::Shell("cat *")), "forbidden-path");
}
