//! C9: no tool takes longer than its time, whatever the kernel does. A lease makes opening a file wait as a file server does
//! that is gone: until its holder gives it up, or most of a minute has passed.

#![expect(unsafe_code, reason = "no safe crate of ours takes leases")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use collieclaw::cancel::Why;
use collieclaw::net::Patience;
use collieclaw::runtime::Fate;
use collieclaw::security::{Depth, FileError};
use collieclaw::tools::ToolBounds;
use serde_json::json;

use crate::workshop::{Desk, Workshop};

/// Far shorter than a lease lasts.
const SOON: Duration = Duration::from_secs(20);

/// Which signal tells that a lease is wanted back; the one that is usual would end us.
const F_SETSIG: libc::c_int = 10;

/// Whoever opens the file now waits until this is dropped.
fn hang(path: &Path) -> File {
    let file = File::options().read(true).write(true).open(path).unwrap();
    // SAFETY: both take numbers only, and the descriptor is open.
    let results = unsafe {
        [
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG),
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK),
        ]
    };
    assert_eq!(results, [0, 0], "no lease on {}: {}", path.display(), std::io::Error::last_os_error());
    file
}

fn desk(workshop: &Workshop, tool_timeout: Duration) -> Desk {
    let long = Duration::from_secs(60);
    let bounds =
        ToolBounds { tool_timeout, shell_timeout: long, http_timeout: long, max_response_bytes: 1 << 20 };
    workshop.desk_within(bounds)
}

#[test]
fn a_file_that_does_not_answer_is_given_up_when_the_time_is_over() {
    let workshop = Workshop::new();
    let place = workshop.write("slow.txt", "late");
    let desk = desk(&workshop, Duration::from_millis(300));
    let hung = hang(&place);
    let started = Instant::now();
    let came = desk.call("file_read", &json!({"path": "slow.txt"}));
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!((came.fate, came.fact("timed_out")), (Fate::Failed, json!(true)), "{came:?}");
    assert!(came.text.contains("it took longer than 0.3 s and was given up"), "{came:?}");
    drop(hung);
    assert_eq!(desk.call("file_read", &json!({"path": "slow.txt"})).output(), "late");
}

#[test]
fn whoever_waits_for_a_file_can_be_stopped() {
    let workshop = Workshop::new();
    let _hung = hang(&workshop.write("slow.txt", "late"));
    let desk = desk(&workshop, Duration::from_secs(60));
    let cancel = desk.cancel.clone();
    let raise = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.raise(Why::Operator);
    });
    let started = Instant::now();
    let came = desk.call("file_read", &json!({"path": "slow.txt"}));
    raise.join().unwrap();
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(came.fate, Fate::Cancelled, "{came:?}");
}

#[test]
fn every_tool_of_ours_has_a_time() {
    let workshop = Workshop::new();
    workshop.write("notes.txt", "x");
    let desk = desk(&workshop, Duration::from_nanos(1));
    for (tool, arguments) in [
        ("file_list", json!({"path": ".", "recursive": true})),
        ("file_read", json!({"path": "notes.txt"})),
        ("file_write", json!({"path": "new.txt", "content": "x"})),
        ("memory_search", json!({"query": "x"})),
    ] {
        let came = desk.call(tool, &arguments);
        assert_eq!((came.fate, came.fact("timed_out")), (Fate::Failed, json!(true)), "{tool}: {came:?}");
    }
}

#[test]
fn what_was_given_up_changes_nothing_any_more() {
    let workshop = Workshop::new();
    workshop.write("folder/kept.txt", "old");
    let cancel = collieclaw::cancel::Cancel::new().unwrap();
    let over = Patience::new(&cancel, Duration::ZERO);
    let access = workshop.access().within(&over);
    for name in ["folder/kept.txt", "folder/new.txt"] {
        let written = access.replace(&workshop.path.join(name), b"new");
        assert!(matches!(written, Err(FileError::Stopped(_))), "{name}: {written:?}");
    }
    let listed = access.list(&workshop.path, Depth::All, 100);
    assert!(matches!(listed, Err(FileError::Stopped(_))), "{listed:?}");
    assert_eq!(workshop.text("folder/kept.txt"), "old");
    assert_eq!(std::fs::read_dir(workshop.path.join("folder")).unwrap().count(), 1);
}
