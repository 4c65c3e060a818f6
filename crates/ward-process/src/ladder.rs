//! The stop ladder: how a process tree is asked to end, step by step, before it is killed.
//!
//! A [`StopLadder`] is the plan, as data. A [`LadderProgress`] follows the plan without reading a clock, and tells
//! its caller what to do. `Supervisor::stop` is a caller that waits; a daemon can do other work between two steps.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exit::TreeExit;

mod progress;
#[cfg(test)]
mod tests;

pub use progress::{LadderProgress, LadderStep};

/// A plan for stopping a process tree: polite rungs in order, then the kill of the whole tree.
///
/// `Action` is what a rung does. [`Supervisor::stop`](crate::Supervisor::stop) carries out a [`StopAction`]; a caller
/// with other ways to ask, such as a control socket, uses its own type and follows the ladder itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopLadder<Action = StopAction> {
    /// The polite rungs, in the order in which they are tried. May be empty.
    pub rungs: Vec<StopRung<Action>>,
    /// The time from the start of the stop until the kill, which comes then even if rungs are left.
    /// `Duration::MAX` if only the patience of the rungs counts.
    pub grace: Duration,
    /// The time that a killed tree gets to disappear before its survivors are reported.
    pub kill_patience: Duration,
}

/// An attempt to make a tree end, and the time until the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRung<Action = StopAction> {
    /// The request that is made of the tree.
    pub action: Action,
    /// The time that the tree gets to end after the request.
    pub patience: RungPatience,
}

/// The time that a rung gives the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungPatience {
    /// This long from the start of the rung, but not beyond the ladder's grace.
    Fixed(Duration),
    /// Half of the ladder's grace that is left, or all of it for the last rung.
    ShareOfGrace,
}

/// A request to end that [`Supervisor::stop`](crate::Supervisor::stop) can make of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopAction {
    /// Runs a command of the program itself, for example one that tells a media player to quit.
    Run(StopCommand),
    /// Sends a signal to every member of the tree.
    Signal(StopSignal),
}

/// A program that asks the tree to end.
///
/// The command runs as the user of the tree, outside of the tree and of its sandbox. It is killed at the end of its
/// rung if it still runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCommand {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The arguments after `argv[0]`.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
}

/// A signal that a program can handle, and so can end on its own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    /// `SIGTERM`, the usual request to end.
    Terminate,
    /// `SIGINT`, as sent by Ctrl-C.
    Interrupt,
    /// `SIGHUP`, as sent when a terminal closes.
    Hangup,
    /// `SIGQUIT`, which ends with a core dump by default.
    Quit,
}

impl StopSignal {
    pub(crate) fn to_kernel(self) -> rustix::process::Signal {
        match self {
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Hangup => rustix::process::Signal::HUP,
            Self::Quit => rustix::process::Signal::QUIT,
        }
    }
}

/// The default kill patience. A killed process can hang in the kernel for as long as a disk or a network file system
/// doesn't answer.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

impl StopLadder {
    /// Sends `SIGTERM` to the whole tree, waits for `grace`, then kills.
    #[must_use]
    pub fn polite(grace: Duration) -> Self {
        let action = StopAction::Signal(StopSignal::Terminate);
        let rung = StopRung { action, patience: RungPatience::Fixed(grace) };
        Self { rungs: vec![rung], ..Self::force() }
    }

    /// Kills the tree at once, without a polite rung.
    #[must_use]
    pub fn force() -> Self {
        Self { rungs: Vec::new(), grace: Duration::MAX, kill_patience: KILL_PATIENCE }
    }

    /// Returns the same ladder with a command of the program itself as its first rung.
    #[must_use]
    pub fn after_command(mut self, command: StopCommand, patience: Duration) -> Self {
        let rung = StopRung { action: StopAction::Run(command), patience: RungPatience::Fixed(patience) };
        self.rungs.insert(0, rung);
        self
    }
}

impl<Action> StopLadder<Action> {
    /// Tries the actions in order and kills at the end of the grace. Each action gets half of the grace that is left,
    /// the last one all of it.
    #[must_use]
    pub fn sharing_grace(actions: impl IntoIterator<Item = Action>, grace: Duration) -> Self {
        let patience = RungPatience::ShareOfGrace;
        let rungs = actions.into_iter().map(|action| StopRung { action, patience }).collect();
        Self { rungs, grace, kill_patience: KILL_PATIENCE }
    }
}

/// The step of the ladder that ended the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The tree had ended before the first rung was tried.
    Itself,
    /// The tree ended on the polite rung of this index.
    Rung(usize),
    /// The tree ended after it was killed.
    Kill,
}

/// The effect of a rung that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungOutcome {
    /// The tree ended within the patience of the rung.
    Worked,
    /// The tree was still running at the end of the rung.
    NoEffect,
    /// The command could not be started, so the next rung was tried at once.
    NotStarted {
        /// The error and its causes, in one line.
        reason: String,
    },
}

/// The report about a tree of which no process is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// The step of the ladder that ended the tree.
    pub ended_by: EndedBy,
    /// The outcome of each polite rung that was tried, in order.
    pub rungs: Vec<RungOutcome>,
    /// The time from the first rung until the last member was gone.
    pub elapsed: Duration,
    /// The exit of the program itself, with its resource usage.
    pub ended: TreeExit,
}
