//! C9: no tool takes longer than its timeout, whatever the kernel does. A file lease makes `open` block, as an
//! unreachable file server does: until its holder gives it up, or for most of a minute.

#![expect(unsafe_code, reason = "no safe crate of ours takes leases")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use collieclaw_agent::security::{FileError, ListingDepth};
use collieclaw_agent::tools::ToolBounds;
use collieclaw_providers::cancel::CancelReason;
use collieclaw_providers::net::CancellableDeadline;
use serde_json::json;

use crate::test_workspace::{TestToolGateway, TestWorkspace};

/// Far shorter than a lease lasts.
const SOON_ENOUGH: Duration = Duration::from_secs(20);

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

fn gateway_with_timeout(workshop: &TestWorkspace, tool_timeout: Duration) -> TestToolGateway {
    let long = Duration::from_secs(60);
    let bounds =
        ToolBounds { tool_timeout, shell_timeout: long, http_timeout: long, max_response_bytes: 1 << 20 };
    workshop.gateway_with_bounds(bounds)
}

#[test]
fn a_file_that_does_not_answer_is_given_up_when_the_time_is_over() {
    let workshop = TestWorkspace::new();
    let place = workshop.write("slow.txt", "late");
    let desk = gateway_with_timeout(&workshop, Duration::from_millis(300));
    let hung = block_opens(&place);
    let started = Instant::now();
    let came = desk.call("file_read", &json!({"path": "slow.txt"}));
    assert!(started.elapsed() < SOON_ENOUGH, "{:?}", started.elapsed());
    assert_eq!((came.status, came.metadata("timed_out")), ("failed", json!(true)), "{came:?}");
    assert!(came.text.contains("the call took longer than 0.3 s and was abandoned"), "{came:?}");
    drop(hung);
    assert_eq!(desk.call("file_read", &json!({"path": "slow.txt"})).output(), "late");
}

#[test]
fn whoever_waits_for_a_file_can_be_stopped() {
    let workshop = TestWorkspace::new();
    let _hung = block_opens(&workshop.write("slow.txt", "late"));
    let desk = gateway_with_timeout(&workshop, Duration::from_secs(60));
    let cancel = desk.cancel.clone();
    let raise = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.raise(CancelReason::Operator);
    });
    let started = Instant::now();
    let came = desk.call("file_read", &json!({"path": "slow.txt"}));
    raise.join().unwrap();
    assert!(started.elapsed() < SOON_ENOUGH, "{:?}", started.elapsed());
    assert_eq!(came.status, "cancelled", "{came:?}");
}

#[test]
fn every_tool_of_ours_has_a_time() {
    let workshop = TestWorkspace::new();
    workshop.write("notes.txt", "x");
    let desk = gateway_with_timeout(&workshop, Duration::from_nanos(1));
    for (tool, arguments) in [
        ("file_list", json!({"path": ".", "recursive": true})),
        ("file_read", json!({"path": "notes.txt"})),
        ("file_write", json!({"path": "new.txt", "content": "x"})),
        ("memory_search", json!({"query": "x"})),
    ] {
        let came = desk.call(tool, &arguments);
        assert_eq!((came.status, came.metadata("timed_out")), ("failed", json!(true)), "{tool}: {came:?}");
    }
}

#[test]
fn what_was_given_up_changes_nothing_any_more() {
    let workshop = TestWorkspace::new();
    workshop.write("folder/kept.txt", "old");
    let cancel = collieclaw_providers::cancel::CancelFlag::new().unwrap();
    let over = CancellableDeadline::new(&cancel, Duration::ZERO);
    let access = workshop.access().with_time_limit(&over);
    for name in ["folder/kept.txt", "folder/new.txt"] {
        let written = access.replace(&workshop.path.join(name), b"new");
        assert!(matches!(written, Err(FileError::Stopped(_))), "{name}: {written:?}");
    }
    let listed = access.list(&workshop.path, ListingDepth::Recursive, 100);
    assert!(matches!(listed, Err(FileError::Stopped(_))), "{listed:?}");
    assert_eq!(workshop.text("folder/kept.txt"), "old");
    assert_eq!(std::fs::read_dir(workshop.path.join("folder")).unwrap().count(), 1);
}
