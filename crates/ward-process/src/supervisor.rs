//! Spawning into a containment.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Resource;

use crate::cgroup::{Cgroup, CgroupRoot};
use crate::cleanup::{self, SandboxFolder, TreeCleanup};
use crate::containment::{self, Containment};
use crate::process_spec::{ProcessSpec, TreeLifetime};
use crate::record::{TreeId, TreeRecord, read_boot_id};
use crate::sandbox::PreparedSandbox;
use crate::sys::procfs::ProcRoot;
use crate::sys::signals::IgnoredSignals;
use crate::tree::{ProcessTree, TreeControl, TreeParts, TreeReadiness};

mod error;
mod launch;
mod launch_setup;
mod program;
mod reattach;

pub use error::{SetupError, SpawnError};
use launch::{LaunchedTree, TreeLaunch};
pub use reattach::ReattachError;

/// Spawns process trees into one kind of containment.
///
/// Programs start with no signal ignored that was ignored when the supervisor was made, and with the
/// bound on open files that there was then: whoever raises its own for itself does so afterwards.
#[derive(Debug)]
pub struct Supervisor {
    containment: Containment,
    groups: Option<CgroupRoot>,
    boot: String,
    proc: Arc<ProcRoot>,
    ignored_signals: IgnoredSignals,
    /// Our own soft bound, as it was at the start.
    open_files: Option<u64>,
}

/// Writes a record down, before the program runs.
type RecordWriter<'a> = Box<dyn FnOnce(&TreeRecord) -> io::Result<()> + 'a>;

impl Supervisor {
    /// With the strongest containment there is.
    ///
    /// # Errors
    /// When the boot id or `/proc` can't be read, or when what was there a moment ago is not any more.
    pub fn new() -> Result<Self, SetupError> {
        Self::with_containment(containment::probe().strongest())
    }

    /// With this containment and no other.
    ///
    /// # Errors
    /// When the host does not give it, or when the boot id or `/proc` can't be read.
    pub fn with_containment(containment: Containment) -> Result<Self, SetupError> {
        let missing = |reason| SetupError::Missing { containment, reason };
        let groups = match containment {
            Containment::Cgroup => Some(CgroupRoot::find().map_err(missing)?),
            _ => {
                containment::check_containment(containment).map_err(missing)?;
                None
            }
        };
        let boot = read_boot_id().map_err(SetupError::BootId)?;
        let proc = ProcRoot::open().map_err(|error| SetupError::Proc(error.into()))?;
        let ignored_signals = IgnoredSignals::of_this_process();
        let open_files = rustix::process::getrlimit(Resource::Nofile).current;
        Ok(Self { containment, groups, boot, proc: Arc::new(proc), ignored_signals, open_files })
    }

    /// What holds the trees together.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// Starts a program. When this returns it has been executed, inside its containment.
    ///
    /// # Errors
    /// When anything on the way fails; then nothing is left behind.
    pub fn spawn(&self, id: TreeId, order: ProcessSpec) -> Result<ProcessTree, SpawnError> {
        self.spawn_with_record(id, order, None)
    }

    /// The same, but the record is written down before the program runs: if we die in between, either
    /// the record is there or the program never ran.
    ///
    /// With a cgroup that lets its leavers go, the record has no root process, and needs none. `write_down` must not wait for
    /// another spawn of this process, which may be waiting for it.
    ///
    /// # Errors
    /// When anything on the way fails, `write_down` included; then the program never ran.
    pub fn spawn_recorded(
        &self,
        id: TreeId,
        order: ProcessSpec,
        write_down: impl FnOnce(&TreeRecord) -> io::Result<()>,
    ) -> Result<ProcessTree, SpawnError> {
        self.spawn_with_record(id, order, Some(Box::new(write_down)))
    }

    /// Reaps and removes what is left of trees whose handles were dropped. Every spawn does it, too.
    pub fn clean_up(&self) {
        cleanup::reap_and_remove();
    }

    fn spawn_with_record(
        &self,
        id: TreeId,
        mut order: ProcessSpec,
        write_down: Option<RecordWriter<'_>>,
    ) -> Result<ProcessTree, SpawnError> {
        cleanup::reap_and_remove();
        self.check_spec(&order)?;
        let mut sandbox = prepare_sandbox(&order)?;
        let group = match self.create_group(&id) {
            Ok(group) => group,
            Err(error) => {
                sandbox.iter_mut().for_each(PreparedSandbox::clean_up);
                return Err(error);
            }
        };
        let reins = self.tree_control(group, self.escapee_policy(&order));
        match self.launch(&id, &mut order, sandbox.as_ref(), &reins, write_down) {
            Ok(launched) => self.build_tree(id, &order, sandbox, reins, launched),
            Err(error) => {
                clean_up_failed_spawn(reins, sandbox);
                Err(error)
            }
        }
    }

    fn check_spec(&self, order: &ProcessSpec) -> Result<(), SpawnError> {
        if order.lifetime == TreeLifetime::DiesWithSupervisor && !self.needs_keeper(order) {
            return Err(SpawnError::CannotDieWithSupervisor(self.containment));
        }
        if !order.program.is_absolute() {
            return Err(SpawnError::RelativeProgram { program: order.program.clone() });
        }
        order.limits.find_zero_limit().map_or(Ok(()), |limit| Err(SpawnError::ZeroLimit { limit }))
    }

    fn launch(
        &self,
        id: &TreeId,
        order: &mut ProcessSpec,
        sandbox: Option<&PreparedSandbox>,
        reins: &TreeControl,
        write_down: Option<RecordWriter<'_>>,
    ) -> Result<LaunchedTree, SpawnError> {
        let readiness = TreeReadiness::new(reins).map_err(|error| SpawnError::Fork(error.into()))?;
        let group = reins.group();
        let namespaces = self.namespace_flags(sandbox);
        let limits = self.plan_limits(order, namespaces, group)?;
        TreeLaunch { supervisor: self, id, sandbox, group, namespaces, limits, readiness }
            .run(order, write_down)
    }

    fn build_tree(
        &self,
        id: TreeId,
        order: &ProcessSpec,
        sandbox: Option<PreparedSandbox>,
        reins: TreeControl,
        launched: LaunchedTree,
    ) -> Result<ProcessTree, SpawnError> {
        let LaunchedTree { root, keeper, liveness_pipe: life, readiness, recorders, stdout, stderr, limits } =
            launched;
        let watched = root.pidfd().map_or(Ok(()), |pidfd| readiness.watch_root(pidfd));
        let parts = TreeParts {
            id,
            containment: self.containment,
            boot: self.boot.clone(),
            escapees: self.escapee_policy(order),
            identity: order.identity.clone(),
            root,
            keeper,
            liveness_pipe: life,
            readiness,
            recorders,
            stdout,
            stderr,
            sandbox: sandbox.as_ref().map(|sandbox| sandbox.report().clone()),
            folder: sandbox.map(|sandbox| SandboxFolder::Prepared(Box::new(sandbox))),
            limits: limits.report,
        };
        let tree = ProcessTree::new(parts, reins, Arc::clone(&self.proc));
        match watched {
            Ok(()) => Ok(tree),
            Err(error) => {
                kill_unwatched_tree(tree);
                Err(SpawnError::Fork(error.into()))
            }
        }
    }

    /// What a later process needs to take a tree back.
    fn build_record(&self, launch: &TreeLaunch<'_>, order: &ProcessSpec) -> TreeRecord {
        TreeRecord {
            id: launch.id.clone(),
            containment: self.containment,
            root: None,
            leavers: self.escapee_policy(order),
            boot: self.boot.clone(),
            cgroup: launch.group.map(Cgroup::inode),
            identity: order.identity.clone(),
            private_folder: launch.sandbox.and_then(PreparedSandbox::temporary_folder).map(ToOwned::to_owned),
        }
    }
}

fn prepare_sandbox(order: &ProcessSpec) -> Result<Option<PreparedSandbox>, SpawnError> {
    let Some(sandbox) = &order.sandbox else { return Ok(None) };
    let prepared = sandbox.prepare(order.lifetime)?;
    if let Some(identity) = &order.identity {
        prepared.change_folder_owner(identity.user, identity.group)?;
    }
    Ok(Some(prepared))
}

/// Nothing was started, or what was is gone or about to be.
fn clean_up_failed_spawn(reins: TreeControl, sandbox: Option<PreparedSandbox>) {
    let mut leftover = TreeCleanup::default();
    if let Some(group) = reins.into_group() {
        let _ = group.kill();
        leftover.group = Some(group);
    }
    leftover.folder = sandbox.map(|sandbox| SandboxFolder::Prepared(Box::new(sandbox)));
    cleanup::defer_cleanup(leftover);
    cleanup::reap_and_remove();
}

/// Ends a program that runs and that nobody could watch.
fn kill_unwatched_tree(mut tree: ProcessTree) {
    const MAX_KILL_ATTEMPTS: u32 = 1_000;
    for _ in 0..MAX_KILL_ATTEMPTS {
        tree.kill();
        if !matches!(tree.poll_ended(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
