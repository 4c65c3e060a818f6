//! A process group, held by the pidfd of its leader.
//!
//! The leader's number names the group for as long as either exists, but not a moment longer. Since
//! Linux 6.9 a pidfd stands for the group itself; before, a number is trusted only while it is pinned.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::root::{RootHandle, RootOrigin};
use crate::sys::procfs::{ProcRoot, open_pidfd};
use crate::sys::signals::send_to_group;

/// Signals every member, if there is any. Allocates nothing.
pub(super) fn signal_group(leader: &RootHandle, proc: &ProcRoot, marker: &[u8], signal: Signal) {
    let Some(pidfd) = leader.pidfd() else { return };
    if send_to_group(pidfd, signal.as_raw()) != Err(Errno::INVAL) {
        return;
    }
    match (leader.origin(), Pid::from_raw(leader.pid())) {
        // Alive or our own zombie, so that the number of its group is still its own.
        (RootOrigin::Child, Some(group)) if leader.exit().is_none() => {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        _ => each_marked_member(leader, proc, marker, |pidfd| {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }),
    }
}

/// Living members.
pub(super) fn group_members(leader: &RootHandle, proc: &ProcRoot, marker: &[u8]) -> Vec<i32> {
    let mut members = Vec::new();
    match leader.pidfd().map(|pidfd| send_to_group(pidfd, 0)) {
        None | Some(Err(Errno::SRCH)) => {}
        Some(Err(Errno::INVAL)) if leader.origin() == RootOrigin::Reopened => {
            // The number may be somebody else's by now.
            let _ = proc.each_process(|pid| {
                if is_member(leader, proc, pid) && has_marker(proc, pid, marker) {
                    members.push(pid);
                }
            });
        }
        // Somebody is in the group, so that its number is still its own.
        Some(_) => {
            // An unreadable /proc shows no members.
            let _ = proc.each_process(|pid| {
                if is_member(leader, proc, pid) {
                    members.push(pid);
                }
            });
        }
    }
    members
}

fn each_marked_member(
    leader: &RootHandle,
    proc: &ProcRoot,
    marker: &[u8],
    mut visit: impl FnMut(&std::os::fd::OwnedFd),
) {
    let _ = proc.each_process(|pid| {
        let Ok(pidfd) = open_pidfd(pid) else { return };
        if is_member(leader, proc, pid) && has_marker(proc, pid, marker) {
            visit(&pidfd);
        }
    });
}

fn is_member(leader: &RootHandle, proc: &ProcRoot, pid: i32) -> bool {
    proc.stat(pid).is_ok_and(|stat| stat.group == leader.pid() && stat.is_alive())
}

fn has_marker(proc: &ProcRoot, pid: i32, marker: &[u8]) -> bool {
    // The marker is the first variable of the environment that we give.
    proc.has_marker(pid, marker, &mut [0; 4096])
}
