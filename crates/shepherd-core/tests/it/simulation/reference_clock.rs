//! The trusted time (S4.5), calculated from the clocks alone and not from the engine.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_core::policy::Day;
use shepherd_core::{ClockRecord, DaemonHeartbeat};
use shepherd_util::{BootId, ClockReading, MonotonicInstant};

#[derive(Clone, Debug, Default)]
pub(super) struct ReferenceClock {
    /// The stored record of the clock.
    known: ClockRecord,
    /// A trusted time and the uptime at that moment. The trusted time runs on from there.
    going_from: Option<(Timestamp, Duration)>,
    was_behind: bool,
}

impl ReferenceClock {
    /// Creates the clock of a restarted daemon, which knows only the stored record.
    pub(super) fn from_record(known: ClockRecord, boot: BootId) -> Self {
        let seen_at = known.seen_at.and_then(|seen| seen.during(boot));
        let going_from = known.latest_seen.zip(seen_at.map(MonotonicInstant::total));
        Self { known, going_from, was_behind: false }
    }

    /// Applies the last heartbeat of an earlier daemon, which shows the clock at that time. A heartbeat that is older
    /// than the record is ignored.
    pub(super) fn observe_heartbeat(
        &mut self,
        heartbeat: DaemonHeartbeat,
        zone: &TimeZone,
        tolerance: Duration,
    ) {
        let up = self
            .known
            .seen_at
            .and_then(|seen_at| seen_at.during(heartbeat.boot))
            .map(MonotonicInstant::total);
        self.going_from = self.known.latest_seen.zip(up);
        if up.is_none_or(|up| up <= heartbeat.at.mono.total()) {
            self.observe(heartbeat.at, zone, tolerance);
        }
    }

    /// Forgets the uptime, because it says nothing in another boot.
    pub(super) fn forget_uptime(&mut self) {
        self.going_from = None;
    }

    pub(super) fn observe(&mut self, now: ClockReading, zone: &TimeZone, tolerance: Duration) {
        if self.is_behind(now, tolerance) {
            self.was_behind = true;
            return;
        }
        if std::mem::take(&mut self.was_behind) {
            self.going_from = None;
        }
        let time = self.time(now);
        self.going_from = Some((time, now.mono.total()));
        self.known.latest_seen = self.known.latest_seen.max(Some(time));
        self.known.accounting_day = Some(self.day(now, zone));
    }

    pub(super) fn is_behind(&self, now: ClockReading, tolerance: Duration) -> bool {
        let tolerance = SignedDuration::try_from(tolerance).unwrap();
        self.known.latest_seen.is_some_and(|latest| latest.duration_since(now.wall) > tolerance)
    }

    pub(super) fn time(&self, now: ClockReading) -> Timestamp {
        let seen = match self.going_from {
            Some((time, up)) => Some(time + now.mono.total().saturating_sub(up)),
            None => self.known.latest_seen,
        };
        seen.map_or(now.wall, |seen| seen.max(now.wall))
    }

    pub(super) fn day(&self, now: ClockReading, zone: &TimeZone) -> Day {
        let day = day_of(self.time(now), zone);
        self.known.accounting_day.map_or(day, |latest| latest.max(day))
    }

    /// Records that play was charged to a day, so that no earlier day is charged again.
    pub(super) fn record_day(&mut self, day: Day) {
        self.known.accounting_day = self.known.accounting_day.max(Some(day));
    }

    /// Records that a parent confirmed the clock.
    pub(super) fn confirm(&mut self, now: ClockReading) {
        self.known.latest_seen = Some(now.wall);
        self.known.accounting_day = None;
        self.going_from = None;
        self.was_behind = false;
    }
}

pub(super) fn day_of(at: Timestamp, zone: &TimeZone) -> Day {
    Day::from_date(zone.to_datetime(at).date())
}
