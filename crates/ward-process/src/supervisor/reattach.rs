//! Reattaches trees that an earlier supervisor process spawned.

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

/// The reasons why a tree can't be reattached.
#[derive(Debug, thiserror::Error)]
pub enum ReattachError {
    /// No member is left, or the tree ran before this boot.
    #[error("tree {0} is gone")]
    Gone(TreeId),
    /// The tree may exist, but the kernel refused a handle on it.
    #[error("could not open tree {id}")]
    CannotOpen {
        /// Name of the tree.
        id: TreeId,
        /// Error of the kernel.
        source: io::Error,
    },
    /// This supervisor uses another containment than the tree.
    #[error("the tree is contained by a {recorded}, but this supervisor uses a {ours}")]
    ContainmentMismatch {
        /// Containment of the tree, from its record.
        recorded: Containment,
        /// Containment of this supervisor.
        ours: Containment,
    },
}

impl Supervisor {
    /// Reattaches a tree that an earlier supervisor process spawned, and returns a handle on it.
    ///
    /// # Errors
    /// Fails with [`ReattachError::Gone`] if the tree has certainly ended, and with another error if it may still run
    /// but can't be reattached.
    pub fn reattach(&self, record: &TreeRecord) -> Result<ProcessTree, ReattachError> {
        // No process survives a reboot.
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
            // If escapees are held, the tree can outlive its group.
            Containment::Cgroup => match self.reopen_group(record) {
                Err(ReattachError::Gone(_))
                    if record.escapees == EscapeePolicy::Held && !root.has_ended() =>
                {
                    None
                }
                group => Some(group?),
            },
            Containment::PidNamespace | Containment::Subreaper | Containment::ProcessGroup => None,
        };
        let control = self.tree_control(group, record.escapees);
        // Members of a cgroup are known without the root, and those of a subreaper are found by their marker.
        let root_needed = matches!(control, TreeControl::PidNamespace | TreeControl::ProcessGroup);
        if root_needed && root.has_ended() {
            return Err(gone());
        }
        let readiness = TreeReadiness::new(&control).map_err(|error| handle(error.into()))?;
        if let Some(pidfd) = root.pidfd() {
            readiness.watch_root(pidfd).map_err(|error| handle(error.into()))?;
        }
        let parts = TreeParts {
            id: record.id.clone(),
            containment: self.containment,
            boot: self.boot.clone(),
            escapees: record.escapees,
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
            loopback_listener: None,
            limits: Vec::new(),
            cgroup_limits: record.cgroup_limits.clone(),
        };
        let mut tree = ProcessTree::new(parts, control, Arc::clone(&self.proc));
        if tree.has_lost_keeper() {
            // Without a keeper, nothing reports the end of the tree, so the tree is killed now.
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

    /// Finds a tree by its id alone and returns a record of it, or `None` if there is no such tree. This works only
    /// with cgroups, because no program can take the name of a group. With other containments a tree is found only by
    /// the record that [`Supervisor::spawn_recorded`] stored.
    ///
    /// The returned record lacks the user and the temporary folder of the tree, and does not include escapees. Don't
    /// use a stop command for such a tree, because the command would run as the supervisor's user.
    ///
    /// # Errors
    /// Fails with `Unsupported` if this supervisor doesn't use cgroups, and with the kernel's error if the group can't
    /// be opened.
    pub fn find_record(&self, id: &TreeId) -> io::Result<Option<TreeRecord>> {
        let Some(groups) = &self.groups else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a tree can be found by its id only if it is in a cgroup",
            ));
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
            escapees: EscapeePolicy::LetGo,
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::cgroup::root::{CgroupLocation, CgroupRoot};

    /// The kernel forgets limits when a controller is disabled for the restart (S6.5, S9.1).
    #[test]
    fn a_tree_that_is_taken_back_gets_its_recorded_limits_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut supervisor = Supervisor::with_containment(Containment::ProcessGroup).unwrap();
        let (path, proc_path) = (folder.path().to_owned(), "/test.service".to_owned());
        let location = CgroupLocation { path, proc_path, is_own_group: false };
        supervisor.groups = Some(CgroupRoot::at(location).unwrap());
        let id: TreeId = "session-1".parse().unwrap();
        let group = folder.path().join(id.group_name());
        fs::create_dir(&group).unwrap();
        let limits = [("pids.max", "20"), ("memory.max", "100663296"), ("cpu.max", "20000 100000")];
        // A record that somebody has changed must not write to other files.
        let recorded = limits.into_iter().chain([("cgroup.kill", "1"), ("../escape", "1")]);
        for file in ["cgroup.kill", "cgroup.events", "pids.max", "memory.max", "cpu.max", "../escape"] {
            fs::write(group.join(file), "").unwrap();
        }
        let record = TreeRecord {
            id,
            containment: Containment::Cgroup,
            root: None,
            escapees: EscapeePolicy::LetGo,
            boot: supervisor.boot.clone(),
            cgroup: Some(fs::metadata(&group).unwrap().ino()),
            cgroup_limits: recorded.map(|(file, text)| (file.to_owned(), text.to_owned())).collect(),
            identity: None,
            private_folder: None,
        };
        let read = |file: &str| fs::read_to_string(group.join(file)).unwrap();
        let other_group = TreeRecord { cgroup: Some(1), ..record.clone() };
        assert!(matches!(supervisor.reopen_group(&other_group), Err(ReattachError::Gone(_))));
        assert_eq!(read("pids.max"), "", "another tree has this group now");
        supervisor.reopen_group(&record).unwrap();
        for (file, text) in limits {
            assert_eq!(read(file), text, "{file}");
        }
        assert_eq!((read("cgroup.kill"), read("../escape")), Default::default());
    }
}
