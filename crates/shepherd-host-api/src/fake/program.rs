//! One program of a fake world: when it does what.

use std::time::Duration;

use super::{FakeProgram, WhenAsked};
use crate::ExitStatus;

/// How a program looks that was killed, and one that ended because it was asked to.
const KILLED: ExitStatus = ExitStatus { code: None, signal: Some(9) };
const OBEYED: ExitStatus = ExitStatus { code: None, signal: Some(15) };

#[derive(Debug)]
pub(super) struct Program {
    script: FakeProgram,
    /// Whether the host of today knows it.
    pub(super) attached: bool,
    starts: Duration,
    stage: Stage,
    /// Since when it knows that it is to end, if it was asked and not just killed.
    asked: Option<Duration>,
    /// When it is killed, if it was ordered to end.
    killed: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    Running,
    /// It has shown its window.
    Shown,
}

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Start,
    ShowWindow,
    End(ExitStatus),
}

impl Program {
    pub(super) fn new(script: FakeProgram, starts: Duration) -> Self {
        Self { script, attached: true, starts, stage: Stage::Starting, asked: None, killed: None }
    }

    pub(super) fn has_started(&self) -> bool {
        self.stage != Stage::Starting
    }

    /// What comes next, and when.
    pub(super) fn next(&self) -> Option<(Duration, Act)> {
        if self.stage == Stage::Starting {
            return Some((self.starts, Act::Start));
        }
        let after = |wait: Duration| self.starts.saturating_add(wait);
        let window = self.script.window.filter(|_| self.stage == Stage::Running);
        let window = window.map(|wait| (after(wait), Act::ShowWindow));
        let ends = self.script.ends.map(|(wait, status)| (after(wait), Act::End(status)));
        let asked = self.asked.filter(|_| self.script.when_asked == WhenAsked::Ends);
        let obeys = asked.map(|at| (at, Act::End(OBEYED)));
        let killed = self.killed.map(|at| (at, Act::End(KILLED)));
        [window, ends, obeys, killed].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    pub(super) fn did(&mut self, act: Act) {
        match act {
            Act::Start => self.stage = Stage::Running,
            Act::ShowWindow => self.stage = Stage::Shown,
            Act::End(_) => {}
        }
    }

    /// It is asked to end, and killed after the grace.
    pub(super) fn stop(&mut self, now: Duration, grace: Duration) {
        if !grace.is_zero() {
            self.asked.get_or_insert(now);
        }
        let killed = now.saturating_add(grace);
        self.killed = Some(self.killed.map_or(killed, |earlier| earlier.min(killed)));
    }
}
