//! Launches a tree: opens the streams, forks the keeper or the program, and waits until `execve` has
//! succeeded.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Signal;

use super::{LaunchHooks, RecordWriter, SpawnError, Supervisor, program};
use crate::cgroup::Cgroup;
use crate::cleanup::{self, TreeCleanup};
use crate::containment::Containment;
use crate::exec_trace::{self, ExecJudge};
use crate::limits::LimitPlan;
use crate::output::{self, OutputRecorder, StdStreams, StreamCapture};
use crate::process_spec::{ProcessSpec, TreeLifetime};
use crate::record::{TreeId, TreeRecord};
use crate::sandbox::PreparedSandbox;
use crate::sys::barrier::{BarrierWaiter, StartBarrier};
use crate::sys::child::{self, PreparedProgram};
use crate::sys::descendants::DescendantScan;
use crate::sys::fork::{ForkOptions, ForkedChild};
use crate::sys::keeper::{self, Keeper, KeeperRole};
use crate::sys::start::{StartOutcome, read_start_outcome, wait_until_traceable};
use crate::sys::wait::{self, wait_readable};
use crate::tree::{KeeperStatusPipe, RootHandle, TreeReadiness};

/// The inputs of a launch, except for the process spec.
pub(super) struct TreeLaunch<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) id: &'a TreeId,
    pub(super) sandbox: Option<&'a PreparedSandbox>,
    pub(super) group: Option<&'a Cgroup>,
    pub(super) namespaces: u64,
    pub(super) limits: LimitPlan,
    pub(super) readiness: TreeReadiness,
}

/// The handles on a tree whose program has been executed.
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

/// The supervisor's ends of the pipes to the keeper.
struct KeeperHandles {
    keeper: Option<KeeperStatusPipe>,
    liveness_pipe: Option<OwnedFd>,
}

impl TreeLaunch<'_> {
    pub(super) fn run(
        self,
        spec: &mut ProcessSpec,
        hooks: LaunchHooks<'_>,
    ) -> Result<LaunchedTree, SpawnError> {
        let mut recorders = Vec::new();
        let started = output::open_streams(spec, &mut recorders)
            .map_err(|(stream, source)| SpawnError::Stream { stream, source })
            .and_then(|StdStreams { stdio, stdout, stderr }| {
                let (root, handles) = self.start_program(spec, stdio, hooks)?;
                Ok((root, handles, stdout, stderr))
            });
        match started {
            Ok((root, KeeperHandles { keeper, liveness_pipe }, stdout, stderr)) => {
                let Self { readiness, limits, .. } = self;
                Ok(LaunchedTree { root, keeper, liveness_pipe, readiness, recorders, stdout, stderr, limits })
            }
            Err(error) => {
                // The writers of the recorders' pipes are closed, so the recorders end at once.
                cleanup::defer_cleanup(TreeCleanup { recorders, ..TreeCleanup::default() });
                Err(error)
            }
        }
    }

    /// Forks the keeper or the program and waits for `execve`. Leaves no process behind if it fails.
    fn start_program(
        &self,
        spec: &ProcessSpec,
        stdio: [OwnedFd; 3],
        LaunchHooks { store_record, exec_judge }: LaunchHooks<'_>,
    ) -> Result<(RootHandle, KeeperHandles), SpawnError> {
        let record = || self.supervisor.build_record(self, spec);
        let (barrier, store_record) = match store_record {
            // A cgroup without a keeper identifies the tree without the root process, so the record can be
            // stored before the fork.
            Some(store_record) if self.group.is_some() && !self.supervisor.needs_keeper(spec) => {
                store_record(&record()).map_err(SpawnError::NotRecorded)?;
                (None, None)
            }
            Some(store_record) => {
                let pipe = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
                (Some(StartBarrier::new(pipe)), Some(store_record))
            }
            None => (None, None),
        };
        let (failure, failure_writer) = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
        let mut program = program::prepare_program(self, spec, stdio, failure_writer)?;
        let tracing = match exec_judge {
            Some(judge) => {
                let pipe = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
                Some((StartBarrier::new(pipe), judge))
            }
            None => None,
        };
        program.tracer_barrier = tracing.as_ref().map(|(barrier, _)| barrier.waiter());
        let (forked, handles) = self.fork_program(spec.lifetime, program, barrier.as_ref())?;
        if let (Some(barrier), Some(store_record)) = (barrier, store_record)
            && let Err(error) = self.record_and_release(&forked, barrier, record(), store_record)
        {
            kill_unstarted(&forked);
            return Err(error);
        }
        if let Some((barrier, judge)) = tracing
            && let Err(error) = self.attach_tracer(&forked, failure.as_fd(), barrier, judge, spec)
        {
            kill_unstarted(&forked);
            return Err(error);
        }
        match read_start_outcome(failure.as_fd()) {
            Ok(StartOutcome::Executed) => Ok((RootHandle::from_child(forked), handles)),
            outcome => {
                kill_unstarted(&forked);
                Err(describe_start_failure(&outcome, spec.program()))
            }
        }
    }

    fn fork_program(
        &self,
        lifetime: TreeLifetime,
        mut program: PreparedProgram,
        barrier: Option<&StartBarrier>,
    ) -> Result<(ForkedChild, KeeperHandles), SpawnError> {
        let options = ForkOptions { namespaces: self.namespaces, cgroup: None };
        let confinement = self.sandbox.map(PreparedSandbox::confinement);
        // The prepared program is dropped before this function returns, which closes our copy of the failure
        // pipe's writing end. Otherwise `read_start_outcome` would never see the end of the pipe.
        let (forked, handles) = match program.parent {
            child::ProgramParent::Keeper => {
                let barrier = barrier.map(StartBarrier::waiter);
                let (keeper, handles) = self.build_keeper(lifetime, program, barrier)?;
                (keeper::spawn(options, keeper, confinement), handles)
            }
            child::ProgramParent::Supervisor => {
                program.barrier = barrier.map(StartBarrier::waiter);
                let options = ForkOptions { cgroup: self.group.map(Cgroup::directory), ..options };
                (
                    child::spawn(options, &program, confinement),
                    KeeperHandles { keeper: None, liveness_pipe: None },
                )
            }
        };
        Ok((forked.map_err(fork_error)?, handles))
    }

    /// Traces the program before it is executed.
    fn attach_tracer(
        &self,
        forked: &ForkedChild,
        failure: BorrowedFd<'_>,
        barrier: StartBarrier,
        judge: Box<dyn ExecJudge>,
        spec: &ProcessSpec,
    ) -> Result<(), SpawnError> {
        match wait_until_traceable(failure) {
            Ok(None) => {}
            outcome => {
                let outcome = outcome.map(|outcome| outcome.unwrap_or(StartOutcome::Lost));
                return Err(describe_start_failure(&outcome, spec.program()));
            }
        }
        let failed = |source| SpawnError::Trace { program: spec.program().to_owned(), source };
        let keeper = forked.pid.as_raw_nonzero().get();
        // The program is the keeper's only child.
        let mut program = None;
        self.supervisor.proc.each_child(keeper, |found| program = Some(found)).map_err(fork_error)?;
        let program = program.ok_or_else(|| failed(Errno::SRCH.into()))?;
        exec_trace::attach(program, judge).map_err(failed)?;
        barrier.release().map_err(fork_error)
    }

    fn record_and_release(
        &self,
        forked: &ForkedChild,
        barrier: StartBarrier,
        record: TreeRecord,
        store_record: RecordWriter<'_>,
    ) -> Result<(), SpawnError> {
        let root = RootHandle::identity_of_child(forked, &self.supervisor.proc).map_err(fork_error)?;
        store_record(&TreeRecord { root: Some(root), ..record }).map_err(SpawnError::NotRecorded)?;
        barrier.release().map_err(fork_error)
    }

    fn build_keeper(
        &self,
        lifetime: TreeLifetime,
        mut program: PreparedProgram,
        barrier: Option<BarrierWaiter>,
    ) -> Result<(Keeper, KeeperHandles), SpawnError> {
        let (status_reader, status) = output::pipe_above_stdio().map_err(SpawnError::Fork)?;
        rustix::io::ioctl_fionbio(&status_reader, true).map_err(fork_error)?;
        let (keeper_end, supervisor_end) = match lifetime {
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
        let program_barrier = match role {
            // The init of a PID namespace can't be stopped from inside, so the program needn't wait for it.
            KeeperRole::Init if barrier.is_none() => None,
            KeeperRole::Init | KeeperRole::Subreaper | KeeperRole::BesideCgroup { .. } => {
                Some(StartBarrier::new(output::pipe_above_stdio().map_err(SpawnError::Fork)?))
            }
        };
        program.barrier = program_barrier.as_ref().map(StartBarrier::waiter);
        let keeper = Keeper {
            role,
            barrier,
            program_barrier,
            program,
            status,
            liveness_pipe: keeper_end,
            proc: Arc::clone(&self.supervisor.proc),
            scan: DescendantScan::new(),
            null: output::open_null_stdio().map_err(SpawnError::Fork)?,
        };
        Ok((
            keeper,
            KeeperHandles {
                keeper: Some(KeeperStatusPipe::new(status_reader)),
                liveness_pipe: supervisor_end,
            },
        ))
    }
}

fn fork_error(error: Errno) -> SpawnError {
    SpawnError::Fork(error.into())
}

/// Kills and reaps a process that has not executed the program. Its children, if any, have not executed it
/// either.
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
