//! Carrying out a ladder, waiting in between.

use std::io;
use std::time::{Duration, Instant};

use crate::containment::Containment;
use crate::ladder::{
    EndedBy, LadderProgress, LadderStep, RungOutcome, StopCommand, StopLadder, StopReport, StopRung,
};
use crate::process_spec::{ProcessSpec, TreeLifetime};
use crate::record::TreeId;
use crate::supervisor::{SpawnError, Supervisor};
use crate::tree::{ProcessTree, SignalReach};

/// Why a tree is not known to be gone.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Members outlived their kill, as one does that hangs in the kernel.
    #[error("{} processes are left {elapsed:?} after the first rung", survivors.len())]
    Survivors {
        /// Their numbers.
        survivors: Vec<i32>,
        /// How long it was tried.
        elapsed: Duration,
    },
    /// The kernel refused to tell.
    #[error("could not watch the tree end")]
    Watch(#[from] io::Error),
}

/// A stop command that runs. It ends with its rung, whatever it is doing.
struct RunningStopCommand(ProcessTree);

impl Drop for RunningStopCommand {
    fn drop(&mut self) {
        /// One that hangs in the kernel is left to whoever is spawned or polled next.
        const STOP_COMMAND_TIMEOUT: Duration = Duration::from_secs(1);
        self.0.kill();
        let _ = self.0.wait(Some(STOP_COMMAND_TIMEOUT));
    }
}

impl Supervisor {
    /// Ends a tree by the rungs of a ladder, and verifies that nothing is left.
    ///
    /// # Errors
    /// When members outlive their kill, or can't be watched.
    pub fn stop(&self, tree: &mut ProcessTree, ladder: StopLadder) -> Result<StopReport, StopError> {
        let start = Instant::now();
        let mut climb = LadderProgress::new(ladder);
        let mut rungs = Vec::new();
        let mut helper = None;
        let mut look_again = None;
        loop {
            if let Some(ended) = tree.poll_ended()? {
                let (ended_by, elapsed) = (climb.ended_by(), start.elapsed());
                if let EndedBy::Rung(_) = ended_by
                    && let Some(last) = rungs.last_mut()
                {
                    *last = RungOutcome::Worked;
                }
                drop(helper);
                tree.finish_recordings_and_files(None);
                return Ok(StopReport { ended_by, rungs, elapsed, ended });
            }
            if look_again.take_if(|due| *due <= start.elapsed()).is_some() {
                look_again = next_signal_retry(tree.signal_remaining(), start);
            }
            match climb.next_step(start.elapsed()) {
                LadderStep::TryRung(rung) => {
                    let started = match rung {
                        StopRung::Signal { signal, .. } => {
                            look_again = next_signal_retry(tree.signal(*signal), start);
                            Ok(None)
                        }
                        StopRung::Run { command, .. } => self.start_stop_command(tree, command).map(Some),
                    };
                    // The command of the rung before has had its time.
                    drop(helper.take());
                    match started {
                        Ok(started) => {
                            helper = started;
                            rungs.push(RungOutcome::NoEffect);
                        }
                        Err(error) => {
                            rungs.push(RungOutcome::NotStarted { reason: format_error_chain(&error) });
                            climb.skip_rung();
                        }
                    }
                }
                LadderStep::Kill => {
                    look_again = None;
                    tree.kill();
                    drop(helper.take());
                }
                LadderStep::WaitUntil(until) => {
                    let until = look_again.map_or(until, |due| due.min(until));
                    tree.wait(Some(until.saturating_sub(start.elapsed())))?;
                }
                LadderStep::GiveUp if tree.end_if_only_zombies().is_some() => {}
                LadderStep::GiveUp => {
                    let survivors = tree.processes();
                    return Err(StopError::Survivors { survivors, elapsed: start.elapsed() });
                }
            }
        }
    }

    /// It is no more trusted than the tree, so that it gets no more rights.
    fn start_stop_command(
        &self,
        tree: &ProcessTree,
        command: &StopCommand,
    ) -> Result<RunningStopCommand, SpawnError> {
        let mut order = ProcessSpec::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            order = order.env(name, value);
        }
        if let Some(identity) = tree.identity() {
            order = order.identity(identity.clone());
        }
        let lifetime = match self.containment() {
            Containment::ProcessGroup => TreeLifetime::Independent,
            Containment::Cgroup | Containment::PidNamespace | Containment::Subreaper => {
                TreeLifetime::DiesWithSupervisor
            }
        };
        self.spawn(TreeId::for_stop_command(), order.lifetime(lifetime)).map(RunningStopCommand)
    }
}

/// When to look for those whom a request has not reached, from the start of the stop.
fn next_signal_retry(reach: SignalReach, start: Instant) -> Option<Duration> {
    match reach {
        SignalReach::AllMembers => None,
        SignalReach::Incomplete { retry_after: look_again } => Some(start.elapsed() + look_again),
    }
}

/// The error with what is behind it.
fn format_error_chain(error: &SpawnError) -> String {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    reason
}
