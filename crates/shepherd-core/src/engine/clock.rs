//! What is known of the clock (S4.5): the latest time ever seen, the day that use is charged to, and whether both
//! are to be believed.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_api::AuditKind;
use shepherd_util::{BootInstant, ClockReading};

use super::errors::UnknownModeError;
use super::{CoreEngine, CoreEvent, NextChange, POLICY_ACTOR};
use crate::civil::LocalTime;
use crate::evaluation::EvaluationTime;

/// Less than this between the clocks is how they are read one after the other, not that one was set or the machine slept.
pub const CLOCK_JITTER: Duration = Duration::from_secs(1);

impl CoreEngine {
    /// Takes note of the moment. Every change begins with it.
    pub(super) fn observe(&mut self, now: ClockReading) {
        let before = self.last_seen.replace(now);
        let set = before.is_some_and(|before| wall_clock_was_set(before, now));
        self.clock_changes.needs_recheck |= set || before.is_none();
        self.clock_changes.clock_set |= set;
        self.clock_changes.slept |=
            before.is_some_and(|before| now.mono.suspended_since(before.mono) > CLOCK_JITTER);
        match self.clock_behind(now.wall) {
            None => {
                if self.clock_changes.untrusted {
                    // It has caught up; what it shows is the time again.
                    self.anchor = None;
                }
                let counted = self.effective_time(now);
                self.anchor = Some(ClockReading { wall: counted, mono: now.mono });
                let local = LocalTime::at(self.zone(), counted);
                let day = local.day();
                self.hold_after_zone_change(local.offset, counted);
                let clock = &mut self.snapshot.clock;
                clock.latest_seen = Some(counted);
                clock.seen_at = Some(BootInstant::new(self.environment.boot, now.mono));
                clock.accounting_day = clock.accounting_day.max(Some(day));
                if std::mem::take(&mut self.clock_changes.untrusted) {
                    self.append_audit(now, POLICY_ACTOR, AuditKind::ClockTrusted);
                }
            }
            Some(latest_seen) => {
                if !std::mem::replace(&mut self.clock_changes.untrusted, true) {
                    self.append_audit(now, POLICY_ACTOR, AuditKind::ClockUntrusted { latest_seen });
                }
            }
        }
    }

    /// Another zone can put the wall back as well as a hand can. The night of the time change does so too, but that
    /// is the same zone.
    fn hold_after_zone_change(&mut self, offset: i64, counted: Timestamp) {
        let name = zone_name(self.zone());
        let before = self.snapshot.clock.zone.as_ref();
        if before.is_some_and(|(known, known_offset)| *known == name && *known_offset == offset) {
            return;
        }
        let put_back = before.filter(|(known, known_offset)| *known != name && offset < *known_offset);
        let shows_again = put_back.and_then(|(_, known_offset)| {
            counted.checked_add(SignedDuration::from_secs(known_offset - offset)).ok()
        });
        let zone = Some((name, offset));
        let clock = &mut self.snapshot.clock;
        clock.zone = zone;
        clock.held_until = clock.held_until.max(shows_again);
    }

    /// The latest time ever seen, if the clock is too far behind it.
    pub(super) fn clock_behind(&self, wall: Timestamp) -> Option<Timestamp> {
        if let Some(held) = self.snapshot.clock.held_until.filter(|held| wall < *held) {
            return Some(held);
        }
        let latest = self.snapshot.clock.latest_seen?;
        let behind = latest.duration_since(wall);
        let tolerance = SignedDuration::try_from(self.policy.rules().clock_tolerance).ok()?;
        (behind > tolerance).then_some(latest)
    }

    /// When a clock that goes on as it does will be believed again, if it is not.
    pub(super) fn clock_trusted_at(&self, wall: Timestamp) -> Option<Timestamp> {
        self.clock_behind(wall)?;
        let clock = &self.snapshot.clock;
        let near = clock.latest_seen?.checked_sub(self.policy.rules().clock_tolerance).ok();
        near.max(clock.held_until)
    }

    /// The time that counts: never before the latest that was seen, and within a boot it goes on from there, so that a
    /// clock set back by minutes, which is still believed, opens nothing again (S4.2).
    pub(super) fn effective_time(&self, now: ClockReading) -> Timestamp {
        let seen = match self.anchor {
            Some(anchor) => anchor.wall.saturating_add(now.mono.total_since(anchor.mono)).ok(),
            None => self.snapshot.clock.latest_seen,
        };
        seen.map_or(now.wall, |seen| seen.max(now.wall))
    }

    /// The time by which changes come: the one that counts. A clock that is not believed is itself what is waited for,
    /// and requests are not kept waiting by it.
    pub(super) fn notification_time(&self, now: ClockReading) -> Timestamp {
        if self.clock_behind(now.wall).is_some() { now.wall } else { self.effective_time(now) }
    }

    /// Now: use is charged to the day of the time that counts, but never to one before the latest that was charged.
    pub(super) fn evaluation_time(&self, now: ClockReading) -> EvaluationTime {
        let wall = self.effective_time(now);
        let counted = LocalTime::at(self.zone(), wall).day();
        let day = self.snapshot.clock.accounting_day.map_or(counted, |latest| latest.max(counted));
        EvaluationTime { wall, shown: now.wall, mono: Some(now.mono), day }
    }

    /// A moment that a question is about.
    pub(super) fn evaluation_time_at(&self, at: Timestamp) -> EvaluationTime {
        EvaluationTime { wall: at, shown: at, mono: None, day: LocalTime::at(self.zone(), at).day() }
    }

    /// An administrator says that the clock is right.
    pub fn confirm_clock(&mut self, actor: &str, now: ClockReading) -> Vec<CoreEvent> {
        // What was used until now was used by the clock as it was.
        self.count_usage_until(now);
        let clock = &mut self.snapshot.clock;
        clock.latest_seen = Some(now.wall);
        clock.accounting_day = None;
        clock.held_until = None;
        // What was taken back stays so, also where the clock was ahead.
        for revoked in self.snapshot.grants.iter_mut().filter_map(|grant| grant.revoked_at.as_mut()) {
            *revoked = (*revoked).min(now.wall);
        }
        self.anchor = None;
        self.next_change = NextChange::Unknown;
        self.clock_changes.untrusted = false;
        self.observe(now);
        // What runs is charged to another day, perhaps.
        self.clock_changes.needs_recheck = true;
        self.append_audit(now, actor, AuditKind::ClockTrusted);
        self.save_snapshot();
        vec![CoreEvent::EntryAvailabilityChanged]
    }

    /// The system has another time zone now. A session that runs keeps its plan (S4.3).
    pub fn zone_changed(&mut self, zone: TimeZone, now: ClockReading) -> Vec<CoreEvent> {
        let name = zone_name(&zone);
        // What was used until now was used in the other one.
        self.count_usage_until(now);
        self.environment.zone = zone;
        self.observe(now);
        self.next_change = NextChange::Unknown;
        self.clock_changes.needs_recheck = true;
        self.append_audit(now, POLICY_ACTOR, AuditKind::ZoneChanged { zone: name });
        self.save_snapshot();
        vec![CoreEvent::EntryAvailabilityChanged]
    }

    /// Chooses a mode of the household; `NotRequested` lets the calendar decide again.
    ///
    /// # Errors
    /// When the policy has no such mode.
    pub fn switch_mode(
        &mut self,
        mode: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, UnknownModeError> {
        if let Some(name) = mode.as_ref().filter(|name| !self.policy.rules().modes.names.contains(*name)) {
            return Err(UnknownModeError(name.clone()));
        }
        Ok(self.set_mode(mode, actor, now))
    }

    pub(super) fn set_mode(
        &mut self,
        mode: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        self.observe(now);
        self.snapshot.mode.clone_from(&mode);
        self.next_change = NextChange::Unknown;
        self.append_audit(now, actor, AuditKind::ModeSwitched { mode });
        self.save_snapshot();
        vec![CoreEvent::EntryAvailabilityChanged]
    }
}

/// The name of a zone. One that has none, such as a copied file, is told from others by its winter and its summer.
fn zone_name(zone: &TimeZone) -> String {
    /// The first days of January and July 2026.
    const SEASONS: [Timestamp; 2] =
        [Timestamp::constant(1_767_225_600, 0), Timestamp::constant(1_782_864_000, 0)];
    let offsets = || SEASONS.map(|at| zone.to_offset(at).to_string()).join(" ");
    zone.iana_name().map_or_else(|| format!("unnamed {}", offsets()), str::to_owned)
}

/// Whether the wall clock was set since it was last looked at.
fn wall_clock_was_set(before: ClockReading, now: ClockReading) -> bool {
    let wall = now.wall.duration_since(before.wall);
    let real = SignedDuration::try_from(now.mono.total_since(before.mono)).unwrap_or(wall);
    (wall - real).unsigned_abs() > CLOCK_JITTER
}
