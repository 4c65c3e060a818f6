//! What is known of the clock (S4.5): the latest time ever seen, the day that use is charged to, and whether both
//! are to be believed.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::AuditKind;
use shepherd_util::Now;

/// Less than this between the clocks is how they are read, not that one was set.
const JITTER: Duration = Duration::from_secs(1);

use super::{CoreEngine, CoreEvent, NextChange, POLICY};
use crate::civil::Local;
use crate::judge::Moment;

impl CoreEngine {
    /// Takes note of the moment. Every change begins with it.
    pub(super) fn observe(&mut self, now: Now) {
        let before = self.last_seen.replace(now);
        self.clock_upset |= before.is_none_or(|before| was_set(before, now));
        self.slept |= before.is_some_and(|before| now.mono.suspended_since(before.mono) > JITTER);
        let day = Local::at(self.zone(), now.wall).day();
        match self.clock_behind(now.wall) {
            None => {
                let clock = &mut self.snapshot.clock;
                clock.latest_seen = clock.latest_seen.max(Some(now.wall));
                clock.accounting_day = clock.accounting_day.max(Some(day));
                if std::mem::take(&mut self.clock_reported_untrusted) {
                    self.audit(now, POLICY, AuditKind::ClockTrusted);
                }
            }
            Some(latest_seen) => {
                if !std::mem::replace(&mut self.clock_reported_untrusted, true) {
                    self.audit(now, POLICY, AuditKind::ClockUntrusted { latest_seen });
                }
            }
        }
    }

    /// The latest time ever seen, if the clock is too far behind it.
    pub(super) fn clock_behind(&self, wall: Timestamp) -> Option<Timestamp> {
        let latest = self.snapshot.clock.latest_seen?;
        let behind = latest.duration_since(wall);
        let tolerance = jiff::SignedDuration::try_from(self.policy.rules().clock_tolerance).ok()?;
        (behind > tolerance).then_some(latest)
    }

    /// Now: use is charged to the day that the wall shows, but never to one before the latest that was charged.
    pub(super) fn moment(&self, now: Now) -> Moment {
        let shown = Local::at(self.zone(), now.wall).day();
        let day = self.snapshot.clock.accounting_day.map_or(shown, |latest| latest.max(shown));
        Moment { wall: now.wall, mono: Some(now.mono), day }
    }

    /// A moment that a question is about.
    pub(super) fn other_moment(&self, at: Timestamp) -> Moment {
        Moment { wall: at, mono: None, day: Local::at(self.zone(), at).day() }
    }

    /// An administrator says that the clock is right.
    pub fn confirm_clock(&mut self, actor: &str, now: Now) -> Vec<CoreEvent> {
        let clock = &mut self.snapshot.clock;
        clock.latest_seen = Some(now.wall);
        clock.accounting_day = None;
        self.next_change = NextChange::Unknown;
        self.clock_reported_untrusted = false;
        self.observe(now);
        self.audit(now, actor, AuditKind::ClockTrusted);
        self.save();
        vec![CoreEvent::EntryAvailabilityChanged]
    }

    /// The system has another time zone now. A session that runs keeps its plan (S4.3).
    pub fn zone_changed(&mut self, zone: TimeZone, now: Now) -> Vec<CoreEvent> {
        let name = zone.iana_name().unwrap_or("unnamed").to_owned();
        self.place.zone = zone;
        self.observe(now);
        self.next_change = NextChange::Unknown;
        self.clock_upset = true;
        self.audit(now, POLICY, AuditKind::ZoneChanged { zone: name });
        self.save();
        vec![CoreEvent::EntryAvailabilityChanged]
    }

    /// Chooses a mode of the household; `None` lets the calendar decide again.
    ///
    /// # Errors
    /// With the name, if the policy has no such mode.
    pub fn switch_mode(
        &mut self,
        mode: Option<String>,
        actor: &str,
        now: Now,
    ) -> Result<Vec<CoreEvent>, String> {
        if let Some(name) = mode.as_ref().filter(|name| !self.policy.rules().modes.names.contains(*name)) {
            return Err(name.clone());
        }
        self.observe(now);
        self.snapshot.mode.clone_from(&mode);
        self.next_change = NextChange::Unknown;
        self.audit(now, actor, AuditKind::ModeSwitched { mode });
        self.save();
        Ok(vec![CoreEvent::EntryAvailabilityChanged])
    }
}

/// Whether the wall clock was set since it was last looked at.
fn was_set(before: Now, now: Now) -> bool {
    let wall = now.wall.duration_since(before.wall);
    let real = jiff::SignedDuration::try_from(now.mono.total_since(before.mono)).unwrap_or(wall);
    (wall - real).unsigned_abs() > JITTER
}
