//! A snapshot of the members of a tree, and a kill of all members that are not in the snapshot.

use rustix::io::Errno;
use rustix::process::Signal;

use super::ProcessTree;
use crate::record::ProcessIdentity;
use crate::sys::procfs::{ProcRoot, open_pidfd};

/// The members of a tree at one moment. Members are identified by pid and start time, so that a later process
/// with a reused pid isn't mistaken for a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSnapshot(Vec<ProcessIdentity>);

impl MemberSnapshot {
    fn contains(&self, pid: i32, proc: &ProcRoot) -> bool {
        let Ok(stat) = proc.stat(pid) else { return false };
        self.0.contains(&ProcessIdentity { pid, start_time: stat.start_time })
    }
}

impl ProcessTree {
    /// Returns a snapshot of the current members.
    #[must_use]
    pub fn member_snapshot(&self) -> MemberSnapshot {
        let identify = |pid| {
            let start_time = self.proc.stat(pid).ok()?.start_time;
            Some(ProcessIdentity { pid, start_time })
        };
        MemberSnapshot(self.processes().into_iter().filter_map(identify).collect())
    }

    /// Kills every member that is not in `snapshot`, without waiting for their end, and returns their number.
    ///
    /// Only a result of 0 means that no such member is left. Members that fork faster than this call kills
    /// may need [`kill`](Self::kill), which kills the whole tree.
    #[must_use = "other members may be left unless the number is 0"]
    pub fn kill_all_except(&self, snapshot: &MemberSnapshot) -> usize {
        let members = self.membership();
        let is_other = |pid| !snapshot.contains(pid, &self.proc) && members.contains(pid);
        let kill_if_other = |pid: &i32| match open_pidfd(*pid) {
            // The check comes after the pid was pinned, so the killed process is the checked one.
            Ok(pidfd) if is_other(*pid) => {
                // Fails if the process has ended meanwhile, which is fine.
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
                true
            }
            Ok(_) | Err(Errno::SRCH) => false,
            // Without a pidfd (for example for lack of descriptors) the process isn't killed, but counted.
            Err(_) => is_other(*pid),
        };
        self.processes().iter().filter(|pid| kill_if_other(pid)).count()
    }
}
