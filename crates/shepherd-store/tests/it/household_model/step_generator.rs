//! Random steps of a household, and random events while its daemon is dead.

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::{HEARTBEAT_INTERVAL, SessionStage};
use shepherd_store::conformance::household::{HouseholdAction, HouseholdStep};
use shepherd_store::conformance::sample::entry_id;
use shepherd_util::ManualClock;

use super::{HouseholdModel, MAX_POWER_CUT_LOSS, ProgramState, UNBOUNDED_LOSS};

impl HouseholdModel {
    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    fn random_up_to(&mut self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap();
        Duration::from_micros(self.rng.below(micros + 1))
    }

    fn advance(&mut self, length: Duration) {
        self.clock.advance(length);
        if let (ProgramState::Alive, Some(session)) = (self.program, &mut self.session) {
            session.played += length;
        }
    }

    fn shift_wall_clock(&mut self) {
        let minutes = if self.chance(50) { 45 } else { 2_000 };
        let by = SignedDuration::from_mins(i64::try_from(self.rng.below(2 * minutes)).unwrap())
            - SignedDuration::from_mins(i64::try_from(minutes).unwrap());
        self.clock.move_wall(by);
        if let Some(session) = &mut self.session {
            session.wall_clock_moved = true;
        }
    }

    fn end_program(&mut self) {
        if self.program == ProgramState::Alive {
            self.program = ProgramState::Dead { at: self.now().mono };
        }
    }

    /// Returns the next step while the daemon is running.
    pub(crate) fn next_step(&mut self) -> HouseholdStep {
        if self.chance(4) {
            let asleep = self.random_up_to(Duration::from_secs(900));
            self.clock.suspend(asleep);
        }
        if self.chance(3) {
            self.shift_wall_clock();
        }
        if self.heartbeat_due_in().is_some_and(|due| due.is_zero()) {
            return HouseholdStep { now: self.now(), action: HouseholdAction::Pulse };
        }
        let action = match self.record().map(|session| session.stage.clone()) {
            None => self.idle_action(),
            Some(SessionStage::Launching | SessionStage::Withdrawn { .. }) => {
                let wait = self.random_up_to(Duration::from_secs(4));
                self.advance(wait.min(self.heartbeat_due_in().unwrap_or(wait)));
                self.pick_action(&[
                    (80, HouseholdAction::Start),
                    (10, HouseholdAction::FailLaunch),
                    (10, HouseholdAction::Tick),
                ])
            }
            Some(SessionStage::Running { .. }) => {
                self.wait_until_due();
                self.pick_action(&[
                    (86, HouseholdAction::Tick),
                    (7, HouseholdAction::Stop),
                    (7, HouseholdAction::Exit),
                ])
            }
            Some(SessionStage::Expiring { .. }) => {
                self.wait_until_due();
                self.pick_action(&[
                    (60, HouseholdAction::Exit),
                    (30, HouseholdAction::Tick),
                    (10, HouseholdAction::Stop),
                ])
            }
        };
        match action {
            HouseholdAction::Exit => self.end_program(),
            // Two stop requests at the same time would look the same in the log.
            HouseholdAction::Stop => self.advance(Duration::from_millis(1)),
            _ => {}
        }
        HouseholdStep { now: self.now(), action }
    }

    fn idle_action(&mut self) -> HouseholdAction {
        // A denied launch is tried again much later; otherwise the daily quota would deny all further launches.
        let wait = if self.denied && self.chance(30) { 40_000 } else { 30 };
        let wait = self.random_up_to(Duration::from_secs(wait));
        self.advance(wait);
        let now = self.now();
        if !self.engine.get_state(now).clock_trusted && self.chance(50) {
            return HouseholdAction::ConfirmClock;
        }
        let number = self.audit.len() as u64 * 1_000 + self.rng.below(1_000);
        let name = if self.chance(70) { "game" } else { "chess" };
        self.pick_action(&[
            (85, HouseholdAction::Launch { entry_id: entry_id(name), number }),
            (15, HouseholdAction::Tick),
        ])
    }

    /// Lets time pass until something is due, or until a random earlier time.
    fn wait_until_due(&mut self) {
        let now = self.now();
        let wait = self.engine.next_due().map_or(HEARTBEAT_INTERVAL, |due| due.total_since(now.mono));
        let wait = if self.chance(60) { wait } else { self.random_up_to(wait) };
        self.advance(wait.min(self.heartbeat_due_in().unwrap_or(wait)));
    }

    /// Returns the time until the next heartbeat, if there is a session: zero at its launch.
    fn heartbeat_due_in(&self) -> Option<Duration> {
        self.record()?;
        let since = |last| HEARTBEAT_INTERVAL.saturating_sub(self.now().mono.awake_since(last));
        Some(self.last_heartbeat().map_or(Duration::ZERO, since))
    }

    fn pick_action(&mut self, actions: &[(u64, HouseholdAction)]) -> HouseholdAction {
        let mut left = self.rng.below(100);
        for (share, action) in actions {
            match left.checked_sub(*share) {
                Some(rest) => left = rest,
                None => return action.clone(),
            }
        }
        HouseholdAction::Tick
    }

    /// Simulates the time without a daemon, which may have died during this step.
    pub(crate) fn simulate_daemon_death(&mut self, in_flight: Option<&HouseholdStep>) {
        if in_flight.is_some_and(|step| step.action == HouseholdAction::Start) {
            // The program starts only when the daemon releases it, which may have happened.
            let now = self.now().mono;
            if let Some(session) = &mut self.session {
                session.launch_took = now.awake_since(session.launched.mono);
            }
            self.unrecorded = self.chance(50);
            self.program = if self.unrecorded { ProgramState::Alive } else { ProgramState::Dead { at: now } };
        }
        if self.chance(20) && self.simulate_power_cut() {
            return;
        }
        let away = self.random_up_to(Duration::from_secs(12));
        self.advance(away);
        // A program whose start was not stored keeps running: by the contract of the host it can't end unnoticed.
        if self.chance(10) && !self.unrecorded {
            self.end_program();
            let away = self.random_up_to(Duration::from_secs(12));
            self.advance(away);
        }
        if self.chance(12) {
            let asleep = self.random_up_to(Duration::from_secs(900));
            self.clock.suspend(asleep);
        }
        if self.chance(16) {
            self.shift_wall_clock();
        }
    }

    /// Cuts the power some time after the last write. Returns false if the program has run for longer than a heartbeat
    /// interval without a daemon, because no daemon could know about that time.
    fn simulate_power_cut(&mut self) -> bool {
        let ran_until = match self.program {
            ProgramState::None => None,
            ProgramState::Alive => Some(self.now().mono),
            ProgramState::Dead { at } => Some(at),
        };
        if let (Some(ran_until), Some(record)) = (ran_until, self.record()) {
            let unknown = ran_until.awake_since(self.last_heartbeat().unwrap_or(record.charged_to));
            let runs = matches!(record.stage, SessionStage::Running { .. });
            let due = runs && record.ends.is_due(ran_until);
            if self.unrecorded || unknown > HEARTBEAT_INTERVAL || due {
                return false;
            }
            let left = record.ends.remaining(ran_until).filter(|_| runs);
            let more =
                self.random_up_to((HEARTBEAT_INTERVAL - unknown).min(left.unwrap_or(HEARTBEAT_INTERVAL)));
            self.advance(more);
        }
        self.end_program();
        let off = if self.chance(20) { 50_000 } else { 600 };
        let off = self.random_up_to(Duration::from_secs(off));
        self.clock = ManualClock::starting_at(self.now().wall + off);
        self.clock.advance(Duration::from_secs(15));
        self.boot += 1;
        self.counts.reboots += 1;
        if self.chance(16) {
            self.shift_wall_clock();
        }
        true
    }

    /// Returns the first step of a restarted daemon.
    pub(crate) fn recovery_step(&mut self) -> HouseholdStep {
        let now = self.now();
        if self.program == ProgramState::Alive {
            return HouseholdStep { now, action: HouseholdAction::TakeBack };
        }
        let lost = if self.last_heartbeat().is_some() { MAX_POWER_CUT_LOSS } else { UNBOUNDED_LOSS };
        if let Some(session) = &mut self.session {
            session.max_end_overcharge = match self.program {
                _ if session.boot != self.boot => lost,
                ProgramState::Dead { at } => now.mono.awake_since(at),
                ProgramState::None | ProgramState::Alive => Duration::ZERO,
            };
        }
        HouseholdStep { now, action: HouseholdAction::FindGone }
    }
}
