//! From a prepared order to a program that runs, or to nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Signal;

use super::{RecordWriter, SpawnError, Supervisor, program};
use crate::cgroup::Cgroup;
use crate::cleanup::{self, TreeCleanup};
use crate::containment::Containment;
use crate::limits::LimitPlan;
use crate::output::{self, OutputRecorder, StdStreams, StreamCapture};
use crate::process_spec::{ProcessSpec, TreeLifetime};
use crate::record::{TreeId, TreeRecord};
use crate::sandbox::PreparedSandbox;
use crate::sys::barrier::StartBarrier;
use crate::sys::child::{self, PreparedProgram};
use crate::sys::descendants::DescendantScan;
use crate::sys::fork::{ForkOptions, ForkedChild};
use crate::sys::keeper::{self, Keeper, KeeperRole};
use crate::sys::start::{StartOutcome, read_start_outcome};
use crate::sys::wait::{self, wait_readable};
use crate::tree::{KeeperStatusPipe, RootHandle, TreeReadiness};

/// All that a launch needs to know, besides the order.
pub(super) struct TreeLaunch<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) id: &'a TreeId,
    pub(super) sandbox: Option<&'a PreparedSandbox>,
    pub(super) group: Option<&'a Cgroup>,
    pub(super) namespaces: u64,
    pub(super) limits: LimitPlan,
    pub(super) readiness: TreeReadiness,
}

/// A program that runs.
pub(super) struct LaunchedTree {
    pub(super) root: RootHandle,
    pub(super) keeper: Option<KeeperStatusPipe>,
    pub(super) liveness_pipe: Option<OwnedFd>,
    pub(super) readiness: TreeReadiness,
    pub(super) recorders: Vec<OutputRecorder>,
    pub(super) stdout: Option<StreamCapture>,
    pub(super) stderr: Option<StreamCapture>,
    pub(super) limits: LimitPlan,
}

/// What stays with us of the helpers of a program.
struct KeeperHandles {
    keeper: Option<KeeperStatusPipe>,
    liveness_pipe: Option<OwnedFd>,
}

impl TreeLaunch<'_> {
    pub(super) fn run(
        self,
        order: &mut ProcessSpec,
        write_down: Option<RecordWriter<'_>>,
    ) -> Result<LaunchedTree, SpawnError> {
        let mut recorders = Vec::new();
        let started = output::open_streams(order, &mut recorders)
            .map_err(|(stream, source)| SpawnError::Stream { stream, source })
            .and_then(|StdStreams { stdio, stdout, stderr }| {
                let (root, links) = self.start_program(order, stdio, write_down)?;
                Ok((root, links, stdout, stderr))
            });
        match started {
            Ok((root, KeeperHandles { keeper, liveness_pipe: life }, stdout, stderr)) => {
                let Self { readiness, limits, .. } = self;
                Ok(LaunchedTree {
                    root,
                    keeper,
                    liveness_pipe: life,
                    readiness,
                    recorders,
                    stdout,
                    stderr,
                    limits,
                })
            }
            Err(error) => {
                // All their writers are gone, so they end at once.
                cleanup::defer_cleanup(TreeCleanup { recorders, ..TreeCleanup::default() });
                Err(error)
            }
        }
    }

    /// From here on there may be a process; when this fails there is none again.
    fn start_program(
        &self,
        order: &ProcessSpec,
        stdio: [OwnedFd; 3],
        write_down: Option<RecordWriter<'_>>,
    ) -> Result<(RootHandle, KeeperHandles), SpawnError> {
        let record = || self.supervisor.build_record(self, order);
        let (gate, write_down) = match write_down {
            // The group names the tree already, unless there is a keeper to be found again, too.
            Some(write_down) if self.group.is_some() && !self.supervisor.needs_keeper(order) => {
                write_down(&record()).map_err(SpawnError::NotRecorded)?;
                (None, None)
            }
            Some(write_down) => {
                let pipe = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
                (Some(StartBarrier::new(pipe)), Some(write_down))
            }
            None => (None, None),
        };
        let (failure, failure_writer) = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
        let program = program::prepare_program(self, order, stdio, failure_writer)?;
        let (forked, links) = self.fork_program(order.lifetime, program, gate.as_ref())?;
        if let (Some(gate), Some(write_down)) = (gate, write_down)
            && let Err(error) = self.record_and_release(&forked, gate, record(), write_down)
        {
            kill_unstarted(&forked);
            return Err(error);
        }
        match read_start_outcome(failure.as_fd()) {
            Ok(StartOutcome::Executed) => Ok((RootHandle::from_child(forked), links)),
            outcome => {
                kill_unstarted(&forked);
                Err(describe_start_failure(&outcome, order.program()))
            }
        }
    }

    fn fork_program(
        &self,
        lifetime: TreeLifetime,
        mut program: PreparedProgram,
        gate: Option<&StartBarrier>,
    ) -> Result<(ForkedChild, KeeperHandles), SpawnError> {
        let birth = ForkOptions { namespaces: self.namespaces, cgroup: None };
        let confinement = self.sandbox.map(PreparedSandbox::confinement);
        let (forked, links) = match program.parent {
            child::ProgramParent::Keeper => {
                let (mut keeper, links) = self.build_keeper(lifetime, program)?;
                keeper.barrier = gate.map(StartBarrier::waiter);
                (keeper::spawn(birth, keeper, confinement), links)
            }
            // With the program goes our end of the failure pipe.
            child::ProgramParent::Supervisor => {
                program.barrier = gate.map(StartBarrier::waiter);
                let birth = ForkOptions { cgroup: self.group.map(Cgroup::directory), ..birth };
                (
                    child::spawn(birth, &program, confinement),
                    KeeperHandles { keeper: None, liveness_pipe: None },
                )
            }
        };
        Ok((forked.map_err(fork_error)?, links))
    }

    fn record_and_release(
        &self,
        forked: &ForkedChild,
        gate: StartBarrier,
        record: TreeRecord,
        write_down: RecordWriter<'_>,
    ) -> Result<(), SpawnError> {
        let root = RootHandle::identity_of_child(forked, &self.supervisor.proc).map_err(fork_error)?;
        write_down(&TreeRecord { root: Some(root), ..record }).map_err(SpawnError::NotRecorded)?;
        gate.release().map_err(fork_error)
    }

    fn build_keeper(
        &self,
        lifetime: TreeLifetime,
        mut program: PreparedProgram,
    ) -> Result<(Keeper, KeeperHandles), SpawnError> {
        let (status_reader, status) = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
        rustix::io::ioctl_fionbio(&status_reader, true).map_err(fork_error)?;
        let (life, our_life) = match lifetime {
            TreeLifetime::Independent => (None, None),
            TreeLifetime::DiesWithSupervisor => {
                let (reader, writer) = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
                (Some(reader), Some(writer))
            }
        };
        let role = match (self.supervisor.containment, self.group) {
            (Containment::PidNamespace, _) => KeeperRole::Init,
            (_, Some(group)) => KeeperRole::BesideCgroup {
                directory: group.directory_handle().map_err(SpawnError::Fork)?,
                kill: group.kill_handle().map_err(SpawnError::Fork)?,
            },
            _ => KeeperRole::Subreaper,
        };
        let retired = match role {
            // It can't be stopped from inside.
            KeeperRole::Init => None,
            KeeperRole::Subreaper | KeeperRole::BesideCgroup { .. } => {
                Some(StartBarrier::new(output::pipe_above_stdio().map_err(SpawnError::Fork)?))
            }
        };
        program.barrier = retired.as_ref().map(StartBarrier::waiter);
        let keeper = Keeper {
            role,
            barrier: None,
            program_barrier: retired,
            program,
            status,
            liveness_pipe: life,
            proc: Arc::clone(&self.supervisor.proc),
            sweep: DescendantScan::new(),
            null: output::open_null_stdio().map_err(SpawnError::Fork)?,
        };
        Ok((
            keeper,
            KeeperHandles { keeper: Some(KeeperStatusPipe::new(status_reader)), liveness_pipe: our_life },
        ))
    }
}

fn fork_error(error: Errno) -> SpawnError {
    SpawnError::Fork(error.into())
}

/// Ends a process that has not become the program. It has no children, or none that came further.
fn kill_unstarted(forked: &ForkedChild) {
    let _ = rustix::process::pidfd_send_signal(&forked.pidfd, Signal::KILL);
    let _ = wait_readable(forked.pidfd.as_fd(), None);
    let _ = wait::reap(forked.pidfd.as_fd());
}

fn describe_start_failure(outcome: &Result<StartOutcome, Errno>, program: &Path) -> SpawnError {
    let program = program.to_owned();
    match outcome {
        Ok(StartOutcome::Failed((step, errno))) => {
            SpawnError::Start { step: step.describe(), program, source: (*errno).into() }
        }
        Ok(StartOutcome::Executed | StartOutcome::Lost) => SpawnError::Killed { program },
        Err(errno) => fork_error(*errno),
    }
}
