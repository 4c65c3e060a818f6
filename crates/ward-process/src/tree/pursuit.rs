//! Going after those who have left the group of their tree.

use rustix::process::Signal;

use super::request::Look;
use super::root::Root;
use super::strike::{ask_descendants, ask_group};
use crate::cgroup::Cgroup;
use crate::sys::procfs::ProcRoot;
use crate::sys::sweep::Sweep;

/// What it takes to find the leavers of a group below their keeper.
pub(crate) struct Pursuit {
    sweep: Sweep,
    /// Strikes that have left it to the kill of the group.
    waited: u32,
}

/// How many strikes in a row may wait for the group to be empty. A member that hangs in the kernel must not cover
/// for leavers.
const MOST_WAITED: u32 = 8;

impl Pursuit {
    pub(crate) fn new() -> Self {
        Self { sweep: Sweep::new(), waited: 0 }
    }

    /// Asks the group first: whoever leaves it meanwhile is found below its keeper.
    pub(super) fn ask(&mut self, group: &Cgroup, keeper: &Root, proc: &ProcRoot, look: &mut Look<'_>) {
        ask_group(group, proc, look);
        ask_descendants(&mut self.sweep, keeper, proc, look);
    }

    /// Kills the group, and leavers as soon as the group is empty: until then whoever walks through the dying members
    /// only keeps them from dying.
    pub(super) fn kill(&mut self, group: &Cgroup, keeper: &Root, proc: &ProcRoot) {
        // The group is gone only together with its members.
        let _ = group.kill();
        if group.is_populated() == Ok(true) && self.waited < MOST_WAITED {
            self.waited += 1;
            return;
        }
        self.waited = 0;
        let lives = || !keeper.has_ended();
        self.sweep.signal_descendants(proc, keeper.pid(), lives, &[Signal::KILL]);
    }

    /// Kills all who carry the mark of the tree, once the keeper is lost. Returns how many there were.
    pub(super) fn kill_marked(&mut self, proc: &ProcRoot, marker: &[u8]) -> usize {
        self.sweep.signal_marked(proc, marker, &[Signal::KILL])
    }
}
