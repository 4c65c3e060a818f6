//! The schedule: when the next tick is due, and when other entries become available by themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_util::{ClockReading, MonotonicInstant};

use super::{CoreEngine, CoreEvent, NextChange};
use crate::hours::{BedtimeState, OpenState};
use crate::session::{SessionRecord, SessionStage};

impl CoreEngine {
    /// Returns the moment at which the next tick is due if the machine stays awake. The daemon sleeps until then
    /// (S4.7).
    #[must_use]
    pub fn next_due(&self) -> Option<MonotonicInstant> {
        let now = self.last_seen?;
        let wait = self
            .sessions
            .iter()
            .filter_map(|session| self.session_due(session, now))
            .chain(self.availability_change_due(now))
            .min()?;
        Some(now.mono.after(wait))
    }

    fn session_due(&self, session: &SessionRecord, now: ClockReading) -> Option<Duration> {
        let since = |at: MonotonicInstant, length: Duration| length.saturating_sub(now.mono.total_since(at));
        match session.stage {
            SessionStage::Launching | SessionStage::Withdrawn { .. } => {
                Some(since(session.started, self.policy.rules().launch_timeout))
            }
            // The program was asked to end, and the host reports its exit.
            SessionStage::Expiring { .. } => None,
            SessionStage::Running { .. } => {
                let end = session.ends.time_to_end(now.mono)?;
                let warnings = session.warnings.iter().filter(|warning| warning.armed);
                let warning = warnings.map(|warning| end.saturating_sub(warning.before)).min();
                Some(warning.map_or(end, |warning| warning.min(end)))
            }
        }
    }

    fn availability_change_due(&self, now: ClockReading) -> Option<Duration> {
        match self.next_change {
            NextChange::Unknown => Some(Duration::ZERO),
            NextChange::Known(at) => {
                Some(Duration::try_from(at?.duration_since(self.notification_time(now))).unwrap_or_default())
            }
        }
    }

    /// Announces that other entries can be launched because a window, a bedtime, a pause, a day, a grant or a request ended or
    /// began. The snapshot is saved with it, so that a clock that is set back later is noticed.
    pub(super) fn announce_changes(&mut self, now: ClockReading) {
        match self.next_change {
            NextChange::Known(None) => return,
            NextChange::Known(Some(at)) if at > self.notification_time(now) => return,
            NextChange::Known(Some(_)) => {
                self.announce(CoreEvent::EntryAvailabilityChanged);
                self.save_snapshot();
            }
            NextChange::Unknown => {}
        }
        self.next_change = NextChange::Known(self.find_next_change(now));
    }

    fn find_next_change(&self, now: ClockReading) -> Option<jiff::Timestamp> {
        let from = self.notification_time(now);
        let requests = self.snapshot.requests.iter().filter(|request| request.state.is_open());
        let requests = requests.map(|request| request.lapses_at);
        if let Some(trust) = self.clock_trusted_at(now.wall) {
            // Nothing opens or closes while the clock is untrusted.
            return requests.chain([trust]).filter(|change| *change > from).min();
        }
        let at = self.evaluation_time(now);
        let facts = self.evaluation_context(at);
        // Entries with the same hours share one search.
        let groups = self.policy.hours_groups().iter().zip(self.policy.entries());
        let one_of_each: BTreeMap<_, _> = groups.collect();
        let hours =
            one_of_each.values().filter_map(|entry| match facts.opening_hours(entry).open_state_at(from) {
                OpenState::Open { closes } => closes,
                OpenState::Closed { opens } => opens,
            });
        let bedtimes = self.policy.rules().bedtimes.keys().filter_map(|profile| {
            match facts.bedtime_hours(profile)?.state_at(from) {
                BedtimeState::Awake { begins } => begins,
                BedtimeState::Asleep { ends } => ends,
            }
        });
        let used_up = self.policy.has_quotas().then(|| facts.wall.end_of_day(from, at.day)).flatten();
        let rests = self.snapshot.streaks.values().map(|streak| streak.rested);
        let pauses = self.cooldowns.values().copied().chain(rests);
        let pauses = pauses.filter_map(|until| facts.pending_until(until, at));
        let grants = self.snapshot.grants.iter().flat_map(|grant| [grant.valid_from, grant.lapses_at]);
        let changes = hours.chain(bedtimes).chain(used_up).chain(pauses).chain(grants).chain(requests);
        changes.filter(|change| *change > from).min()
    }
}
