//! An ordinary day: the children launch, are warned and run out of time, and try what children try.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::guest::RunningGuest;
use crate::package::BuiltPackages;

/// The policy of the day, for two children with accounts of their own.
const POLICY: &str = r#"
config_version = 1

[profiles.anna]
label = "Anna"
accounts = ["anna"]
[profiles.ben]
label = "Ben"
accounts = ["ben"]

[access]
admins = ["mama"]

[[entries]]
id = "film"
label = "Film"
profiles = ["ben"]
argv = ["sleep", "987654"]
always = true

[[entries]]
id = "screen"
label = "Screen"
profiles = ["anna"]
argv = ["sh", "-c", "echo \"x11=$DISPLAY wayland=$WAYLAND_DISPLAY keys=$XAUTHORITY preload=$LD_PRELOAD.\""]
always = true

[[entries]]
id = "game"
label = "Game"
profiles = ["anna"]
argv = ["sh", "-c", "(setsid sleep 987654 </dev/null >/dev/null 2>&1 &); trap '' TERM; while :; do sleep 1; done"]
always = true
max_run = "12s"
warnings = [{ before = "6s" }]
stop_grace = "2s"

[[entries]]
id = "long"
label = "Long"
profiles = ["anna"]
argv = ["sh", "-c", "exec sleep 987654"]
always = true
max_run = "2h"
[entries.resources]
memory = "96MiB"
processes = 20
cpu = "20%"

[[entries]]
id = "hungry"
label = "Hungry"
profiles = ["anna"]
argv = ["python3", "-c", "x = [bytearray(1 << 20) for _ in range(300)]; print('got it')"]
always = true
[entries.resources]
memory = "64MiB"

[[entries]]
id = "forks"
label = "Forks"
profiles = ["anna"]
argv = ["python3", "-c", "import os,time\nn=0\ntry:\n  while n<100:\n    if os.fork()==0: time.sleep(60); os._exit(0)\n    n+=1\nexcept OSError: pass\nprint('forked',n,flush=True)\ntime.sleep(60)"]
always = true
[entries.resources]
processes = 20

[[entries]]
id = "swarm"
label = "Swarm"
profiles = ["anna"]
argv = ["python3", "-c", "import threading,time\nthreading.stack_size(65536)\nn=0\ntry:\n  while n<2000:\n    threading.Thread(target=time.sleep,args=(600,),daemon=True).start()\n    n+=1\nexcept RuntimeError: pass\nprint(n,'threads',flush=True)\ntime.sleep(600)"]
always = true

[[entries]]
id = "manager"
label = "Manager"
profiles = ["anna"]
argv = ["systemd-run", "--user", "--scope", "--quiet", "sleep", "987654"]
always = true
max_run = "10s"
stop_grace = "1s"
"#;

/// The most memory that the daemon may have in use.
const MEMORY_KIB: u64 = 15 * 1024;

pub(super) fn daemon_is_small(guest: &RunningGuest, packages: &BuiltPackages) -> Result<()> {
    let rss = "awk '/^VmRSS/ {print $2}' /proc/$(systemctl show --value -p MainPID shepherdd)/status";
    let kib: u64 = guest.root(rss)?.parse()?;
    ensure!(kib <= MEMORY_KIB || !packages.is_shipped, "the daemon uses {kib} KiB, more than {MEMORY_KIB}");
    println!("  the daemon uses {:.1} MB", kib as f64 / 1024.0);
    Ok(())
}

pub(super) fn children_launch(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    if guest.run_as("root", "id ben")?.status.code() != Some(0) {
        guest.root("useradd --create-home --shell /bin/bash ben")?;
    }
    guest.write("/etc/shepherd/policy.toml", POLICY)?;
    guest.root("shepherd policy check /etc/shepherd/policy.toml && shepherd reload")?;
    launch(guest, "ben", "film")?;
    let refused = guest.run_as("anna", "shepherd launch film")?;
    ensure!(!refused.status.success(), "Anna could launch what is only for Ben");
    let refused = guest.run_as("ben", "shepherd extend 1h")?;
    ensure!(!refused.status.success(), "Ben could extend his own session");
    ensure!(owner_of(guest, "sleep 987654")? == "ben", "the film doesn't run as Ben");
    guest.run("ben", "shepherd stop")?;
    wait_until_idle(guest)?;
    no_program_left(guest)
}

/// A program is shown on the desktop of the child who launches it, and not on the desktop of somebody else (S6.8). The
/// guest has no desktop, so the variables of one are enough.
pub(super) fn desktop_display(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    let desktop = "DISPLAY=:7 WAYLAND_DISPLAY=wayland-7 XAUTHORITY=/home/anna/keys";
    let check = |account: &str, expected: &str| -> Result<()> {
        guest.run(
            account,
            &format!("env {desktop} XDG_RUNTIME_DIR=/run/user/$(id -u) shepherd launch screen --wait --profile anna"),
        )?;
        wait_until_idle(guest)?;
        // The output is complete a moment after the end of the session.
        let shows = format!("shepherd log --profile anna | grep -qxF '{expected}'");
        guest.wait_until(&format!("`{expected}` is shown"), Duration::from_secs(10), &shows)
    };
    check("anna", "x11=:7 wayland=wayland-7 keys=/home/anna/keys preload=.")?;
    check("root", "x11= wayland= keys= preload=.")
}

pub(super) fn session_ends(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    let session = launch(guest, "anna", "game")?;
    guest.wait_until("the game starts", Duration::from_secs(10), "pgrep -f '^sleep 987654$'")?;
    std::thread::sleep(Duration::from_secs(8));
    wait_until_idle(guest)?;
    no_program_left(guest)?;
    let events = audit_events(guest, &session)?;
    let expected = ["launch_approved", "session_started", "warning_given", "stop_requested", "session_ended"];
    ensure!(events == expected, "the audit log has {events:?}");
    Ok(())
}

/// A scope of the user's own service manager takes the program out of the session's cgroup.
pub(super) fn user_manager(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    guest.root("loginctl enable-linger anna")?;
    let runtime = guest.root("echo /run/user/$(id -u anna)")?;
    guest.wait_until(
        "Anna's service manager runs",
        Duration::from_secs(30),
        &format!("test -S {runtime}/systemd/private"),
    )?;
    launch(guest, "anna", "manager")?;
    guest.wait_until("the program starts", Duration::from_secs(10), "pgrep -f '^/?[a-z/]*sleep 987654$'")?;
    std::thread::sleep(Duration::from_secs(8));
    wait_until_idle(guest)?;
    no_program_left(guest)?;
    guest.root("loginctl disable-linger anna").map(drop)
}

pub(super) fn clock_a_day_on(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    launch(guest, "anna", "long")?;
    let before = time_left(guest)?;
    guest.root("timedatectl set-ntp false 2>/dev/null; date -s '+1 day' >/dev/null")?;
    let during = time_left(guest)?;
    ensure!(during <= before, "a clock a day on lengthened the session from {before} to {during} ms");
    guest.root("date -s '-1 day' >/dev/null")?;
    let after = time_left(guest)?;
    ensure!(after <= during, "setting the clock back lengthened the session from {during} to {after} ms");
    guest.run("anna", "shepherd stop")?;
    wait_until_idle(guest)?;
    let refused = guest.run_as("anna", "shepherd launch long")?;
    ensure!(!refused.status.success(), "a clock that was set back a day can launch");
    guest.root("shepherd clock confirm").map(drop)
}

/// Launches an entry as a child, and returns the id of the session.
pub(super) fn launch(guest: &RunningGuest, child: &str, entry: &str) -> Result<String> {
    let reply = guest.shepherd(child, &format!("launch {entry}"))?;
    let id = reply.pointer("/session/session_id").and_then(Value::as_str);
    id.map(str::to_owned).with_context(|| reply.to_string())
}

/// Returns the remaining time of the session in milliseconds.
pub(super) fn time_left(guest: &RunningGuest) -> Result<u64> {
    let reply = guest.shepherd("root", "status")?;
    let left = reply.pointer("/snapshot/session/remaining").and_then(Value::as_u64);
    left.with_context(|| format!("no session with a deadline: {reply}"))
}

pub(super) fn session_id(guest: &RunningGuest) -> Result<Option<String>> {
    let reply = guest.shepherd("root", "status")?;
    Ok(reply.pointer("/snapshot/session/session_id").and_then(Value::as_str).map(str::to_owned))
}

pub(super) fn wait_until_idle(guest: &RunningGuest) -> Result<()> {
    guest.wait_until(
        "the session ends",
        Duration::from_secs(30),
        "shepherd --output json status | grep -q '\"session\": null'",
    )
}

pub(super) fn no_program_left(guest: &RunningGuest) -> Result<()> {
    guest.wait_until("no program is left", Duration::from_secs(10), "! pgrep -f '^/?[a-z/]*sleep 987654$'")
}

/// The events of a session in the audit log, in order.
fn audit_events(guest: &RunningGuest, session: &str) -> Result<Vec<String>> {
    let records = guest.shepherd("root", "audit list --last 40")?;
    let lines =
        records.as_array().context("the log is no list")?.iter().filter_map(|record| record.get("line"));
    let of_session = lines.filter(|line| line.get("session_id").and_then(Value::as_str) == Some(session));
    Ok(of_session.filter_map(|line| Some(line.get("event")?.as_str()?.to_owned())).collect())
}

fn owner_of(guest: &RunningGuest, command: &str) -> Result<String> {
    guest.root(&format!("ps -o user= -p $(pgrep -o -f '^{command}$')"))
}
