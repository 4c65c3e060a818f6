//! What a supervisor brings to a launch: helpers, reins, a group, namespaces, limits.

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
    pub(super) fn needs_keeper(&self, order: &ProcessSpec) -> bool {
        match self.containment {
            Containment::PidNamespace | Containment::Subreaper => true,
            Containment::Cgroup => {
                order.escapees == EscapeePolicy::Held || order.lifetime == TreeLifetime::DiesWithSupervisor
            }
            Containment::ProcessGroup => false,
        }
    }

    /// Whether the tree of an order has a keeper, who holds leavers.
    pub(super) fn escapee_policy(&self, order: &ProcessSpec) -> EscapeePolicy {
        if self.needs_keeper(order) { EscapeePolicy::Held } else { EscapeePolicy::LetGo }
    }

    pub(super) fn tree_control(&self, group: Option<Cgroup>, leavers: EscapeePolicy) -> TreeControl {
        match (self.containment, group, leavers) {
            (_, Some(group), EscapeePolicy::LetGo) => TreeControl::Cgroup(group),
            (_, Some(group), EscapeePolicy::Held) => {
                TreeControl::CgroupWithKeeper(group, Box::new(EscapeeTracker::new()))
            }
            (Containment::PidNamespace, None, _) => TreeControl::PidNamespace,
            // A group without a member can be removed by others: then all that is left are leavers.
            (Containment::Subreaper, None, _) | (Containment::Cgroup, None, EscapeePolicy::Held) => {
                TreeControl::Subreaper(Box::new(DescendantScan::new()))
            }
            (Containment::Cgroup, None, EscapeePolicy::LetGo) | (Containment::ProcessGroup, None, _) => {
                TreeControl::ProcessGroup
            }
        }
    }

    pub(super) fn create_group(&self, id: &TreeId) -> Result<Option<Cgroup>, SpawnError> {
        /// The kernel may take a moment to let go of a group after its last member has ended.
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

    /// The soft bound that there was, below the hard one there is: only root could raise that again.
    fn open_files_limit(&self) -> Rlimit {
        let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
        let current = [self.open_files, maximum].into_iter().flatten().min();
        Rlimit { current, maximum }
    }

    pub(super) fn plan_limits(
        &self,
        order: &ProcessSpec,
        namespaces: u64,
        group: Option<&Cgroup>,
    ) -> Result<LimitPlan, SpawnError> {
        let controllers = self.groups.as_ref().map(CgroupRoot::controllers).unwrap_or_default();
        let plan = order.limits.plan(LimitSupport {
            processes: controllers.pids,
            memory: controllers.memory,
            processor: controllers.cpu,
            nproc_counts_tree_only: namespaces & u64::from(libc::CLONE_NEWUSER.cast_unsigned()) != 0,
            // A keeper beside a group is not in it.
            open_files: self.open_files_limit(),
            own_processes: u64::from(group.is_none() && self.needs_keeper(order)),
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
