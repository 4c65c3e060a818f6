//! Telling the members of a tree from everybody else, without the tree.

use std::sync::Arc;

use super::{ProcessTree, TreeControl};
use crate::cgroup::is_in_group;
use crate::record::ProcessIdentity;
use crate::sys::procfs::ProcRoot;

/// How many ancestors are looked at: more than a tree is ever deep, and an end where `/proc` changes under the walk.
const MAX_ANCESTORS: usize = 4096;

/// Who is a member of a tree, asked on any thread, while another one watches and ends the tree.
///
/// A number may be somebody else's a moment later: the answer is for showing and telling, and for signalling only what
/// was pinned before it was asked about.
#[derive(Clone, Debug)]
pub struct TreeMembership {
    proc: Arc<ProcRoot>,
    rule: MembershipRule,
}

/// By what a member is known.
#[derive(Clone, Debug)]
enum MembershipRule {
    /// It is in this group or below.
    Cgroup(String),
    /// It is in this group or below, or descends from this process, which is the keeper.
    CgroupOrDescendant(String, ProcessIdentity),
    /// It descends from this process, which stays the root for as long as there are members.
    DescendantOf(ProcessIdentity),
    /// It is in this process group, and was given this variable.
    ProcessGroup(i32, Vec<u8>),
    /// The root was gone before it could be looked at.
    NoRoot,
}

impl ProcessTree {
    /// Who is a member.
    #[must_use]
    pub fn membership(&self) -> TreeMembership {
        let root = &self.parts.root;
        let mark = match &self.control {
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
        TreeMembership { proc: Arc::clone(&self.proc), rule: mark }
    }
}

impl TreeMembership {
    /// Whether the process of this number is a member now. One that can't be looked at is none.
    #[must_use]
    pub fn contains(&self, pid: i32) -> bool {
        // A zombie was one.
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
