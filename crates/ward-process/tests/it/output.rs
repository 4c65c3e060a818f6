//! Output is bounded, complete, and never in the program's way (S6.4).

use ward_process::{Exit, Output, Supervisor};

use crate::harness::{PATIENCE, Run, containments, supervisor};

#[test]
fn a_capture_keeps_its_bound_and_lets_the_program_finish() {
    for containment in containments() {
        let run = Run::new();
        let order = run.order("print 5000000; exit 4").stdout(Output::Capture { limit: 1000 });
        let mut tree = supervisor(containment).spawn(run.id.clone(), order).unwrap();
        assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, Exit::Code(4), "{containment}");
        let capture = tree.stdout().unwrap();
        assert_eq!(capture.bytes(), [b'x'; 1000]);
        assert_eq!(capture.total(), 5_000_000);
        assert!(capture.is_truncated());
    }
}

#[test]
fn a_recording_is_bounded_complete_at_the_end_and_says_what_it_dropped() {
    for containment in containments() {
        let directory = tempfile::tempdir().unwrap();
        for (written, kept, noted) in
            [(0, 0, false), (9_999, 9_999, false), (10_000, 10_000, false), (3_000_000, 10_000, true)]
        {
            let path = directory.path().join(format!("log-{written}"));
            let run = Run::new();
            let order = run
                .order(&format!("print {written}; exit 0"))
                .stdout(Output::Record { path: path.clone(), limit: 10_000 });
            let mut tree = supervisor(containment).spawn(run.id.clone(), order).unwrap();
            assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, Exit::Code(0));
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.bytes().filter(|byte| *byte == b'x').count(), kept, "{containment}");
            assert_eq!(text.contains("[output limit reached"), noted, "{containment}");
        }
    }
}

#[test]
fn recordings_are_private_and_links_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let supervisor = Supervisor::new().unwrap();
    let path = directory.path().join("log");
    let run = Run::new();
    let order = run.order("print 10").stdout(Output::Record { path: path.clone(), limit: 100 });
    supervisor.spawn(run.id.clone(), order).unwrap().wait(Some(PATIENCE)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let target = directory.path().join("target");
    std::fs::write(&target, "precious").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let run = Run::new();
    let order = run.order("print 10").stdout(Output::Record { path: link, limit: 100 });
    assert!(supervisor.spawn(run.id.clone(), order).is_err());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn both_streams_can_share_a_recording() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let run = Run::new();
    let order = ward_process::Order::new("/bin/sh")
        .args(["-c", "echo out; echo err >&2"])
        .stdout(Output::Record { path: path.clone(), limit: 100 })
        .stderr(Output::WithStdout);
    let mut tree = Supervisor::new().unwrap().spawn(run.id.clone(), order).unwrap();
    tree.wait(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "out\nerr\n");
}
