//! The clock (S4.5): the latest time ever seen, the day that usage is charged to, and whether the wall clock is
//! trusted.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_api::AuditKind;
use shepherd_util::{BootInstant, ClockReading};

use super::errors::UnknownModeError;
use super::{CoreEngine, CoreEvent, Effects, EngineReply, NextChange, POLICY_ACTOR, ProvisionalGrant};
use crate::civil::LocalTime;
use crate::evaluation::EvaluationTime;
use crate::policy::ModeName;
use crate::state::{PauseEnd, StoreWrite};

/// A difference between the clocks up to this size comes from reading one after the other. A larger one means that the
/// wall clock was set or the machine was suspended.
pub const CLOCK_JITTER: Duration = Duration::from_secs(1);

/// The actor in the audit log when the system's time synchronisation makes the clock trusted again.
const TIME_SYNC_ACTOR: &str = "time synchronisation";

impl CoreEngine {
    /// Observes the moment. Every change begins with this.
    pub(super) fn observe(&mut self, now: ClockReading) {
        let before = self.last_seen.replace(now);
        let set = before.is_some_and(|before| wall_clock_was_set(before, now));
        if set || before.is_none() {
            self.recheck_plans();
        }
        self.clock_changes.clock_set |= set;
        self.clock_changes.slept |=
            before.is_some_and(|before| now.mono.suspended_since(before.mono) > CLOCK_JITTER);
        match self.clock_behind(now.wall) {
            None => {
                if self.clock_changes.untrusted {
                    // The clock has caught up, so it shows the real time again.
                    self.anchor = None;
                }
                let effective = self.effective_time(now);
                self.anchor = Some(ClockReading { wall: effective, mono: now.mono });
                let day = LocalTime::at(self.zone(), effective).day();
                let clock = &mut self.snapshot.clock;
                clock.latest_seen = Some(effective);
                clock.seen_at = Some(BootInstant::new(self.environment.boot, now.mono));
                clock.accounting_day = clock.accounting_day.max(Some(day));
                self.charge_use_since_correction_again(day);
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

    /// Lets the next tick check the plan of every session against the quotas.
    fn recheck_plans(&mut self) {
        self.unchecked_plans.extend(self.sessions.iter().map(|session| session.session_id.clone()));
    }

    /// Returns the latest time ever seen, if the clock is too far behind it. Both are instants, so that a journey to
    /// another time zone is no reason to doubt the clock.
    pub(super) fn clock_behind(&self, wall: Timestamp) -> Option<Timestamp> {
        let latest = self.snapshot.clock.latest_seen?;
        let behind = latest.duration_since(wall);
        let tolerance = SignedDuration::try_from(self.policy.rules().clock_tolerance).ok()?;
        (behind > tolerance).then_some(latest)
    }

    /// Returns the time that an untrusted clock has to reach to be trusted again.
    pub(super) fn clock_trusted_at(&self, wall: Timestamp) -> Option<Timestamp> {
        let latest = self.clock_behind(wall)?;
        latest.checked_sub(self.policy.rules().clock_tolerance).ok()
    }

    /// Returns the effective time. It is never earlier than the latest time seen, and within a boot it continues from
    /// there, so that setting the clock back by a few minutes, which is tolerated, opens nothing again (S4.2).
    pub(super) fn effective_time(&self, now: ClockReading) -> Timestamp {
        let seen = match self.anchor {
            Some(anchor) => anchor.wall.saturating_add(now.mono.total_since(anchor.mono)).ok(),
            None => self.snapshot.clock.latest_seen,
        };
        seen.map_or(now.wall, |seen| seen.max(now.wall))
    }

    /// Returns the time that scheduled changes are compared with. This is the effective time if the clock is
    /// trusted. For an untrusted clock it is the clock's own reading, because the next change is that the clock catches
    /// up, and requests still lapse.
    pub(super) fn notification_time(&self, now: ClockReading) -> Timestamp {
        if self.clock_behind(now.wall).is_some() { now.wall } else { self.effective_time(now) }
    }

    /// Returns the present as rules see it. Usage is charged to the day of the effective time, but never to a day
    /// before the latest one that was charged.
    pub(super) fn evaluation_time(&self, now: ClockReading) -> EvaluationTime {
        let wall = self.effective_time(now);
        let today = LocalTime::at(self.zone(), wall).day();
        let day = self.snapshot.clock.accounting_day.map_or(today, |latest| latest.max(today));
        EvaluationTime { wall, shown: now.wall, mono: Some(now.mono), day }
    }

    /// Returns another moment as rules see it, for questions about it.
    pub(super) fn evaluation_time_at(&self, at: Timestamp) -> EvaluationTime {
        EvaluationTime { wall: at, shown: at, mono: None, day: LocalTime::at(self.zone(), at).day() }
    }

    /// Trusts the clock again, because an administrator says that it is right.
    pub fn confirm_clock(&mut self, actor: &str, now: ClockReading) -> Effects {
        self.trust_clock(actor, now);
        self.take_effects()
    }

    /// Handles the report that the system's time synchronisation keeps the clock right. The clock is then trusted like a
    /// confirmed one. A time source that falls behind its own earlier time, or behind the time that has passed since, isn't
    /// trusted: an attacker who answers in its place could otherwise bring back hours and days that are over.
    pub fn clock_synchronised(&mut self, now: ClockReading) -> Effects {
        if self.store_trouble.is_some() {
            // Trust has to be recorded.
            return Effects::default();
        }
        let tolerance = self.policy.rules().clock_tolerance;
        let boot = self.environment.boot;
        let clock = &mut self.snapshot.clock;
        let since = clock.synchronised_at.and_then(|at| at.during(boot));
        let passed = since.map_or(Duration::ZERO, |since| now.mono.total_since(since));
        let expected = clock.synchronised.and_then(|time| time.checked_add(passed).ok());
        let earliest = expected.and_then(|expected| expected.checked_sub(tolerance).ok());
        if earliest.is_some_and(|earliest| now.wall < earliest) {
            return Effects::default();
        }
        // A time within the tolerance doesn't replace a later one, or small steps back would add up.
        if expected.is_none_or(|expected| now.wall >= expected) {
            clock.synchronised = Some(now.wall);
            clock.synchronised_at = Some(BootInstant::new(boot, now.mono));
        }
        if self.clock_behind(now.wall).is_none() {
            return Effects::default();
        }
        self.trust_clock(TIME_SYNC_ACTOR, now);
        self.take_effects()
    }

    /// Returns whether the clock is trusted.
    #[must_use]
    pub fn is_clock_trusted(&self, now: ClockReading) -> bool {
        self.clock_behind(now.wall).is_none()
    }

    fn trust_clock(&mut self, actor: &str, now: ClockReading) {
        let before = Box::new(self.snapshot.clock.clone());
        self.effects.grant_provisionally(ProvisionalGrant::Clock { before });
        // Usage until now is charged by the clock as it was.
        self.count_usage_until(now);
        self.correct_to_earlier_day(now);
        self.correct_pause_ends(now);
        let clock = &mut self.snapshot.clock;
        clock.latest_seen = Some(now.wall);
        clock.accounting_day = None;
        // A revoked grant stays revoked, even if the clock was ahead when it was revoked.
        for revoked in self.snapshot.grants.iter_mut().filter_map(|grant| grant.revoked_at.as_mut()) {
            *revoked = (*revoked).min(now.wall);
        }
        self.anchor = None;
        self.next_change = NextChange::Unknown;
        self.clock_changes.untrusted = false;
        self.observe(now);
        // The session may be charged to another day from now on.
        self.recheck_plans();
        self.append_audit(now, actor, AuditKind::ClockTrusted);
        self.save_snapshot();
        self.announce(CoreEvent::EntryAvailabilityChanged);
    }

    /// Ends pauses that were recorded while the clock was ahead at the right time. After a reboot they would otherwise last
    /// until the clock shows that time again. The rest of a pause that began in this boot is known. A pause of an earlier
    /// boot ends no later than a pause that begins now.
    fn correct_pause_ends(&mut self, now: ClockReading) {
        let boot = self.environment.boot;
        let latest_end = |until: PauseEnd, length: Duration| {
            let left = until.boot.during(boot).map_or(length, |end| end.total_since(now.mono));
            until.wall.min(now.wall.checked_add(left).unwrap_or(Timestamp::MAX))
        };
        if let Some(rule) = self.policy.rules().breaks {
            for streak in self.snapshot.streaks.values_mut() {
                streak.rested.wall = latest_end(streak.rested, rule.length);
            }
        }
        for ((profile, entry_id), until) in &mut self.cooldowns {
            let entry = self.policy.entry(entry_id);
            let length = entry.map_or(Duration::ZERO, |entry| entry.limits.cooldown_after_run);
            let wall = latest_end(*until, length);
            if until.wall != wall {
                until.wall = wall;
                self.effects.writes.push(StoreWrite::SetCooldown {
                    profile: profile.clone(),
                    entry_id: entry_id.clone(),
                    until: *until,
                });
            }
        }
    }

    /// Switches to another system time zone. A running session keeps its plan (S4.3).
    pub fn zone_changed(&mut self, zone: TimeZone, now: ClockReading) -> Effects {
        let name = zone_name(&zone);
        // Usage until now is charged in the former zone.
        self.count_usage_until(now);
        self.environment.zone = zone;
        self.observe(now);
        self.next_change = NextChange::Unknown;
        self.recheck_plans();
        self.append_audit(now, POLICY_ACTOR, AuditKind::ZoneChanged { zone: name });
        self.save_snapshot();
        self.announce(CoreEvent::EntryAvailabilityChanged);
        self.take_effects()
    }

    /// Switches the household's mode; `None` lets the calendar decide again. The answer is the mode that applies now,
    /// or an error if the policy has no such mode.
    pub fn switch_mode(
        &mut self,
        mode: Option<ModeName>,
        actor: &str,
        now: ClockReading,
    ) -> EngineReply<Result<ModeName, UnknownModeError>> {
        if let Some(name) = mode.as_ref().filter(|name| !self.policy.rules().modes.names.contains(*name)) {
            let known = self.policy.rules().modes.names.iter().cloned().collect();
            let unknown = UnknownModeError { mode: name.clone(), known };
            return self.answer(Err(unknown));
        }
        let before = self.snapshot.mode.clone();
        self.effects.grant_provisionally(ProvisionalGrant::Mode { before });
        self.set_mode(mode, actor, now);
        let applies = self.mode(now).to_owned();
        self.answer(Ok(applies))
    }

    pub(super) fn set_mode(&mut self, mode: Option<ModeName>, actor: &str, now: ClockReading) {
        self.observe(now);
        self.snapshot.mode.clone_from(&mode);
        self.next_change = NextChange::Unknown;
        self.append_audit(now, actor, AuditKind::ModeSwitched { mode });
        self.save_snapshot();
        self.announce(CoreEvent::EntryAvailabilityChanged);
    }
}

/// Returns the name of a zone. A zone without a name, such as a copied file, is identified by its winter and summer
/// offsets.
fn zone_name(zone: &TimeZone) -> String {
    /// 1 January and 1 July 2026.
    const SEASONS: [Timestamp; 2] =
        [Timestamp::constant(1_767_225_600, 0), Timestamp::constant(1_782_864_000, 0)];
    let offsets = || SEASONS.map(|at| zone.to_offset(at).to_string()).join(" ");
    zone.iana_name().map_or_else(|| format!("unnamed {}", offsets()), str::to_owned)
}

/// Returns whether the wall clock was set since the last reading.
fn wall_clock_was_set(before: ClockReading, now: ClockReading) -> bool {
    let wall = now.wall.duration_since(before.wall);
    let real = SignedDuration::try_from(now.mono.total_since(before.mono)).unwrap_or(wall);
    (wall - real).unsigned_abs() > CLOCK_JITTER
}
