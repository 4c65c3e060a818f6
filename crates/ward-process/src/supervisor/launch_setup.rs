//! Decides and sets up what a launch needs: a keeper, the tree's control, a cgroup, namespaces and limits.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use super::{SpawnError, Supervisor};
use crate::cgroup::{Cgroup, CgroupRoot};
use crate::cleanup;
use crate::containment::{self, Containment};
use crate::limits::{LimitPlan, LimitSupport};
use crate::process_spec::{EscapeePolicy, ProcessSpec, TreeLifetime};
use crate::record::TreeId;
use crate::sandbox::PreparedSandbox;
use crate::sys::descendants::DescendantScan;
use crate::tree::{EscapeeTracker, TreeControl};

impl Supervisor {
    pub(super) fn needs_keeper(&self, spec: &ProcessSpec) -> bool {
        match self.containment {
            Containment::PidNamespace | Containment::Subreaper => true,
            Containment::Cgroup => {
                spec.escapees == EscapeePolicy::Held || spec.lifetime == TreeLifetime::DiesWithSupervisor
            }
            Containment::ProcessGroup => false,
        }
    }

    /// Returns the policy that is really applied: a tree with a keeper always holds its escapees.
    pub(super) fn escapee_policy(&self, spec: &ProcessSpec) -> EscapeePolicy {
        if self.needs_keeper(spec) { EscapeePolicy::Held } else { EscapeePolicy::LetGo }
    }

    pub(super) fn tree_control(&self, group: Option<Cgroup>, escapees: EscapeePolicy) -> TreeControl {
        match (self.containment, group, escapees) {
            (_, Some(group), EscapeePolicy::LetGo) => TreeControl::Cgroup(group),
            (_, Some(group), EscapeePolicy::Held) => {
                TreeControl::CgroupWithKeeper(group, Box::new(EscapeeTracker::new()))
            }
            (Containment::PidNamespace, None, _) => TreeControl::PidNamespace,
            // Another process can remove a cgroup that has no members; then only escapees are left in the
            // tree.
            (Containment::Subreaper, None, _) | (Containment::Cgroup, None, EscapeePolicy::Held) => {
                TreeControl::Subreaper(Box::new(DescendantScan::new()))
            }
            (Containment::Cgroup, None, EscapeePolicy::LetGo) | (Containment::ProcessGroup, None, _) => {
                TreeControl::ProcessGroup
            }
        }
    }

    pub(super) fn create_group(&self, id: &TreeId) -> Result<Option<Cgroup>, SpawnError> {
        /// The kernel may refuse for a moment to remove a group whose last member has just ended.
        const ATTEMPTS: u32 = 200;
        let Some(groups) = &self.groups else { return Ok(None) };
        let name = id.group_name();
        let mut attempts = 0;
        loop {
            match groups.create(&name) {
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && attempts < ATTEMPTS
                        && cleanup::is_group_pending(&name) =>
                {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(1));
                    cleanup::reap_pending();
                }
                Err(source) => return Err(SpawnError::Cgroup { name, source }),
                Ok(group) => return Ok(Some(group)),
            }
        }
    }

    pub(super) fn namespace_flags(&self, sandbox: Option<&PreparedSandbox>) -> u64 {
        let mut flags = if self.containment == Containment::PidNamespace {
            containment::pid_namespace_flags()
        } else {
            0
        };
        let wanted = sandbox.map_or(0, PreparedSandbox::namespaces);
        if wanted != 0 {
            flags |= u64::from((wanted | containment::user_namespace_flag()).cast_unsigned());
        }
        flags
    }

    /// Returns the limit on open files for programs: the soft limit from the creation of the supervisor,
    /// capped by the current hard limit, which only root can raise.
    fn open_files_limit(&self) -> Rlimit {
        let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
        let current = [self.open_files, maximum].into_iter().flatten().min();
        Rlimit { current, maximum }
    }

    pub(super) fn plan_limits(
        &self,
        spec: &ProcessSpec,
        namespaces: u64,
        group: Option<&Cgroup>,
    ) -> Result<LimitPlan, SpawnError> {
        let controllers = self.groups.as_ref().map(CgroupRoot::controllers).unwrap_or_default();
        let plan = spec.limits.plan(LimitSupport {
            processes: controllers.pids,
            memory: controllers.memory,
            processor: controllers.cpu,
            nproc_counts_tree_only: namespaces & u64::from(libc::CLONE_NEWUSER.cast_unsigned()) != 0,
            open_files: self.open_files_limit(),
            // The keeper of a cgroup runs outside of the group and isn't counted by its `pids` controller.
            own_processes: u64::from(group.is_none() && self.needs_keeper(spec)),
        });
        if let Some(group) = group {
            for (file, text) in &plan.cgroup {
                let name = || format!("{}/{file}", group.name());
                group.write_file(file, text).map_err(|source| SpawnError::Cgroup { name: name(), source })?;
            }
        }
        Ok(plan)
    }
}
