//! Programs that try to outlive their session (S6.2, S6.2b).

use std::time::{Duration, Instant};

use rustix::process::geteuid;
use shepherd_api::EndReason;

use crate::harness::{ShepherddFixture, wait_until};

const POLICY: &str = r#"
config_version = 1
stop_grace = "5m"

[defaults]
always = true
max_run = "2s"

[[entries]]
id = "wrapper"
argv = ["sh", "-c", "sleep TOKEN & exit 0"]

[[entries]]
id = "double-fork"
argv = ["sh", "-c", "(setsid sh -c '(setsid nohup sleep TOKEN >/dev/null 2>&1 &); exit 0' &); exec sleep TOKEN"]

[[entries]]
id = "renaming"
argv = ["sh", "-c", "cp \"$(command -v sleep)\" FOLDER/kworker && exec FOLDER/kworker TOKEN"]

[[entries]]
id = "another-group"
argv = ["sh", "-c", "trap '' TERM; (sleep TOKEN &); sleep 1; exit 0"]
stop_grace = "500ms"
USER

[[entries]]
id = "own-session"
argv = ["sh", "-c", "setsid sleep TOKEN & setsid sleep TOKEN & wait"]

[[entries]]
id = "ignores-signals"
argv = ["sh", "-c", "trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE; sleep TOKEN & exec sleep TOKEN"]
stop_grace = "700ms"

# At most 60 processes of a program that starts others and leaves, over and over.
[[entries]]
id = "bomb"
argv = ["sh", "-c", "n=$1; while [ $n -gt 0 ]; do n=$((n-1)); setsid sh -c 'sleep 0.1; sleep TOKEN & exit 0' & done; sleep TOKEN", "sh", "60"]
resources = { processes = 200 }
stop_grace = "0s"
"#;

/// Runs an entry until its time is over, checks that no process is left, and returns how long it took.
pub(crate) fn check_entry_ends(entry: &str, processes: usize) -> Duration {
    check_entry_ends_while(entry, processes, |_| ())
}

/// The same, and calls `meanwhile` once this many processes run.
pub(crate) fn check_entry_ends_while(
    entry: &str,
    processes: usize,
    meanwhile: impl FnOnce(&ShepherddFixture),
) -> Duration {
    let mut fixture = ShepherddFixture::new(POLICY);
    let somebody = if geteuid().is_root() { "user = \"nobody\"" } else { "" };
    let policy = POLICY.replace("FOLDER", fixture.folder().to_str().unwrap());
    fixture.write_policy(&policy.replace("USER", somebody));
    fixture.start();
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch(entry);
    wait_until("all processes run", || fixture.program_pids().len() >= processes);
    meanwhile(&fixture);
    let end = listener.wait_for_end(&session.session_id);
    let took = launched.elapsed();
    assert_eq!(end, EndReason::Expired, "{entry}");
    assert_eq!(fixture.program_pids(), Vec::<i32>::new(), "{entry}");
    fixture.assert_no_processes_left();
    assert!(took >= Duration::from_secs(2), "{entry}: never early: {took:?}");
    took
}

/// The bypass suite has more of these programs.
#[test]
fn nothing_that_a_program_starts_outlives_its_end() {
    std::thread::scope(|scope| {
        for (entry, processes) in [("own-session", 2), ("bomb", 30)] {
            scope.spawn(move || check_entry_ends(entry, processes));
        }
    });
}

pub(crate) fn check_signal_ignoring_program() {
    let took = check_entry_ends("ignores-signals", 2);
    assert!(took >= Duration::from_millis(2_700), "the grace is given: {took:?}");
    // The grace of the policy is longer than the test waits.
}

/// S6.5: the daemon raises its own limit on open files, but its programs start with the original one.
#[test]
fn programs_start_with_the_daemons_original_limit_of_open_files() {
    let policy = r#"
config_version = 1
[[entries]]
id = "limits"
argv = ["sh", "-c", "ulimit -Sn; ulimit -Hn; exec sleep TOKEN"]
always = true
"#;
    let mut fixture = ShepherddFixture::new(policy).with_wrapper(&["prlimit", "--nofile=300:2000"]);
    fixture.start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", fixture.daemon_pid().as_raw_nonzero()));
    let own = limits.unwrap().lines().find(|line| line.starts_with("Max open files")).unwrap().to_owned();
    assert_eq!(own.split_whitespace().collect::<Vec<_>>()[3..5], ["2000", "2000"], "{own}");
    let session = fixture.launch("limits");
    fixture.wait_for_program();
    let log = fixture.data().join(format!("logs/{}.log", session.session_id));
    wait_until("the output of the program", || {
        std::fs::read_to_string(&log).is_ok_and(|said| said.lines().count() == 2)
    });
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "300\n2000\n");
}
