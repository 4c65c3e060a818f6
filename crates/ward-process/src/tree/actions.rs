//! What can be done to a tree: ask, kill, freeze, look.

use std::io;

use rustix::process::Signal;

use super::root::RootHandle;
use super::signal_request::{SignalPass, SignalReach, SignalRequest};
use super::{ProcessTree, TreeControl, process_group};
use crate::cgroup::{Cgroup, FreezerState};
use crate::ladder::StopSignal;
use crate::sys::descendants::DescendantScan;
use crate::sys::procfs::ProcRoot;

impl ProcessTree {
    /// Asks every member to end. A stopped member is continued so that it can hear it.
    pub fn signal(&mut self, signal: StopSignal) -> SignalReach {
        self.signal_request = Some(SignalRequest::new(signal));
        self.signal_remaining()
    }

    /// Asks those whom the last [`signal_group`](Self::signal) has not reached.
    pub fn signal_remaining(&mut self) -> SignalReach {
        let Some(mut request) = self.signal_request.take() else { return SignalReach::AllMembers };
        let reach = self.deliver_signal(&mut request);
        if reach != SignalReach::AllMembers {
            self.signal_request = Some(request);
        }
        reach
    }

    fn deliver_signal(&mut self, request: &mut SignalRequest) -> SignalReach {
        let (root, proc, marker) = (&self.parts.root, &*self.proc, &self.marker);
        match &mut self.control {
            TreeControl::Cgroup(group) => {
                request.signal_members(|look| signal_group_members(group, proc, look))
            }
            TreeControl::CgroupWithKeeper(group, pursuit) => {
                request.signal_members(|look| pursuit.signal_all(group, root, proc, look))
            }
            // The keeper passes on nothing but SIGTERM; the others reach the members one by one.
            TreeControl::PidNamespace if request.signal() == StopSignal::Terminate => {
                root.signal(Signal::TERM);
                SignalReach::AllMembers
            }
            TreeControl::PidNamespace => {
                let mut sweep = DescendantScan::new();
                request.signal_members(|look| signal_descendants(&mut sweep, root, proc, look))
            }
            TreeControl::Subreaper(sweep) => {
                request.signal_members(|look| signal_descendants(sweep, root, proc, look))
            }
            // The kernel reaches all of a group at once.
            TreeControl::ProcessGroup => {
                for signal in [request.signal().to_kernel(), Signal::CONT] {
                    process_group::signal_group(root, proc, marker, signal);
                }
                SignalReach::AllMembers
            }
        }
    }

    /// Kills every member. Needs no memory and no new process, with a cgroup or a PID namespace no new
    /// descriptor either, so that a starved machine can't prevent it. Not waited for: a tree that forks
    /// while it is being killed may need another strike, and so may those who have left a cgroup that is
    /// not empty.
    pub fn kill(&mut self) {
        let root = &self.parts.root;
        match &mut self.control {
            TreeControl::Cgroup(group) => {
                // The group is gone only together with its members.
                let _ = group.kill();
            }
            TreeControl::CgroupWithKeeper(group, pursuit) => {
                // As for a subreaper: a program that runs as root may have stopped it.
                root.signal(Signal::CONT);
                pursuit.kill(group, root, &self.proc);
            }
            TreeControl::PidNamespace => root.signal(Signal::KILL),
            TreeControl::Subreaper(sweep) => {
                // A member may have stopped the subreaper, which then could not notice the end.
                root.signal(Signal::CONT);
                let lives = || !root.has_ended();
                sweep.signal_descendants(&self.proc, root.pid(), lives, &[Signal::KILL]);
            }
            TreeControl::ProcessGroup => {
                process_group::signal_group(root, &self.proc, &self.marker, Signal::KILL);
                // It may have gone to another group of its session.
                root.signal(Signal::KILL);
            }
        }
    }

    /// Stops every member that is in the tree's cgroup, without its consent. Only a cgroup can.
    ///
    /// # Errors
    /// With `Unsupported` where there is no cgroup.
    pub fn freeze(&self) -> io::Result<()> {
        self.set_freezer_state(FreezerState::Frozen)
    }

    /// Lets every member go on after a [`freeze`](Self::freeze).
    ///
    /// # Errors
    /// With `Unsupported` where there is no cgroup.
    pub fn thaw(&self) -> io::Result<()> {
        self.set_freezer_state(FreezerState::Thawed)
    }

    fn set_freezer_state(&self, motion: FreezerState) -> io::Result<()> {
        match &self.control {
            TreeControl::Cgroup(group) | TreeControl::CgroupWithKeeper(group, _) => {
                group.set_freezer_state(motion)
            }
            TreeControl::PidNamespace | TreeControl::Subreaper(_) | TreeControl::ProcessGroup => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "only a cgroup can be frozen"))
            }
        }
    }

    /// The numbers of all members, as of a moment ago.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        let root = &self.parts.root;
        match &self.control {
            TreeControl::Cgroup(group) => group.processes(),
            TreeControl::CgroupWithKeeper(group, _) if root.has_ended() => group.processes(),
            TreeControl::CgroupWithKeeper(group, _) => {
                let mut members = group.processes();
                members.extend(DescendantScan::new().descendants(&self.proc, root.pid()));
                members.sort_unstable();
                members.dedup();
                members
            }
            TreeControl::PidNamespace | TreeControl::Subreaper(_) if root.has_ended() => Vec::new(),
            TreeControl::PidNamespace | TreeControl::Subreaper(_) => {
                DescendantScan::new().descendants(&self.proc, root.pid())
            }
            TreeControl::ProcessGroup => process_group::group_members(root, &self.proc, &self.marker),
        }
    }
}

pub(super) fn signal_group_members(group: &Cgroup, proc: &ProcRoot, look: &mut SignalPass<'_>) {
    for pid in group.processes() {
        look.signal_once(proc, pid, |_| group.contains(proc, pid));
    }
}

pub(super) fn signal_descendants(
    sweep: &mut DescendantScan,
    root: &RootHandle,
    proc: &ProcRoot,
    look: &mut SignalPass<'_>,
) {
    let lives = || !root.has_ended();
    sweep.each_descendant(proc, root.pid(), lives, |pid, is_member| look.signal_once(proc, pid, is_member));
}
