//! The members of a tree at one moment, and ending those who came later.

use rustix::io::Errno;
use rustix::process::Signal;

use super::Tree;
use crate::record::RootProcess;
use crate::sys::procfs::{ProcRoot, pidfd_of};

/// Who was a member at one moment. Each is known for ever, so that nobody passes for one by a number that has become
/// free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census(Vec<RootProcess>);

impl Census {
    fn counts(&self, pid: i32, proc: &ProcRoot) -> bool {
        let Ok(stat) = proc.stat(pid) else { return false };
        self.0.contains(&RootProcess { pid, start_time: stat.start_time })
    }
}

impl Tree {
    /// Who is a member now.
    #[must_use]
    pub fn census(&self) -> Census {
        let known = |pid| {
            let start_time = self.proc.stat(pid).ok()?.start_time;
            Some(RootProcess { pid, start_time })
        };
        Census(self.processes().into_iter().filter_map(known).collect())
    }

    /// Kills every member that `census` does not count, and says how many there were. Not waited for: none is left
    /// only when there was none, and members that fork faster than this may need [`kill`](Self::kill), which ends all.
    #[must_use = "there may be others left"]
    pub fn kill_others(&self, census: &Census) -> usize {
        let members = self.membership();
        let is_other = |pid| !census.counts(pid, &self.proc) && members.contains(pid);
        let strike = |pid: &i32| match pidfd_of(*pid) {
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
