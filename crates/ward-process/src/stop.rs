//! Carrying out a ladder, waiting in between.

use std::io;
use std::time::{Duration, Instant};

use crate::ladder::{Climb, Ladder, Move, Rung, StopCommand, Stopped};
use crate::order::{Lifetime, Order};
use crate::record::TreeId;
use crate::supervisor::Supervisor;
use crate::tree::Tree;

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

impl Supervisor {
    /// Ends a tree by the rungs of a ladder, and verifies that nothing is left.
    ///
    /// # Errors
    /// When members outlive their kill, or can't be watched.
    pub fn stop(&self, tree: &mut Tree, ladder: Ladder) -> Result<Stopped, StopError> {
        let start = Instant::now();
        let mut climb = Climb::new(ladder);
        let mut helper = None;
        loop {
            if let Some(ended) = tree.poll_ended()? {
                return Ok(Stopped { ended_by: climb.ended_by(), elapsed: start.elapsed(), ended });
            }
            match climb.next(start.elapsed()) {
                Move::Take(Rung::Run { command, .. }) => helper = self.start(tree.id(), command),
                Move::Take(Rung::Signal { signal, .. }) => tree.signal(*signal),
                Move::Kill => {
                    // Dropping it ends it: a command that hangs is no reason to wait.
                    drop(helper.take());
                    tree.kill();
                }
                Move::WaitUntil(until) => {
                    tree.wait(Some(until.saturating_sub(start.elapsed())))?;
                }
                Move::GiveUp => {
                    let survivors = tree.processes();
                    return Err(StopError::Survivors { survivors, elapsed: start.elapsed() });
                }
            }
        }
    }

    /// A stop command that can't be started is a rung that did not work; the next one will.
    fn start(&self, id: &TreeId, command: &StopCommand) -> Option<Tree> {
        let mut order = Order::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            order = order.env(name, value);
        }
        let id = format!("{id}-stop").parse().ok()?;
        let lifetime = if self.containment() == crate::Containment::ProcessGroup {
            Lifetime::Independent
        } else {
            Lifetime::DiesWithSupervisor
        };
        self.spawn(id, order.lifetime(lifetime)).ok()
    }
}
