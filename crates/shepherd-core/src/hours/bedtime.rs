//! The nights of a profile, found by the search for the hours of an entry.

use jiff::Timestamp;

use super::{OpenState, OpeningHours, SpanSource};
use crate::civil::{ZoneClock, day_of, start_of_day};
use crate::policy::{BedtimePolicy, Day, NightHours, Policy};

/// The nights of one profile.
#[derive(Clone, Copy)]
pub(crate) struct BedtimeHours<'a> {
    /// These hours are "open" during the nights.
    nights: OpeningHours<'a>,
    bedtime: &'a BedtimePolicy,
}

/// The state of a bedtime at a moment, and the time of its next change, if one is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BedtimeState {
    Awake { begins: Option<Timestamp> },
    Asleep { ends: Option<Timestamp> },
}

impl<'a> BedtimeHours<'a> {
    pub(crate) fn new(
        policy: &'a Policy,
        bedtime: &'a BedtimePolicy,
        mode: Option<&'a str>,
        wall: ZoneClock<'a>,
    ) -> Self {
        Self { nights: OpeningHours { policy, source: SpanSource::Bedtime(bedtime), mode, wall }, bedtime }
    }

    pub(crate) fn state_at(&self, at: Timestamp) -> BedtimeState {
        match self.nights.open_state_at(at) {
            OpenState::Open { closes } => BedtimeState::Asleep { ends: closes },
            OpenState::Closed { opens } => BedtimeState::Awake { begins: opens },
        }
    }

    /// Returns the time at which the next bedtime begins, if it isn't bedtime at `until`; otherwise returns `until`.
    pub(crate) fn extend_to_bedtime(&self, until: Timestamp) -> Timestamp {
        match self.state_at(until) {
            BedtimeState::Awake { begins } => begins.unwrap_or(Timestamp::MAX).max(until),
            BedtimeState::Asleep { .. } => until,
        }
    }

    /// Returns the day whose evening began the night at a moment, if it is bedtime then.
    pub(crate) fn evening_at(&self, at: Timestamp) -> Option<Day> {
        let civil = self.nights.wall.local(at).civil();
        let today = day_of(civil);
        [today.plus_days(-1), today].into_iter().find(|evening| {
            let night = self.nights.night_of(self.bedtime, *evening).map(NightHours::span);
            let midnight = start_of_day(*evening);
            night.is_some_and(|(from, to)| midnight + from * 60 <= civil && civil < midnight + to * 60)
        })
    }
}
