//! Carrying out a ladder, waiting in between.

use std::io;
use std::time::{Duration, Instant};

use crate::containment::Containment;
use crate::ladder::{Climb, EndedBy, Ladder, Move, Rung, RungOutcome, StopCommand, Stopped};
use crate::order::{Lifetime, Order};
use crate::record::TreeId;
use crate::supervisor::{SpawnError, Supervisor};
use crate::tree::{Reach, Tree};

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
struct Helper(Tree);

impl Drop for Helper {
    fn drop(&mut self) {
        /// One that hangs in the kernel is left to whoever is spawned or polled next.
        const PATIENCE: Duration = Duration::from_secs(1);
        self.0.kill();
        let _ = self.0.wait(Some(PATIENCE));
    }
}

impl Supervisor {
    /// Ends a tree by the rungs of a ladder, and verifies that nothing is left.
    ///
    /// # Errors
    /// When members outlive their kill, or can't be watched.
    pub fn stop(&self, tree: &mut Tree, ladder: Ladder) -> Result<Stopped, StopError> {
        let start = Instant::now();
        let mut climb = Climb::new(ladder);
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
                tree.see_to_the_rest(None);
                return Ok(Stopped { ended_by, rungs, elapsed, ended });
            }
            if look_again.take_if(|due| *due <= start.elapsed()).is_some() {
                look_again = next_look(tree.signal_the_rest(), start);
            }
            match climb.next(start.elapsed()) {
                Move::Take(rung) => {
                    let started = match rung {
                        Rung::Signal { signal, .. } => {
                            look_again = next_look(tree.signal(*signal), start);
                            Ok(None)
                        }
                        Rung::Run { command, .. } => self.start(tree, command).map(Some),
                    };
                    // The command of the rung before has had its time.
                    drop(helper.take());
                    match started {
                        Ok(started) => {
                            helper = started;
                            rungs.push(RungOutcome::NoEffect);
                        }
                        Err(error) => {
                            rungs.push(RungOutcome::NotStarted { reason: reason(&error) });
                            climb.skip_rung();
                        }
                    }
                }
                Move::Kill => {
                    look_again = None;
                    tree.kill();
                    drop(helper.take());
                }
                Move::WaitUntil(until) => {
                    let until = look_again.map_or(until, |due| due.min(until));
                    tree.wait(Some(until.saturating_sub(start.elapsed())))?;
                }
                Move::GiveUp if tree.end_of_the_dead().is_some() => {}
                Move::GiveUp => {
                    let survivors = tree.processes();
                    return Err(StopError::Survivors { survivors, elapsed: start.elapsed() });
                }
            }
        }
    }

    /// It is no more trusted than the tree, so that it gets no more rights.
    fn start(&self, tree: &Tree, command: &StopCommand) -> Result<Helper, SpawnError> {
        let mut order = Order::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            order = order.env(name, value);
        }
        if let Some(identity) = tree.identity() {
            order = order.identity(identity.clone());
        }
        let lifetime = match self.containment() {
            Containment::ProcessGroup => Lifetime::Independent,
            Containment::Cgroup | Containment::PidNamespace | Containment::Subreaper => {
                Lifetime::DiesWithSupervisor
            }
        };
        self.spawn(TreeId::of_stop_command(), order.lifetime(lifetime)).map(Helper)
    }
}

/// When to look for those whom a request has not reached, from the start of the stop.
fn next_look(reach: Reach, start: Instant) -> Option<Duration> {
    match reach {
        Reach::Everybody => None,
        Reach::NotYet { look_again } => Some(start.elapsed() + look_again),
    }
}

/// The error with what is behind it.
fn reason(error: &SpawnError) -> String {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    reason
}
