//! A snapshot of the members of a tree, and a kill of all members that are not in the snapshot.

use rustix::process::{Pid, Signal};

use super::ProcessTree;
use super::actions::ListedZombies;
use crate::record::ProcessIdentity;
use crate::sys::procfs::open_pidfd;

/// The members of a tree at one moment. Members are identified by pid and start time, so that a later process
/// with a reused pid isn't mistaken for a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSnapshot {
    members: Vec<ProcessIdentity>,
    /// The session whose processes count as members of the snapshot, whenever they joined the tree.
    session: Option<i32>,
}

impl MemberSnapshot {
    /// Adds the processes in the session (`setsid(2)`) of this process, now and later, if the process exists.
    ///
    /// A process can leave its session but can't enter another one. The process has to live as long as the snapshot is
    /// used, because the kernel may reuse the id of an empty session.
    #[must_use]
    pub fn with_session_of(self, pid: i32) -> Self {
        Self { session: session_of(pid), ..self }
    }

    fn contains(&self, identity: &ProcessIdentity) -> bool {
        let in_session = || self.session.is_some() && session_of(identity.pid) == self.session;
        self.members.contains(identity) || in_session()
    }
}

fn session_of(pid: i32) -> Option<i32> {
    // Without a process id, `getsid` would return our own session.
    let session = rustix::process::getsid(Some(Pid::from_raw(pid)?)).ok()?;
    Some(session.as_raw_pid())
}

impl ProcessTree {
    /// Returns a snapshot of the current members.
    #[must_use]
    pub fn member_snapshot(&self) -> MemberSnapshot {
        let identify = |pid| {
            let start_time = self.proc.stat(pid).ok()?.start_time;
            Some(ProcessIdentity { pid, start_time })
        };
        MemberSnapshot { members: self.processes().into_iter().filter_map(identify).collect(), session: None }
    }

    /// Kills every member that is not in `snapshot`, without waiting for their end, and returns their number.
    ///
    /// Only a result of 0 means that no such member is left. Members that fork faster than this call kills
    /// may need [`kill`](Self::kill), which kills the whole tree.
    #[must_use = "other members may be left unless the number is 0"]
    pub fn kill_all_except(&self, snapshot: &MemberSnapshot) -> usize {
        let mut zombies = Vec::new();
        let others = self.kill_others(snapshot, &mut zombies);
        if others == 0 || others > zombies.len() {
            return others;
        }
        // A process may have forked between the list and its end, and the list lacks its child. The child was
        // adopted before its parent became a zombie, so a second list has it.
        self.kill_others(snapshot, &mut zombies)
    }

    /// Kills every listed member that is in neither list, and returns their number. Adds zombies to `zombies`.
    ///
    /// A process that has ended since it was listed counts, because it may have forked after that.
    fn kill_others(&self, snapshot: &MemberSnapshot, zombies: &mut Vec<ProcessIdentity>) -> usize {
        let members = self.membership();
        let mut kill_if_other = |pid: i32| {
            let pidfd = open_pidfd(pid);
            let Ok(stat) = self.proc.stat(pid) else { return true };
            let identity = ProcessIdentity { pid, start_time: stat.start_time };
            if snapshot.contains(&identity) || zombies.contains(&identity) {
                return false;
            }
            if !stat.is_alive() {
                zombies.push(identity);
            }
            // The check comes after the pid was pinned, so the killed process is the checked one. Without a
            // pidfd (for example for lack of descriptors) the process isn't killed, but counted.
            if let Ok(pidfd) = pidfd
                && members.contains(pid)
            {
                // Fails if the process has ended meanwhile, which is fine.
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
            }
            true
        };
        self.list_processes(ListedZombies::Included).into_iter().filter(|pid| kill_if_other(*pid)).count()
    }
}
