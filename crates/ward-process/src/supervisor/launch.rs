//! From a prepared order to a program that runs, or to nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Signal;

use super::{SpawnError, Supervisor, WriteDown, program};
use crate::cgroup::Cgroup;
use crate::containment::Containment;
use crate::leftovers::{self, Leftover};
use crate::limits::Plan;
use crate::order::{Lifetime, Order};
use crate::output::{self, Capture, Recorder, Streams};
use crate::record::{TreeId, TreeRecord};
use crate::sandbox::Prepared;
use crate::sys::child::{self, Program};
use crate::sys::fork::{Birth, Forked};
use crate::sys::gate::Gate;
use crate::sys::keeper::{self, Keeper, Role};
use crate::sys::start::{Start, read_start};
use crate::sys::sweep::Sweep;
use crate::sys::wait::{self, wait_readable};
use crate::tree::{KeeperLink, Readiness, Root};

/// All that a launch needs to know, besides the order.
pub(super) struct Launch<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) id: &'a TreeId,
    pub(super) sandbox: Option<&'a Prepared>,
    pub(super) group: Option<&'a Cgroup>,
    pub(super) namespaces: u64,
    pub(super) limits: Plan,
    pub(super) readiness: Readiness,
}

/// A program that runs.
pub(super) struct Launched {
    pub(super) root: Root,
    pub(super) keeper: Option<KeeperLink>,
    pub(super) life: Option<OwnedFd>,
    pub(super) readiness: Readiness,
    pub(super) recorders: Vec<Recorder>,
    pub(super) stdout: Option<Capture>,
    pub(super) stderr: Option<Capture>,
    pub(super) limits: Plan,
}

/// What stays with us of the helpers of a program.
struct Links {
    keeper: Option<KeeperLink>,
    life: Option<OwnedFd>,
}

impl Launch<'_> {
    pub(super) fn carry_out(
        self,
        order: &mut Order,
        write_down: Option<WriteDown<'_>>,
    ) -> Result<Launched, SpawnError> {
        let mut recorders = Vec::new();
        let started = output::open_streams(order, &mut recorders)
            .map_err(|(stream, source)| SpawnError::Stream { stream, source })
            .and_then(|Streams { stdio, stdout, stderr }| {
                let (root, links) = self.start(order, stdio, write_down)?;
                Ok((root, links, stdout, stderr))
            });
        match started {
            Ok((root, Links { keeper, life }, stdout, stderr)) => {
                let Self { readiness, limits, .. } = self;
                Ok(Launched { root, keeper, life, readiness, recorders, stdout, stderr, limits })
            }
            Err(error) => {
                // All their writers are gone, so they end at once.
                leftovers::leave(Leftover { recorders, ..Leftover::default() });
                Err(error)
            }
        }
    }

    /// From here on there may be a process; when this fails there is none again.
    fn start(
        &self,
        order: &Order,
        stdio: [OwnedFd; 3],
        write_down: Option<WriteDown<'_>>,
    ) -> Result<(Root, Links), SpawnError> {
        let record = || self.supervisor.record(self, order);
        let (gate, write_down) = match write_down {
            // The group names the tree already, unless there is a keeper to be found again, too.
            Some(write_down) if self.group.is_some() && !self.supervisor.needs_keeper(order) => {
                write_down(&record()).map_err(SpawnError::NotRecorded)?;
                (None, None)
            }
            Some(write_down) => {
                let pipe = output::pipe().map_err(SpawnError::Fork)?;
                (Some(Gate::new(pipe)), Some(write_down))
            }
            None => (None, None),
        };
        let (failure, failure_writer) = output::pipe().map_err(SpawnError::Fork)?;
        let program = program::build(self, order, stdio, failure_writer)?;
        let (forked, links) = self.fork(order.lifetime, program, gate.as_ref())?;
        if let (Some(gate), Some(write_down)) = (gate, write_down)
            && let Err(error) = self.open_gate(&forked, gate, record(), write_down)
        {
            end(&forked);
            return Err(error);
        }
        match read_start(failure.as_fd()) {
            Ok(Start::Executed) => Ok((Root::child(forked), links)),
            outcome => {
                end(&forked);
                Err(explain(&outcome, order.program()))
            }
        }
    }

    fn fork(
        &self,
        lifetime: Lifetime,
        mut program: Program,
        gate: Option<&Gate>,
    ) -> Result<(Forked, Links), SpawnError> {
        let birth = Birth { namespaces: self.namespaces, cgroup: None };
        let confinement = self.sandbox.map(Prepared::confinement);
        let (forked, links) = match program.parent {
            child::Parent::Keeper => {
                let (mut keeper, links) = self.build_keeper(lifetime, program)?;
                keeper.gate = gate.map(Gate::waiting);
                (keeper::spawn(birth, keeper, confinement), links)
            }
            // With the program goes our end of the failure pipe.
            child::Parent::Supervisor => {
                program.gate = gate.map(Gate::waiting);
                let birth = Birth { cgroup: self.group.map(Cgroup::directory), ..birth };
                (child::spawn(birth, &program, confinement), Links { keeper: None, life: None })
            }
        };
        Ok((forked.map_err(fork_error)?, links))
    }

    fn open_gate(
        &self,
        forked: &Forked,
        gate: Gate,
        record: TreeRecord,
        write_down: WriteDown<'_>,
    ) -> Result<(), SpawnError> {
        let root = Root::process_of(forked, &self.supervisor.proc).map_err(fork_error)?;
        write_down(&TreeRecord { root: Some(root), ..record }).map_err(SpawnError::NotRecorded)?;
        gate.open().map_err(fork_error)
    }

    fn build_keeper(&self, lifetime: Lifetime, mut program: Program) -> Result<(Keeper, Links), SpawnError> {
        let (status_reader, status) = output::pipe().map_err(SpawnError::Fork)?;
        rustix::io::ioctl_fionbio(&status_reader, true).map_err(fork_error)?;
        let (life, our_life) = match lifetime {
            Lifetime::Independent => (None, None),
            Lifetime::DiesWithSupervisor => {
                let (reader, writer) = output::pipe().map_err(SpawnError::Fork)?;
                (Some(reader), Some(writer))
            }
        };
        let role = match (self.supervisor.containment, self.group) {
            (Containment::PidNamespace, _) => Role::Init,
            (_, Some(group)) => Role::BesideCgroup {
                directory: group.directory_handle().map_err(SpawnError::Fork)?,
                kill: group.kill_handle().map_err(SpawnError::Fork)?,
            },
            _ => Role::Subreaper,
        };
        let retired = match role {
            // It can't be stopped from inside.
            Role::Init => None,
            Role::Subreaper | Role::BesideCgroup { .. } => {
                Some(Gate::new(output::pipe().map_err(SpawnError::Fork)?))
            }
        };
        program.gate = retired.as_ref().map(Gate::waiting);
        let keeper = Keeper {
            role,
            gate: None,
            retired,
            program,
            status,
            life,
            proc: Arc::clone(&self.supervisor.proc),
            sweep: Sweep::new(),
            null: output::nulls().map_err(SpawnError::Fork)?,
        };
        Ok((keeper, Links { keeper: Some(KeeperLink::new(status_reader)), life: our_life }))
    }
}

fn fork_error(error: Errno) -> SpawnError {
    SpawnError::Fork(error.into())
}

/// Ends a process that has not become the program. It has no children, or none that came further.
fn end(forked: &Forked) {
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, Signal::KILL);
    let _ = wait_readable(forked.pidfd.as_fd(), None);
    let _ = wait::reap(forked.pidfd.as_fd());
}

fn explain(outcome: &Result<Start, Errno>, program: &Path) -> SpawnError {
    let program = program.to_owned();
    match outcome {
        Ok(Start::Failed((step, errno))) => {
            SpawnError::Start { step: step.describe(), program, source: (*errno).into() }
        }
        Ok(Start::Executed | Start::Lost) => SpawnError::Killed { program },
        Err(errno) => fork_error(*errno),
    }
}
