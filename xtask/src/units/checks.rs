//! The checks on an installed Shepherd.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::container::CHILD_USER_MANAGER;
use super::installation::{self, InstalledShepherd, ShutdownPolicy};

/// A check on an installed Shepherd.
pub(super) type InstallationCheck = (&'static str, fn(&InstalledShepherd) -> Result<()>);

pub(super) const SYSTEM_CHECKS: &[InstallationCheck] = &[
    ("a session is a group below the unit's own, and its program has no rights", session_is_confined),
    ("a session can make what browsers and Flatpak make their sandboxes of", session_can_sandbox),
    ("a session sees the programs of its own user only", sees_only_own_processes),
    ("a player is told to quit, though the daemon can give no folder away", player_is_told_to_quit),
    ("the socket belongs to the group that is named, though the daemon can give no file away", socket_group),
    ("a program that left its parents, its group and its terminal ends on time", ends_on_time),
    (
        "a program that has the child's service manager move it elsewhere ends on time, whatever the daemon",
        moved_program_ends,
    ),
    ("the child can neither stop, kill nor read what is the daemon's", child_cannot_touch_daemon),
    ("`systemctl reload` applies a changed policy", reload_applies_policy),
    ("`shepherd policy set` replaces the policy in its protected folder", policy_set_replaces_file),
    (
        "a daemon that hangs is started again, and takes its session back with its end",
        hung_daemon_is_restarted,
    ),
    ("a daemon that is killed is started again, and takes its session back", killed_daemon_is_restarted),
    (
        "`systemctl stop` leaves a session if the policy says so, and the next daemon takes it back",
        stop_leaves_session,
    ),
    ("`systemctl stop` ends a session if the policy says so, with all that it started", stop_ends_session),
];

/// The checks on the user unit, beyond those that both units share.
pub(super) const USER_CHECKS: &[InstallationCheck] = &[
    ("a session is a process namespace of its own, and its program has no rights", in_a_namespace),
    ("a session can make what browsers and Flatpak make their sandboxes of", session_can_sandbox),
    ("a program that left its parents, its group and its terminal ends on time", ends_on_time),
    ("`systemctl reload` applies a changed policy", reload_applies_policy),
    (
        "a daemon that hangs is started again, and takes its session back with its end",
        hung_daemon_is_restarted,
    ),
    ("`systemctl stop` ends a session if the policy says so, with all that it started", stop_ends_session),
    ("`systemctl stop` leaves nothing: no process, no group, no socket", stop_leaves_nothing),
];

fn session_is_confined(household: &InstalledShepherd) -> Result<()> {
    let session = household.launch("long")?;
    let program = household.wait_for_program(&session)?;
    let group = household.container.read(&format!("/proc/{program}/cgroup"))?;
    let below = format!("0::{}/", household.unit_property("ControlGroup")?);
    ensure!(group.lines().any(|line| line.starts_with(&below)), "its group is {group}, not below {below}");
    assert_no_privileges(household, &program)?;
    let status = household.container.read(&format!("/proc/{program}/status"))?;
    ensure!(status.lines().any(|line| line == "Seccomp:\t2"), "its calls are not filtered:\n{status}");
    household.stop()
}

/// A group that an ordinary user makes an ordinary user can leave.
fn in_a_namespace(household: &InstalledShepherd) -> Result<()> {
    let session = household.launch("long")?;
    let program = household.wait_for_program(&session)?;
    let number = |process: &str| household.container.run(&["readlink", &format!("/proc/{process}/ns/pid")]);
    let (own, first) = (number(&program)?.stdout, number("1")?.stdout);
    ensure!(own != first, "it is in the namespace of all others");
    assert_no_privileges(household, &program)?;
    household.stop()
}

fn assert_no_privileges(household: &InstalledShepherd, program: &str) -> Result<()> {
    let status = household.container.read(&format!("/proc/{program}/status"))?;
    for line in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
        ensure!(status.lines().any(|known| known == line), "`{line}` is missing in:\n{status}");
    }
    Ok(())
}

fn session_can_sandbox(household: &InstalledShepherd) -> Result<()> {
    household.launch("sandbox")?;
    household.wait_until("a sandbox was made, with a /proc of its own", Duration::from_secs(20), || {
        household.container.exists("/tmp/sandbox-was-made")
    })?;
    household.wait_for_session_end(Duration::from_secs(20))
}

fn sees_only_own_processes(household: &InstalledShepherd) -> Result<()> {
    household.launch("look")?;
    household.wait_until("it looked at /proc and saw no first process", Duration::from_secs(20), || {
        household.container.exists("/tmp/saw-nobody")
    })?;
    household.wait_for_session_end(Duration::from_secs(20))
}

fn player_is_told_to_quit(household: &InstalledShepherd) -> Result<()> {
    household.install_player()?;
    household.launch("film")?;
    household.wait_until("the player listens", Duration::from_secs(20), || {
        household.container.exists("/tmp/player-listens")
    })?;
    household.shepherd_reply(&["stop"])?;
    household.wait_for_session_end(Duration::from_secs(40))?;
    ensure!(household.container.exists("/tmp/player-was-told-to-quit"), "it was not told to quit");
    Ok(())
}

fn socket_group(household: &InstalledShepherd) -> Result<()> {
    let command = "ExecStart=\nExecStart=/usr/bin/shepherdd --socket-group kid --socket-mode 660";
    household.with_setting(command, || {
        let done = household.container.run(&["stat", "--format=%U:%G %a", "/run/shepherd/shepherd.sock"])?;
        let found = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        ensure!(found == "root:kid 660", "the socket is {found}");
        Ok(())
    })
}

fn ends_on_time(household: &InstalledShepherd) -> Result<()> {
    let launched = Instant::now();
    let session = household.launch("short")?;
    let program = household.wait_for_program(&session)?;
    household.wait_for_session_end(Duration::from_secs(30))?;
    ensure!(launched.elapsed() >= Duration::from_secs(4), "it ended early, after {:?}", launched.elapsed());
    ensure!(!household.container.exists(&format!("/proc/{program}")), "a program outlives its session");
    household.assert_no_program_left()
}

/// A scope of the child's own, outside of all that is the daemon's.
fn moved_program_ends(household: &InstalledShepherd) -> Result<()> {
    household.container.start_child_user_manager()?;
    let elsewhere = |program: &str| {
        let group = household.container.read(&format!("/proc/{program}/cgroup"))?;
        ensure!(group.contains("/user.slice/"), "it was not moved: {group}");
        Ok(())
    };
    let launched = Instant::now();
    let session = household.launch("moved")?;
    elsewhere(&household.wait_for_program(&session)?)?;
    household.wait_for_session_end(Duration::from_secs(40))?;
    ensure!(
        launched.elapsed() >= installation::MIDDLE_MAX_RUN,
        "it ended early, after {:?}",
        launched.elapsed()
    );
    household.assert_no_program_left()?;
    assert_session_reattached(household, "moved", "SIGKILL", elsewhere)?;
    household.systemctl(&["stop", CHILD_USER_MANAGER])
}

fn child_cannot_touch_daemon(household: &InstalledShepherd) -> Result<()> {
    let daemon = household.unit_property("MainPID")?;
    let tries = [
        "systemctl --no-ask-password stop shepherdd",
        &format!("kill -9 {daemon}"),
        "ls /var/lib/shepherd",
        "touch /run/shepherd/mine",
        "mv /run/shepherd/shepherd.sock /run/shepherd/old.sock",
        "shepherd extend 1h",
        "shepherd policy show",
    ];
    for attempt in tries {
        let done = household.container.run(&[
            "setpriv",
            "--reuid=kid",
            "--regid=kid",
            "--init-groups",
            "sh",
            "-c",
            attempt,
        ])?;
        ensure!(!done.status.success(), "the child succeeded with `{attempt}`");
    }
    ensure!(household.unit_property("MainPID")? == daemon, "it is another daemon now");
    Ok(())
}

fn reload_applies_policy(household: &InstalledShepherd) -> Result<()> {
    household.write_policy(
        ShutdownPolicy::LeaveSessions,
        "[[entries]]\nid = \"new\"\nargv = [\"true\"]\nuser = \"kid\"\nalways = true\n",
    )?;
    household.systemctl(&["reload", "shepherdd"])?;
    household.wait_until("the new entry is listed", Duration::from_secs(10), || {
        household.shepherd_reply(&["list"]).is_ok_and(|list| list.to_string().contains("\"new\""))
    })?;
    household.write_policy(ShutdownPolicy::LeaveSessions, "")?;
    household.systemctl(&["reload", "shepherdd"])
}

fn policy_set_replaces_file(household: &InstalledShepherd) -> Result<()> {
    let policy = household.service.policy_path();
    let new = "[[entries]]\nid = \"sent\"\nargv = [\"true\"]\nuser = \"kid\"\nalways = true\n";
    let text = format!("{}{new}", household.container.read(policy)?);
    household.container.write("/tmp/sent.toml", &text)?;
    household.shepherd_reply(&["policy", "set", "/tmp/sent.toml"])?;
    ensure!(household.shepherd_reply(&["list"])?.to_string().contains("\"sent\""), "it does not apply");
    ensure!(household.container.read(policy)? == text, "it was not written");
    household.write_policy(ShutdownPolicy::LeaveSessions, "")?;
    household.systemctl(&["reload", "shepherdd"])
}

fn hung_daemon_is_restarted(household: &InstalledShepherd) -> Result<()> {
    household.with_setting("WatchdogSec=2s", || {
        assert_session_reattached(household, "middle", "SIGSTOP", |_| Ok(()))?;
        let restarts = household.unit_property("NRestarts")?;
        ensure!(restarts == "1", "systemd has started it again {restarts} times");
        Ok(())
    })
}

fn killed_daemon_is_restarted(household: &InstalledShepherd) -> Result<()> {
    assert_session_reattached(household, "middle", "SIGKILL", |_| Ok(()))
}

/// The daemon gets a signal in the middle of a session; systemd starts another one, which knows the session.
fn assert_session_reattached(
    household: &InstalledShepherd,
    entry: &str,
    signal: &str,
    look_at: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let launched = Instant::now();
    let session = household.launch(entry)?;
    let program = household.wait_for_program(&session)?;
    look_at(&program)?;
    let daemon = household.unit_property("MainPID")?;
    household.systemctl(&["kill", "--kill-who=main", "--signal", signal, "shepherdd"])?;
    household.wait_until("another daemon answers", Duration::from_secs(12), || {
        household.unit_property("MainPID").is_ok_and(|now| now != daemon && now != "0")
            && household.current_session().is_ok()
    })?;
    ensure!(household.current_session()?.as_deref() == Some(&*session), "the session is gone");
    ensure!(household.container.exists(&format!("/proc/{program}")), "its program is gone");
    household.wait_for_session_end(Duration::from_secs(40))?;
    ensure!(
        launched.elapsed() >= installation::MIDDLE_MAX_RUN,
        "it ended early, after {:?}",
        launched.elapsed()
    );
    household.assert_no_program_left()
}

fn stop_leaves_session(household: &InstalledShepherd) -> Result<()> {
    let session = household.launch("middle")?;
    let program = household.wait_for_program(&session)?;
    household.systemctl(&["stop", "shepherdd"])?;
    ensure!(household.container.exists(&format!("/proc/{program}")), "it was ended");
    household.systemctl(&["start", "shepherdd"])?;
    ensure!(household.current_session()?.as_deref() == Some(&*session), "it was not taken back");
    household.wait_for_session_end(Duration::from_secs(40))?;
    household.assert_no_program_left()
}

fn stop_ends_session(household: &InstalledShepherd) -> Result<()> {
    household.write_policy(ShutdownPolicy::EndSessions, "")?;
    household.systemctl(&["reload", "shepherdd"])?;
    let session = household.launch("middle")?;
    household.wait_for_program(&session)?;
    household.systemctl(&["stop", "shepherdd"])?;
    household.assert_no_program_left()?;
    household.write_policy(ShutdownPolicy::LeaveSessions, "")?;
    household.systemctl(&["start", "shepherdd"])
}

fn stop_leaves_nothing(household: &InstalledShepherd) -> Result<()> {
    let group = format!("/sys/fs/cgroup{}", household.unit_property("ControlGroup")?);
    let socket = household.service.socket_path();
    ensure!(household.container.exists(&group) && household.container.exists(socket), "it does not run");
    household.systemctl(&["stop", "shepherdd"])?;
    let state = household.unit_property("ActiveState")?;
    ensure!(state == "inactive", "the unit is {state}");
    ensure!(!household.container.exists(&group), "its group is left");
    ensure!(!household.container.exists(socket), "its socket is left");
    let left = household.container.run(&["pgrep", "--list-full", "shepherd"])?;
    ensure!(!left.status.success(), "left behind: {}", String::from_utf8_lossy(&left.stdout));
    household.systemctl(&["start", "shepherdd"])
}
