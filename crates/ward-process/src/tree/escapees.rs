//! Finds, signals and kills escapees: members that have moved out of the cgroup of their tree.

use rustix::process::Signal;

use super::actions::{signal_descendants, signal_group_members};
use super::root::RootHandle;
use super::signal_request::SignalPass;
use crate::cgroup::Cgroup;
use crate::sys::descendants::DescendantScan;
use crate::sys::procfs::ProcRoot;

/// A tracker that finds escapees among the descendants of the keeper.
pub(crate) struct EscapeeTracker {
    scan: DescendantScan,
    /// Number of kills in a row that left the escapees alone because the group was not empty.
    deferred_kills: u32,
}

/// Number of kills in a row that may wait for the group to become empty. After that, escapees are killed
/// anyway, so that a member that hangs in the kernel can't protect them.
const MAX_DEFERRED_KILLS: u32 = 8;

impl EscapeeTracker {
    pub(crate) fn new() -> Self {
        Self { scan: DescendantScan::new(), deferred_kills: 0 }
    }

    /// Signals the members of the group and then the descendants of the keeper. In this order, a member that
    /// leaves the group in between is still found.
    pub(super) fn signal_all(
        &mut self,
        group: &Cgroup,
        keeper: &RootHandle,
        proc: &ProcRoot,
        pass: &mut SignalPass<'_>,
    ) {
        signal_group_members(group, proc, pass);
        signal_descendants(&mut self.scan, keeper, proc, pass);
    }

    /// Kills the group, and escapees as soon as the group is empty. A scan through `/proc` before that would
    /// compete with the dying members and only delay their end.
    pub(super) fn kill(&mut self, group: &Cgroup, keeper: &RootHandle, proc: &ProcRoot) {
        group.kill_members(proc);
        if group.is_populated() == Ok(true) && self.deferred_kills < MAX_DEFERRED_KILLS {
            self.deferred_kills += 1;
            return;
        }
        self.deferred_kills = 0;
        let lives = || !keeper.has_ended();
        self.scan.signal_descendants(proc, keeper.pid(), lives, &[Signal::KILL]);
    }

    /// Kills all processes with the marker of the tree and returns their number. Used after the keeper was
    /// lost.
    pub(super) fn kill_marked(&mut self, proc: &ProcRoot, marker: &[u8]) -> usize {
        self.scan.signal_marked(proc, marker, &[Signal::KILL])
    }
}
