//! Telling the members of a tree from everybody else, without the tree.

use std::sync::Arc;

use super::{Reins, Tree};
use crate::cgroup::is_in_group;
use crate::record::RootProcess;
use crate::sys::procfs::ProcRoot;

/// How many ancestors are looked at: more than a tree is ever deep, and an end where `/proc` changes under the walk.
const MAX_ANCESTORS: usize = 4096;

/// Who is a member of a tree, asked on any thread, while another one watches and ends the tree.
///
/// A number may be somebody else's a moment later: the answer is for showing and telling, and for signalling only what
/// was pinned before it was asked about.
#[derive(Clone, Debug)]
pub struct Membership {
    proc: Arc<ProcRoot>,
    mark: Mark,
}

/// By what a member is known.
#[derive(Clone, Debug)]
enum Mark {
    /// It is in this group or below.
    Cgroup(String),
    /// It is in this group or below, or descends from this process, which is the keeper.
    Kept(String, RootProcess),
    /// It descends from this process, which stays the root for as long as there are members.
    Ancestor(RootProcess),
    /// It is in this process group, and was given this variable.
    Group(i32, Vec<u8>),
    /// The root was gone before it could be looked at.
    Nobody,
}

impl Tree {
    /// Who is a member.
    #[must_use]
    pub fn membership(&self) -> Membership {
        let root = &self.parts.root;
        let mark = match &self.reins {
            Reins::Cgroup(group) => Mark::Cgroup(group.shown().to_owned()),
            Reins::KeptCgroup(group, _) => match root.process(&self.proc) {
                Some(keeper) => Mark::Kept(group.shown().to_owned(), keeper),
                None => Mark::Cgroup(group.shown().to_owned()),
            },
            Reins::Namespace | Reins::Subreaper(_) => {
                root.process(&self.proc).map_or(Mark::Nobody, Mark::Ancestor)
            }
            Reins::Group => Mark::Group(root.pid(), self.marker.clone()),
        };
        Membership { proc: Arc::clone(&self.proc), mark }
    }
}

impl Membership {
    /// Whether the process of this number is a member now. One that can't be looked at is none.
    #[must_use]
    pub fn contains(&self, pid: i32) -> bool {
        // A zombie was one.
        let Some(stat) = self.proc.stat(pid).ok().filter(|stat| stat.is_alive()) else { return false };
        match &self.mark {
            Mark::Cgroup(group) => is_in_group(&self.proc, pid, group),
            Mark::Kept(group, keeper) => {
                is_in_group(&self.proc, pid, group) || (pid != keeper.pid && self.descends_from(pid, *keeper))
            }
            Mark::Ancestor(root) => self.descends_from(pid, *root),
            Mark::Group(leader, marker) => {
                stat.group == *leader && self.proc.has_marker(pid, marker, &mut [0; 4096])
            }
            Mark::Nobody => false,
        }
    }

    fn descends_from(&self, pid: i32, root: RootProcess) -> bool {
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
