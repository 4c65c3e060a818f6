//! What every host has to hold to, as a suite that can be run against any (S5.4).
//!
//! An adapter implements [`Stage`]: how to make its host, and which of its entries plays which [`Part`]. Its tests
//! call [`run`] and find nothing in what it returns.

use std::time::Duration;

use shepherd_core::policy::Entry;
use shepherd_util::SessionId;

use crate::Host;

mod cases;
mod play;
mod restart;

use play::Play;

/// What a program of the suite does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Runs until it is asked to end, and ends then.
    Runs,
    /// Runs, and ignores every request to end.
    Ignores,
    /// Ends by itself with this code, so long after its start.
    Exits {
        /// When.
        after: Duration,
        /// With what.
        code: i32,
    },
    /// Ends by itself, of `SIGKILL`, at once.
    KillsItself,
    /// Hands over to another program, which runs until it is asked to end, and leaves.
    HandsOver,
    /// Can't be started.
    Fails,
}

/// Where the suite is played: an adapter, and what it runs.
pub trait Stage {
    /// The adapter.
    type Host: Host;

    /// The first host, or the one that comes after the former was dropped, as a daemon comes after another.
    fn host(&mut self) -> Self::Host;

    /// An entry that plays a part.
    fn entry(&mut self, part: Part) -> Entry;

    /// An id that no other session has.
    fn session_id(&mut self) -> SessionId;

    /// Lets time pass.
    fn pass(&mut self, duration: Duration);

    /// How often a session is stopped and the next one started at once.
    fn pairs(&self) -> usize {
        100
    }
}

/// A case that a host does not hold to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {detail}")]
pub struct Violation {
    /// Which.
    pub case: &'static str,
    /// What happened instead.
    pub detail: String,
}

/// One case: a name that is a sentence, and how it is played.
type Case<S> = (&'static str, fn(&mut Play<'_, S>) -> Result<(), String>);

/// Plays every case; what it returns is what went wrong.
pub fn run<S: Stage>(stage: &mut S) -> Vec<Violation> {
    cases::all().into_iter().chain(restart::all()).filter_map(|case| play_one(stage, case)).collect()
}

fn play_one<S: Stage>(stage: &mut S, (case, play): Case<S>) -> Option<Violation> {
    let mut scene = Play::new(stage);
    // What a case forgets to expect is found at its end.
    let outcome = play(&mut scene).and_then(|()| scene.silence());
    scene.clear();
    outcome.err().map(|detail| Violation { case, detail })
}
