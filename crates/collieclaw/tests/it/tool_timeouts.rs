//! C9: no tool takes longer than its timeout, whatever the kernel does. A file lease makes `open` block, as an
//! unreachable file server does: until its holder gives it up, or for most of a minute.

#![expect(unsafe_code, reason = "no safe crate of ours takes leases")]

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use collieclaw_agent::security::{FileError, ListingDepth};
use collieclaw_agent::tools::ToolBounds;
use collieclaw_providers::cancel::CancelReason;
use collieclaw_providers::net::CancellableDeadline;
use serde_json::json;

use crate::support::wait_until;
use crate::test_workspace::{TestToolGateway, TestWorkspace};

/// The signal for a lease break; the default one would kill the process.
const F_SETSIG: libc::c_int = 10;

/// Takes a lease on a file: opening the file blocks until the returned value is dropped.
fn block_opens(path: &Path) -> File {
    let file = File::options().read(true).write(true).open(path).unwrap();
    // SAFETY: both calls take only numbers, and the descriptor is open.
    let results = unsafe {
        [
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG),
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK),
        ]
    };
    assert_eq!(results, [0, 0], "no lease on {}: {}", path.display(), std::io::Error::last_os_error());
    file
}

/// Returns whether somebody waits for the end of the lease.
fn is_waited_for(lease: RawFd) -> bool {
    // SAFETY: the call takes only numbers.
    let state = unsafe { libc::fcntl(lease, libc::F_GETLEASE) };
    state != libc::F_WRLCK
}

/// Checks that the lease is still in force: that nobody has waited for its end.
fn assert_still_blocked(path: &Path) {
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

fn gateway_with_timeout(test_workspace: &TestWorkspace, tool_timeout: Duration) -> TestToolGateway {
    let long = Duration::from_secs(60);
    let bounds = ToolBounds {
        tool_timeout,
        shell_timeout: long,
        http_timeout: long,
        max_response_bytes: 1 << 20,
        max_output_bytes: 32 << 10,
    };
    test_workspace.gateway_with_bounds(bounds)
}

#[test]
fn a_file_that_does_not_answer_is_given_up_when_the_time_is_over() {
    let test_workspace = TestWorkspace::new();
    let place = test_workspace.write("slow.txt", "late");
    let gateway = gateway_with_timeout(&test_workspace, Duration::from_millis(300));
    let hung = block_opens(&place);
    let outcome = gateway.call("file_read", &json!({"path": "slow.txt"}));
    assert_still_blocked(&place);
    assert_eq!((outcome.status, outcome.metadata("timed_out")), ("failed", json!(true)), "{outcome:?}");
    assert!(outcome.text.contains("the call took longer than 0.3 s and was abandoned"), "{outcome:?}");
    drop(hung);
    assert_eq!(gateway.call("file_read", &json!({"path": "slow.txt"})).output(), "late");
}

#[test]
fn whoever_waits_for_a_file_can_be_stopped() {
    let test_workspace = TestWorkspace::new();
    let place = test_workspace.write("slow.txt", "late");
    let lease = block_opens(&place);
    let gateway = gateway_with_timeout(&test_workspace, Duration::from_secs(60));
    let cancel = gateway.cancel.clone();
    let held = lease.as_raw_fd();
    let raise = std::thread::spawn(move || {
        wait_until("the file is being opened", || is_waited_for(held));
        cancel.raise(CancelReason::Operator);
    });
    let outcome = gateway.call("file_read", &json!({"path": "slow.txt"}));
    raise.join().unwrap();
    assert_still_blocked(&place);
    assert_eq!(outcome.status, "cancelled", "{outcome:?}");
}

#[test]
fn every_tool_of_ours_has_a_time() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("notes.txt", "x");
    let gateway = gateway_with_timeout(&test_workspace, Duration::from_nanos(1));
    for (tool, arguments) in [
        ("file_list", json!({"path": ".", "recursive": true})),
        ("file_read", json!({"path": "notes.txt"})),
        ("file_write", json!({"path": "new.txt", "content": "x"})),
        ("memory_search", json!({"query": "x"})),
    ] {
        let outcome = gateway.call(tool, &arguments);
        assert_eq!(
            (outcome.status, outcome.metadata("timed_out")),
            ("failed", json!(true)),
            "{tool}: {outcome:?}"
        );
    }
}

#[test]
fn what_was_given_up_changes_nothing_any_more() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("folder/kept.txt", "old");
    let cancel = collieclaw_providers::cancel::CancelFlag::new().unwrap();
    let over = CancellableDeadline::new(&cancel, Duration::ZERO);
    let access = test_workspace.access().with_time_limit(&over);
    for name in ["folder/kept.txt", "folder/new.txt"] {
        let written = access.replace(&test_workspace.path.join(name), b"new");
        assert!(matches!(written, Err(FileError::Stopped(_))), "{name}: {written:?}");
    }
    let listed = access.list(&test_workspace.path, ListingDepth::Recursive, 100);
    assert!(matches!(listed, Err(FileError::Stopped(_))), "{listed:?}");
    assert_eq!(test_workspace.text("folder/kept.txt"), "old");
    assert_eq!(std::fs::read_dir(test_workspace.path.join("folder")).unwrap().count(), 1);
}
