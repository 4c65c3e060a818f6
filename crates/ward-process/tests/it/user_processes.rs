//! All processes of a user end, wherever they run. Only root can end those of somebody else.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ward_process::UserProcesses;

use crate::harness::is_root;

/// Users that this machine doesn't have.
const USER: u32 = 65_021;
const OTHER: u32 = 65_022;

fn start(uid: u32, script: &str) -> Child {
    Command::new("sh").args(["-c", script]).stdin(Stdio::null()).uid(uid).gid(uid).spawn().unwrap()
}

fn has_ended(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(Some(_)))
}

#[test]
fn nobody_ends_the_processes_of_root_or_of_this_programs_user() {
    for uid in [0, rustix::process::geteuid().as_raw()] {
        let error = UserProcesses::of(uid).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }
}

#[test]
fn every_process_of_the_user_ends_and_no_other() {
    if !is_root() {
        // An ordinary user may signal nobody else.
        let other = UserProcesses::of(USER).unwrap();
        assert_eq!(other.kill_all(Duration::ZERO).unwrap(), 0);
        return;
    }
    let mut stranger = start(OTHER, "exec sleep 60");
    let mut of_user = [
        start(USER, "trap '' TERM HUP INT; sleep 60 & (setsid sleep 60 &) ; wait"),
        start(USER, "while :; do setsid sleep 60 & sleep 0.01; done"),
    ];
    std::thread::sleep(Duration::from_millis(200));
    let processes = UserProcesses::of(USER).unwrap();
    assert_eq!(processes.kill_all(Duration::from_secs(10)).unwrap(), 0);
    for child in &mut of_user {
        child.wait().unwrap();
    }
    assert_eq!(processes.kill_all(Duration::ZERO).unwrap(), 0, "none came back");
    assert!(!has_ended(&mut stranger));
    stranger.kill().and_then(|()| stranger.wait()).unwrap();
}
