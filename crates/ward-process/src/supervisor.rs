//! Spawning into a containment.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};

use crate::cgroup::{Cgroup, CgroupRoot};
use crate::containment::{self, Containment};
use crate::limits::{Means, Plan};
use crate::order::{Lifetime, Order};
use crate::output::{self, Streams};
use crate::record::{TreeId, current_boot};
use crate::sandbox::Prepared;
use crate::sys::child::{self, Program, Step};
use crate::sys::fork::{Birth, Forked};
use crate::sys::keeper::{self, Keeper, Role};
use crate::sys::procfs::ProcRoot;
use crate::sys::signals::IgnoredSignals;
use crate::sys::sweep::Sweep;
use crate::sys::wait;
use crate::tree::{KeeperLink, Parts, Reins, Root, Tree};

mod error;
mod program;
mod reattach;

pub use error::SpawnError;
pub use reattach::ReattachError;

/// Spawns process trees into one kind of containment.
///
/// Programs start with no signal ignored that was ignored when the supervisor was made.
#[derive(Debug)]
pub struct Supervisor {
    containment: Containment,
    groups: Option<CgroupRoot>,
    boot: String,
    proc: Arc<ProcRoot>,
    ignored_signals: IgnoredSignals,
}

/// All that a launch needs to know.
struct Launch<'a> {
    id: &'a TreeId,
    order: &'a Order,
    sandbox: Option<&'a Prepared>,
    group: Option<&'a Cgroup>,
    limits: &'a Plan,
    birth: Birth<'a>,
    ignored_signals: IgnoredSignals,
}

/// A program that runs.
struct Launched {
    root: Root,
    keeper: Option<KeeperLink>,
    life: Option<OwnedFd>,
}

/// Why there is no supervisor.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// This host does not give that containment.
    #[error("no {containment} here: {reason}")]
    Missing {
        /// What was asked for.
        containment: Containment,
        /// Why not, and what would help.
        reason: String,
    },
    /// The name of this boot can't be read, so that no tree could be taken back later.
    #[error("could not read the boot id")]
    BootId(#[source] io::Error),
    /// Nothing can be watched without it.
    #[error("could not open /proc")]
    Proc(#[source] io::Error),
}

impl Supervisor {
    /// With the strongest containment there is.
    ///
    /// # Errors
    /// When the boot id can't be read.
    pub fn new() -> Result<Self, SetupError> {
        Self::with(containment::probe().best())
    }

    /// With this containment and no other.
    ///
    /// # Errors
    /// When the host does not give it.
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
        Ok(Self { containment, groups, boot, proc: Arc::new(proc), ignored_signals })
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
    pub fn spawn(&self, id: TreeId, mut order: Order) -> Result<Tree, SpawnError> {
        let sandbox = self.prepare_sandbox(&order)?;
        let group = self.make_group(&id)?;
        let result = self.spawn_into(id, &mut order, sandbox, group.as_ref());
        match (result, group) {
            (Ok((parts, reins)), group) => {
                let reins = reins.unwrap_or_else(|| group.map_or(Reins::Group, Reins::Cgroup));
                Tree::assemble(parts, reins, Arc::clone(&self.proc)).map_err(SpawnError::Fork)
            }
            (Err(error), group) => {
                if let Some(group) = group {
                    // Whatever was born in it is gone or about to be.
                    let _ = group.kill();
                    crate::tree::remove_when_empty(&group);
                }
                Err(error)
            }
        }
    }

    fn prepare_sandbox(&self, order: &Order) -> Result<Option<Prepared>, SpawnError> {
        let keeper = self.needs_keeper(order);
        if order.lifetime == Lifetime::DiesWithSupervisor && !keeper {
            return Err(SpawnError::NoPromise(self.containment));
        }
        if !order.program.is_absolute() {
            return Err(SpawnError::RelativeProgram { program: order.program.clone() });
        }
        let Some(sandbox) = &order.sandbox else { return Ok(None) };
        let prepared = sandbox.prepare()?;
        if let Some(identity) = &order.identity {
            prepared.give_to(identity.user, identity.group)?;
        }
        Ok(Some(prepared))
    }

    fn needs_keeper(&self, order: &Order) -> bool {
        match self.containment {
            Containment::PidNamespace | Containment::Subreaper => true,
            Containment::Cgroup => order.lifetime == Lifetime::DiesWithSupervisor,
            Containment::ProcessGroup => false,
        }
    }

    fn make_group(&self, id: &TreeId) -> Result<Option<Cgroup>, SpawnError> {
        let Some(groups) = &self.groups else { return Ok(None) };
        let name = id.group_name();
        groups.create(&name).map(Some).map_err(|source| SpawnError::Cgroup { name, source })
    }

    fn spawn_into(
        &self,
        id: TreeId,
        order: &mut Order,
        sandbox: Option<Prepared>,
        group: Option<&Cgroup>,
    ) -> Result<(Parts, Option<Reins>), SpawnError> {
        let namespaces = self.namespaces(sandbox.as_ref());
        let limits = self.plan_limits(order, namespaces, group)?;
        let Streams { stdio, recorders, stdout, stderr } =
            output::open_streams(order).map_err(|(stream, source)| SpawnError::Stream { stream, source })?;
        let birth = Birth { namespaces, cgroup: group.map(Cgroup::directory) };
        let launch = Launch {
            id: &id,
            order,
            sandbox: sandbox.as_ref(),
            group,
            limits: &limits,
            birth,
            ignored_signals: self.ignored_signals,
        };
        let launched = match self.launch(&launch, stdio) {
            Ok(launched) => launched,
            Err(error) => {
                // All their writers are gone, so they end at once.
                recorders.into_iter().for_each(output::Recorder::finish);
                return Err(error);
            }
        };
        let reins = match self.containment {
            Containment::Cgroup | Containment::ProcessGroup => None,
            Containment::PidNamespace => Some(Reins::Namespace),
            Containment::Subreaper => Some(Reins::Subreaper(Box::new(Sweep::new()))),
        };
        let parts = Parts {
            id,
            containment: self.containment,
            boot: self.boot.clone(),
            root: launched.root,
            keeper: launched.keeper,
            life: launched.life,
            recorders,
            stdout,
            stderr,
            sandbox,
            limits: limits.report,
        };
        Ok((parts, reins))
    }

    /// From here on there is a process; when this fails there is none again.
    fn launch(&self, launch: &Launch<'_>, stdio: [OwnedFd; 3]) -> Result<Launched, SpawnError> {
        let (failure, failure_writer) = output::pipe().map_err(SpawnError::Fork)?;
        let program = program::build(launch, stdio, failure_writer)?;
        let confinement = launch.sandbox.map(Prepared::confinement);
        let (forked, keeper, life) = if self.needs_keeper(launch.order) {
            let (keeper, link, life) = self.build_keeper(launch.order.lifetime, program, launch.group)?;
            (keeper::spawn(launch.birth, keeper, confinement), Some(link), life)
        } else {
            let forked = child::spawn(launch.birth, &program, confinement);
            // With it goes our end of the failure pipe.
            drop(program);
            (forked, None, None)
        };
        let forked = forked.map_err(fork_error)?;
        await_start(&forked, &failure, launch.order.program())?;
        let root = Root::child(forked);
        Ok(Launched { root, keeper, life })
    }

    fn namespaces(&self, sandbox: Option<&Prepared>) -> u64 {
        let mut flags =
            if self.containment == Containment::PidNamespace { containment::namespace_flags() } else { 0 };
        let wanted = sandbox.map_or(0, Prepared::namespaces);
        if wanted != 0 {
            flags |= u64::from((wanted | containment::user_namespace_flag()).cast_unsigned());
        }
        flags
    }

    fn plan_limits(
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
        });
        if let Some(group) = group {
            for (file, text) in &plan.cgroup {
                let name = || format!("{}/{file}", group.name());
                group.set(file, text).map_err(|source| SpawnError::Cgroup { name: name(), source })?;
            }
        }
        Ok(plan)
    }

    fn build_keeper(
        &self,
        lifetime: Lifetime,
        program: Program,
        group: Option<&Cgroup>,
    ) -> Result<(Keeper, KeeperLink, Option<OwnedFd>), SpawnError> {
        let (status_reader, status) = output::pipe().map_err(SpawnError::Fork)?;
        rustix::io::ioctl_fionbio(&status_reader, true).map_err(fork_error)?;
        let (life, our_life) = match lifetime {
            Lifetime::Independent => (None, None),
            Lifetime::DiesWithSupervisor => {
                let (reader, writer) = output::pipe().map_err(SpawnError::Fork)?;
                (Some(reader), Some(writer))
            }
        };
        let role = match (self.containment, group) {
            (Containment::PidNamespace, _) => Role::Init,
            (_, Some(group)) => Role::InCgroup(group.kill_handle().map_err(SpawnError::Fork)?),
            _ => Role::Subreaper,
        };
        let proc = Arc::clone(&self.proc);
        let null = output::nulls().map_err(SpawnError::Fork)?;
        let keeper = Keeper { role, program, status, life, proc, sweep: Sweep::new(), null };
        Ok((keeper, KeeperLink::new(status_reader), our_life))
    }
}

fn fork_error(error: rustix::io::Errno) -> SpawnError {
    SpawnError::Fork(error.into())
}

/// Waits until the program runs, or says at which step it failed; then nothing of it is left.
fn await_start(forked: &Forked, failure: &OwnedFd, program: &Path) -> Result<(), SpawnError> {
    let outcome = child::read_failure(failure.as_fd());
    let (step, errno) = match outcome {
        Ok(None) => return Ok(()),
        Ok(Some(failure)) => failure,
        Err(errno) => (Step::Execute, errno),
    };
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, rustix::process::Signal::KILL);
    let mut fds = [PollFd::new(&forked.pidfd, PollFlags::IN)];
    while rustix::event::poll(&mut fds, None).is_err() {}
    let _ = wait::reap(forked.pidfd.as_fd());
    Err(SpawnError::Start { step: step.describe(), program: program.to_owned(), source: errno.into() })
}
