//! One program of a fake world: when it does what.

use std::time::Duration;

use super::{FakeProgram, StopResponse};
use crate::ExitStatus;

/// How a program looks that was killed, and one that ended because it was asked to.
const KILLED: ExitStatus = ExitStatus { code: None, signal: Some(9) };
const TERMINATED: ExitStatus = ExitStatus { code: None, signal: Some(15) };

#[derive(Debug)]
pub(super) struct FakeProcess {
    script: FakeProgram,
    /// Whether the host of today knows it.
    pub(super) attached: bool,
    starts_at: Duration,
    state: FakeProcessState,
    /// Since when it knows that it is to end, if it was asked and not just killed.
    stop_requested_at: Option<Duration>,
    /// When it is killed, if it was ordered to end.
    killed_at: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
enum FakeProcessState {
    Starting,
    Running,
    /// It has shown its window.
    WindowShown,
}

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FakeProcessStep {
    Start,
    ShowWindow,
    End(ExitStatus),
}

impl FakeProcess {
    pub(super) fn new(script: FakeProgram, starts: Duration) -> Self {
        Self {
            script,
            attached: true,
            starts_at: starts,
            state: FakeProcessState::Starting,
            stop_requested_at: None,
            killed_at: None,
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.state != FakeProcessState::Starting
    }

    /// What comes next, and when.
    pub(super) fn next_step(&self) -> Option<(Duration, FakeProcessStep)> {
        if self.state == FakeProcessState::Starting {
            return Some((self.starts_at, FakeProcessStep::Start));
        }
        let after = |wait: Duration| self.starts_at.saturating_add(wait);
        let window = self.script.window.filter(|_| self.state == FakeProcessState::Running);
        let window = window.map(|wait| (after(wait), FakeProcessStep::ShowWindow));
        let ends = self.script.exits.map(|(wait, status)| (after(wait), FakeProcessStep::End(status)));
        let asked = self.stop_requested_at.filter(|_| self.script.stop_response == StopResponse::Ends);
        let obeys = asked.map(|at| (at, FakeProcessStep::End(TERMINATED)));
        let killed = self.killed_at.map(|at| (at, FakeProcessStep::End(KILLED)));
        [window, ends, obeys, killed].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    pub(super) fn record_step(&mut self, act: FakeProcessStep) {
        match act {
            FakeProcessStep::Start => self.state = FakeProcessState::Running,
            FakeProcessStep::ShowWindow => self.state = FakeProcessState::WindowShown,
            FakeProcessStep::End(_) => {}
        }
    }

    /// It is asked to end, and killed after the grace.
    pub(super) fn stop(&mut self, now: Duration, grace: Duration) {
        if !grace.is_zero() {
            self.stop_requested_at.get_or_insert(now);
        }
        let killed = now.saturating_add(grace);
        self.killed_at = Some(self.killed_at.map_or(killed, |earlier| earlier.min(killed)));
    }
}
