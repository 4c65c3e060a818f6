//! Grants (S2.7): records that stretch what the policy gives, up to its ceilings.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EntryScope, GrantKind, GrantView};
use shepherd_util::{ClockReading, GrantId, ProfileId};

use super::errors::GrantError;
use super::{CoreEngine, CoreEvent, NextChange};
use crate::civil::{LocalTime, ZoneClock, start_of_day};
use crate::policy::{Day, PolicyEntry};

/// A grant that somebody wants to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    /// Its name: the engine makes up nothing.
    pub grant_id: GrantId,
    /// For whom; `NotRequested` is everyone.
    pub profile: Option<ProfileId>,
    /// For what.
    pub scope: EntryScope,
    /// What.
    pub gift: GrantKind,
    /// Why.
    pub why: Option<String>,
    /// From when it holds; `NotRequested` is from now.
    pub valid_from: Option<Timestamp>,
    /// When it lapses; `NotRequested` is at the end of the day it begins on, or when the window that it opens closes.
    pub lapses_at: Option<Timestamp>,
    /// Who gives it.
    pub actor: String,
}

/// The most that is given at once: more than anybody means, and a number that every record can hold.
const MAX_GRANT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// How far a grant of time reaches in the session that runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantReach {
    /// It lengthens the run; the window stands.
    RunOnly,
    /// It lengthens the session itself, past its window as well.
    RunAndWindow,
}

impl CoreEngine {
    /// Gives something, also in advance. A session that runs and is concerned gets its share at once.
    ///
    /// # Errors
    /// When the ceilings of the policy forbid it, or the grant makes no sense.
    pub fn grant(&mut self, new: NewGrant, now: ClockReading) -> Result<Vec<CoreEvent>, GrantError> {
        self.apply_grant(new, GrantReach::RunOnly, now)
    }

    pub(super) fn apply_grant(
        &mut self,
        new: NewGrant,
        reach: GrantReach,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        self.observe(now);
        let actor = new.actor.clone();
        let result = self.try_apply_grant(new, reach, now);
        if let Err(error) = &result {
            let (command, reason) = ("grant".to_owned(), error.to_string());
            self.append_audit(now, &actor, AuditKind::CommandRefused { command, reason });
        }
        result
    }

    fn try_apply_grant(
        &mut self,
        new: NewGrant,
        reach: GrantReach,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        if let Some(detail) = &self.store_trouble {
            return Err(GrantError::StoreUnavailable(detail.clone()));
        }
        if matches!(new.gift, GrantKind::Extra { amount } if Duration::from(amount) > MAX_GRANT) {
            return Err(GrantError::TooMuch);
        }
        // By the time that counts, or it would be over before it is felt.
        let at = self.effective_time(now);
        let valid_from = new.valid_from.map_or(at, |from| from.max(at));
        if self.snapshot.grants.iter().any(|known| known.grant_id == new.grant_id) {
            return Err(GrantError::GrantExists(new.grant_id));
        }
        let day = LocalTime::at(self.zone(), valid_from).day();
        let lapses_at = match (new.lapses_at, new.gift) {
            (Some(at), _) | (None, GrantKind::OpenUntil { until: at }) => at,
            (None, GrantKind::Extra { .. }) => ZoneClock::cached_from(self.zone(), valid_from)
                .end_of_day(valid_from, day)
                .unwrap_or(Timestamp::MAX),
        };
        let over = match new.gift {
            GrantKind::OpenUntil { until } => until.min(lapses_at),
            GrantKind::Extra { .. } => lapses_at,
        };
        if over <= valid_from {
            return Err(GrantError::EmptyPeriod);
        }
        let grant = GrantView {
            grant_id: new.grant_id,
            profile: new.profile,
            scope: new.scope,
            gift: new.gift,
            by: new.actor.clone(),
            why: new.why,
            given_at: now.wall,
            valid_from,
            lapses_at,
            revoked_at: None,
        };
        self.check_ceilings(&grant)?;
        self.check_recipient(&grant)?;
        self.charge(now);
        let told = grant_json(&grant);
        self.append_audit(
            now,
            &new.actor,
            AuditKind::Granted { grant_id: grant.grant_id.clone(), grant: told },
        );
        self.snapshot.grants.push(grant.clone());
        self.next_change = NextChange::Unknown;
        let mut events = vec![CoreEvent::EntryAvailabilityChanged];
        if grant.is_valid_at(at) {
            events.extend(self.extend_session(&grant, reach, now));
        }
        self.save_snapshot();
        Ok(events)
    }

    /// Takes a grant back. What was used of it is used; a session that runs on it is cut to what is left.
    ///
    /// # Errors
    /// When there is no such grant, or it was taken back already.
    pub fn revoke(
        &mut self,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        self.observe(now);
        self.charge(now);
        let held = self.snapshot.grants.iter_mut().find(|grant| grant.grant_id == *grant_id);
        let grant = held
            .filter(|grant| grant.revoked_at.is_none())
            .ok_or_else(|| GrantError::UnknownGrant(grant_id.clone()))?;
        let held = grant.clone();
        grant.revoked_at = Some(now.wall);
        self.append_audit(now, actor, AuditKind::GrantRevoked { grant_id: grant_id.clone() });
        let mut events = vec![CoreEvent::EntryAvailabilityChanged];
        events.extend(self.retract_from_session(&held, now));
        self.save_snapshot();
        Ok(events)
    }

    /// Whether there is somebody, and something, to give to.
    fn check_recipient(&self, grant: &GrantView) -> Result<(), GrantError> {
        let known = |profile: &&ProfileId| self.policy.rules().profiles.contains_key(*profile);
        if let Some(nobody) = grant.profile.as_ref().filter(|profile| !known(profile)) {
            return Err(GrantError::UnknownProfile(nobody.clone()));
        }
        match &grant.scope {
            EntryScope::Entry { entry_id } if self.policy.entry(entry_id).is_none() => {
                Err(GrantError::UnknownEntry(entry_id.clone()))
            }
            EntryScope::Budget { budget_id } if !self.policy.rules().budgets.contains_key(budget_id) => {
                Err(GrantError::UnknownBudget(budget_id.clone()))
            }
            EntryScope::Everything {} | EntryScope::Entry { .. } | EntryScope::Budget { .. } => Ok(()),
        }
    }

    /// The days on which a grant holds; of one that never seems to end, the first year.
    pub(super) fn grant_days(&self, grant: &GrantView) -> std::ops::RangeInclusive<Day> {
        let first = LocalTime::at(self.zone(), grant.valid_from).day();
        let end = grant.lapses_at.checked_sub(Duration::from_nanos(1)).unwrap_or(grant.lapses_at);
        let last = LocalTime::at(self.zone(), end).day();
        first..=last.clamp(first, first.plus_days(366))
    }

    fn check_ceilings(&self, grant: &GrantView) -> Result<(), GrantError> {
        match grant.gift {
            GrantKind::Extra { amount } => {
                let extra = Duration::from(amount);
                let Some(ceiling) = self.policy.rules().ceilings.extra_per_day else { return Ok(()) };
                let for_the_same = |other: &&GrantView| {
                    other.revoked_at.is_none()
                        && (other.profile.is_none()
                            || grant.profile.is_none()
                            || other.profile == grant.profile)
                };
                let given_on = |day: Day| {
                    let grants = self.snapshot.grants.iter().filter(for_the_same);
                    let extra = grants.filter_map(|other| match other.gift {
                        GrantKind::Extra { amount } if self.grant_days(other).contains(&day) => {
                            Some(amount.into())
                        }
                        GrantKind::Extra { .. } | GrantKind::OpenUntil { .. } => None,
                    });
                    extra.fold(Duration::ZERO, Duration::saturating_add)
                };
                // On every day it holds, since it gives on every one of them.
                let (first, last) = self.grant_days(grant).into_inner();
                let left = (first.0..=last.0).map(|day| ceiling.saturating_sub(given_on(Day(day)))).min();
                let left = left.unwrap_or(ceiling);
                if extra > left { Err(GrantError::AboveCeiling { left }) } else { Ok(()) }
            }
            GrantKind::OpenUntil { until } => {
                let concerned = |entry: &PolicyEntry| {
                    grant.scope.includes(&entry.entry_id, &entry.budgets)
                        && grant.profile.as_ref().is_none_or(|profile| entry.is_for(profile))
                };
                let day = self.window_day(grant.valid_from, concerned);
                let latest = self.latest_open_until(grant.valid_from, day);
                let too_late = latest.is_some_and(|latest| until > latest);
                match self.policy.rules().ceilings.open_until.filter(|_| too_late) {
                    Some(latest) => Err(GrantError::TooLate { latest }),
                    None => Ok(()),
                }
            }
        }
    }

    /// The latest moment from `at` on to which a window of this day may be stretched.
    pub(super) fn latest_open_until(&self, at: Timestamp, day: Day) -> Option<Timestamp> {
        let latest = self.policy.rules().ceilings.open_until?;
        let wall = ZoneClock::cached_from(self.zone(), at);
        wall.first_instant_showing(at, start_of_day(day) + i64::from(latest.minutes()) * 60)
    }

    /// The day that the windows of these entries belong to at a moment; of several days the first.
    pub(super) fn window_day(&self, at: Timestamp, concerned: impl Fn(&PolicyEntry) -> bool) -> Day {
        let facts = self.evaluation_context(self.evaluation_time_at(at));
        let entries = self.policy.entries().iter().filter(|entry| concerned(entry));
        let days = entries.map(|entry| facts.opening_hours(entry).window_day_at(at));
        days.min().unwrap_or_else(|| facts.wall.local(at).day())
    }
}

/// A grant is plain data; it always has a JSON form.
fn grant_json(grant: &GrantView) -> serde_json::Value {
    serde_json::to_value(grant).unwrap_or(serde_json::Value::Null)
}
