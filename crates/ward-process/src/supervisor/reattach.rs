//! Taking back what an earlier process spawned.

use std::io;
use std::sync::Arc;

use super::Supervisor;
use crate::cgroup::Cgroup;
use crate::containment::Containment;
use crate::ladder::Ladder;
use crate::record::{TreeId, TreeRecord};
use crate::sys::keeper;
use crate::sys::procfs::ProcRoot;
use crate::sys::sweep::Sweep;
use crate::tree::{Parts, Reins, Root, Tree};

/// Why a tree can't be taken back.
#[derive(Debug, thiserror::Error)]
pub enum ReattachError {
    /// No member is left, or it ran before this boot.
    #[error("tree {0} is gone")]
    Gone(TreeId),
    /// It is there but can't be held.
    #[error("could not take hold of tree {id}")]
    Handle {
        /// Which.
        id: TreeId,
        /// What the kernel said.
        source: io::Error,
    },
    /// This supervisor holds trees together in another way.
    #[error("the tree is held by a {recorded}, this supervisor uses a {ours}")]
    OtherContainment {
        /// The tree's.
        recorded: Containment,
        /// Ours.
        ours: Containment,
    },
}

impl Supervisor {
    /// Takes back a tree that an earlier process of ours started.
    ///
    /// # Errors
    /// When it is gone, which is said only if that is beyond doubt, or can't be held.
    pub fn reattach(&self, record: &TreeRecord) -> Result<Tree, ReattachError> {
        if record.containment != self.containment {
            let (recorded, ours) = (record.containment, self.containment);
            return Err(ReattachError::OtherContainment { recorded, ours });
        }
        let gone = || ReattachError::Gone(record.id.clone());
        if record.boot != self.boot {
            return Err(gone());
        }
        let handle = |source: io::Error| ReattachError::Handle { id: record.id.clone(), source };
        let root = Root::found(record.pid, record.start_time, &self.proc).map_err(handle)?;
        let reins = match self.containment {
            Containment::Cgroup => Reins::Cgroup(self.reopen_group(record)?),
            Containment::PidNamespace => Reins::Namespace,
            Containment::Subreaper => Reins::Subreaper(Box::new(Sweep::new())),
            Containment::ProcessGroup => Reins::Group,
        };
        // A cgroup knows its members without the root; a subreaper finds them by their marker.
        let root_needed = matches!(reins, Reins::Namespace | Reins::Group);
        if root_needed && root.has_ended() {
            return Err(gone());
        }
        let parts = Parts {
            id: record.id.clone(),
            containment: self.containment,
            boot: self.boot.clone(),
            root,
            keeper: None,
            life: None,
            recorders: Vec::new(),
            stdout: None,
            stderr: None,
            sandbox: None,
            limits: Vec::new(),
        };
        let mut tree = Tree::assemble(parts, reins, Arc::clone(&self.proc)).map_err(handle)?;
        if tree.has_lost_its_keeper() {
            // Nothing would tell us of its end, so it is ended here and now.
            self.stop(&mut tree, Ladder::force()).map_err(|error| handle(io::Error::other(error)))?;
        }
        match tree.poll_ended() {
            Ok(Some(_)) => Err(gone()),
            Ok(None) => Ok(tree),
            Err(source) => Err(handle(source)),
        }
    }

    fn reopen_group(&self, record: &TreeRecord) -> Result<Cgroup, ReattachError> {
        let gone = || ReattachError::Gone(record.id.clone());
        let groups = self.groups.as_ref().ok_or_else(gone)?;
        match groups.open(&record.id.group_name()) {
            Ok(group) if Some(group.inode()) == record.cgroup => Ok(group),
            Ok(_) => Err(gone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(gone()),
            Err(source) => Err(ReattachError::Handle { id: record.id.clone(), source }),
        }
    }

    /// Looks for a tree of which only the name was written down, because its supervisor died in the
    /// middle of the spawn.
    ///
    /// # Errors
    /// When `/proc` or the cgroup can't be read.
    pub fn find(&self, id: &TreeId) -> io::Result<Option<TreeRecord>> {
        let cgroup = match &self.groups {
            Some(groups) => match groups.open(&id.group_name()) {
                Ok(group) => Some(group.inode()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
            None => None,
        };
        let root = find_root(&self.proc, id)?;
        if root.is_none() && cgroup.is_none() {
            return Ok(None);
        }
        let (pid, start_time) = root.unwrap_or((0, 0));
        Ok(Some(TreeRecord {
            id: id.clone(),
            containment: self.containment,
            pid,
            start_time,
            boot: self.boot.clone(),
            cgroup,
        }))
    }
}

/// The keeper above the marked processes, or the topmost of these.
fn find_root(proc: &ProcRoot, id: &TreeId) -> io::Result<Option<(i32, u64)>> {
    let marker = id.marker();
    let mut environment = vec![0; 4096];
    let mut marked = Vec::new();
    proc.each_process(|pid| {
        if proc.has_marker(pid, &marker, &mut environment) {
            marked.push(pid);
        }
    })?;
    let topmost = marked.iter().filter_map(|pid| Some((*pid, proc.stat(*pid).ok()?)));
    let topmost =
        topmost.filter(|(_, stat)| !marked.contains(&stat.parent)).min_by_key(|(_, s)| s.start_time);
    let Some((pid, stat)) = topmost else { return Ok(None) };
    let mut name = [0; 32];
    let length = proc.read(format_args!("{}/comm", stat.parent), &mut name).unwrap_or(0);
    let parent_is_keeper =
        name.get(..length).is_some_and(|name| name.trim_ascii() == keeper::NAME.to_bytes());
    match proc.stat(stat.parent) {
        Ok(parent) if parent_is_keeper => Ok(Some((stat.parent, parent.start_time))),
        _ => Ok(Some((pid, stat.start_time))),
    }
}
