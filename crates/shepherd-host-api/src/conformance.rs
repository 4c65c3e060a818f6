//! What every host has to hold to, as a suite that can be run against any (S5.4).
//!
//! An adapter implements [`ConformanceHarness`]: how to make its host, and which of its entries plays which [`TestProgram`]. Its tests
//! call [`run`] and find nothing in what it returns.

use std::time::Duration;

use shepherd_core::policy::PolicyEntry;
use shepherd_util::SessionId;

use crate::HostAdapter;

mod case_context;
mod cases;
mod restart;

use case_context::CaseContext;

/// What a program of the suite does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestProgram {
    /// Runs until it is asked to end, and ends then.
    EndsOnRequest,
    /// Runs, and ignores every request to end.
    IgnoresRequests,
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
    ForksAndExits,
    /// Can't be started.
    FailsToStart,
}

/// Where the suite is played: an adapter, and what it runs.
pub trait ConformanceHarness {
    /// The adapter.
    type TestedHost: HostAdapter;

    /// The first host, or the one that comes after the former was dropped, as a daemon comes after another.
    fn host(&mut self) -> Self::TestedHost;

    /// An entry that plays a part.
    fn entry_for(&mut self, part: TestProgram) -> PolicyEntry;

    /// An id that no other session has.
    fn new_session_id(&mut self) -> SessionId;

    /// Lets time pass.
    fn advance_time(&mut self, duration: Duration);

    /// How often a session is stopped and the next one started at once.
    fn stop_start_rounds(&self) -> usize {
        100
    }
}

/// A case that a host does not hold to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {detail}")]
pub struct ConformanceViolation {
    /// Which.
    pub case: &'static str,
    /// What happened instead.
    pub detail: String,
}

/// One case: a name that is a sentence, and how it is played.
type ConformanceCase<S> = (&'static str, fn(&mut CaseContext<'_, S>) -> Result<(), String>);

/// Plays every case; what it returns is what went wrong.
pub fn run<S: ConformanceHarness>(stage: &mut S) -> Vec<ConformanceViolation> {
    cases::start_stop_cases()
        .into_iter()
        .chain(restart::restart_cases())
        .filter_map(|case| run_case(stage, case))
        .collect()
}

fn run_case<S: ConformanceHarness>(
    stage: &mut S,
    (case, play): ConformanceCase<S>,
) -> Option<ConformanceViolation> {
    let mut scene = CaseContext::new(stage);
    // What a case forgets to expect is found at its end.
    let outcome = play(&mut scene).and_then(|()| scene.expect_no_event());
    scene.stop_all();
    outcome.err().map(|detail| ConformanceViolation { case, detail })
}
