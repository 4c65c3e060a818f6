//! The life of an installation: a killed daemon, an upgrade, a reboot, and removal.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::family_day::{launch, no_program_left, session_id, time_left, wait_until_idle};
use super::guest::RunningGuest;
use super::image::PARENT;
use super::limits_check;
use crate::package::BuiltPackages;
use crate::workspace::output_of;

pub(super) fn killed_daemon(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    let session = launch(guest, "anna", "long")?;
    let limits = limits_check::in_force(guest)?;
    let left = time_left(guest)?;
    for round in 0..3 {
        kill_daemon(guest)?;
        ensure!(session_id(guest)?.as_deref() == Some(&session), "round {round}: the session was lost");
        ensure!(limits_check::in_force(guest)? == limits, "round {round}: the limits changed");
    }
    ensure!(time_left(guest)? < left, "a killed daemon gave time back");
    guest.run("anna", "shepherd stop --force")?;
    wait_until_idle(guest)?;
    no_program_left(guest)
}

/// A session without a limit on processes takes more of them than a service may have by default, and the daemon comes
/// back after a crash all the same.
pub(super) fn many_threads(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    let session = launch(guest, "anna", "swarm")?;
    let log = format!("/var/lib/shepherd/logs/{session}.log");
    guest.wait_until("it has many threads", Duration::from_secs(120), &format!("grep -q threads {log}"))?;
    let started = guest.root(&format!("cat {log}"))?;
    let default = guest.root("systemctl show --value -p DefaultTasksMax")?;
    println!("  {started}; a service may have {default} by default");
    kill_daemon(guest)?;
    ensure!(session_id(guest)?.as_deref() == Some(&session), "the session was lost");
    guest.run("anna", "shepherd stop --force")?;
    wait_until_idle(guest)
}

fn kill_daemon(guest: &RunningGuest) -> Result<()> {
    let pid = guest.root("systemctl show --value -p MainPID shepherdd")?;
    guest.root(&format!("kill -9 {pid}"))?;
    let restarted =
        format!("test $(systemctl show --value -p MainPID shepherdd) != {pid} && shepherd health");
    guest.wait_until("the daemon is ready again", Duration::from_secs(30), &restarted)
}

/// The audit log has times of the calendar, and a session is charged by the clock that nobody can set. The daemon reads
/// one after the other, and the processor of a guest can pause in between. A daemon that forgot the time of its restart
/// would charge over a second less.
const CLOCK_DIFFERENCE_MS: u64 = 50;

/// An upgrade restarts the daemon, and the session is charged for every moment of it.
pub(super) fn upgrade(guest: &RunningGuest, packages: &BuiltPackages) -> Result<()> {
    let session = launch(guest, "anna", "long")?;
    guest.upload(&packages.shepherd_upgrade, "/root/upgrade.deb")?;
    guest.root("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq /root/upgrade.deb 2>&1")?;
    guest.root("shepherd health")?;
    ensure!(session_id(guest)?.as_deref() == Some(&session), "the session was lost in the upgrade");
    guest.run("anna", "shepherd stop --force")?;
    wait_until_idle(guest)?;
    let log = guest.shepherd("root", "audit list --last 100")?;
    let (lasted, charged) = (duration_of(&log, &session)?, charged_time(&log, &session)?);
    println!("  the session lasted {lasted} ms and was charged {charged} ms");
    ensure!(
        charged.abs_diff(lasted) <= CLOCK_DIFFERENCE_MS,
        "the session lasted {lasted} ms, but {charged} ms were charged"
    );
    Ok(())
}

/// The time between the start and the end of a session in the audit log, in milliseconds.
fn duration_of(log: &Value, session: &str) -> Result<u64> {
    let nanoseconds = |event| -> Result<u64> {
        let line = audit_line(log, event, session)?;
        let at = line.get("at").and_then(Value::as_str).with_context(|| line.to_string())?;
        let since_epoch = output_of(Command::new("date").args(["--date", at, "+%s%N"]));
        Ok(since_epoch.with_context(|| format!("`date` can't read `{at}`"))?.parse()?)
    };
    let lasted = nanoseconds("session_ended")?.checked_sub(nanoseconds("session_started")?);
    Ok(lasted.context("the session ended before it started")? / 1_000_000)
}

fn charged_time(log: &Value, session: &str) -> Result<u64> {
    let line = audit_line(log, "session_ended", session)?;
    line.get("charged").and_then(Value::as_u64).with_context(|| line.to_string())
}

fn audit_line<'log>(log: &'log Value, event: &str, session: &str) -> Result<&'log Value> {
    let mut lines = log.as_array().into_iter().flatten().filter_map(|record| record.get("line"));
    let found = lines.find(|line| {
        line.get("event").and_then(Value::as_str) == Some(event)
            && line.get("session_id").and_then(Value::as_str) == Some(session)
    });
    found.with_context(|| format!("the audit log has no `{event}` of {session}"))
}

/// The other product's package: its gate, sandbox and receipts work on a kernel that isn't ours.
pub(super) fn agent_package(guest: &RunningGuest, packages: &BuiltPackages) -> Result<()> {
    guest.upload(&packages.collieclaw, "/root/collieclaw.deb")?;
    guest.root("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq /root/collieclaw.deb 2>&1")?;
    guest.run(PARENT, "collieclaw init && collieclaw doctor")?;
    guest.run(PARENT, "collieclaw tool run file_list")?;
    guest.run(PARENT, "collieclaw agent -m 'what time is it' && collieclaw receipt verify")?;
    guest.root("DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq collieclaw 2>&1")?;
    guest.root("! command -v collieclaw && ! command -v collieclaw-mcp").map(drop)
}

/// The time used of the entry `long`, in milliseconds.
fn used_time(guest: &RunningGuest) -> Result<u64> {
    let reply = guest.shepherd("root", "usage --week --profile anna")?;
    let usage = reply.get("usage").and_then(Value::as_array).with_context(|| reply.to_string())?;
    let of_entry =
        usage.iter().filter(|used| used.pointer("/of/entry_id").and_then(Value::as_str) == Some("long"));
    Ok(of_entry.filter_map(|used| used.get("used").and_then(Value::as_u64)).sum())
}

pub(super) fn reboot(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    let used = used_time(guest)?;
    launch(guest, "anna", "long")?;
    std::thread::sleep(Duration::from_secs(3));
    guest.reboot()?;
    guest.wait_until("Shepherd is ready after the boot", Duration::from_secs(60), "shepherd health")?;
    ensure!(session_id(guest)?.is_none(), "a session survived the reboot");
    no_program_left(guest)?;
    let charged = used_time(guest)? - used;
    ensure!(charged >= 3_000, "only {charged} ms of a session were charged that a reboot ended");
    guest.shepherd("root", "audit verify").map(drop)
}

pub(super) fn removal(guest: &RunningGuest, packages: &BuiltPackages) -> Result<()> {
    let apt = "DEBIAN_FRONTEND=noninteractive apt-get -y -qq";
    guest.root(&format!("{apt} remove shepherd 2>&1"))?;
    guest.root("test -e /etc/shepherd/policy.toml && test -d /var/lib/shepherd && ! command -v shepherdd")?;
    guest.root("! systemctl is-active --quiet shepherdd")?;
    // Installed again, it finds the family's policy and records.
    guest.upload(&packages.shepherd_upgrade, "/root/again.deb")?;
    guest.root(&format!("{apt} install /root/again.deb 2>&1"))?;
    ensure!(used_time(guest)? > 0, "the records of the family are gone");
    // Nobody can be asked here, so the records stay.
    guest.root(&format!("{apt} purge shepherd 2>&1"))?;
    guest.root("test -e /etc/shepherd/policy.toml && test -d /var/lib/shepherd")?;
    guest.root(&format!("{apt} install /root/again.deb 2>&1"))?;
    let purge = "DEBIAN_FRONTEND=teletype apt-get -y -qq purge shepherd";
    let asked = guest.type_as("root", purge, &["yes"])?;
    let shown = String::from_utf8_lossy(&asked.stdout);
    ensure!(asked.status.success() && shown.contains("Delete the family's rules and records?"), "{shown}");
    let rest = guest
        .root("find / -xdev -iname '*shepherd*' -not -path '/proc/*' -not -path '*/journal/*' | sort")?;
    let of_the_parent = format!("/home/{PARENT}/");
    let rest: Vec<_> = rest.lines().filter(|path| !path.starts_with(&of_the_parent)).collect();
    ensure!(rest.is_empty(), "purge left {}", rest.join(", "));
    Ok(())
}
