//! What can be done to a tree: ask, kill, freeze, look.

use std::io;

use rustix::process::Signal;

use super::request::{Look, Reach, Request};
use super::root::Root;
use super::{Reins, Tree, group};
use crate::cgroup::{Cgroup, Motion};
use crate::ladder::StopSignal;
use crate::sys::procfs::ProcRoot;
use crate::sys::sweep::Sweep;

impl Tree {
    /// Asks every member to end. A stopped member is continued so that it can hear it.
    pub fn signal(&mut self, signal: StopSignal) -> Reach {
        self.request = Some(Request::new(signal));
        self.signal_the_rest()
    }

    /// Asks those whom the last [`signal`](Self::signal) has not reached.
    pub fn signal_the_rest(&mut self) -> Reach {
        let Some(mut request) = self.request.take() else { return Reach::Everybody };
        let reach = self.pass_on(&mut request);
        if reach != Reach::Everybody {
            self.request = Some(request);
        }
        reach
    }

    fn pass_on(&mut self, request: &mut Request) -> Reach {
        let (root, proc, marker) = (&self.parts.root, &*self.proc, &self.marker);
        match &mut self.reins {
            Reins::Cgroup(group) => request.reach(|look| ask_group(group, proc, look)),
            Reins::KeptCgroup(group, pursuit) => request.reach(|look| pursuit.ask(group, root, proc, look)),
            // The keeper passes on nothing but SIGTERM; the others reach the members one by one.
            Reins::Namespace if request.signal() == StopSignal::Terminate => {
                root.signal(Signal::TERM);
                Reach::Everybody
            }
            Reins::Namespace => {
                let mut sweep = Sweep::new();
                request.reach(|look| ask_descendants(&mut sweep, root, proc, look))
            }
            Reins::Subreaper(sweep) => request.reach(|look| ask_descendants(sweep, root, proc, look)),
            // The kernel reaches all of a group at once.
            Reins::Group => {
                for signal in [request.signal().to_kernel(), Signal::CONT] {
                    group::signal(root, proc, marker, signal);
                }
                Reach::Everybody
            }
        }
    }

    /// Kills every member. Needs no memory and no new process, with a cgroup or a PID namespace no new
    /// descriptor either, so that a starved machine can't prevent it. Not waited for: a tree that forks
    /// while it is being killed may need another strike, and so may those who have left a cgroup that is
    /// not empty.
    pub fn kill(&mut self) {
        let root = &self.parts.root;
        match &mut self.reins {
            Reins::Cgroup(group) => {
                // The group is gone only together with its members.
                let _ = group.kill();
            }
            Reins::KeptCgroup(group, pursuit) => {
                // As for a subreaper: a program that runs as root may have stopped it.
                root.signal(Signal::CONT);
                pursuit.kill(group, root, &self.proc);
            }
            Reins::Namespace => root.signal(Signal::KILL),
            Reins::Subreaper(sweep) => {
                // A member may have stopped the subreaper, which then could not notice the end.
                root.signal(Signal::CONT);
                let lives = || !root.has_ended();
                sweep.signal_descendants(&self.proc, root.pid(), lives, &[Signal::KILL]);
            }
            Reins::Group => {
                group::signal(root, &self.proc, &self.marker, Signal::KILL);
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
        self.set_motion(Motion::Frozen)
    }

    /// Lets every member go on after a [`freeze`](Self::freeze).
    ///
    /// # Errors
    /// With `Unsupported` where there is no cgroup.
    pub fn thaw(&self) -> io::Result<()> {
        self.set_motion(Motion::Thawed)
    }

    fn set_motion(&self, motion: Motion) -> io::Result<()> {
        match &self.reins {
            Reins::Cgroup(group) | Reins::KeptCgroup(group, _) => group.set_motion(motion),
            Reins::Namespace | Reins::Subreaper(_) | Reins::Group => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "only a cgroup can be frozen"))
            }
        }
    }

    /// The numbers of all members, as of a moment ago.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        let root = &self.parts.root;
        match &self.reins {
            Reins::Cgroup(group) => group.processes(),
            Reins::KeptCgroup(group, _) if root.has_ended() => group.processes(),
            Reins::KeptCgroup(group, _) => {
                let mut members = group.processes();
                members.extend(Sweep::new().descendants(&self.proc, root.pid()));
                members.sort_unstable();
                members.dedup();
                members
            }
            Reins::Namespace | Reins::Subreaper(_) if root.has_ended() => Vec::new(),
            Reins::Namespace | Reins::Subreaper(_) => Sweep::new().descendants(&self.proc, root.pid()),
            Reins::Group => group::members(root, &self.proc, &self.marker),
        }
    }
}

pub(super) fn ask_group(group: &Cgroup, proc: &ProcRoot, look: &mut Look<'_>) {
    for pid in group.processes() {
        look.meet(proc, pid, |_| group.contains(proc, pid));
    }
}

pub(super) fn ask_descendants(sweep: &mut Sweep, root: &Root, proc: &ProcRoot, look: &mut Look<'_>) {
    let lives = || !root.has_ended();
    sweep.each_descendant(proc, root.pid(), lives, |pid, is_member| look.meet(proc, pid, is_member));
}
