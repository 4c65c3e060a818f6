//! Finding the descendants of a process and signalling each, without allocating.
//!
//! A number read from `/proc` may already belong to somebody else. So each is pinned by a pidfd
//! first, and signalled only if the pinned process still has the parent it was found under.

use std::os::fd::AsFd;

use rustix::process::Signal;

use super::procfs::{ProcRoot, ProcessStat, open_pidfd};

/// How many members one round can see; what is beyond comes in the next round.
const MAX_SCANNED: usize = 16_384;

/// Room for one round, made before it is needed.
pub(crate) struct DescendantScan {
    found: Box<[ScannedProcess]>,
    environment: Box<[u8]>,
}

#[derive(Clone, Copy, Default)]
struct ScannedProcess {
    pid: i32,
    parent: i32,
}

impl ScannedProcess {
    /// Whether it has the parent it was found under, or has been left to `root`.
    fn is_below(self, root: i32, stat: ProcessStat) -> bool {
        stat.parent == self.parent || stat.parent == root
    }
}

impl DescendantScan {
    pub(crate) fn new() -> Self {
        Self {
            found: vec![ScannedProcess::default(); MAX_SCANNED].into_boxed_slice(),
            // The marker is the first variable of the environment that we give.
            environment: vec![0; 4096].into_boxed_slice(),
        }
    }

    /// Signals every living descendant of `root`, but not `root`. Returns how many there were.
    ///
    /// `root_lives` is asked once all are known: if it says no, the number may have been somebody
    /// else's all along, and nobody is signalled.
    pub(crate) fn signal_descendants(
        &mut self,
        proc: &ProcRoot,
        root: i32,
        root_lives: impl FnOnce() -> bool,
        signals: &[Signal],
    ) -> usize {
        let count = self.collect(proc, root);
        if !root_lives() {
            return 0;
        }
        let members = self.found.get(..count).unwrap_or_default();
        members.iter().filter(|member| signal_member(proc, **member, root, signals)).count()
    }

    /// Calls `visit` with every descendant of `root`, zombies included, and with what tells from its state whether it
    /// still is one. As above, nobody is visited unless `root_lives`.
    pub(crate) fn each_descendant(
        &mut self,
        proc: &ProcRoot,
        root: i32,
        root_lives: impl FnOnce() -> bool,
        mut visit: impl FnMut(i32, &dyn Fn(ProcessStat) -> bool),
    ) {
        let count = self.collect(proc, root);
        if !root_lives() {
            return;
        }
        for member in self.found.get(..count).unwrap_or_default() {
            visit(member.pid, &|stat| member.is_below(root, stat));
        }
    }

    /// The numbers of every living descendant of `root`.
    pub(crate) fn descendants(&mut self, proc: &ProcRoot, root: i32) -> Vec<i32> {
        let count = self.collect(proc, root);
        let members = self.found.get(..count).unwrap_or_default().iter().map(|member| member.pid);
        members.filter(|pid| proc.stat(*pid).is_ok_and(ProcessStat::is_alive)).collect()
    }

    /// Signals every living process that was given `marker`, wherever it hangs in the tree.
    pub(crate) fn signal_marked(&mut self, proc: &ProcRoot, marker: &[u8], signals: &[Signal]) -> usize {
        let mut count = 0;
        // An unreadable /proc shows no process; nothing can be signalled then.
        let _ = proc.each_process(|pid| {
            let Ok(pidfd) = open_pidfd(pid) else { return };
            let alive = proc.stat(pid).is_ok_and(ProcessStat::is_alive);
            if alive && proc.has_marker(pid, marker, &mut self.environment) {
                send_signals(pidfd.as_fd(), signals);
                count += 1;
            }
        });
        count
    }

    /// Breadth first, so that the whole tree is known before its first member is touched.
    fn collect(&mut self, proc: &ProcRoot, root: i32) -> usize {
        let (mut count, mut next, mut parent) = (0, 0, root);
        loop {
            // A process that ended meanwhile has left its children to `root`: the next round sees them.
            let _ = proc.each_child(parent, |pid| {
                if let Some(slot) = self.found.get_mut(count) {
                    *slot = ScannedProcess { pid, parent };
                    count += 1;
                }
            });
            if next >= count {
                return count;
            }
            parent = self.found.get(next).map_or(root, |member| member.pid);
            next += 1;
        }
    }
}

fn signal_member(proc: &ProcRoot, member: ScannedProcess, root: i32, signals: &[Signal]) -> bool {
    let Ok(pidfd) = open_pidfd(member.pid) else { return false };
    let Ok(stat) = proc.stat(member.pid) else { return false };
    let is_meant = member.is_below(root, stat) && stat.is_alive();
    if is_meant {
        send_signals(pidfd.as_fd(), signals);
    }
    is_meant
}

fn send_signals(pidfd: std::os::fd::BorrowedFd<'_>, signals: &[Signal]) {
    for signal in signals {
        // It can only fail because the process has ended, which is what we want.
        let _ = rustix::process::pidfd_send_signal(pidfd, *signal);
    }
}
