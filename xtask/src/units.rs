//! `cargo xtask test --only units`: the system unit under a real systemd, in a container, with the installed programs
//! and a second user.
//!
//! What can be said of the units without running them is in the tests of `shepherdd`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::test::Outcome;
use crate::workspace::{Workspace, run_to_end};
use crate::{screen, setup};

mod container;
mod household;

use container::Stage;
use household::{Household, Shutdown};

/// One thing that holds for an installed Shepherd.
type Check = (&'static str, fn(&Household) -> Result<()>);

const CHECKS: &[Check] = &[
    ("a session is a group below the unit's own, and its program has no rights", confined),
    ("a session can make what browsers and Flatpak make their sandboxes of", sandboxes),
    ("a session sees the programs of its own user only", sees_nobody_else),
    ("a player is told to quit, though the daemon can give no folder away", told_to_quit),
    ("the socket belongs to the group that is named, though the daemon can give no file away", socket_group),
    ("a program that left its parents, its group and its terminal ends on time", ends_on_time),
    (
        "a program that has the child's service manager move it elsewhere ends on time, whatever the daemon",
        moved,
    ),
    ("the child can neither stop, kill nor read what is the daemon's", not_the_childs),
    ("`systemctl reload` applies a changed policy", reloads),
    ("a daemon that hangs is started again, and takes its session back with its end", watchdog),
    ("a daemon that is killed is started again, and takes its session back", killed),
    ("`systemctl stop` leaves a session if the policy says so, and the next daemon takes it back", left),
    ("`systemctl stop` ends a session if the policy says so, with all that it started", ended),
];

/// Runs all of it. Only root can boot a container.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !setup::is_root() {
        let reason = "not root: the units were read, but no systemd was booted to run them";
        return Ok(Outcome::PassedInPart(reason.to_owned()));
    }
    run_to_end(workspace.cargo().args([
        "build",
        "--locked",
        "--quiet",
        "-p",
        "shepherdd",
        "-p",
        "shepherd-cli",
    ]))?;
    let stage = Stage::prepare(workspace)?;
    let household = Household::begin(stage.boot()?)?;
    for (sentence, check) in CHECKS {
        let start = Instant::now();
        let result = check(&household).and_then(|()| household.is_idle());
        report(sentence, start, &result);
        result.with_context(|| format!("{sentence}\n{}", household.journal()))?;
    }
    let start = Instant::now();
    let result = power_cut(&stage, household);
    report("a power cut in the middle of a session gives nothing back", start, &result);
    result.map(|()| Outcome::Passed)
}

fn report(sentence: &str, start: Instant, result: &Result<()>) {
    let mark = if result.is_ok() { screen::good("✓") } else { screen::bad("✗") };
    println!("  {mark} {}  {sentence}", screen::seconds(start.elapsed()));
}

fn confined(household: &Household) -> Result<()> {
    let session = household.launch("long")?;
    let program = household.program_of(&session)?;
    let group = household.container.read(&format!("/proc/{program}/cgroup"))?;
    let below = "0::/system.slice/shepherdd.service/";
    ensure!(group.lines().any(|line| line.starts_with(below)), "its group is {group}");
    let status = household.container.read(&format!("/proc/{program}/status"))?;
    for line in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000", "Seccomp:\t2"] {
        ensure!(status.lines().any(|known| known == line), "`{line}` is missing in:\n{status}");
    }
    household.stop()
}

fn sandboxes(household: &Household) -> Result<()> {
    household.launch("sandbox")?;
    household.wait_until("a sandbox was made, with a /proc of its own", Duration::from_secs(20), || {
        household.container.exists("/tmp/sandbox-was-made")
    })?;
    household.wait_for_the_end(Duration::from_secs(20))
}

fn sees_nobody_else(household: &Household) -> Result<()> {
    household.launch("look")?;
    household.wait_until("it looked at /proc and saw no first process", Duration::from_secs(20), || {
        household.container.exists("/tmp/saw-nobody")
    })?;
    household.wait_for_the_end(Duration::from_secs(20))
}

fn told_to_quit(household: &Household) -> Result<()> {
    household.install_player()?;
    household.launch("film")?;
    household.wait_until("the player listens", Duration::from_secs(20), || {
        household.container.exists("/tmp/player-listens")
    })?;
    household.shepherd(&["stop"])?;
    household.wait_for_the_end(Duration::from_secs(40))?;
    ensure!(household.container.exists("/tmp/player-was-told-to-quit"), "it was not told to quit");
    Ok(())
}

fn socket_group(household: &Household) -> Result<()> {
    let drop_in = "/run/systemd/system/shepherdd.service.d/group.conf";
    household.container.write(
        drop_in,
        "[Service]\nExecStart=\nExecStart=/usr/bin/shepherdd --socket-group kid --socket-mode 660\n",
    )?;
    household.systemctl(&["daemon-reload"])?;
    household.systemctl(&["restart", "shepherdd"])?;
    let done = household.container.run(&["stat", "--format=%U:%G %a", "/run/shepherd/shepherd.sock"])?;
    let found = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    ensure!(found == "root:kid 660", "the socket is {found}");
    household.container.remove(drop_in)?;
    household.systemctl(&["daemon-reload"])?;
    household.systemctl(&["restart", "shepherdd"])
}

fn ends_on_time(household: &Household) -> Result<()> {
    let launched = Instant::now();
    let session = household.launch("short")?;
    let program = household.program_of(&session)?;
    household.wait_for_the_end(Duration::from_secs(30))?;
    ensure!(launched.elapsed() >= Duration::from_secs(4), "it ended early, after {:?}", launched.elapsed());
    ensure!(!household.container.exists(&format!("/proc/{program}")), "a program outlives its session");
    household.no_program_is_left()
}

/// A scope of the child's own, outside of all that is the daemon's.
fn moved(household: &Household) -> Result<()> {
    let user = household.container.run(&["id", "-u", "kid"])?;
    let manager = format!("user@{}.service", String::from_utf8_lossy(&user.stdout).trim());
    // A container has no login of which it could be a part.
    household.container.write(
        "/run/systemd/system/user@.service.d/no-login.conf",
        "[Service]\nPAMName=\nEnvironment=XDG_RUNTIME_DIR=/run/user/%i\n",
    )?;
    household.systemctl(&["daemon-reload"])?;
    household.systemctl(&["start", &manager])?;
    let elsewhere = |program: &str| {
        let group = household.container.read(&format!("/proc/{program}/cgroup"))?;
        ensure!(group.contains("/user.slice/"), "it was not moved: {group}");
        Ok(())
    };
    let launched = Instant::now();
    let session = household.launch("moved")?;
    elsewhere(&household.program_of(&session)?)?;
    household.wait_for_the_end(Duration::from_secs(40))?;
    ensure!(launched.elapsed() >= household::MIDDLE, "it ended early, after {:?}", launched.elapsed());
    household.no_program_is_left()?;
    taken_back(household, "moved", "SIGKILL", elsewhere)?;
    household.systemctl(&["stop", &manager])
}

fn not_the_childs(household: &Household) -> Result<()> {
    let daemon = household.show("MainPID")?;
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
    ensure!(household.show("MainPID")? == daemon, "it is another daemon now");
    Ok(())
}

fn reloads(household: &Household) -> Result<()> {
    household.write_policy(
        Shutdown::Leaves,
        "[[entries]]\nid = \"new\"\nargv = [\"true\"]\nuser = \"kid\"\nalways = true\n",
    )?;
    household.systemctl(&["reload", "shepherdd"])?;
    household.wait_until("the new entry is listed", Duration::from_secs(10), || {
        household.shepherd(&["list"]).is_ok_and(|list| list.to_string().contains("\"new\""))
    })?;
    household.write_policy(Shutdown::Leaves, "")?;
    household.systemctl(&["reload", "shepherdd"])
}

fn watchdog(household: &Household) -> Result<()> {
    household
        .container
        .write("/run/systemd/system/shepherdd.service.d/watchdog.conf", "[Service]\nWatchdogSec=2s\n")?;
    household.systemctl(&["daemon-reload"])?;
    household.systemctl(&["restart", "shepherdd"])?;
    taken_back(household, "middle", "SIGSTOP", |_| Ok(()))?;
    household.container.remove("/run/systemd/system/shepherdd.service.d/watchdog.conf")?;
    household.systemctl(&["daemon-reload"])?;
    household.systemctl(&["restart", "shepherdd"])
}

fn killed(household: &Household) -> Result<()> {
    taken_back(household, "middle", "SIGKILL", |_| Ok(()))
}

/// The daemon gets a signal in the middle of a session; systemd starts another one, which knows the session.
fn taken_back(
    household: &Household,
    entry: &str,
    signal: &str,
    look_at: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let launched = Instant::now();
    let session = household.launch(entry)?;
    let program = household.program_of(&session)?;
    look_at(&program)?;
    let daemon = household.show("MainPID")?;
    household.systemctl(&["kill", "--kill-who=main", "--signal", signal, "shepherdd"])?;
    household.wait_until("another daemon answers", Duration::from_secs(12), || {
        household.show("MainPID").is_ok_and(|now| now != daemon && now != "0") && household.session().is_ok()
    })?;
    ensure!(household.session()?.as_deref() == Some(&*session), "the session is gone");
    ensure!(household.container.exists(&format!("/proc/{program}")), "its program is gone");
    household.wait_for_the_end(Duration::from_secs(40))?;
    ensure!(launched.elapsed() >= household::MIDDLE, "it ended early, after {:?}", launched.elapsed());
    household.no_program_is_left()
}

fn left(household: &Household) -> Result<()> {
    let session = household.launch("middle")?;
    let program = household.program_of(&session)?;
    household.systemctl(&["stop", "shepherdd"])?;
    ensure!(household.container.exists(&format!("/proc/{program}")), "it was ended");
    household.systemctl(&["start", "shepherdd"])?;
    ensure!(household.session()?.as_deref() == Some(&*session), "it was not taken back");
    household.wait_for_the_end(Duration::from_secs(40))?;
    household.no_program_is_left()
}

fn ended(household: &Household) -> Result<()> {
    household.write_policy(Shutdown::Ends, "")?;
    household.systemctl(&["reload", "shepherdd"])?;
    let session = household.launch("middle")?;
    household.program_of(&session)?;
    household.systemctl(&["stop", "shepherdd"])?;
    household.no_program_is_left()?;
    household.write_policy(Shutdown::Leaves, "")?;
    household.systemctl(&["start", "shepherdd"])
}

/// The container is killed and booted again, which gives it another boot id; its data folder stays.
fn power_cut(stage: &Stage, household: Household) -> Result<()> {
    let session = household.launch("evening")?;
    household.program_of(&session)?;
    let before = household.used("evening")?;
    std::thread::sleep(Duration::from_secs(2));
    drop(household);
    let household = Household::begin(stage.boot()?)?;
    ensure!(household.session()?.is_none(), "a session survived the reboot");
    let after = household.used("evening")?;
    ensure!(after >= before + Duration::from_secs(2), "{before:?} were used, and {after:?} after the reboot");
    let Some(reason) = household.refusal("evening")? else { bail!("the pause after a session is forgotten") };
    ensure!(reason.contains("cooldown"), "{reason}");
    Ok(())
}

/// A file below the root that a container sees.
fn below(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}
