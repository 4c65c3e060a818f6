//! Stopping, kept as data: polite rungs first, each with its patience, then the kill.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exit::TreeExit;

/// A way to ask a tree to end, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRung {
    /// A command of the program itself, such as the one that tells a player to quit.
    Run {
        /// What to run.
        command: StopCommand,
        /// How long the tree may take, from the start of the command.
        patience: Duration,
    },
    /// A signal to every member of the tree.
    Signal {
        /// Which.
        signal: StopSignal,
        /// How long the tree may take.
        patience: Duration,
    },
}

/// A program that asks another one to end. It runs as the user that the tree runs as, outside of the
/// tree and of its sandbox, and is killed with its rung if it has not ended by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCommand {
    /// Absolute path.
    pub program: PathBuf,
    /// Arguments after `argv[0]`.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
}

/// Signals that ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    /// `SIGTERM`.
    Terminate,
    /// `SIGINT`.
    Interrupt,
    /// `SIGHUP`.
    Hangup,
    /// `SIGQUIT`.
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

/// The rungs, in order. Below the last there is always the kill of the whole tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopLadder {
    /// Polite rungs, possibly none.
    pub rungs: Vec<StopRung>,
    /// How long a killed tree may take to vanish before its survivors are reported.
    pub kill_patience: Duration,
}

/// A killed process can hang in the kernel for as long as a disk or a network file system does.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Between the first two strikes at a tree that forks while it is being killed; doubled after each.
const FIRST_KILL_RETRY: Duration = Duration::from_millis(2);

/// Between two strikes at what does not vanish.
const MAX_KILL_RETRY: Duration = Duration::from_millis(100);

impl StopLadder {
    /// `SIGTERM` to the whole tree, so much grace, then the kill.
    #[must_use]
    pub fn polite(grace: Duration) -> Self {
        let rung = StopRung::Signal { signal: StopSignal::Terminate, patience: grace };
        Self { rungs: vec![rung], kill_patience: KILL_TIMEOUT }
    }

    /// The kill at once.
    #[must_use]
    pub fn force() -> Self {
        Self { rungs: Vec::new(), kill_patience: KILL_TIMEOUT }
    }

    /// The same ladder with a command of the program's own as its first rung.
    #[must_use]
    pub fn after_command(mut self, command: StopCommand, patience: Duration) -> Self {
        self.rungs.insert(0, StopRung::Run { command, patience });
        self
    }
}

/// Which rung ended the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// It had ended before the first rung.
    Itself,
    /// The polite rung of this index.
    Rung(usize),
    /// The kill.
    Kill,
}

/// What came of a rung that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungOutcome {
    /// The tree ended within its patience.
    Worked,
    /// The tree went on.
    NoEffect,
    /// The command could not be started; the next rung was tried at once.
    NotStarted {
        /// Why.
        reason: String,
    },
}

/// A tree that is gone, verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// What did it.
    pub ended_by: EndedBy,
    /// What came of each polite rung that was tried, in order.
    pub rungs: Vec<RungOutcome>,
    /// From the first rung until the last member was gone.
    pub elapsed: Duration,
    /// How the program ended.
    pub ended: TreeExit,
}

/// What whoever carries out the ladder has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderStep<'ladder> {
    /// Try this rung.
    TryRung(&'ladder StopRung),
    /// Kill every member.
    Kill,
    /// Wait for the tree to end, at most until this long after the start.
    WaitUntil(Duration),
    /// It outlived its kill: report who is left.
    GiveUp,
}

/// The way down a ladder: told how much time has passed, it says what to do. It reads no clock, so
/// that a daemon can carry it out between other things.
#[derive(Clone, Debug)]
pub struct LadderProgress {
    ladder: StopLadder,
    stage: LadderStage,
}

#[derive(Clone, Copy, Debug)]
enum LadderStage {
    NotStarted,
    OnRung { rung: usize, until: Duration },
    Killing { next_kill: Duration, pause: Duration, until: Duration },
}

impl LadderStage {
    fn killing(elapsed: Duration, pause: Duration, until: Duration) -> Self {
        Self::Killing { next_kill: elapsed.saturating_add(pause), pause, until }
    }
}

impl LadderProgress {
    /// At the top.
    #[must_use]
    pub fn new(ladder: StopLadder) -> Self {
        Self { ladder, stage: LadderStage::NotStarted }
    }

    /// What to do, `elapsed` after the start. Call again after doing it, or when the time is there.
    pub fn next_step(&mut self, elapsed: Duration) -> LadderStep<'_> {
        match self.stage {
            LadderStage::NotStarted => self.start_rung(0, elapsed),
            LadderStage::OnRung { until, .. } if elapsed < until => LadderStep::WaitUntil(until),
            LadderStage::OnRung { rung, .. } => self.start_rung(rung + 1, elapsed),
            LadderStage::Killing { until, .. } if elapsed >= until => LadderStep::GiveUp,
            LadderStage::Killing { next_kill: next_strike, pause, until } if elapsed >= next_strike => {
                let pause = pause.saturating_mul(2).min(MAX_KILL_RETRY);
                self.stage = LadderStage::killing(elapsed, pause, until);
                LadderStep::Kill
            }
            LadderStage::Killing { next_kill: next_strike, until, .. } => {
                LadderStep::WaitUntil(next_strike.min(until))
            }
        }
    }

    /// The rung that was to be taken can't be: the next move is the one after it.
    pub fn skip_rung(&mut self) {
        if let LadderStage::OnRung { until, .. } = &mut self.stage {
            *until = Duration::ZERO;
        }
    }

    /// What to credit if the tree is gone now.
    #[must_use]
    pub fn ended_by(&self) -> EndedBy {
        match self.stage {
            LadderStage::NotStarted => EndedBy::Itself,
            LadderStage::OnRung { rung, .. } => EndedBy::Rung(rung),
            LadderStage::Killing { .. } => EndedBy::Kill,
        }
    }

    fn start_rung(&mut self, index: usize, elapsed: Duration) -> LadderStep<'_> {
        let Some(rung) = self.ladder.rungs.get(index) else {
            let until = elapsed.saturating_add(self.ladder.kill_patience);
            self.stage = LadderStage::killing(elapsed, FIRST_KILL_RETRY, until);
            return LadderStep::Kill;
        };
        let (StopRung::Run { patience, .. } | StopRung::Signal { patience, .. }) = rung;
        self.stage = LadderStage::OnRung { rung: index, until: elapsed.saturating_add(*patience) };
        LadderStep::TryRung(rung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn polite_rungs_come_in_order_each_with_its_patience_and_the_kill_is_last() {
        let quit = StopCommand { program: "/bin/quit".into(), args: vec![], env: vec![] };
        let mut ladder = StopLadder::polite(ms(100)).after_command(quit, ms(50));
        ladder.kill_patience = ms(10);
        let rungs = ladder.rungs.clone();
        let mut climb = LadderProgress::new(ladder);
        assert_eq!(climb.ended_by(), EndedBy::Itself);
        assert_eq!(climb.next_step(ms(0)), LadderStep::TryRung(&rungs[0]));
        assert_eq!(climb.next_step(ms(1)), LadderStep::WaitUntil(ms(50)));
        assert_eq!(climb.ended_by(), EndedBy::Rung(0));
        assert_eq!(climb.next_step(ms(50)), LadderStep::TryRung(&rungs[1]));
        assert_eq!(climb.next_step(ms(51)), LadderStep::WaitUntil(ms(150)));
        assert_eq!(climb.ended_by(), EndedBy::Rung(1));
        assert_eq!(climb.next_step(ms(150)), LadderStep::Kill);
        assert_eq!(climb.ended_by(), EndedBy::Kill);
        assert_eq!(climb.next_step(ms(151)), LadderStep::WaitUntil(ms(152)));
        assert_eq!(climb.next_step(ms(152)), LadderStep::Kill);
        assert_eq!(climb.next_step(ms(160)), LadderStep::GiveUp);
    }

    #[test]
    fn a_rung_that_can_not_be_taken_costs_no_patience() {
        let quit = StopCommand { program: "/bin/quit".into(), args: vec![], env: vec![] };
        let mut climb = LadderProgress::new(StopLadder::force().after_command(quit, ms(50)));
        assert!(matches!(climb.next_step(ms(0)), LadderStep::TryRung(_)));
        climb.skip_rung();
        assert_eq!(climb.next_step(ms(1)), LadderStep::Kill);
        climb.skip_rung();
        assert_eq!(climb.next_step(ms(1)), LadderStep::WaitUntil(ms(3)));
    }

    #[test]
    fn strikes_become_rarer_but_never_stop() {
        let mut climb = LadderProgress::new(StopLadder::force());
        let mut strikes = Vec::new();
        for now in (0..600).map(ms) {
            if climb.next_step(now) == LadderStep::Kill {
                strikes.push(now.as_millis());
            }
        }
        assert_eq!(strikes, [0, 2, 6, 14, 30, 62, 126, 226, 326, 426, 526]);
    }

    #[test]
    fn force_kills_at_once_and_patience_without_end_does_not_overflow() {
        assert_eq!(LadderProgress::new(StopLadder::force()).next_step(ms(7)), LadderStep::Kill);
        let mut climb = LadderProgress::new(StopLadder::polite(Duration::MAX));
        assert!(matches!(climb.next_step(ms(5)), LadderStep::TryRung(_)));
        assert_eq!(climb.next_step(ms(6)), LadderStep::WaitUntil(Duration::MAX));
    }
}
