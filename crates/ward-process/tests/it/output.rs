//! Captured and recorded output is bounded, complete, and never blocks the program (S6.4).

use std::time::{Duration, Instant};

use ward_process::{Containment, OutputTarget, ProcessExit, Supervisor};

use crate::harness::{PATIENCE, TestRun, containments, is_root, supervisor, wait_until};

#[test]
fn a_capture_keeps_its_limit_and_lets_the_program_finish() {
    for containment in containments() {
        let run = TestRun::new();
        let spec = run.spec("print 5000000; exit 4").stdout(OutputTarget::Capture { limit: 1000 });
        let mut tree = supervisor(containment).spawn(run.id.clone(), spec).unwrap();
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(4), "{containment}");
        let capture = tree.stdout().unwrap();
        assert_eq!(capture.bytes(), [b'x'; 1000]);
        assert_eq!(capture.total(), 5_000_000);
        assert!(capture.is_truncated());
    }
}

#[test]
fn a_recording_is_bounded_complete_at_the_end_and_notes_dropped_output() {
    for containment in containments() {
        let directory = tempfile::tempdir().unwrap();
        for (written, kept, noted) in
            [(0, 0, false), (9_999, 9_999, false), (10_000, 10_000, false), (3_000_000, 10_000, true)]
        {
            let path = directory.path().join(format!("log-{written}"));
            let run = TestRun::new();
            let spec = run
                .spec(&format!("print {written}; exit 0"))
                .stdout(OutputTarget::Record { path: path.clone(), limit: 10_000 });
            let mut tree = supervisor(containment).spawn(run.id.clone(), spec).unwrap();
            assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(0));
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.bytes().filter(|byte| *byte == b'x').count(), kept, "{containment}");
            assert_eq!(text.contains("[output limit reached"), noted, "{containment}");
        }
    }
}

#[test]
fn recordings_are_private_and_symlinks_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let supervisor = Supervisor::new().unwrap();
    let path = directory.path().join("log");
    let run = TestRun::new();
    let spec = run.spec("print 10").stdout(OutputTarget::Record { path: path.clone(), limit: 100 });
    supervisor.spawn(run.id.clone(), spec).unwrap().wait(Some(PATIENCE)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let target = directory.path().join("target");
    std::fs::write(&target, "precious").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let run = TestRun::new();
    let spec = run.spec("print 10").stdout(OutputTarget::Record { path: link, limit: 100 });
    assert!(supervisor.spawn(run.id.clone(), spec).is_err());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn both_streams_can_share_a_recording() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let run = TestRun::new();
    let spec = ward_process::ProcessSpec::new("/bin/sh")
        .args(["-c", "echo out; echo err >&2"])
        .stdout(OutputTarget::Record { path: path.clone(), limit: 100 })
        .stderr_with_stdout();
    let mut tree = Supervisor::new().unwrap().spawn(run.id.clone(), spec).unwrap();
    tree.wait(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "out\nerr\n");
}

#[test]
fn a_recording_is_refused_unless_its_file_is_regular_ours_and_has_one_link() {
    let directory = tempfile::tempdir().unwrap();
    let supervisor = Supervisor::new().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let hard = directory.path().join("hard");
    std::fs::write(directory.path().join("target"), "precious").unwrap();
    std::fs::hard_link(directory.path().join("target"), &hard).unwrap();
    let mut cases =
        vec![(fifo, "not a regular file"), (hard, "hard link"), ("/dev/null".into(), "not a regular file")];
    if is_root() {
        let foreign = directory.path().join("foreign");
        std::fs::write(&foreign, "").unwrap();
        std::os::unix::fs::chown(&foreign, Some(65_534), None).unwrap();
        cases.push((foreign, "another user"));
    }
    for (path, reason) in cases {
        let run = TestRun::new();
        let spec = run.spec("print 10").stdout(OutputTarget::Record { path: path.clone(), limit: 100 });
        let error = supervisor.spawn(run.id.clone(), spec).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        // The kernel refuses to open a FIFO without a reader (`ENXIO`), before its type can be checked.
        assert!(source.contains(reason) || source.contains("os error 6"), "{}: {source}", path.display());
    }
    assert_eq!(std::fs::read_to_string(directory.path().join("target")).unwrap(), "precious");
}

#[test]
fn heavy_a_stopped_recorder_does_not_block_polling_and_still_writes() {
    for containment in containments() {
        // In the other containments the program's parent is the keeper, which has no recorders.
        if !matches!(containment, Containment::Cgroup | Containment::ProcessGroup) {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let run = TestRun::new();
        let spec = run
            .spec("stop-recorder; print 10; exit 0")
            .stdout(OutputTarget::Record { path: path.clone(), limit: 100 });
        let mut tree = supervisor(containment).spawn(run.id.clone(), spec).unwrap();
        wait_until("the end of the tree", || {
            let start = Instant::now();
            let ended = tree.poll_ended().unwrap().is_some();
            assert!(start.elapsed() < Duration::from_millis(500), "{containment}: polling waited");
            ended
        });
        tree.wait(Some(PATIENCE)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "x".repeat(10), "{containment}");
    }
}

#[test]
fn heavy_a_stream_held_open_outside_of_the_tree_does_not_delay_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let run = TestRun::new();
    let out = directory.path().join("out");
    let script = format!("fork 1 [ setsid; touch {0}; FOREVER ]; await {0}; exit 0", out.display());
    let spec = run.spec(&script).stdout(OutputTarget::Record { path: path.clone(), limit: 100 });
    let mut tree = supervisor(Containment::ProcessGroup).spawn(run.id.clone(), spec).unwrap();
    let start = Instant::now();
    assert!(tree.wait(Some(PATIENCE)).unwrap().is_some());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    run.wait_until_sleeping(1);
}
