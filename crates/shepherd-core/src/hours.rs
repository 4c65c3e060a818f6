//! Opening hours of an entry: windows, exceptions and the household's mode; and the bedtime of a profile.

mod bedtime;

use jiff::Timestamp;

pub(crate) use self::bedtime::{BedtimeHours, BedtimeState};
use crate::civil::{CivilSecond, LocalTime, SECONDS_PER_DAY, ZoneClock, day_of, start_of_day, timestamp};
use crate::policy::{
    AvailabilityPolicy, BedtimePolicy, DateException, Day, DayRule, NightHours, Policy, PolicyEntry,
    TimeWindow,
};

/// The number of days that are searched for the next opening or closing.
const HORIZON_DAYS: i32 = 400;

/// The number of days to search after the last rule for a date. The last such day may reach into the next one, and seven
/// more days are a whole week; after them the hours repeat.
const WEEK_HORIZON_DAYS: i32 = 9;

const MINUTES_PER_DAY: i64 = 1440;

/// The hours of one entry.
#[derive(Clone, Copy)]
pub(crate) struct OpeningHours<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) source: SpanSource<'a>,
    /// The mode that a person chose; `None` if the calendar decides.
    pub(crate) mode: Option<&'a str>,
    pub(crate) wall: ZoneClock<'a>,
}

/// The origin of the spans of a day.
#[derive(Clone, Copy)]
pub(crate) enum SpanSource<'a> {
    /// The windows of an entry, in which it is open.
    Entry(&'a PolicyEntry),
    /// The nights of a profile, in which everything is closed.
    Bedtime(&'a BedtimePolicy),
}

/// The state of an entry at a moment, and the time of its next change, if one is found within [`HORIZON_DAYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenState {
    Open { closes: Option<Timestamp> },
    Closed { opens: Option<Timestamp> },
}

impl<'a> OpeningHours<'a> {
    /// Returns the household's mode on a day.
    pub(crate) fn mode_on(&self, day: Day) -> &'a str {
        self.mode.unwrap_or_else(|| self.policy.rules().modes.mode_on(day))
    }

    pub(crate) fn open_state_at(&self, at: Timestamp) -> OpenState {
        let local = self.wall.local(at);
        if self.never_closes(local.day()) {
            return OpenState::Open { closes: None };
        }
        let civil = local.civil();
        match self.closing_after(civil) {
            // No span covers this moment.
            Some(at) if at == civil => OpenState::Closed {
                opens: self.next_change(local, self.opening_after(civil), TargetState::Open),
            },
            closing => OpenState::Open { closes: self.next_change(local, closing, TargetState::Closed) },
        }
    }

    /// Returns true if the entry is open at a moment. Faster than [`Self::open_state_at`].
    pub(crate) fn is_open(&self, at: Timestamp) -> bool {
        self.covers(self.wall.local(at).civil())
    }

    /// Returns the time at which the entry closes, if it is open at `until`; otherwise returns `until`.
    pub(crate) fn extend_through_open_hours(&self, until: Timestamp) -> Timestamp {
        match self.open_state_at(until) {
            OpenState::Open { closes } => closes.unwrap_or(Timestamp::MAX).max(until),
            OpenState::Closed { .. } => until,
        }
    }

    /// Returns the day that the window at a moment belongs to: the day before, if the window crossed midnight (S2.3).
    pub(crate) fn window_day_at(&self, at: Timestamp) -> Day {
        let civil = self.wall.local(at).civil();
        let (yesterday, today) = (day_of(civil).plus_days(-1), day_of(civil));
        let covers = |day| self.end_covering(day, civil).is_some();
        if covers(yesterday) && !covers(today) { yesterday } else { today }
    }

    /// Returns true if the entry is always open and no exception changes that. For most entries this avoids the search.
    fn never_closes(&self, today: Day) -> bool {
        let may_apply = |exception: &DateException| exception.to >= today;
        matches!(self.source, SpanSource::Entry(entry) if entry.availability == AvailabilityPolicy::Always)
            && !self.policy.rules().exceptions.iter().any(may_apply)
    }

    /// Calls `visit` with each open span of a day, in minutes after its midnight.
    fn for_each_span(&self, day: Day, visit: impl FnMut(i64, i64)) {
        match self.source {
            SpanSource::Entry(entry) => self.for_each_open_span(entry, day, visit),
            SpanSource::Bedtime(bedtime) => self.for_each_night_span(bedtime, day, visit),
        }
    }

    fn for_each_open_span(&self, entry: &PolicyEntry, day: Day, mut visit: impl FnMut(i64, i64)) {
        let id = &entry.entry_id;
        let rules = self.policy.rules();
        let exception = rules.exceptions.iter().rev().find(|exception| {
            exception.from <= day
                && day <= exception.to
                && exception.entries.as_ref().is_none_or(|entries| entries.contains(id))
        });
        match exception.map(|exception| &exception.rule) {
            Some(DayRule::Closed) => {}
            Some(DayRule::Open) => visit(0, MINUTES_PER_DAY),
            Some(DayRule::Windows(windows)) => {
                for (from, to) in windows {
                    let (from, to) = (i64::from(from.minutes()), i64::from(to.minutes()));
                    visit(from, if to > from { to } else { to + MINUTES_PER_DAY });
                }
            }
            Some(DayRule::AsOn(weekday)) => self.for_each_window(entry, day, *weekday, visit),
            None => self.for_each_window(entry, day, day.weekday(), visit),
        }
    }

    /// Visits the nights that begin on a day: the one of its evening, and one of the evening before that begins after
    /// midnight.
    fn for_each_night_span(&self, bedtime: &BedtimePolicy, day: Day, mut visit: impl FnMut(i64, i64)) {
        for (evening, shift) in [(day.plus_days(-1), MINUTES_PER_DAY), (day, 0)] {
            let night = self.night_of(bedtime, evening).map(NightHours::span);
            let night = night.map(|(from, to)| (from - shift, to - shift));
            if let Some((from, to)) = night.filter(|(from, _)| (0..MINUTES_PER_DAY).contains(from)) {
                visit(from, to);
            }
        }
    }

    /// Returns the hours of the night after an evening. The next day decides, because it is a school day or not (S19.4).
    fn night_of(&self, bedtime: &BedtimePolicy, evening: Day) -> Option<NightHours> {
        let next = evening.plus_days(1);
        bedtime.night_before(self.policy.effective_weekday(next), self.mode_on(next))
    }

    fn for_each_window(
        &self,
        entry: &PolicyEntry,
        day: Day,
        weekday: usize,
        mut visit: impl FnMut(i64, i64),
    ) {
        let windows = match &entry.availability {
            AvailabilityPolicy::Always => return visit(0, MINUTES_PER_DAY),
            AvailabilityPolicy::Windows(windows) => windows,
        };
        let in_mode =
            |window: &TimeWindow| window.modes.as_ref().is_none_or(|modes| modes.contains(self.mode_on(day)));
        for window in windows.iter().filter(|window| window.days.contains(weekday) && in_mode(window)) {
            let (from, to) = window.span();
            visit(i64::from(from), i64::from(to));
        }
    }

    fn covers(&self, civil: CivilSecond) -> bool {
        self.latest_end_covering(civil).is_some()
    }

    /// Returns the latest end of the spans that cover a moment. Spans of the day before may reach into this day.
    fn latest_end_covering(&self, civil: CivilSecond) -> Option<CivilSecond> {
        let today = day_of(civil);
        self.end_covering(today.plus_days(-1), civil).max(self.end_covering(today, civil))
    }

    /// Returns the latest end of those spans of one day that cover a moment.
    fn end_covering(&self, day: Day, civil: CivilSecond) -> Option<CivilSecond> {
        let midnight = start_of_day(day);
        let mut latest = None;
        self.for_each_span(day, |from, to| {
            let end = midnight + to * 60;
            if midnight + from * 60 <= civil && civil < end {
                latest = latest.max(Some(end));
            }
        });
        latest
    }

    /// Returns the first moment, starting with this one, that no span covers. Spans that touch count as one (S3.4).
    fn closing_after(&self, civil: CivilSecond) -> Option<CivilSecond> {
        let mut at = civil;
        let farthest = civil + i64::from(self.horizon(day_of(civil))) * SECONDS_PER_DAY;
        while let Some(end) = self.latest_end_covering(at) {
            if end > farthest {
                return None;
            }
            at = end;
        }
        Some(at)
    }

    /// Returns the first opening from `opens` on that isn't in bedtime.
    pub(crate) fn first_opening_awake(
        &self,
        bedtime: &BedtimeHours<'_>,
        mut opens: Timestamp,
    ) -> Option<Timestamp> {
        // Each round passes a night.
        for _ in 0..2 * self.horizon(self.wall.local(opens).day()) {
            let BedtimeState::Asleep { ends } = bedtime.state_at(opens) else { return Some(opens) };
            let ends = ends?;
            match self.open_state_at(ends) {
                OpenState::Open { .. } => return Some(ends),
                OpenState::Closed { opens: later } => opens = later?,
            }
        }
        None
    }

    /// Returns the next moment at which a span begins.
    fn opening_after(&self, civil: CivilSecond) -> Option<CivilSecond> {
        let today = day_of(civil);
        (0..=self.horizon(today)).find_map(|ahead| {
            let midnight = start_of_day(today.plus_days(ahead));
            let mut first: Option<CivilSecond> = None;
            self.for_each_span(today.plus_days(ahead), |from, _| {
                let start = midnight + from * 60;
                if start > civil {
                    first = Some(first.map_or(start, |known| known.min(start)));
                }
            });
            first
        })
    }

    /// Returns the number of days to search for an opening or a closing. After the last rule for a date every week is the
    /// same, so one more week is enough.
    fn horizon(&self, today: Day) -> i32 {
        let rules = self.policy.rules();
        let dated = rules.exceptions.iter().map(|exception| exception.to);
        let last = dated.chain(rules.modes.by_date.iter().map(|(_, to, _)| *to)).max();
        let days = last.map_or(0, |last| last.0.saturating_sub(today.0).max(0));
        days.saturating_add(WEEK_HORIZON_DAYS).min(HORIZON_DAYS)
    }

    /// Returns the time at which the entry reaches the target state. A jump of the wall clock, such as daylight saving time,
    /// may bring the change forward or skip it, so the search restarts after each jump.
    fn next_change(
        &self,
        mut local: LocalTime,
        mut civil: Option<CivilSecond>,
        target: TargetState,
    ) -> Option<Timestamp> {
        let horizon = local.second + i64::from(HORIZON_DAYS) * SECONDS_PER_DAY;
        loop {
            let change = civil.map(|civil| civil - local.offset);
            let jump = self.wall.next_transition_after(local.second);
            match (change, jump) {
                (change, Some(jump)) if change.is_none_or(|change| jump <= change) && jump < horizon => {
                    local = self.wall.local(timestamp(jump)?);
                    if self.covers(local.civil()) == (target == TargetState::Open) {
                        return timestamp(jump);
                    }
                    civil = match target {
                        TargetState::Closed => self.closing_after(local.civil()),
                        TargetState::Open => self.opening_after(local.civil()),
                    };
                }
                (change, _) => return timestamp(change?),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetState {
    Open,
    Closed,
}
