//! The test suite that every host has to pass (S5.4).
//!
//! An adapter implements [`ConformanceHarness`], which makes its host and an entry for each [`TestProgram`]. The tests
//! of the adapter call [`run`] and check that it returns no violation.

use std::time::Duration;

use shepherd_core::policy::PolicyEntry;
use shepherd_util::SessionId;

use crate::HostAdapter;

mod case_context;
mod cases;
mod restart;

use case_context::CaseContext;

/// The behaviour of a program that the suite starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestProgram {
    /// Runs until it is asked to end.
    EndsOnRequest,
    /// Runs, and ignores every request to end.
    IgnoresRequests,
    /// Ends by itself with an exit code.
    Exits {
        /// The time from the start to the end.
        after: Duration,
        /// The exit code of the program.
        code: i32,
    },
    /// Kills itself with `SIGKILL` at once.
    KillsItself,
    /// Starts another program, which runs until it is asked to end, and exits itself.
    ForksAndExits,
    /// Can't be started at all.
    FailsToStart,
}

/// The connection between the suite and the adapter under test.
pub trait ConformanceHarness {
    /// The host type of the adapter.
    type TestedHost: HostAdapter;

    /// Makes a host. After the first, each host follows one that was dropped, as after a restart of the daemon.
    fn host(&mut self) -> Self::TestedHost;

    /// Returns an entry whose program behaves like this.
    fn entry_for(&mut self, program: TestProgram) -> PolicyEntry;

    /// Returns an id that no other session has.
    fn new_session_id(&mut self) -> SessionId;

    /// Lets this much time pass.
    fn advance_time(&mut self, duration: Duration);

    /// Returns how many times the suite stops a session and starts another at once.
    fn stop_start_rounds(&self) -> usize {
        100
    }
}

/// A case of the suite that a host fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {detail}")]
pub struct ConformanceViolation {
    /// The name of the case.
    pub case: &'static str,
    /// The behaviour that the suite saw instead.
    pub detail: String,
}

/// A test case: the expected behaviour as a sentence, and the function that checks it.
type ConformanceCase<S> = (&'static str, fn(&mut CaseContext<'_, S>) -> Result<(), String>);

/// Runs every case, and returns the violations.
pub fn run<S: ConformanceHarness>(harness: &mut S) -> Vec<ConformanceViolation> {
    cases::start_stop_cases()
        .into_iter()
        .chain(restart::restart_cases())
        .filter_map(|case| run_case(harness, case))
        .collect()
}

fn run_case<S: ConformanceHarness>(
    harness: &mut S,
    (case, run_steps): ConformanceCase<S>,
) -> Option<ConformanceViolation> {
    let mut context = CaseContext::new(harness);
    // Finds events that the case did not expect.
    let outcome = run_steps(&mut context).and_then(|()| context.expect_no_event());
    context.stop_all();
    outcome.err().map(|detail| ConformanceViolation { case, detail })
}
