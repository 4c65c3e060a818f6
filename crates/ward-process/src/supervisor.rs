//! Spawning into a containment.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Resource;

use crate::cgroup::{Cgroup, CgroupRoot};
use crate::containment::{self, Containment};
use crate::leftovers::{self, Folder, Leftover};
use crate::order::{Lifetime, Order};
use crate::record::{TreeId, TreeRecord, current_boot};
use crate::sandbox::Prepared;
use crate::sys::procfs::ProcRoot;
use crate::sys::signals::IgnoredSignals;
use crate::tree::{Parts, Readiness, Reins, Tree};

mod error;
mod launch;
mod means;
mod program;
mod reattach;

pub use error::{SetupError, SpawnError};
use launch::{Launch, Launched};
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
type WriteDown<'a> = Box<dyn FnOnce(&TreeRecord) -> io::Result<()> + 'a>;

impl Supervisor {
    /// With the strongest containment there is.
    ///
    /// # Errors
    /// When the boot id or `/proc` can't be read, or when what was there a moment ago is not any more.
    pub fn new() -> Result<Self, SetupError> {
        Self::with(containment::probe().best())
    }

    /// With this containment and no other.
    ///
    /// # Errors
    /// When the host does not give it, or when the boot id or `/proc` can't be read.
    pub fn with(containment: Containment) -> Result<Self, SetupError> {
        let missing = |reason| SetupError::Missing { containment, reason };
        let groups = match containment {
            Containment::Cgroup => Some(CgroupRoot::find().map_err(missing)?),
            _ => {
                containment::try_out(containment).map_err(missing)?;
                None
            }
        };
        let boot = current_boot().map_err(SetupError::BootId)?;
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
    pub fn spawn(&self, id: TreeId, order: Order) -> Result<Tree, SpawnError> {
        self.spawn_with(id, order, None)
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
        order: Order,
        write_down: impl FnOnce(&TreeRecord) -> io::Result<()>,
    ) -> Result<Tree, SpawnError> {
        self.spawn_with(id, order, Some(Box::new(write_down)))
    }

    /// Reaps and removes what is left of trees whose handles were dropped. Every spawn does it, too.
    pub fn tidy(&self) {
        leftovers::tidy();
    }

    fn spawn_with(
        &self,
        id: TreeId,
        mut order: Order,
        write_down: Option<WriteDown<'_>>,
    ) -> Result<Tree, SpawnError> {
        leftovers::tidy();
        self.check(&order)?;
        let mut sandbox = prepare_sandbox(&order)?;
        let group = match self.make_group(&id) {
            Ok(group) => group,
            Err(error) => {
                sandbox.iter_mut().for_each(Prepared::clean_up);
                return Err(error);
            }
        };
        let reins = self.reins(group, self.leavers(&order));
        match self.launch(&id, &mut order, sandbox.as_ref(), &reins, write_down) {
            Ok(launched) => self.assemble(id, &order, sandbox, reins, launched),
            Err(error) => {
                give_up(reins, sandbox);
                Err(error)
            }
        }
    }

    fn check(&self, order: &Order) -> Result<(), SpawnError> {
        if order.lifetime == Lifetime::DiesWithSupervisor && !self.needs_keeper(order) {
            return Err(SpawnError::NoPromise(self.containment));
        }
        if !order.program.is_absolute() {
            return Err(SpawnError::RelativeProgram { program: order.program.clone() });
        }
        order.limits.impossible().map_or(Ok(()), |limit| Err(SpawnError::ZeroLimit { limit }))
    }

    fn launch(
        &self,
        id: &TreeId,
        order: &mut Order,
        sandbox: Option<&Prepared>,
        reins: &Reins,
        write_down: Option<WriteDown<'_>>,
    ) -> Result<Launched, SpawnError> {
        let readiness = Readiness::new(reins).map_err(|error| SpawnError::Fork(error.into()))?;
        let group = reins.group();
        let namespaces = self.namespaces(sandbox);
        let limits = self.plan_limits(order, namespaces, group)?;
        Launch { supervisor: self, id, sandbox, group, namespaces, limits, readiness }
            .carry_out(order, write_down)
    }

    fn assemble(
        &self,
        id: TreeId,
        order: &Order,
        sandbox: Option<Prepared>,
        reins: Reins,
        launched: Launched,
    ) -> Result<Tree, SpawnError> {
        let Launched { root, keeper, life, readiness, recorders, stdout, stderr, limits } = launched;
        let watched = root.pidfd().map_or(Ok(()), |pidfd| readiness.watch_root(pidfd));
        let parts = Parts {
            id,
            containment: self.containment,
            boot: self.boot.clone(),
            leavers: self.leavers(order),
            identity: order.identity.clone(),
            root,
            keeper,
            life,
            readiness,
            recorders,
            stdout,
            stderr,
            sandbox: sandbox.as_ref().map(|sandbox| sandbox.report().clone()),
            folder: sandbox.map(|sandbox| Folder::Made(Box::new(sandbox))),
            limits: limits.report,
        };
        let tree = Tree::new(parts, reins, Arc::clone(&self.proc));
        match watched {
            Ok(()) => Ok(tree),
            Err(error) => {
                abandon(tree);
                Err(SpawnError::Fork(error.into()))
            }
        }
    }

    /// What a later process needs to take a tree back.
    fn record(&self, launch: &Launch<'_>, order: &Order) -> TreeRecord {
        TreeRecord {
            id: launch.id.clone(),
            containment: self.containment,
            root: None,
            leavers: self.leavers(order),
            boot: self.boot.clone(),
            cgroup: launch.group.map(Cgroup::inode),
            identity: order.identity.clone(),
            private_folder: launch.sandbox.and_then(Prepared::temporary_folder).map(ToOwned::to_owned),
        }
    }
}

fn prepare_sandbox(order: &Order) -> Result<Option<Prepared>, SpawnError> {
    let Some(sandbox) = &order.sandbox else { return Ok(None) };
    let prepared = sandbox.prepare(order.lifetime)?;
    if let Some(identity) = &order.identity {
        prepared.give_to(identity.user, identity.group)?;
    }
    Ok(Some(prepared))
}

/// Nothing was started, or what was is gone or about to be.
fn give_up(reins: Reins, sandbox: Option<Prepared>) {
    let mut leftover = Leftover::default();
    if let Some(group) = reins.into_group() {
        let _ = group.kill();
        leftover.group = Some(group);
    }
    leftover.folder = sandbox.map(|sandbox| Folder::Made(Box::new(sandbox)));
    leftovers::leave(leftover);
    leftovers::tidy();
}

/// Ends a program that runs and that nobody could watch.
fn abandon(mut tree: Tree) {
    const STRIKES: u32 = 1_000;
    for _ in 0..STRIKES {
        tree.kill();
        if !matches!(tree.poll_ended(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
