//! The limits of an entry, which need the controllers of a real machine.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::family_day::{launch, wait_until_idle};
use super::guest::RunningGuest;
use crate::package::BuiltPackages;

/// The cgroup of the running session, as a shell pattern.
const GROUP: &str = "/sys/fs/cgroup/system.slice/shepherdd.service/ward-session-*";

pub(super) fn run(guest: &RunningGuest, _: &BuiltPackages) -> Result<()> {
    memory(guest)?;
    processes(guest)?;
    processor(guest)
}

fn memory(guest: &RunningGuest) -> Result<()> {
    let session = launch(guest, "anna", "hungry")?;
    wait_until_idle(guest)?;
    let output = guest.root(&format!("cat /var/lib/shepherd/logs/{session}.log"))?;
    ensure!(!output.contains("got it"), "a program with 64 MiB got 300 MiB");
    let killed =
        guest.root("journalctl --dmesg --no-pager | grep -c 'Memory cgroup out of memory' || true")?;
    ensure!(killed != "0", "the kernel's log has no kill for memory");
    Ok(())
}

fn processes(guest: &RunningGuest) -> Result<()> {
    let session = launch(guest, "anna", "forks")?;
    let log = format!("/var/lib/shepherd/logs/{session}.log");
    guest.wait_until("it has forked", Duration::from_secs(30), &format!("grep -q forked {log}"))?;
    let output = guest.root(&format!("cat {log}"))?;
    let count: u32 =
        output.trim().rsplit(' ').next().and_then(|number| number.parse().ok()).context(output.clone())?;
    ensure!(count < 20, "a program with 20 processes made {count} more");
    guest.run("anna", "shepherd stop --force")?;
    wait_until_idle(guest)
}

/// A busy loop inside the group of the session is slowed down to its share.
fn processor(guest: &RunningGuest) -> Result<()> {
    launch(guest, "anna", "long")?;
    guest.wait_until("the group exists", Duration::from_secs(10), &format!("ls {GROUP}/cgroup.procs"))?;
    guest.root(&format!(
        "(echo $BASHPID > $(ls {GROUP}/cgroup.procs); exec timeout 3 sh -c 'while :; do :; done') || true"
    ))?;
    let throttled: u64 =
        guest.root(&format!("awk '/^nr_throttled/ {{print $2}}' {GROUP}/cpu.stat"))?.parse()?;
    ensure!(throttled > 0, "a busy program in a session with 20 % was never slowed down");
    guest.run("anna", "shepherd stop --force")?;
    wait_until_idle(guest)
}

/// The limits of the running session, as the kernel has them.
pub(super) fn in_force(guest: &RunningGuest) -> Result<String> {
    guest.root(&format!("cat {GROUP}/memory.max {GROUP}/pids.max {GROUP}/cpu.max"))
}
