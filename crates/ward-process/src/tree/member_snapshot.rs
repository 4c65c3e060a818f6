//! The members of a tree at one moment, and ending those who came later.

use rustix::io::Errno;
use rustix::process::Signal;

use super::ProcessTree;
use crate::record::ProcessIdentity;
use crate::sys::procfs::{ProcRoot, open_pidfd};

/// Who was a member at one moment. Each is known for ever, so that nobody passes for one by a number that has become
/// free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSnapshot(Vec<ProcessIdentity>);

impl MemberSnapshot {
    fn contains(&self, pid: i32, proc: &ProcRoot) -> bool {
        let Ok(stat) = proc.stat(pid) else { return false };
        self.0.contains(&ProcessIdentity { pid, start_time: stat.start_time })
    }
}

impl ProcessTree {
    /// Who is a member now.
    #[must_use]
    pub fn member_snapshot(&self) -> MemberSnapshot {
        let known = |pid| {
            let start_time = self.proc.stat(pid).ok()?.start_time;
            Some(ProcessIdentity { pid, start_time })
        };
        MemberSnapshot(self.processes().into_iter().filter_map(known).collect())
    }

    /// Kills every member that `member_snapshot` does not count, and says how many there were. Not waited for: none is left
    /// only when there was none, and members that fork faster than this may need [`kill`](Self::kill), which ends all.
    #[must_use = "there may be others left"]
    pub fn kill_all_except(&self, census: &MemberSnapshot) -> usize {
        let members = self.membership();
        let is_other = |pid| !census.contains(pid, &self.proc) && members.contains(pid);
        let strike = |pid: &i32| match open_pidfd(*pid) {
            // Looked at after the number was pinned: what is killed is what was looked at.
            Ok(pidfd) if is_other(*pid) => {
                // Ended meanwhile: nothing to do.
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
                true
            }
            Ok(_) | Err(Errno::SRCH) => false,
            // It can't be held, so it is left.
            Err(_) => is_other(*pid),
        };
        self.processes().iter().filter(|pid| strike(pid)).count()
    }
}
