//! A check for the membership of a process in a tree that works without the tree's handle.

use std::sync::Arc;

use super::{ProcessTree, TreeControl};
use crate::cgroup::is_in_group;
use crate::record::ProcessIdentity;
use crate::sys::procfs::ProcRoot;

/// Number of ancestors to follow: more than any tree is deep, and a bound in case `/proc` changes during the
/// walk.
const MAX_ANCESTORS: usize = 4096;

/// A membership check for a tree, usable on any thread while another thread watches and stops the tree.
///
/// A pid may belong to another process a moment later. Use the answer for display, or to signal a process
/// that was pinned by a pidfd before the check.
#[derive(Clone, Debug)]
pub struct TreeMembership {
    proc: Arc<ProcRoot>,
    rule: MembershipRule,
}

/// The rule by which a member is recognised.
#[derive(Clone, Debug)]
enum MembershipRule {
    /// Members are in this cgroup or a nested one.
    Cgroup(String),
    /// Members are in this cgroup or a nested one, or descend from the keeper.
    CgroupOrDescendant(String, ProcessIdentity),
    /// Members descend from this process, which stays the root as long as there are members.
    DescendantOf(ProcessIdentity),
    /// Members are in this process group and have this marker in their environment.
    ProcessGroup(i32, Vec<u8>),
    /// The root was gone before it could be identified, so there are no members.
    NoRoot,
}

impl ProcessTree {
    /// Returns a membership check for this tree.
    #[must_use]
    pub fn membership(&self) -> TreeMembership {
        let root = &self.parts.root;
        let rule = match &self.control {
            TreeControl::Cgroup(group) => MembershipRule::Cgroup(group.proc_path().to_owned()),
            TreeControl::CgroupWithKeeper(group, _) => match root.identity(&self.proc) {
                Some(keeper) => MembershipRule::CgroupOrDescendant(group.proc_path().to_owned(), keeper),
                None => MembershipRule::Cgroup(group.proc_path().to_owned()),
            },
            TreeControl::PidNamespace | TreeControl::Subreaper(_) => {
                root.identity(&self.proc).map_or(MembershipRule::NoRoot, MembershipRule::DescendantOf)
            }
            TreeControl::ProcessGroup => MembershipRule::ProcessGroup(root.pid(), self.marker.clone()),
        };
        TreeMembership { proc: Arc::clone(&self.proc), rule }
    }
}

impl TreeMembership {
    /// Returns true if the process with this pid is a living member now. A process that can't be read in
    /// `/proc` is no member.
    #[must_use]
    pub fn contains(&self, pid: i32) -> bool {
        let Some(stat) = self.proc.stat(pid).ok().filter(|stat| stat.is_alive()) else { return false };
        match &self.rule {
            MembershipRule::Cgroup(group) => is_in_group(&self.proc, pid, group),
            MembershipRule::CgroupOrDescendant(group, keeper) => {
                is_in_group(&self.proc, pid, group) || (pid != keeper.pid && self.descends_from(pid, *keeper))
            }
            MembershipRule::DescendantOf(root) => self.descends_from(pid, *root),
            MembershipRule::ProcessGroup(leader, marker) => {
                stat.group == *leader && self.proc.has_marker(pid, marker, &mut [0; 4096])
            }
            MembershipRule::NoRoot => false,
        }
    }

    fn descends_from(&self, pid: i32, root: ProcessIdentity) -> bool {
        let mut next = pid;
        for _ in 0..MAX_ANCESTORS {
            let Ok(stat) = self.proc.stat(next) else { return false };
            if next == root.pid {
                return stat.start_time == root.start_time;
            }
            next = stat.parent;
        }
        false
    }
}
