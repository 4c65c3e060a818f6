//! The daemon is gone for a while. The program is not, or it is; and the machine may have gone with it.

use std::time::Duration;

use shepherd_core::{PULSE, Pulse, SessionFate, Stage};
use shepherd_util::ManualClock;

use super::life::{Host, Life, Store};
use super::truth::LOST;
use crate::harness::{boot, minutes};

/// What may have gone on without end.
const FOR_EVER: Duration = Duration::from_secs(1 << 40);

/// Long enough for many signs of life in which nothing else happens.
const LONG: Duration = Duration::from_secs(900);

impl Life {
    pub(super) fn crash(&mut self) {
        if self.dice.percent(20) {
            self.shut_down();
        } else {
            self.die_between();
        }
        self.tally.recovered += 1;
        if self.dice.percent(35) { self.reboot() } else { self.restart() }
    }

    /// Killed between two things that are due: nobody has charged the last minutes, or written down the last thing.
    fn die_between(&mut self) {
        let now = self.world.now();
        let most = if self.is_told_to_end() {
            // The host makes an end of what resists.
            Duration::from_secs(4)
        } else {
            *self.dice.pick(&[PULSE, LONG])
        };
        let quiet = self.world.engine.next_due().map_or(most, |due| due.total_since(now.mono));
        let most = u64::try_from(quiet.min(most).as_millis()).unwrap();
        let unseen = Duration::from_millis(self.dice.roll(most + 1));
        self.world.advance(unseen);
        if self.dice.percent(30) {
            // It saw the time, but never wrote it down or said anything.
            let _ = self.world.engine.tick(self.world.now());
        }
    }

    /// In order.
    fn shut_down(&mut self) {
        self.look();
        let events = self.world.engine.shut_down(self.world.now());
        self.carry_out(&events);
    }

    /// What was not written down is not known any more: what was revoked holds again, and what was played by a session
    /// that is over, too, was played for nothing.
    fn forget(&mut self) {
        let Store::Broken { before, .. } = std::mem::replace(&mut self.store, Store::Works) else { return };
        self.truth.fall_back_to(&before);
    }

    /// A session on record is charged up to now, even if it ended while nothing could be written down.
    fn enter_what_is_on_record(&mut self) {
        let session = self.world.store.snapshot.session.as_ref();
        if session.is_some_and(|session| session.stage.host_session_handle().is_some()) {
            self.truth.enter_day(self.world.now());
        }
    }

    /// The same boot: the clock went on.
    fn restart(&mut self) {
        self.forget();
        let downtime = self.dice.seconds(600);
        self.world.clock.advance(downtime);
        self.world.crash();
        let now = self.world.now();
        self.truth.come_back(self.world.place.boot, &self.world.store);
        let dies = self.dice.percent(50);
        let fate = match (&self.host, dies) {
            (Host::Idle, _) | (_, true) => SessionFate::Gone,
            (Host::Launching(id), false) => {
                // It came up in the very moment of the crash, at the earliest when it was approved.
                self.host = Host::Playing(id.clone());
                let approved = self.truth.play.as_ref().unwrap().approved;
                self.truth.start(approved, now);
                SessionFate::Alive { handle: "found".to_owned() }
            }
            (Host::Playing(_), false) => SessionFate::Alive { handle: "handle".to_owned() },
        };
        self.truth.see(&self.world.store);
        if fate == SessionFate::Gone {
            // Nobody knows when it ended, so all the time since it was last charged is.
            if let Some(session) = &self.world.store.snapshot.session {
                let unseen = now.mono.total_since(session.charged_to);
                self.overcharge += unseen;
                self.truth.pay(session, unseen, now);
            }
            self.truth.observe(now);
            self.truth.stop(now, downtime);
            self.host = Host::Idle;
        }
        self.look();
        self.enter_what_is_on_record();
        let events = self.world.engine.recover(fate, now);
        self.carry_out(&events);
    }

    /// Another boot: its clock starts over, and the wall clock goes on. No program outlives a boot.
    fn reboot(&mut self) {
        let feared = self.fear_the_charge();
        self.overcharge += feared;
        self.truth.see(&self.world.store);
        self.truth.stop(self.world.now(), Duration::ZERO);
        self.forget();
        self.host = Host::Idle;
        let (ended, off) = (self.world.now(), self.dice.seconds(3_600));
        let wall = ended.wall + off;
        self.world.clock = ManualClock::starting_at(wall);
        self.world.clock.advance(minutes(1));
        self.world.clock.set_wall(wall);
        self.truth.boot(ended, off.saturating_sub(minutes(1)));
        self.world.place.boot = boot(self.truth.boot);
        self.world.crash();
        self.truth.come_back(self.world.place.boot, &self.world.store);
        self.look();
        self.enter_what_is_on_record();
        if let Some(session) = &self.world.store.snapshot.session {
            self.truth.pay(session, feared, self.world.now());
        }
        // Whatever the host believes.
        let fate = if self.dice.percent(10) {
            SessionFate::Alive { handle: "handle".to_owned() }
        } else {
            SessionFate::Gone
        };
        let events = self.world.engine.recover(fate, self.world.now());
        if let Some(session) = &self.world.engine.snapshot().session {
            self.host = Host::Playing(session.session_id.clone());
        }
        self.carry_out(&events);
    }

    /// How much more than it was played a session may cost after a reboot. Some signs of life don't outlive it.
    fn fear_the_charge(&mut self) -> Duration {
        let Some(session) = &self.world.store.snapshot.session else { return Duration::ZERO };
        let at = self.world.now();
        let mut feared = LOST;
        if session.stage == Stage::Launching {
            // If it is said to have come up, it may have done so at once.
            feared += at.mono.total_since(session.started);
        }
        if self.dice.percent(20) {
            self.world.store.pulse = self.dice.maybe(50, |_| Pulse { boot: boot(77), at });
            let left = session.ends.remaining(session.charged_to).unwrap_or(FOR_EVER);
            feared += left.max(session.stop_grace);
        }
        feared
    }
}
