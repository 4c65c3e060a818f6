//! Going after those who have left the group of their tree.

use rustix::process::Signal;

use super::actions::{signal_descendants, signal_group_members};
use super::root::RootHandle;
use super::signal_request::SignalPass;
use crate::cgroup::Cgroup;
use crate::sys::descendants::DescendantScan;
use crate::sys::procfs::ProcRoot;

/// What it takes to find the leavers of a group below their keeper.
pub(crate) struct EscapeeTracker {
    sweep: DescendantScan,
    /// Strikes that have left it to the kill of the group.
    deferred_kills: u32,
}

/// How many strikes in a row may wait for the group to be empty. A member that hangs in the kernel must not cover
/// for leavers.
const MAX_DEFERRED_KILLS: u32 = 8;

impl EscapeeTracker {
    pub(crate) fn new() -> Self {
        Self { sweep: DescendantScan::new(), deferred_kills: 0 }
    }

    /// Asks the group first: whoever leaves it meanwhile is found below its keeper.
    pub(super) fn signal_all(
        &mut self,
        group: &Cgroup,
        keeper: &RootHandle,
        proc: &ProcRoot,
        look: &mut SignalPass<'_>,
    ) {
        signal_group_members(group, proc, look);
        signal_descendants(&mut self.sweep, keeper, proc, look);
    }

    /// Kills the group, and leavers as soon as the group is empty: until then whoever walks through the dying members
    /// only keeps them from dying.
    pub(super) fn kill(&mut self, group: &Cgroup, keeper: &RootHandle, proc: &ProcRoot) {
        // The group is gone only together with its members.
        let _ = group.kill();
        if group.is_populated() == Ok(true) && self.deferred_kills < MAX_DEFERRED_KILLS {
            self.deferred_kills += 1;
            return;
        }
        self.deferred_kills = 0;
        let lives = || !keeper.has_ended();
        self.sweep.signal_descendants(proc, keeper.pid(), lives, &[Signal::KILL]);
    }

    /// Kills all who carry the mark of the tree, once the keeper is lost. Returns how many there were.
    pub(super) fn kill_marked(&mut self, proc: &ProcRoot, marker: &[u8]) -> usize {
        self.sweep.signal_marked(proc, marker, &[Signal::KILL])
    }
}
