//! A program on the fake platform, with the times of its steps.

use std::time::Duration;

use super::{FakeProgram, StopResponse};
use crate::ExitStatus;

/// The statuses of a program that was killed, and of a program that ended on request.
const KILLED: ExitStatus = ExitStatus { code: None, signal: Some(9) };
const TERMINATED: ExitStatus = ExitStatus { code: None, signal: Some(15) };

#[derive(Debug)]
pub(super) struct FakeProcess {
    script: FakeProgram,
    /// True if the present host has started or reattached the program.
    pub(super) attached: bool,
    starts_at: Duration,
    state: FakeProcessState,
    /// When the program was asked to end. `None` if it was killed without a request.
    stop_requested_at: Option<Duration>,
    /// When the program will be killed, if it is being stopped.
    killed_at: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
enum FakeProcessState {
    Starting,
    Running,
    WindowShown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FakeProcessStep {
    Start,
    ShowWindow,
    End(ExitStatus),
}

impl FakeProcess {
    pub(super) fn new(script: FakeProgram, starts_at: Duration) -> Self {
        Self {
            script,
            attached: true,
            starts_at,
            state: FakeProcessState::Starting,
            stop_requested_at: None,
            killed_at: None,
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.state != FakeProcessState::Starting
    }

    /// Returns the next step and its time.
    pub(super) fn next_step(&self) -> Option<(Duration, FakeProcessStep)> {
        if self.state == FakeProcessState::Starting {
            return Some((self.starts_at, FakeProcessStep::Start));
        }
        let after = |wait: Duration| self.starts_at.saturating_add(wait);
        let window = self.script.window.filter(|_| self.state == FakeProcessState::Running);
        let window = window.map(|wait| (after(wait), FakeProcessStep::ShowWindow));
        let ends = self.script.exits.map(|(wait, status)| (after(wait), FakeProcessStep::End(status)));
        let requested = self.stop_requested_at.filter(|_| self.script.stop_response == StopResponse::Ends);
        let ends_on_request = requested.map(|at| (at, FakeProcessStep::End(TERMINATED)));
        let killed = self.killed_at.map(|at| (at, FakeProcessStep::End(KILLED)));
        [window, ends, ends_on_request, killed].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    pub(super) fn record_step(&mut self, step: FakeProcessStep) {
        match step {
            FakeProcessStep::Start => self.state = FakeProcessState::Running,
            FakeProcessStep::ShowWindow => self.state = FakeProcessState::WindowShown,
            FakeProcessStep::End(_) => {}
        }
    }

    /// Asks the program to end, and kills it after the grace.
    pub(super) fn stop(&mut self, now: Duration, grace: Duration) {
        if !grace.is_zero() {
            self.stop_requested_at.get_or_insert(now);
        }
        let killed = now.saturating_add(grace);
        self.killed_at = Some(self.killed_at.map_or(killed, |earlier| earlier.min(killed)));
    }
}
