//! What a program can do to outlive its session, and a child to have another.

use std::time::{Duration, Instant};

use shepherd_api::{EndReason, EventKind};

use crate::clock::first_reason;
use crate::harness::{Household, until};

const POLICY: &str = r#"
config_version = 1
stop_grace = "500ms"

[defaults]
always = true
max_run = "2s"

[[entries]]
id = "double-fork"
argv = ["sh", "-c", "(setsid sh -c '(setsid nohup sleep TOKEN >/dev/null 2>&1 &); exit 0' &); exec sleep TOKEN"]

[[entries]]
id = "wrapper"
argv = ["sh", "-c", "sleep TOKEN & exit 0"]

[[entries]]
id = "renaming"
argv = ["sh", "-c", "cp \"$(command -v sleep)\" FOLDER/kworker && exec FOLDER/kworker TOKEN"]

[[entries]]
id = "deaf"
argv = ["sh", "-c", "trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE; sleep TOKEN & exec sleep TOKEN"]
"#;

/// An entry with so many programs is ended on time, whole.
fn ends(entry: &str, programs: usize) {
    let mut household = Household::new(POLICY);
    household.write_policy(&POLICY.replace("FOLDER", household.folder().to_str().unwrap()));
    household.start();
    let mut listener = household.subscriber();
    let launched = Instant::now();
    household.launch(entry);
    until("all of it runs", || household.players().len() >= programs);
    let end = listener.wait_for(|event| match event {
        EventKind::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    let took = launched.elapsed();
    assert_eq!(end, EndReason::Expired);
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(10), "{took:?}");
    household.assert_nothing_left();
}

pub(super) fn double_fork() {
    ends("double-fork", 2);
}

pub(super) fn wrapper() {
    ends("wrapper", 1);
}

pub(super) fn renaming() {
    ends("renaming", 1);
}

pub(super) fn deafness() {
    ends("deaf", 2);
}

pub(super) fn another_entry() {
    let household = Household::running(
        r#"
config_version = 1
budgets.games.daily = "500ms"

[defaults]
always = true
stop_grace = "300ms"

[[entries]]
id = "racing"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
budgets = ["games"]

[[entries]]
id = "racing-in-a-window"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
budgets = ["games"]

[[entries]]
id = "sums"
argv = ["sleep", "TOKEN"]
"#,
    );
    household.launch("racing");
    household.until_idle();
    assert_eq!(first_reason(&household, "racing"), "quota-exhausted");
    assert_eq!(first_reason(&household, "racing-in-a-window"), "quota-exhausted");
    household.launch("sums");
}
