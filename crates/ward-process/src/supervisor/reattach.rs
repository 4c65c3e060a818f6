//! Taking back what an earlier process spawned.

use std::io;
use std::sync::Arc;

use super::Supervisor;
use crate::cgroup::Cgroup;
use crate::cleanup::SandboxFolder;
use crate::containment::Containment;
use crate::ladder::StopLadder;
use crate::limits::CGROUP_LIMIT_FILES;
use crate::process_spec::EscapeePolicy;
use crate::record::{TreeId, TreeRecord};
use crate::sandbox;
use crate::tree::{ProcessTree, RootHandle, TreeControl, TreeParts, TreeReadiness};

/// Why a tree can't be taken back.
#[derive(Debug, thiserror::Error)]
pub enum ReattachError {
    /// No member is left, or it ran before this boot.
    #[error("tree {0} is gone")]
    Gone(TreeId),
    /// It is there but can't be held.
    #[error("could not take hold of tree {id}")]
    CannotOpen {
        /// Which.
        id: TreeId,
        /// What the kernel said.
        source: io::Error,
    },
    /// This supervisor holds trees together in another way.
    #[error("the tree is held by a {recorded}, this supervisor uses a {ours}")]
    ContainmentMismatch {
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
    pub fn reattach(&self, record: &TreeRecord) -> Result<ProcessTree, ReattachError> {
        // Nothing outlives its boot, whatever held it.
        if record.boot != self.boot {
            return Err(ReattachError::Gone(record.id.clone()));
        }
        if record.containment != self.containment {
            let (recorded, ours) = (record.containment, self.containment);
            return Err(ReattachError::ContainmentMismatch { recorded, ours });
        }
        let result = self.reopen_tree(record);
        if let (Err(ReattachError::Gone(_)), Some(folder)) = (&result, &record.private_folder) {
            sandbox::remove_private_folder(folder);
        }
        result
    }

    fn reopen_tree(&self, record: &TreeRecord) -> Result<ProcessTree, ReattachError> {
        let gone = || ReattachError::Gone(record.id.clone());
        let handle = |source: io::Error| ReattachError::CannotOpen { id: record.id.clone(), source };
        let root = match record.root {
            Some(process) => RootHandle::reopen(process, &self.proc).map_err(handle)?,
            None => RootHandle::unknown(),
        };
        let group = match self.containment {
            // The group is not the whole tree where leavers are held.
            Containment::Cgroup => match self.reopen_group(record) {
                Err(ReattachError::Gone(_)) if record.leavers == EscapeePolicy::Held && !root.has_ended() => {
                    None
                }
                group => Some(group?),
            },
            Containment::PidNamespace | Containment::Subreaper | Containment::ProcessGroup => None,
        };
        let reins = self.tree_control(group, record.leavers);
        // A cgroup knows its members without the root; a subreaper finds them by their marker.
        let root_needed = matches!(reins, TreeControl::PidNamespace | TreeControl::ProcessGroup);
        if root_needed && root.has_ended() {
            return Err(gone());
        }
        let readiness = TreeReadiness::new(&reins).map_err(|error| handle(error.into()))?;
        if let Some(pidfd) = root.pidfd() {
            readiness.watch_root(pidfd).map_err(|error| handle(error.into()))?;
        }
        let parts = TreeParts {
            id: record.id.clone(),
            containment: self.containment,
            boot: self.boot.clone(),
            escapees: record.leavers,
            identity: record.identity.clone(),
            root,
            keeper: None,
            liveness_pipe: None,
            readiness,
            recorders: Vec::new(),
            stdout: None,
            stderr: None,
            folder: record.private_folder.clone().map(SandboxFolder::KnownPath),
            sandbox: None,
            limits: Vec::new(),
            cgroup_limits: record.cgroup_limits.clone(),
        };
        let mut tree = ProcessTree::new(parts, reins, Arc::clone(&self.proc));
        if tree.has_lost_keeper() {
            // Nothing would tell us of its end, so it is ended here and now.
            self.stop(&mut tree, StopLadder::force()).map_err(|error| handle(io::Error::other(error)))?;
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
            Ok(group) if Some(group.inode()) == record.cgroup => {
                restore_limits(&group, &record.cgroup_limits);
                Ok(group)
            }
            Ok(_) => Err(gone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(gone()),
            Err(source) => Err(ReattachError::CannotOpen { id: record.id.clone(), source }),
        }
    }

    /// Looks for a tree of which only the name was written down. Only a cgroup has a name that no
    /// program can take; elsewhere a tree is found by what [`Supervisor::spawn_recorded`] wrote down.
    /// The record knows neither whom the tree runs as nor its temporary folder: stop it without a
    /// command, which would run as us. Nor does it know who has left the group.
    ///
    /// # Errors
    /// With `Unsupported` where there is no cgroup, or when the cgroup can't be opened.
    pub fn find_record(&self, id: &TreeId) -> io::Result<Option<TreeRecord>> {
        let Some(groups) = &self.groups else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "only a cgroup can be found by its name"));
        };
        let cgroup = match groups.open(&id.group_name()) {
            Ok(group) => group.inode(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(TreeRecord {
            id: id.clone(),
            containment: self.containment,
            root: None,
            leavers: EscapeePolicy::LetGo,
            boot: self.boot.clone(),
            cgroup: Some(cgroup),
            cgroup_limits: Vec::new(),
            identity: None,
            private_folder: None,
        }))
    }
}

/// Writes the limits of a tree again. A limit that can't be written doesn't matter more than holding the tree.
fn restore_limits(group: &Cgroup, limits: &[(String, String)]) {
    for (file, text) in limits.iter().filter(|(file, _)| CGROUP_LIMIT_FILES.contains(&file.as_str())) {
        let _ = group.write_file(file, text);
    }
}
