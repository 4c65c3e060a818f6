//! What a supervisor brings to a launch: helpers, reins, a group, namespaces, limits.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use super::{SpawnError, Supervisor};
use crate::cgroup::{Cgroup, CgroupRoot};
use crate::containment::{self, Containment};
use crate::leftovers;
use crate::limits::{Means, Plan};
use crate::order::{Leavers, Lifetime, Order};
use crate::record::TreeId;
use crate::sandbox::Prepared;
use crate::sys::sweep::Sweep;
use crate::tree::{Pursuit, Reins};

impl Supervisor {
    pub(super) fn needs_keeper(&self, order: &Order) -> bool {
        match self.containment {
            Containment::PidNamespace | Containment::Subreaper => true,
            Containment::Cgroup => {
                order.leavers == Leavers::Held || order.lifetime == Lifetime::DiesWithSupervisor
            }
            Containment::ProcessGroup => false,
        }
    }

    /// Whether the tree of an order has a keeper, who holds leavers.
    pub(super) fn leavers(&self, order: &Order) -> Leavers {
        if self.needs_keeper(order) { Leavers::Held } else { Leavers::LetGo }
    }

    pub(super) fn reins(&self, group: Option<Cgroup>, leavers: Leavers) -> Reins {
        match (self.containment, group, leavers) {
            (_, Some(group), Leavers::LetGo) => Reins::Cgroup(group),
            (_, Some(group), Leavers::Held) => Reins::KeptCgroup(group, Box::new(Pursuit::new())),
            (Containment::PidNamespace, None, _) => Reins::Namespace,
            // A group without a member can be removed by others: then all that is left are leavers.
            (Containment::Subreaper, None, _) | (Containment::Cgroup, None, Leavers::Held) => {
                Reins::Subreaper(Box::new(Sweep::new()))
            }
            (Containment::Cgroup, None, Leavers::LetGo) | (Containment::ProcessGroup, None, _) => {
                Reins::Group
            }
        }
    }

    pub(super) fn make_group(&self, id: &TreeId) -> Result<Option<Cgroup>, SpawnError> {
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
                        && leftovers::has_group(&name) =>
                {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(1));
                    leftovers::reap();
                }
                Err(source) => return Err(SpawnError::Cgroup { name, source }),
                Ok(group) => return Ok(Some(group)),
            }
        }
    }

    pub(super) fn namespaces(&self, sandbox: Option<&Prepared>) -> u64 {
        let mut flags =
            if self.containment == Containment::PidNamespace { containment::namespace_flags() } else { 0 };
        let wanted = sandbox.map_or(0, Prepared::namespaces);
        if wanted != 0 {
            flags |= u64::from((wanted | containment::user_namespace_flag()).cast_unsigned());
        }
        flags
    }

    /// The soft bound that there was, below the hard one there is: only root could raise that again.
    fn open_files(&self) -> Rlimit {
        let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
        let current = [self.open_files, maximum].into_iter().flatten().min();
        Rlimit { current, maximum }
    }

    pub(super) fn plan_limits(
        &self,
        order: &Order,
        namespaces: u64,
        group: Option<&Cgroup>,
    ) -> Result<Plan, SpawnError> {
        let controllers = self.groups.as_ref().map(CgroupRoot::controllers).unwrap_or_default();
        let plan = order.limits.plan(Means {
            processes: controllers.pids,
            memory: controllers.memory,
            processor: controllers.cpu,
            counts_processes_apart: namespaces & u64::from(libc::CLONE_NEWUSER.cast_unsigned()) != 0,
            // A keeper beside a group is not in it.
            open_files: self.open_files(),
            ours: u64::from(group.is_none() && self.needs_keeper(order)),
        });
        if let Some(group) = group {
            for (file, text) in &plan.cgroup {
                let name = || format!("{}/{file}", group.name());
                group.set(file, text).map_err(|source| SpawnError::Cgroup { name: name(), source })?;
            }
        }
        Ok(plan)
    }
}
