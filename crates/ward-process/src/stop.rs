//! `Supervisor::stop`: follows a stop ladder and waits between its steps.

use std::io;
use std::time::{Duration, Instant};

use crate::containment::Containment;
use crate::ladder::{
    EndedBy, LadderProgress, LadderStep, RungOutcome, StopAction, StopCommand, StopLadder, StopReport,
};
use crate::process_spec::{ProcessSpec, TreeLifetime};
use crate::record::TreeId;
use crate::supervisor::{SpawnError, Supervisor};
use crate::tree::{ProcessTree, SignalDelivery};

/// The reasons why a tree can't be reported as gone.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Members survived the kill, for example because they hang in the kernel.
    #[error("could not kill {} of the tree in {elapsed:?}", count_processes(survivors.len()))]
    Survivors {
        /// The process ids of the members that are left.
        survivors: Vec<i32>,
        /// The time since the first rung.
        elapsed: Duration,
    },
    /// The kernel did not report whether the tree has ended.
    #[error("could not watch the tree end")]
    Watch(#[from] io::Error),
}

fn count_processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// A running stop command, which is killed when its rung is over.
struct RunningStopCommand(ProcessTree);

impl Drop for RunningStopCommand {
    fn drop(&mut self) {
        /// A command that hangs in the kernel for longer is reaped by a later spawn or poll.
        const STOP_COMMAND_TIMEOUT: Duration = Duration::from_secs(1);
        self.0.kill();
        let _ = self.0.wait(Some(STOP_COMMAND_TIMEOUT));
    }
}

impl Supervisor {
    /// Stops a tree by following a ladder, and returns when no process of the tree is left.
    ///
    /// # Errors
    /// Fails if members survive their kill for longer than the ladder's kill patience, or can't be watched.
    pub fn stop(&self, tree: &mut ProcessTree, ladder: StopLadder) -> Result<StopReport, StopError> {
        let start = Instant::now();
        let mut progress = LadderProgress::new(ladder);
        let mut rungs = Vec::new();
        let mut running_command = None;
        let mut signal_retry = None;
        loop {
            if let Some(ended) = tree.poll_ended()? {
                let (ended_by, elapsed) = (progress.ended_by(), start.elapsed());
                if let EndedBy::Rung(_) = ended_by
                    && let Some(last) = rungs.last_mut()
                {
                    *last = RungOutcome::Worked;
                }
                drop(running_command);
                tree.finish_recordings_and_files(None);
                return Ok(StopReport { ended_by, rungs, elapsed, ended });
            }
            if signal_retry.take_if(|due| *due <= start.elapsed()).is_some() {
                signal_retry = next_signal_retry(tree.signal_remaining(), start);
            }
            match progress.next_step(start.elapsed()) {
                LadderStep::TryRung { index, action } => {
                    let started = match action {
                        StopAction::Signal(signal) => {
                            signal_retry = next_signal_retry(tree.signal(*signal), start);
                            Ok(None)
                        }
                        StopAction::Run(command) => self.start_stop_command(tree, command).map(Some),
                    };
                    // The rung of the previous command is over.
                    drop(running_command.take());
                    match started {
                        Ok(started) => {
                            running_command = started;
                            rungs.push(RungOutcome::NoEffect);
                        }
                        Err(error) => {
                            rungs.push(RungOutcome::NotStarted { reason: format_error_chain(&error) });
                            progress.skip_rung(index);
                        }
                    }
                }
                LadderStep::Kill => {
                    signal_retry = None;
                    tree.kill();
                    drop(running_command.take());
                }
                LadderStep::WaitUntil(until) => {
                    let until = signal_retry.map_or(until, |due| due.min(until));
                    tree.wait(Some(until.saturating_sub(start.elapsed())))?;
                }
                LadderStep::ReportSurvivors if tree.end_if_only_zombies().is_some() => {}
                LadderStep::ReportSurvivors => {
                    let survivors = tree.processes();
                    return Err(StopError::Survivors { survivors, elapsed: start.elapsed() });
                }
            }
        }
    }

    /// Starts a stop command as the user of the tree: the command is no more trusted than the tree.
    fn start_stop_command(
        &self,
        tree: &ProcessTree,
        command: &StopCommand,
    ) -> Result<RunningStopCommand, SpawnError> {
        let mut spec = ProcessSpec::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            spec = spec.env(name, value);
        }
        if let Some(identity) = tree.identity() {
            spec = spec.identity(identity.clone());
        }
        let lifetime = match self.containment() {
            Containment::ProcessGroup => TreeLifetime::Independent,
            Containment::Cgroup | Containment::PidNamespace | Containment::Subreaper => {
                TreeLifetime::DiesWithSupervisor
            }
        };
        self.spawn(TreeId::for_stop_command(), spec.lifetime(lifetime)).map(RunningStopCommand)
    }
}

/// Returns when to signal the members that the signal has not reached, as time since the start of the stop.
fn next_signal_retry(delivery: SignalDelivery, start: Instant) -> Option<Duration> {
    match delivery {
        SignalDelivery::AllMembers => None,
        SignalDelivery::Incomplete { retry_after } => Some(start.elapsed() + retry_after),
    }
}

/// Returns the error with all its causes in one line.
fn format_error_chain(error: &SpawnError) -> String {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    reason
}
