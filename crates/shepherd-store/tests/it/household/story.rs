//! What happens next, by the dice: in the life of the household, and while its daemon is dead.

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::{PULSE, Stage};
use shepherd_store::conformance::life::{Deed, Step};
use shepherd_store::conformance::sample::entry_id;
use shepherd_util::ManualClock;

use super::{ALL, LOST, Program, World};

impl World {
    fn chance(&mut self, percent: u64) -> bool {
        self.dice.below(100) < percent
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap();
        Duration::from_micros(self.dice.below(micros + 1))
    }

    fn pass(&mut self, length: Duration) {
        self.clock.advance(length);
        if let (Program::Alive, Some(session)) = (self.program, &mut self.session) {
            session.played += length;
        }
    }

    fn move_wall(&mut self) {
        let minutes = if self.chance(50) { 45 } else { 2_000 };
        let by = SignedDuration::from_mins(i64::try_from(self.dice.below(2 * minutes)).unwrap())
            - SignedDuration::from_mins(i64::try_from(minutes).unwrap());
        self.clock.move_wall(by);
        if let Some(session) = &mut self.session {
            session.moved = true;
        }
    }

    fn end_program(&mut self) {
        if self.program == Program::Alive {
            self.program = Program::Dead { at: self.now().mono };
        }
    }

    /// What happens next while the daemon is up.
    pub(crate) fn next_step(&mut self) -> Step {
        if self.chance(4) {
            let asleep = self.up_to(Duration::from_secs(900));
            self.clock.suspend(asleep);
        }
        if self.chance(3) {
            self.move_wall();
        }
        if self.pulse_due().is_some_and(|due| due.is_zero()) {
            return Step { now: self.now(), deed: Deed::Pulse };
        }
        let deed = match self.record().map(|session| session.stage.clone()) {
            None => self.idle(),
            Some(Stage::Launching | Stage::Withdrawn { .. }) => {
                let wait = self.up_to(Duration::from_secs(4));
                self.pass(wait.min(self.pulse_due().unwrap_or(wait)));
                self.pick(&[(80, Deed::Start), (10, Deed::FailLaunch), (10, Deed::Tick)])
            }
            Some(Stage::Running { .. }) => {
                self.wait_until_due();
                self.pick(&[(86, Deed::Tick), (7, Deed::Stop), (7, Deed::Exit)])
            }
            Some(Stage::Expiring { .. }) => {
                self.wait_until_due();
                self.pick(&[(60, Deed::Exit), (30, Deed::Tick), (10, Deed::Stop)])
            }
        };
        match deed {
            Deed::Exit => self.end_program(),
            // Whoever asks twice takes a moment, or the log would not show which of the two it has.
            Deed::Stop => self.pass(Duration::from_millis(1)),
            _ => {}
        }
        Step { now: self.now(), deed }
    }

    fn idle(&mut self) -> Deed {
        // What was denied is tried again much later, or the day's quotas would end the story.
        let wait = if self.denied && self.chance(30) { 40_000 } else { 30 };
        let wait = self.up_to(Duration::from_secs(wait));
        self.pass(wait);
        let now = self.now();
        if !self.engine.get_state(now).clock_trusted && self.chance(50) {
            return Deed::ConfirmClock;
        }
        let number = self.audit.len() as u64 * 1_000 + self.dice.below(1_000);
        let name = if self.chance(70) { "game" } else { "chess" };
        self.pick(&[(85, Deed::Launch { entry_id: entry_id(name), number }), (15, Deed::Tick)])
    }

    /// The daemon sleeps until something is due, unless somebody comes before.
    fn wait_until_due(&mut self) {
        let now = self.now();
        let wait = self.engine.next_due().map_or(PULSE, |due| due.total_since(now.mono));
        let wait = if self.chance(60) { wait } else { self.up_to(wait) };
        self.pass(wait.min(self.pulse_due().unwrap_or(wait)));
    }

    /// How long it is until the next sign of life, if there is a session: nothing at its launch.
    fn pulse_due(&self) -> Option<Duration> {
        self.record()?;
        let since = |last| PULSE.saturating_sub(self.now().mono.awake_since(last));
        Some(self.pulse().map_or(Duration::ZERO, since))
    }

    fn pick(&mut self, deeds: &[(u64, Deed)]) -> Deed {
        let mut left = self.dice.below(100);
        for (share, deed) in deeds {
            match left.checked_sub(*share) {
                Some(rest) => left = rest,
                None => return deed.clone(),
            }
        }
        Deed::Tick
    }

    /// The daemon has died, perhaps in the middle of this step: what the world does meanwhile.
    pub(crate) fn daemon_died(&mut self, in_flight: Option<&Step>) {
        if in_flight.is_some_and(|step| step.deed == Deed::Start) {
            // The program waits for a word of the daemon before it does anything, and that may have been said.
            let now = self.now().mono;
            if let Some(session) = &mut self.session {
                session.launch_took = now.awake_since(session.launched.mono);
            }
            self.unrecorded = self.chance(50);
            self.program = if self.unrecorded { Program::Alive } else { Program::Dead { at: now } };
        }
        if self.chance(20) && self.power_cut() {
            return;
        }
        let away = self.up_to(Duration::from_secs(12));
        self.pass(away);
        // One that nobody knows of yet stays: by the host's promise it can't have run and gone before it is known.
        if self.chance(10) && !self.unrecorded {
            self.end_program();
            let away = self.up_to(Duration::from_secs(12));
            self.pass(away);
        }
        if self.chance(12) {
            let asleep = self.up_to(Duration::from_secs(900));
            self.clock.suspend(asleep);
        }
        if self.chance(16) {
            self.move_wall();
        }
    }

    /// The machine loses power, some time after the daemon last wrote. A program that went on for longer without any
    /// daemon than it is between two signs of life is not meant here: nobody could know of it.
    fn power_cut(&mut self) -> bool {
        let ran_until = match self.program {
            Program::None => None,
            Program::Alive => Some(self.now().mono),
            Program::Dead { at } => Some(at),
        };
        if let (Some(ran_until), Some(record)) = (ran_until, self.record()) {
            let unknown = ran_until.awake_since(self.pulse().unwrap_or(record.charged_to));
            let runs = matches!(record.stage, Stage::Running { .. });
            let due = runs && record.ends.is_due(ran_until);
            if self.unrecorded || unknown > PULSE || due {
                return false;
            }
            let left = record.ends.remaining(ran_until).filter(|_| runs);
            let more = self.up_to((PULSE - unknown).min(left.unwrap_or(PULSE)));
            self.pass(more);
        }
        self.end_program();
        let off = if self.chance(20) { 50_000 } else { 600 };
        let off = self.up_to(Duration::from_secs(off));
        self.clock = ManualClock::starting_at(self.now().wall + off);
        self.clock.advance(Duration::from_secs(15));
        self.boot += 1;
        self.tally.reboots += 1;
        if self.chance(16) {
            self.move_wall();
        }
        true
    }

    /// A daemon is there again: the first thing that it is told.
    pub(crate) fn recovery(&mut self) -> Step {
        let now = self.now();
        if self.program == Program::Alive {
            return Step { now, deed: Deed::TakeBack };
        }
        let lost = if self.pulse().is_some() { LOST } else { ALL };
        if let Some(session) = &mut self.session {
            session.doubt_of_end = match self.program {
                _ if session.boot != self.boot => lost,
                Program::Dead { at } => now.mono.awake_since(at),
                Program::None | Program::Alive => Duration::ZERO,
            };
        }
        Step { now, deed: Deed::FindGone }
    }
}
