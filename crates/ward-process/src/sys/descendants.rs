//! Finds and signals the descendants of a process without allocating.
//!
//! A pid that was read from `/proc` may belong to another process a moment later. Each pid is therefore
//! pinned by a pidfd first, and the process is signalled only if it still has the parent under which it was
//! found.

use std::os::fd::AsFd;

use rustix::process::Signal;

use super::procfs::{ProcRoot, ProcessStat, open_pidfd};

/// Number of processes that one scan can hold. Further members are found by the next scan.
const MAX_SCANNED: usize = 16_384;

/// The buffers for scanning the descendants of a process, allocated before they are needed.
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
    /// Returns true if the process still has the parent under which it was found, or was adopted by `root`.
    fn is_below(self, root: i32, stat: ProcessStat) -> bool {
        stat.parent == self.parent || stat.parent == root
    }
}

impl DescendantScan {
    pub(crate) fn new() -> Self {
        Self {
            found: vec![ScannedProcess::default(); MAX_SCANNED].into_boxed_slice(),
            // The marker is the first variable in the environment of our programs, so the first page is
            // enough.
            environment: vec![0; 4096].into_boxed_slice(),
        }
    }

    /// Signals every living descendant of `root`, but not `root` itself, and returns their number.
    ///
    /// `root_lives` is called after the scan. If it returns false, the pid may have belonged to another
    /// process during the scan, and no process is signalled.
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

    /// Calls `visit` with every descendant of `root`, including zombies, and with a function that checks from
    /// a newer stat whether the process is still a descendant. As above, no process is visited unless
    /// `root_lives`.
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

    /// Returns the pids of all descendants of `root`, including zombies.
    pub(crate) fn descendants(&mut self, proc: &ProcRoot, root: i32) -> Vec<i32> {
        let count = self.collect(proc, root);
        self.found.get(..count).unwrap_or_default().iter().map(|member| member.pid).collect()
    }

    /// Signals every living process that has `marker` in its environment, whatever its parent, and returns
    /// their number.
    pub(crate) fn signal_marked(&mut self, proc: &ProcRoot, marker: &[u8], signals: &[Signal]) -> usize {
        let mut count = 0;
        // If /proc can't be read, no process can be found or signalled.
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

    /// Collects the descendants breadth-first, so that the whole tree is known before its first member is
    /// signalled.
    fn collect(&mut self, proc: &ProcRoot, root: i32) -> usize {
        let (mut count, mut next, mut parent) = (0, 0, root);
        loop {
            // If a process ended meanwhile, `root` has adopted its children, and the next scan finds them
            // there.
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
    let is_member = member.is_below(root, stat) && stat.is_alive();
    if is_member {
        send_signals(pidfd.as_fd(), signals);
    }
    is_member
}

fn send_signals(pidfd: std::os::fd::BorrowedFd<'_>, signals: &[Signal]) {
    for signal in signals {
        // Fails if the process has ended meanwhile, which is fine.
        let _ = rustix::process::pidfd_send_signal(pidfd, *signal);
    }
}
