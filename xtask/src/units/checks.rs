//! The checks on an installed Shepherd.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::container::CHILD_USER_MANAGER;
use super::installation::{self, InstalledShepherd, ShutdownPolicy};

/// A check on an installed Shepherd.
pub(super) type InstallationCheck = (&'static str, fn(&InstalledShepherd) -> Result<()>);

pub(super) const SYSTEM_CHECKS: &[InstallationCheck] = &[
    ("a session has a cgroup below the unit's, and its program has no privileges", session_is_confined),
    ("a session can create the namespaces that browsers and Flatpak need", session_can_sandbox),
    ("a session sees only processes of its own user", sees_only_own_processes),
    (
        "a player is asked to quit, although the daemon can't change the owner of a folder",
        player_is_asked_to_quit,
    ),
    (
        "the socket gets the requested group, although the daemon can't change the owner of a file",
        socket_group,
    ),
    ("a program that left its parent, session and terminal ends on time", ends_on_time),
    (
        "a program that the child's service manager moved to another cgroup ends on time, even after a crash",
        moved_program_ends,
    ),
    ("the child can't stop or kill the daemon, or access its files", child_cannot_touch_daemon),
    ("`systemctl reload` applies a changed policy", reload_applies_policy),
    ("`shepherd policy set` replaces the policy in its protected folder", policy_set_replaces_file),
    (
        "a daemon that hangs is restarted, and reattaches its session with the same end",
        hung_daemon_is_restarted,
    ),
    ("a daemon that is killed is restarted, and reattaches its session", killed_daemon_is_restarted),
    (
        "`systemctl stop` leaves a session running if the policy says so, and the next daemon reattaches it",
        stop_leaves_session,
    ),
    ("`systemctl stop` ends a session with all its processes if the policy says so", stop_ends_session),
];

/// The checks on the user unit, beyond those that both units share.
pub(super) const USER_CHECKS: &[InstallationCheck] = &[
    ("a session has its own PID namespace, and its program has no privileges", in_a_namespace),
    ("a session can create the namespaces that browsers and Flatpak need", session_can_sandbox),
    ("a program that left its parent, session and terminal ends on time", ends_on_time),
    ("`systemctl reload` applies a changed policy", reload_applies_policy),
    (
        "a daemon that hangs is restarted, and reattaches its session with the same end",
        hung_daemon_is_restarted,
    ),
    ("`systemctl stop` ends a session with all its processes if the policy says so", stop_ends_session),
    ("`systemctl stop` leaves no process, cgroup or socket", stop_leaves_nothing),
];

fn session_is_confined(installation: &InstalledShepherd) -> Result<()> {
    let session = installation.launch("long")?;
    let program = installation.wait_for_program(&session)?;
    let group = installation.container.read(&format!("/proc/{program}/cgroup"))?;
    let below = format!("0::{}/", installation.unit_property("ControlGroup")?);
    ensure!(
        group.lines().any(|line| line.starts_with(&below)),
        "the cgroup of the session is {group}, not below {below}"
    );
    assert_no_privileges(installation, &program)?;
    let status = installation.container.read(&format!("/proc/{program}/status"))?;
    ensure!(status.lines().any(|line| line == "Seccomp:\t2"), "the program has no seccomp filter:\n{status}");
    installation.stop()
}

/// Without root the daemon uses a PID namespace, because programs of an ordinary user could leave a cgroup.
fn in_a_namespace(installation: &InstalledShepherd) -> Result<()> {
    let session = installation.launch("long")?;
    let program = installation.wait_for_program(&session)?;
    let number =
        |process: &str| installation.container.run(&["readlink", &format!("/proc/{process}/ns/pid")]);
    let (own, first) = (number(&program)?.stdout, number("1")?.stdout);
    ensure!(own != first, "the session has no PID namespace of its own");
    assert_no_privileges(installation, &program)?;
    installation.stop()
}

fn assert_no_privileges(installation: &InstalledShepherd, program: &str) -> Result<()> {
    let status = installation.container.read(&format!("/proc/{program}/status"))?;
    for line in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
        ensure!(status.lines().any(|known| known == line), "`{line}` is missing in:\n{status}");
    }
    Ok(())
}

fn session_can_sandbox(installation: &InstalledShepherd) -> Result<()> {
    installation.launch("sandbox")?;
    installation.wait_until(
        "the program has created a sandbox with its own /proc",
        Duration::from_secs(20),
        || installation.container.exists("/tmp/sandbox-was-made"),
    )?;
    installation.wait_for_session_end(Duration::from_secs(20))
}

fn sees_only_own_processes(installation: &InstalledShepherd) -> Result<()> {
    installation.launch("look")?;
    installation.wait_until(
        "the program has read /proc without seeing process 1",
        Duration::from_secs(20),
        || installation.container.exists("/tmp/saw-nobody"),
    )?;
    installation.wait_for_session_end(Duration::from_secs(20))
}

fn player_is_asked_to_quit(installation: &InstalledShepherd) -> Result<()> {
    installation.install_player()?;
    installation.launch("film")?;
    installation.wait_until("the player listens", Duration::from_secs(20), || {
        installation.container.exists("/tmp/player-listens")
    })?;
    installation.shepherd_reply(&["stop"])?;
    installation.wait_for_session_end(Duration::from_secs(40))?;
    ensure!(
        installation.container.exists("/tmp/player-was-asked-to-quit"),
        "the player was not asked to quit"
    );
    Ok(())
}

fn socket_group(installation: &InstalledShepherd) -> Result<()> {
    let command = "ExecStart=\nExecStart=/usr/bin/shepherdd --socket-group kid --socket-mode 660";
    installation.with_setting(command, || {
        let done =
            installation.container.run(&["stat", "--format=%U:%G %a", "/run/shepherd/shepherd.sock"])?;
        let found = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        ensure!(found == "root:kid 660", "the socket is {found}");
        Ok(())
    })
}

fn ends_on_time(installation: &InstalledShepherd) -> Result<()> {
    let launched = Instant::now();
    let session = installation.launch("short")?;
    let program = installation.wait_for_program(&session)?;
    installation.wait_for_session_end(Duration::from_secs(30))?;
    ensure!(
        launched.elapsed() >= Duration::from_secs(4),
        "the session ended early, after {:?}",
        launched.elapsed()
    );
    ensure!(!installation.container.exists(&format!("/proc/{program}")), "a process survived its session");
    installation.assert_no_program_left()
}

/// Checks a program that runs in a scope of the child's service manager, outside of the daemon's cgroup.
fn moved_program_ends(installation: &InstalledShepherd) -> Result<()> {
    installation.container.start_child_user_manager()?;
    let elsewhere = |program: &str| {
        let group = installation.container.read(&format!("/proc/{program}/cgroup"))?;
        ensure!(group.contains("/user.slice/"), "the program was not moved: {group}");
        Ok(())
    };
    let launched = Instant::now();
    let session = installation.launch("moved")?;
    elsewhere(&installation.wait_for_program(&session)?)?;
    installation.wait_for_session_end(Duration::from_secs(40))?;
    ensure!(
        launched.elapsed() >= installation::MIDDLE_MAX_RUN,
        "the session ended early, after {:?}",
        launched.elapsed()
    );
    installation.assert_no_program_left()?;
    assert_session_reattached(installation, "moved", "SIGKILL", elsewhere)?;
    installation.systemctl(&["stop", CHILD_USER_MANAGER])
}

fn child_cannot_touch_daemon(installation: &InstalledShepherd) -> Result<()> {
    let daemon = installation.unit_property("MainPID")?;
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
        let done = installation.container.run(&[
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
    ensure!(installation.unit_property("MainPID")? == daemon, "the daemon was restarted");
    Ok(())
}

fn reload_applies_policy(installation: &InstalledShepherd) -> Result<()> {
    installation.write_policy(
        ShutdownPolicy::LeaveSessions,
        "[[entries]]\nid = \"new\"\nargv = [\"true\"]\nuser = \"kid\"\nalways = true\n",
    )?;
    installation.systemctl(&["reload", "shepherdd"])?;
    installation.wait_until("the new entry is listed", Duration::from_secs(10), || {
        installation.shepherd_reply(&["list"]).is_ok_and(|list| list.to_string().contains("\"new\""))
    })?;
    installation.write_policy(ShutdownPolicy::LeaveSessions, "")?;
    installation.systemctl(&["reload", "shepherdd"])
}

fn policy_set_replaces_file(installation: &InstalledShepherd) -> Result<()> {
    let policy = installation.service.policy_path();
    let new = "[[entries]]\nid = \"sent\"\nargv = [\"true\"]\nuser = \"kid\"\nalways = true\n";
    let text = format!("{}{new}", installation.container.read(policy)?);
    installation.container.write("/tmp/sent.toml", &text)?;
    installation.shepherd_reply(&["policy", "set", "/tmp/sent.toml"])?;
    ensure!(
        installation.shepherd_reply(&["list"])?.to_string().contains("\"sent\""),
        "the new policy does not apply"
    );
    ensure!(installation.container.read(policy)? == text, "the new policy was not written");
    installation.write_policy(ShutdownPolicy::LeaveSessions, "")?;
    installation.systemctl(&["reload", "shepherdd"])
}

fn hung_daemon_is_restarted(installation: &InstalledShepherd) -> Result<()> {
    installation.with_setting("WatchdogSec=2s", || {
        assert_session_reattached(installation, "middle", "SIGSTOP", |_| Ok(()))?;
        let restarts = installation.unit_property("NRestarts")?;
        ensure!(restarts == "1", "systemd has restarted the daemon {restarts} times");
        Ok(())
    })
}

fn killed_daemon_is_restarted(installation: &InstalledShepherd) -> Result<()> {
    assert_session_reattached(installation, "middle", "SIGKILL", |_| Ok(()))
}

/// Sends a signal to the daemon during a session, and checks that systemd restarts it and the session is reattached.
fn assert_session_reattached(
    installation: &InstalledShepherd,
    entry: &str,
    signal: &str,
    look_at: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let launched = Instant::now();
    let session = installation.launch(entry)?;
    let program = installation.wait_for_program(&session)?;
    look_at(&program)?;
    let daemon = installation.unit_property("MainPID")?;
    installation.systemctl(&["kill", "--kill-who=main", "--signal", signal, "shepherdd"])?;
    installation.wait_until("another daemon answers", Duration::from_secs(12), || {
        installation.unit_property("MainPID").is_ok_and(|now| now != daemon && now != "0")
            && installation.current_session().is_ok()
    })?;
    ensure!(installation.current_session()?.as_deref() == Some(&*session), "the session is gone");
    ensure!(installation.container.exists(&format!("/proc/{program}")), "the program of the session is gone");
    installation.wait_for_session_end(Duration::from_secs(40))?;
    ensure!(
        launched.elapsed() >= installation::MIDDLE_MAX_RUN,
        "the session ended early, after {:?}",
        launched.elapsed()
    );
    installation.assert_no_program_left()
}

fn stop_leaves_session(installation: &InstalledShepherd) -> Result<()> {
    let session = installation.launch("middle")?;
    let program = installation.wait_for_program(&session)?;
    installation.systemctl(&["stop", "shepherdd"])?;
    ensure!(installation.container.exists(&format!("/proc/{program}")), "the program was stopped");
    installation.systemctl(&["start", "shepherdd"])?;
    ensure!(installation.current_session()?.as_deref() == Some(&*session), "the session was not reattached");
    installation.wait_for_session_end(Duration::from_secs(40))?;
    installation.assert_no_program_left()
}

fn stop_ends_session(installation: &InstalledShepherd) -> Result<()> {
    installation.write_policy(ShutdownPolicy::EndSessions, "")?;
    installation.systemctl(&["reload", "shepherdd"])?;
    let session = installation.launch("middle")?;
    installation.wait_for_program(&session)?;
    installation.systemctl(&["stop", "shepherdd"])?;
    installation.assert_no_program_left()?;
    installation.write_policy(ShutdownPolicy::LeaveSessions, "")?;
    installation.systemctl(&["start", "shepherdd"])
}

fn stop_leaves_nothing(installation: &InstalledShepherd) -> Result<()> {
    let group = format!("/sys/fs/cgroup{}", installation.unit_property("ControlGroup")?);
    let socket = installation.service.socket_path();
    ensure!(
        installation.container.exists(&group) && installation.container.exists(socket),
        "the daemon does not run"
    );
    installation.systemctl(&["stop", "shepherdd"])?;
    let state = installation.unit_property("ActiveState")?;
    ensure!(state == "inactive", "the unit is {state}");
    ensure!(!installation.container.exists(&group), "the cgroup still exists");
    ensure!(!installation.container.exists(socket), "the socket still exists");
    let left = installation.container.run(&["pgrep", "--list-full", "shepherd"])?;
    ensure!(!left.status.success(), "processes left behind: {}", String::from_utf8_lossy(&left.stdout));
    installation.systemctl(&["start", "shepherdd"])
}
