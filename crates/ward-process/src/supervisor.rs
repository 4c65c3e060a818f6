//! The supervisor, which spawns programs into a containment and hands out handles on their process trees.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Resource;

use crate::cgroup::{Cgroup, CgroupRoot};
use crate::cleanup::{self, SandboxFolder, TreeCleanup};
use crate::containment::{self, Containment};
use crate::exec_trace::ExecJudge;
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

/// A spawner of process trees in one kind of containment.
///
/// Signals that this process ignores are reset to their default actions in programs; the list of these
/// signals is taken when the supervisor is created. Programs also get the soft limit on open files of that
/// moment, so a process that raises the limit for itself should do it after creating the supervisor.
#[derive(Debug)]
pub struct Supervisor {
    containment: Containment,
    groups: Option<CgroupRoot>,
    boot: String,
    proc: Arc<ProcRoot>,
    ignored_signals: IgnoredSignals,
    /// This process's soft limit on open files when the supervisor was created.
    open_files: Option<u64>,
}

/// A function that stores the record of a tree before its program runs.
type RecordWriter<'a> = Box<dyn FnOnce(&TreeRecord) -> io::Result<()> + 'a>;

/// The caller's parts in a launch.
#[derive(Default)]
struct LaunchHooks<'a> {
    store_record: Option<RecordWriter<'a>>,
    exec_judge: Option<Box<dyn ExecJudge>>,
}

impl Supervisor {
    /// Creates a supervisor with the strongest containment that this host offers.
    ///
    /// # Errors
    /// Fails if the boot id or `/proc` can't be read, or if the containment stopped working after the probe.
    pub fn new() -> Result<Self, SetupError> {
        Self::with_containment(containment::probe().strongest())
    }

    /// Creates a supervisor with exactly this containment.
    ///
    /// # Errors
    /// Fails if the host does not offer the containment, or if the boot id or `/proc` can't be read.
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

    /// Returns the containment of the trees that this supervisor spawns.
    #[must_use]
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// Starts a program inside its containment. When this returns, `execve` has succeeded.
    ///
    /// # Errors
    /// Fails if any step to the program fails; then nothing is left behind.
    pub fn spawn(&self, id: TreeId, spec: ProcessSpec) -> Result<ProcessTree, SpawnError> {
        self.spawn_with_hooks(id, spec, LaunchHooks::default())
    }

    /// Starts a program as [`spawn`](Self::spawn) does, and has every program that the tree executes judged before its
    /// first instruction, starting with the program itself. Its first label is `ProcessLabel(0)`, which a process also
    /// gets if its origin can't be told.
    ///
    /// # Errors
    /// Fails if any step fails, if the kernel doesn't let this process trace the tree, or if the tree has no keeper
    /// (choose [`TreeLifetime::DiesWithSupervisor`]); then the program never ran.
    pub fn spawn_judged(
        &self,
        id: TreeId,
        spec: ProcessSpec,
        judge: Box<dyn ExecJudge>,
    ) -> Result<ProcessTree, SpawnError> {
        if !self.needs_keeper(&spec) {
            // Processes that are our own children could be reaped by another thread than the tracing one, which would then
            // know them by pids that may be reused.
            let source = io::Error::new(io::ErrorKind::Unsupported, "the tree has no keeper");
            return Err(SpawnError::Trace { program: spec.program().to_owned(), source });
        }
        self.spawn_with_hooks(id, spec, LaunchHooks { exec_judge: Some(judge), ..LaunchHooks::default() })
    }

    /// Starts a program as [`spawn`](Self::spawn) does, but stores the record of the tree before the program
    /// runs. If this process dies during the call, either the record is stored or the program never ran.
    ///
    /// With a cgroup that lets its escapees go, the record has no root process and needs none. `store_record`
    /// must not wait for another spawn of this process, because that spawn may be waiting for this one.
    ///
    /// # Errors
    /// Fails if any step fails, including `store_record`; then the program never ran.
    pub fn spawn_recorded(
        &self,
        id: TreeId,
        spec: ProcessSpec,
        store_record: impl FnOnce(&TreeRecord) -> io::Result<()>,
    ) -> Result<ProcessTree, SpawnError> {
        let store_record: Option<RecordWriter<'_>> = Some(Box::new(store_record));
        self.spawn_with_hooks(id, spec, LaunchHooks { store_record, ..LaunchHooks::default() })
    }

    /// Reaps the processes and removes the files of trees whose handles were dropped. Every spawn does the
    /// same.
    pub fn clean_up(&self) {
        cleanup::reap_and_remove();
    }

    fn spawn_with_hooks(
        &self,
        id: TreeId,
        mut spec: ProcessSpec,
        hooks: LaunchHooks<'_>,
    ) -> Result<ProcessTree, SpawnError> {
        cleanup::reap_and_remove();
        self.check_spec(&spec)?;
        let mut sandbox = prepare_sandbox(&spec)?;
        let group = match self.create_group(&id) {
            Ok(group) => group,
            Err(error) => {
                sandbox.iter_mut().for_each(PreparedSandbox::clean_up);
                return Err(error);
            }
        };
        let control = self.tree_control(group, self.escapee_policy(&spec));
        match self.launch(&id, &mut spec, sandbox.as_ref(), &control, hooks) {
            Ok(launched) => self.build_tree(id, &spec, sandbox, control, launched),
            Err(error) => {
                clean_up_failed_spawn(control, sandbox);
                Err(error)
            }
        }
    }

    fn check_spec(&self, spec: &ProcessSpec) -> Result<(), SpawnError> {
        if spec.lifetime == TreeLifetime::DiesWithSupervisor && !self.needs_keeper(spec) {
            return Err(SpawnError::CannotDieWithSupervisor(self.containment));
        }
        if !spec.program.is_absolute() {
            return Err(SpawnError::RelativeProgram { program: spec.program.clone() });
        }
        spec.limits.find_zero_limit().map_or(Ok(()), |limit| Err(SpawnError::ZeroLimit { limit }))
    }

    fn launch(
        &self,
        id: &TreeId,
        spec: &mut ProcessSpec,
        sandbox: Option<&PreparedSandbox>,
        control: &TreeControl,
        hooks: LaunchHooks<'_>,
    ) -> Result<LaunchedTree, SpawnError> {
        let readiness = TreeReadiness::new(control).map_err(|error| SpawnError::Fork(error.into()))?;
        let group = control.group();
        let namespaces = self.namespace_flags(sandbox);
        let limits = self.plan_limits(spec, namespaces, group)?;
        TreeLaunch { supervisor: self, id, sandbox, group, namespaces, limits, readiness }.run(spec, hooks)
    }

    fn build_tree(
        &self,
        id: TreeId,
        spec: &ProcessSpec,
        sandbox: Option<PreparedSandbox>,
        control: TreeControl,
        launched: LaunchedTree,
    ) -> Result<ProcessTree, SpawnError> {
        let LaunchedTree { root, keeper, liveness_pipe, readiness, recorders, stdout, stderr, limits } =
            launched;
        let watched = root.pidfd().map_or(Ok(()), |pidfd| readiness.watch_root(pidfd));
        let listener = sandbox.as_ref().map_or(Ok(None), PreparedSandbox::receive_listener);
        let (loopback_listener, received) = match listener {
            Ok(listener) => (listener, Ok(())),
            Err(errno) => (None, Err(errno)),
        };
        let parts = TreeParts {
            id,
            containment: self.containment,
            boot: self.boot.clone(),
            escapees: self.escapee_policy(spec),
            identity: spec.identity.clone(),
            root,
            keeper,
            liveness_pipe,
            readiness,
            recorders,
            stdout,
            stderr,
            sandbox: sandbox.as_ref().map(|sandbox| sandbox.report().clone()),
            loopback_listener,
            folder: sandbox.map(|sandbox| SandboxFolder::Prepared(Box::new(sandbox))),
            cgroup_limits: limits.recorded_cgroup_limits(),
            limits: limits.report,
        };
        let tree = ProcessTree::new(parts, control, Arc::clone(&self.proc));
        match watched.and(received) {
            Ok(()) => Ok(tree),
            Err(error) => {
                kill_unwatched_tree(tree);
                Err(SpawnError::Fork(error.into()))
            }
        }
    }

    /// Builds the record that lets a later process take the tree back, still without its root process.
    fn build_record(&self, launch: &TreeLaunch<'_>, spec: &ProcessSpec) -> TreeRecord {
        TreeRecord {
            id: launch.id.clone(),
            containment: self.containment,
            root: None,
            escapees: self.escapee_policy(spec),
            boot: self.boot.clone(),
            cgroup: launch.group.map(Cgroup::inode),
            cgroup_limits: launch.limits.recorded_cgroup_limits(),
            identity: spec.identity.clone(),
            private_folder: launch.sandbox.and_then(PreparedSandbox::temporary_folder).map(ToOwned::to_owned),
        }
    }
}

fn prepare_sandbox(spec: &ProcessSpec) -> Result<Option<PreparedSandbox>, SpawnError> {
    let Some(sandbox) = &spec.sandbox else { return Ok(None) };
    let prepared = sandbox.prepare(spec.lifetime)?;
    if let Some(identity) = &spec.identity {
        prepared.change_folder_owner(identity.user, identity.group)?;
    }
    Ok(Some(prepared))
}

/// Removes the group and the temporary folder of a spawn that failed. Its processes were never started or are
/// about to be gone.
fn clean_up_failed_spawn(control: TreeControl, sandbox: Option<PreparedSandbox>) {
    let mut remains = TreeCleanup::default();
    if let Some(group) = control.into_group() {
        let _ = group.kill();
        remains.group = Some(group);
    }
    remains.folder = sandbox.map(|sandbox| SandboxFolder::Prepared(Box::new(sandbox)));
    cleanup::defer_cleanup(remains);
    cleanup::reap_and_remove();
}

/// Kills the tree of a running program that could not be watched.
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
