//! Signals, kills and freezes a tree, and lists its members.

use std::io;

use rustix::process::Signal;

use super::root::RootHandle;
use super::signal_request::{SignalDelivery, SignalPass, SignalRequest};
use super::{ProcessTree, TreeControl, process_group};
use crate::cgroup::{Cgroup, FreezerState};
use crate::ladder::StopSignal;
use crate::sys::descendants::DescendantScan;
use crate::sys::procfs::{ProcRoot, ProcessStat};

impl ProcessTree {
    /// Sends a signal to every member. Stopped members are continued, so that they can act on the signal.
    pub fn signal(&mut self, signal: StopSignal) -> SignalDelivery {
        self.signal_request = Some(SignalRequest::new(signal));
        self.signal_remaining()
    }

    /// Sends the signal of the last [`signal`](Self::signal) to members that it has not reached.
    pub fn signal_remaining(&mut self) -> SignalDelivery {
        let Some(mut request) = self.signal_request.take() else { return SignalDelivery::AllMembers };
        let delivery = self.deliver_signal(&mut request);
        if delivery != SignalDelivery::AllMembers {
            self.signal_request = Some(request);
        }
        delivery
    }

    fn deliver_signal(&mut self, request: &mut SignalRequest) -> SignalDelivery {
        let (root, proc, marker) = (&self.parts.root, &*self.proc, &self.marker);
        match &mut self.control {
            TreeControl::Cgroup(group) => {
                request.signal_members(|pass| signal_group_members(group, proc, pass))
            }
            TreeControl::CgroupWithKeeper(group, tracker) => {
                request.signal_members(|pass| tracker.signal_all(group, root, proc, pass))
            }
            // The keeper forwards only SIGTERM. Other signals are sent to the members one by one.
            TreeControl::PidNamespace if request.signal() == StopSignal::Terminate => {
                root.signal(Signal::TERM);
                SignalDelivery::AllMembers
            }
            TreeControl::PidNamespace => {
                let mut scan = DescendantScan::new();
                request.signal_members(|pass| signal_descendants(&mut scan, root, proc, pass))
            }
            TreeControl::Subreaper(scan) => {
                request.signal_members(|pass| signal_descendants(scan, root, proc, pass))
            }
            // The kernel signals all members of a process group at once.
            TreeControl::ProcessGroup => {
                for signal in [request.signal().to_kernel(), Signal::CONT] {
                    process_group::signal_group(root, proc, marker, signal);
                }
                SignalDelivery::AllMembers
            }
        }
    }

    /// Kills every member without waiting for their end.
    ///
    /// Needs no memory and no new process, and with a cgroup or a PID namespace no new descriptor either, so
    /// it works on a machine that has run out of these. Call it again while the tree has not ended: a tree
    /// that forks while it is being killed may need several calls, and escapees of a cgroup that is not empty
    /// yet may too.
    pub fn kill(&mut self) {
        let root = &self.parts.root;
        match &mut self.control {
            TreeControl::Cgroup(group) => group.kill_members(&self.proc),
            TreeControl::CgroupWithKeeper(group, tracker) => {
                // A program that runs as root may have stopped the keeper, which then could not reap members.
                root.signal(Signal::CONT);
                tracker.kill(group, root, &self.proc);
            }
            TreeControl::PidNamespace => root.signal(Signal::KILL),
            TreeControl::Subreaper(scan) => {
                // A member may have stopped the keeper, which then could not reap members.
                root.signal(Signal::CONT);
                let lives = || !root.has_ended();
                scan.signal_descendants(&self.proc, root.pid(), lives, &[Signal::KILL]);
            }
            TreeControl::ProcessGroup => {
                process_group::signal_group(root, &self.proc, &self.marker, Signal::KILL);
                // The program itself may have moved to another process group of its session.
                root.signal(Signal::KILL);
            }
        }
    }

    /// Freezes every member that is in the tree's cgroup. Members can't prevent it.
    ///
    /// # Errors
    /// Fails with `Unsupported` if the tree has no cgroup.
    pub fn freeze(&self) -> io::Result<()> {
        self.set_freezer_state(FreezerState::Frozen)
    }

    /// Thaws every member after a [`freeze`](Self::freeze).
    ///
    /// # Errors
    /// Fails with `Unsupported` if the tree has no cgroup.
    pub fn thaw(&self) -> io::Result<()> {
        self.set_freezer_state(FreezerState::Thawed)
    }

    fn set_freezer_state(&self, state: FreezerState) -> io::Result<()> {
        match &self.control {
            TreeControl::Cgroup(group) | TreeControl::CgroupWithKeeper(group, _) => {
                group.set_freezer_state(state)
            }
            TreeControl::PidNamespace | TreeControl::Subreaper(_) | TreeControl::ProcessGroup => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "only a tree in a cgroup can be frozen"))
            }
        }
    }

    /// Returns the pids of all members. The list may be out of date at once.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        self.list_processes(ListedZombies::Excluded)
    }

    pub(super) fn list_processes(&self, zombies: ListedZombies) -> Vec<i32> {
        let root = &self.parts.root;
        let descendants = || {
            let mut found = DescendantScan::new().descendants(&self.proc, root.pid());
            if zombies == ListedZombies::Excluded {
                found.retain(|pid| self.proc.stat(*pid).is_ok_and(ProcessStat::is_alive));
            }
            found
        };
        match &self.control {
            TreeControl::Cgroup(group) => group.processes(),
            TreeControl::CgroupWithKeeper(group, _) if root.has_ended() => group.processes(),
            TreeControl::CgroupWithKeeper(group, _) => {
                let mut members = group.processes();
                members.extend(descendants());
                members.sort_unstable();
                members.dedup();
                members
            }
            TreeControl::PidNamespace | TreeControl::Subreaper(_) if root.has_ended() => Vec::new(),
            TreeControl::PidNamespace | TreeControl::Subreaper(_) => descendants(),
            TreeControl::ProcessGroup => process_group::group_members(root, &self.proc, &self.marker),
        }
    }
}

/// The choice to include zombies in a list of descendants. The kernel doesn't list zombies in a cgroup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedZombies {
    Included,
    Excluded,
}

pub(super) fn signal_group_members(group: &Cgroup, proc: &ProcRoot, pass: &mut SignalPass<'_>) {
    for pid in group.processes() {
        pass.signal_once(proc, pid, |_| group.contains(proc, pid));
    }
}

pub(super) fn signal_descendants(
    scan: &mut DescendantScan,
    root: &RootHandle,
    proc: &ProcRoot,
    pass: &mut SignalPass<'_>,
) {
    let lives = || !root.has_ended();
    scan.each_descendant(proc, root.pid(), lives, |pid, is_member| pass.signal_once(proc, pid, is_member));
}
