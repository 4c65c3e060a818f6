//! Programs that try to outlive their session, and a second entry for the same game.

use rustix::io::Errno;
use rustix::process::geteuid;

use crate::clock::first_reason;
use crate::harness::{ShepherddFixture, wait_until};
use crate::process_containment::{check_entry_ends, check_entry_ends_while, check_signal_ignoring_program};
use crate::sway::a_program_that_sway_was_made_to_start_ends_with_the_session;

pub(super) fn double_fork() {
    check_entry_ends("double-fork", 2);
}

pub(super) fn wrapper() {
    check_entry_ends("wrapper", 1);
}

/// As root, the test moves the processes, as systemd does on request. Other users have no cgroups.
pub(super) fn another_group() {
    if !geteuid().is_root() {
        check_entry_ends("another-group", 1);
        return;
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
    let mount = std::path::Path::new(mount.split(' ').nth(1).unwrap());
    let elsewhere = mount.join(format!("elsewhere-{}", std::process::id()));
    std::fs::create_dir(&elsewhere).unwrap();
    let members = elsewhere.join("cgroup.procs");
    check_entry_ends_while("another-group", 1, |fixture| {
        wait_until("all processes are moved", || {
            let players = fixture.program_pids();
            for pid in &players {
                // The shells among them exit by themselves.
                match std::fs::write(&members, pid.to_string()) {
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {}
                    other => other.unwrap(),
                }
            }
            let moved = std::fs::read_to_string(&members).unwrap();
            let is_moved = |pid: &i32| moved.lines().any(|line| line == pid.to_string());
            !players.is_empty() && players.iter().all(is_moved)
        });
    });
    wait_until("the group is let go", || std::fs::remove_dir(&elsewhere).is_ok());
}

pub(super) fn compositor() {
    a_program_that_sway_was_made_to_start_ends_with_the_session();
}

pub(super) fn renaming() {
    check_entry_ends("renaming", 1);
}

pub(super) fn ignored_signals() {
    check_signal_ignoring_program();
}

pub(super) fn another_entry() {
    let fixture = ShepherddFixture::running(
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
    fixture.launch("racing");
    fixture.wait_until_idle();
    assert_eq!(first_reason(&fixture, "racing"), "quota-exhausted");
    assert_eq!(first_reason(&fixture, "racing-in-a-window"), "quota-exhausted");
    fixture.launch("sums");
}
