//! Crashes, restarts and reboots. The program may survive a restart of the daemon, but not a reboot.

use std::time::Duration;

use shepherd_core::{DaemonHeartbeat, HEARTBEAT_INTERVAL, SessionLiveness, SessionStage};
use shepherd_util::ManualClock;

use super::reference_model::MAX_LOST;
use super::runner::{HouseholdSimulation, SimulatedHost, SimulatedStore};
use crate::harness::{boot, minutes};

/// Stands for a run without a limit.
const UNLIMITED_RUN: Duration = Duration::from_secs(1 << 40);

/// Long enough for many heartbeats while nothing else happens.
const LONG_SILENCE: Duration = Duration::from_secs(900);

impl HouseholdSimulation {
    pub(super) fn crash(&mut self) {
        if self.rng.percent(20) {
            self.shut_down();
        } else {
            self.kill_between_writes();
        }
        self.counts.recovered += 1;
        if self.rng.percent(35) { self.reboot() } else { self.restart() }
    }

    /// Kills the daemon between two due events, so that the last minutes are not charged and the last event is not
    /// stored.
    fn kill_between_writes(&mut self) {
        let now = self.world.now();
        let most = if self.is_end_requested() {
            // The host kills the program soon.
            Duration::from_secs(4)
        } else {
            *self.rng.pick(&[HEARTBEAT_INTERVAL, LONG_SILENCE])
        };
        let quiet = self.world.engine.next_due().map_or(most, |due| due.total_since(now.mono));
        let most = u64::try_from(quiet.min(most).as_millis()).unwrap();
        let unseen = Duration::from_millis(self.rng.roll(most + 1));
        self.world.advance(unseen);
        if self.rng.percent(30) {
            // The engine sees the time, but nothing is stored or announced.
            let _ = self.world.engine.tick(self.world.now());
        }
    }

    /// Shuts the daemon down properly.
    fn shut_down(&mut self) {
        self.observe_clock();
        let events = self.world.engine.shut_down(self.world.now());
        self.apply_events(&events);
    }

    /// Restores the state before the store broke: revoked grants are valid again, and play of a session that has ended
    /// meanwhile is lost.
    fn roll_back_unwritten(&mut self) {
        let SimulatedStore::Broken { before, .. } = std::mem::replace(&mut self.store, SimulatedStore::Works)
        else {
            return;
        };
        self.model.roll_back_to(&before);
    }

    /// Records today as charged if a session is stored: recovery charges it up to now, even if it ended meanwhile.
    fn record_charged_day(&mut self) {
        let session = self.world.store.sessions.values().next();
        if session.is_some_and(|session| session.stage.host_session_handle().is_some()) {
            self.model.record_day(self.world.now());
        }
    }

    /// Restarts the daemon in the same boot.
    fn restart(&mut self) {
        self.roll_back_unwritten();
        let downtime = self.rng.seconds(600);
        self.world.clock.advance(downtime);
        self.world.crash();
        let now = self.world.now();
        self.model.daemon_restarted(self.world.place.boot, &self.world.store);
        let dies = self.rng.percent(50);
        let liveness = match (&self.host, dies) {
            (SimulatedHost::Idle, _) | (_, true) => SessionLiveness::Gone,
            (SimulatedHost::Launching(id), false) => {
                // The program started at the moment of the crash, at the earliest when it was approved.
                self.host = SimulatedHost::Playing(id.clone());
                let approved = self.model.session.as_ref().unwrap().approved;
                self.model.program_started(approved, now);
                SessionLiveness::Alive { handle: "found".to_owned() }
            }
            (SimulatedHost::Playing(_), false) => SessionLiveness::Alive { handle: "handle".to_owned() },
        };
        self.model.account_until_heartbeat(&self.world.store);
        if liveness == SessionLiveness::Gone {
            // The end of the program is unknown, so all time since the last charge may be charged.
            if let Some(session) = self.world.store.sessions.values().next() {
                let unseen = now.mono.total_since(session.charged_to);
                self.overcharge += unseen;
                self.model.add_overcharge(session, unseen, now);
            }
            self.model.observe(now);
            self.model.program_ended(now, downtime);
            self.host = SimulatedHost::Idle;
        }
        self.observe_clock();
        self.record_charged_day();
        let events = self.world.engine.recover(liveness, now);
        self.apply_events(&events);
    }

    /// Starts another boot. Its monotonic clock starts over, and the wall clock continues. No program survives.
    fn reboot(&mut self) {
        let feared = self.max_reboot_overcharge();
        self.overcharge += feared;
        self.model.account_until_heartbeat(&self.world.store);
        self.model.program_ended(self.world.now(), Duration::ZERO);
        self.roll_back_unwritten();
        self.host = SimulatedHost::Idle;
        let (ended, off) = (self.world.now(), self.rng.seconds(3_600));
        let wall = ended.wall + off;
        self.world.clock = ManualClock::starting_at(wall);
        self.world.clock.advance(minutes(1));
        self.world.clock.set_wall(wall);
        self.model.start_boot(ended, off.saturating_sub(minutes(1)));
        self.world.place.boot = boot(self.model.boot);
        self.world.crash();
        self.model.daemon_restarted(self.world.place.boot, &self.world.store);
        self.observe_clock();
        self.record_charged_day();
        if let Some(session) = self.world.store.sessions.values().next() {
            self.model.add_overcharge(session, feared, self.world.now());
        }
        // The host may be wrong about the program.
        let liveness = if self.rng.percent(10) {
            SessionLiveness::Alive { handle: "handle".to_owned() }
        } else {
            SessionLiveness::Gone
        };
        let events = self.world.engine.recover(liveness, self.world.now());
        if let Some(session) = self.world.engine.sessions().only() {
            self.host = SimulatedHost::Playing(session.session_id.clone());
        }
        self.apply_events(&events);
    }

    /// Returns the time that may be overcharged after a reboot. Sometimes also damages the heartbeat.
    fn max_reboot_overcharge(&mut self) -> Duration {
        let Some(session) = self.world.store.sessions.values().next() else { return Duration::ZERO };
        let at = self.world.now();
        let mut feared = MAX_LOST;
        if session.stage == SessionStage::Launching {
            // The program may have started right after the launch.
            feared += at.mono.total_since(session.started);
        }
        let left = session.ends.remaining(session.charged_to);
        // Without a heartbeat, an end and a trusted clock, nothing shows how long the program ran.
        let is_measurable = left.is_some() || !self.model.is_clock_behind(at);
        if self.rng.percent(20) && is_measurable {
            self.world.store.heartbeat =
                self.rng.random_option(50, |_| DaemonHeartbeat { boot: boot(77), at });
            feared += left.unwrap_or(UNLIMITED_RUN).max(session.stop_grace);
        }
        feared
    }
}
