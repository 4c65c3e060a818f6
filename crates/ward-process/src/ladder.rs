//! Stopping, kept as data: polite rungs first, each with its patience, then the kill.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exit::Ended;

/// A way to ask a tree to end, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
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
pub struct Ladder {
    /// Polite rungs, possibly none.
    pub rungs: Vec<Rung>,
    /// How long a killed tree may take to vanish before its survivors are reported.
    pub kill_patience: Duration,
}

/// A killed process can hang in the kernel for as long as a disk or a network file system does.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// Between the first two strikes at a tree that forks while it is being killed; doubled after each.
const STRIKE_AGAIN: Duration = Duration::from_millis(2);

/// Between two strikes at what does not vanish.
const STRIKE_AT_LEAST_EVERY: Duration = Duration::from_millis(100);

impl Ladder {
    /// `SIGTERM` to the whole tree, so much grace, then the kill.
    #[must_use]
    pub fn polite(grace: Duration) -> Self {
        let rung = Rung::Signal { signal: StopSignal::Terminate, patience: grace };
        Self { rungs: vec![rung], kill_patience: KILL_PATIENCE }
    }

    /// The kill at once.
    #[must_use]
    pub fn force() -> Self {
        Self { rungs: Vec::new(), kill_patience: KILL_PATIENCE }
    }

    /// The same ladder with a command of the program's own as its first rung.
    #[must_use]
    pub fn after_command(mut self, command: StopCommand, patience: Duration) -> Self {
        self.rungs.insert(0, Rung::Run { command, patience });
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
pub struct Stopped {
    /// What did it.
    pub ended_by: EndedBy,
    /// What came of each polite rung that was tried, in order.
    pub rungs: Vec<RungOutcome>,
    /// From the first rung until the last member was gone.
    pub elapsed: Duration,
    /// How the program ended.
    pub ended: Ended,
}

/// What whoever carries out the ladder has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move<'ladder> {
    /// Try this rung.
    Take(&'ladder Rung),
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
pub struct Climb {
    ladder: Ladder,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Top,
    On { rung: usize, until: Duration },
    Killing { next_strike: Duration, pause: Duration, until: Duration },
}

impl Stage {
    fn killing(elapsed: Duration, pause: Duration, until: Duration) -> Self {
        Self::Killing { next_strike: elapsed.saturating_add(pause), pause, until }
    }
}

impl Climb {
    /// At the top.
    #[must_use]
    pub fn new(ladder: Ladder) -> Self {
        Self { ladder, stage: Stage::Top }
    }

    /// What to do, `elapsed` after the start. Call again after doing it, or when the time is there.
    pub fn next(&mut self, elapsed: Duration) -> Move<'_> {
        match self.stage {
            Stage::Top => self.step_onto(0, elapsed),
            Stage::On { until, .. } if elapsed < until => Move::WaitUntil(until),
            Stage::On { rung, .. } => self.step_onto(rung + 1, elapsed),
            Stage::Killing { until, .. } if elapsed >= until => Move::GiveUp,
            Stage::Killing { next_strike, pause, until } if elapsed >= next_strike => {
                let pause = pause.saturating_mul(2).min(STRIKE_AT_LEAST_EVERY);
                self.stage = Stage::killing(elapsed, pause, until);
                Move::Kill
            }
            Stage::Killing { next_strike, until, .. } => Move::WaitUntil(next_strike.min(until)),
        }
    }

    /// The rung that was to be taken can't be: the next move is the one after it.
    pub fn skip_rung(&mut self) {
        if let Stage::On { until, .. } = &mut self.stage {
            *until = Duration::ZERO;
        }
    }

    /// What to credit if the tree is gone now.
    #[must_use]
    pub fn ended_by(&self) -> EndedBy {
        match self.stage {
            Stage::Top => EndedBy::Itself,
            Stage::On { rung, .. } => EndedBy::Rung(rung),
            Stage::Killing { .. } => EndedBy::Kill,
        }
    }

    fn step_onto(&mut self, index: usize, elapsed: Duration) -> Move<'_> {
        let Some(rung) = self.ladder.rungs.get(index) else {
            let until = elapsed.saturating_add(self.ladder.kill_patience);
            self.stage = Stage::killing(elapsed, STRIKE_AGAIN, until);
            return Move::Kill;
        };
        let (Rung::Run { patience, .. } | Rung::Signal { patience, .. }) = rung;
        self.stage = Stage::On { rung: index, until: elapsed.saturating_add(*patience) };
        Move::Take(rung)
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
        let mut ladder = Ladder::polite(ms(100)).after_command(quit, ms(50));
        ladder.kill_patience = ms(10);
        let rungs = ladder.rungs.clone();
        let mut climb = Climb::new(ladder);
        assert_eq!(climb.ended_by(), EndedBy::Itself);
        assert_eq!(climb.next(ms(0)), Move::Take(&rungs[0]));
        assert_eq!(climb.next(ms(1)), Move::WaitUntil(ms(50)));
        assert_eq!(climb.ended_by(), EndedBy::Rung(0));
        assert_eq!(climb.next(ms(50)), Move::Take(&rungs[1]));
        assert_eq!(climb.next(ms(51)), Move::WaitUntil(ms(150)));
        assert_eq!(climb.ended_by(), EndedBy::Rung(1));
        assert_eq!(climb.next(ms(150)), Move::Kill);
        assert_eq!(climb.ended_by(), EndedBy::Kill);
        assert_eq!(climb.next(ms(151)), Move::WaitUntil(ms(152)));
        assert_eq!(climb.next(ms(152)), Move::Kill);
        assert_eq!(climb.next(ms(160)), Move::GiveUp);
    }

    #[test]
    fn a_rung_that_can_not_be_taken_costs_no_patience() {
        let quit = StopCommand { program: "/bin/quit".into(), args: vec![], env: vec![] };
        let mut climb = Climb::new(Ladder::force().after_command(quit, ms(50)));
        assert!(matches!(climb.next(ms(0)), Move::Take(_)));
        climb.skip_rung();
        assert_eq!(climb.next(ms(1)), Move::Kill);
        climb.skip_rung();
        assert_eq!(climb.next(ms(1)), Move::WaitUntil(ms(3)));
    }

    #[test]
    fn strikes_become_rarer_but_never_stop() {
        let mut climb = Climb::new(Ladder::force());
        let mut strikes = Vec::new();
        for now in (0..600).map(ms) {
            if climb.next(now) == Move::Kill {
                strikes.push(now.as_millis());
            }
        }
        assert_eq!(strikes, [0, 2, 6, 14, 30, 62, 126, 226, 326, 426, 526]);
    }

    #[test]
    fn force_kills_at_once_and_patience_without_end_does_not_overflow() {
        assert_eq!(Climb::new(Ladder::force()).next(ms(7)), Move::Kill);
        let mut climb = Climb::new(Ladder::polite(Duration::MAX));
        assert!(matches!(climb.next(ms(5)), Move::Take(_)));
        assert_eq!(climb.next(ms(6)), Move::WaitUntil(Duration::MAX));
    }
}
