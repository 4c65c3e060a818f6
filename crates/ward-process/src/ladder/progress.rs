//! The state machine that follows a stop ladder.

use std::time::Duration;

use super::{EndedBy, RungPatience, StopAction, StopLadder};

/// The pause after the first kill of a round. It is doubled after each further kill: a tree that forks while it is
/// being killed must be killed again soon.
const MIN_KILL_PAUSE: Duration = Duration::from_millis(2);

/// The longest pause between two kills of a tree that doesn't disappear.
const MAX_KILL_PAUSE: Duration = Duration::from_millis(100);

/// The position on a stop ladder.
///
/// [`next_step`](Self::next_step) is given the time since the start of the stop and returns what the caller has to do.
/// The type reads no clock, so that a daemon can stop many trees on one thread, and tests need not wait.
#[derive(Clone, Debug)]
pub struct LadderProgress<Action = StopAction> {
    ladder: StopLadder<Action>,
    stage: LadderStage,
}

/// The next action for the caller of [`LadderProgress::next_step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderStep<'ladder, Action = StopAction> {
    /// Make the request of this rung.
    TryRung {
        /// The index of the rung in the ladder, for [`LadderProgress::skip_rung`].
        index: usize,
        /// The request to make.
        action: &'ladder Action,
    },
    /// Kill every member of the tree.
    Kill,
    /// Wait for the tree to end, at most until this time since the start of the stop.
    WaitUntil(Duration),
    /// Report the processes that are left although they were killed throughout the kill patience. The caller can give
    /// up now; if it goes on, the next step starts another round of kills.
    ReportSurvivors,
}

#[derive(Clone, Copy, Debug)]
enum LadderStage {
    NotStarted,
    OnRung {
        index: usize,
        until: Duration,
    },
    /// The tree survived a round of kills; the next step starts another round.
    BetweenKillRounds,
    Killing {
        next_kill: Duration,
        pause: Duration,
        report_at: Duration,
    },
}

impl LadderStage {
    fn first_kill(elapsed: Duration, kill_patience: Duration) -> Self {
        Self::killed(elapsed, MIN_KILL_PAUSE, elapsed.saturating_add(kill_patience))
    }

    fn killed(elapsed: Duration, pause: Duration, report_at: Duration) -> Self {
        Self::Killing { next_kill: elapsed.saturating_add(pause), pause, report_at }
    }
}

impl<Action> LadderProgress<Action> {
    /// Starts before the first rung of the ladder.
    #[must_use]
    pub fn new(ladder: StopLadder<Action>) -> Self {
        Self { ladder, stage: LadderStage::NotStarted }
    }

    /// Returns what to do now, `elapsed` after the start of the stop. The caller does it and calls again, or calls
    /// again when the returned time has come.
    pub fn next_step(&mut self, elapsed: Duration) -> LadderStep<'_, Action> {
        match self.stage {
            LadderStage::NotStarted => self.start_rung(0, elapsed),
            LadderStage::OnRung { until, .. } if elapsed < until => LadderStep::WaitUntil(until),
            LadderStage::OnRung { index, .. } => self.start_rung(index.saturating_add(1), elapsed),
            LadderStage::BetweenKillRounds => {
                self.stage = LadderStage::first_kill(elapsed, self.ladder.kill_patience);
                LadderStep::Kill
            }
            LadderStage::Killing { report_at, .. } if elapsed >= report_at => {
                self.stage = LadderStage::BetweenKillRounds;
                LadderStep::ReportSurvivors
            }
            LadderStage::Killing { next_kill, pause, report_at } if elapsed >= next_kill => {
                let pause = pause.saturating_mul(2).min(MAX_KILL_PAUSE);
                self.stage = LadderStage::killed(elapsed, pause, report_at);
                LadderStep::Kill
            }
            LadderStage::Killing { next_kill, report_at, .. } => {
                LadderStep::WaitUntil(next_kill.min(report_at))
            }
        }
    }

    /// Ends the wait for a rung whose request could not be made, so that the next rung comes at once. Does nothing if
    /// the ladder has already left that rung: requests are made on other threads, and can fail late.
    pub fn skip_rung(&mut self, failed: usize) {
        if let LadderStage::OnRung { index, until } = &mut self.stage
            && *index == failed
        {
            *until = Duration::ZERO;
        }
    }

    /// Brings the end of the grace forward to `grace` after the start of the stop. A longer grace than before has no
    /// effect: a second order to stop can only be stricter.
    pub fn shorten_grace(&mut self, grace: Duration) {
        self.ladder.grace = self.ladder.grace.min(grace);
        if let LadderStage::OnRung { until, .. } = &mut self.stage {
            *until = (*until).min(self.ladder.grace);
        }
    }

    /// Returns the step that ended the tree, if the tree is gone now.
    #[must_use]
    pub fn ended_by(&self) -> EndedBy {
        match self.stage {
            LadderStage::NotStarted => EndedBy::Itself,
            LadderStage::OnRung { index, .. } => EndedBy::Rung(index),
            LadderStage::BetweenKillRounds | LadderStage::Killing { .. } => EndedBy::Kill,
        }
    }

    fn start_rung(&mut self, index: usize, elapsed: Duration) -> LadderStep<'_, Action> {
        let left = self.ladder.grace.saturating_sub(elapsed);
        let Some(rung) = self.ladder.rungs.get(index).filter(|_| !left.is_zero()) else {
            self.stage = LadderStage::first_kill(elapsed, self.ladder.kill_patience);
            return LadderStep::Kill;
        };
        let is_last = index.saturating_add(1) == self.ladder.rungs.len();
        let patience = match rung.patience {
            RungPatience::Fixed(patience) => patience.min(left),
            RungPatience::ShareOfGrace if is_last => left,
            RungPatience::ShareOfGrace => left / 2,
        };
        self.stage = LadderStage::OnRung { index, until: elapsed.saturating_add(patience) };
        LadderStep::TryRung { index, action: &rung.action }
    }
}
