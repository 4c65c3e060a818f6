//! Signals and lists the members of a process group by the pidfd of its leader.
//!
//! The id of a group is the leader's pid, and the kernel may reuse it once both the leader and the group are
//! gone. Since Linux 6.9 a pidfd can address the group itself. On older kernels the id is trusted only while
//! it can't be reused.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::root::{RootHandle, RootOrigin};
use crate::sys::procfs::{ProcRoot, open_pidfd};
use crate::sys::signals::send_to_group;

/// Signals every member of the group. Allocates nothing.
pub(super) fn signal_group(leader: &RootHandle, proc: &ProcRoot, marker: &[u8], signal: Signal) {
    let Some(pidfd) = leader.pidfd() else { return };
    if send_to_group(pidfd, signal.as_raw()) != Err(Errno::INVAL) {
        return;
    }
    match (leader.origin(), Pid::from_raw(leader.pid())) {
        // The leader is alive or our unreaped zombie, so its pid and the group's id can't have been reused.
        (RootOrigin::Child, Some(group)) if leader.exit().is_none() => {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        _ => each_marked_member(leader, proc, marker, |pidfd| {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }),
    }
}

/// Returns the pids of all living members of the group.
pub(super) fn group_members(leader: &RootHandle, proc: &ProcRoot, marker: &[u8]) -> Vec<i32> {
    let mut members = Vec::new();
    match leader.pidfd().map(|pidfd| send_to_group(pidfd, 0)) {
        None | Some(Err(Errno::SRCH)) => {}
        Some(Err(Errno::INVAL)) if leader.origin() == RootOrigin::Reopened => {
            // The group's id may have been reused by now, so members must also have the marker.
            let _ = proc.each_process(|pid| {
                if is_member(leader, proc, pid) && has_marker(proc, pid, marker) {
                    members.push(pid);
                }
            });
        }
        // The group has members, so its id can't have been reused.
        Some(_) => {
            // If /proc can't be read, no members are found.
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
    // The marker is the first variable in the environment of our programs, so the first page is enough.
    proc.has_marker(pid, marker, &mut [0; 4096])
}
