//! Grants (S2.7): extra time and longer windows beyond the policy, up to its ceilings.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, EntryScope, GrantKind, GrantView};
use shepherd_util::{ClockReading, GrantId, ProfileId, SessionId};

use super::errors::GrantError;
use super::{CoreEngine, CoreEvent, EngineReply, NextChange, ProvisionalGrant};
use crate::civil::{LocalTime, ZoneClock, start_of_day};
use crate::policy::{Day, PolicyEntry};

/// A grant that an administrator wants to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    pub grant_id: GrantId,
    /// The profile that gets it; `None` is every profile.
    pub profile: Option<ProfileId>,
    pub scope: EntryScope,
    pub gift: GrantKind,
    pub why: Option<String>,
    /// The moment from which it is valid; `None` is now.
    pub valid_from: Option<Timestamp>,
    /// The moment at which it lapses. `None` is the end of the day on which it begins, or the end of the window that it
    /// opens.
    pub lapses_at: Option<Timestamp>,
    /// The client, for the audit log.
    pub actor: String,
}

/// The most extra time in one grant. More than a year is a mistake, and every record can hold this number.
const MAX_GRANT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The deadlines of running sessions that a grant of extra time moves.
pub(super) enum MovedDeadlines {
    /// The runs of all sessions that it applies to get longer; their windows still close on time.
    RunOnly,
    /// This session gets longer, also past the end of its window, and no other does.
    OfSession(SessionId),
}

impl MovedDeadlines {
    pub(super) fn includes(&self, session_id: &SessionId) -> bool {
        match self {
            Self::RunOnly => true,
            Self::OfSession(only) => only == session_id,
        }
    }
}

impl CoreEngine {
    /// Gives a grant, possibly in advance. Running sessions that it applies to are extended at once. The answer is the
    /// grant, or an error if the policy's ceilings forbid it or the grant makes no sense.
    pub fn grant(&mut self, new: NewGrant, now: ClockReading) -> EngineReply<Result<GrantView, GrantError>> {
        let given = self.apply_grant(new, &MovedDeadlines::RunOnly, now);
        let given = given.inspect(|grant| self.announce_given(grant));
        self.answer(given)
    }

    /// Announces a grant that was given, and ties it to its record.
    pub(super) fn announce_given(&mut self, grant: &GrantView) {
        self.announce(CoreEvent::GrantChanged { grant: Box::new(grant.clone()) });
        self.effects.grant_provisionally(ProvisionalGrant::Grant(grant.grant_id.clone()));
    }

    pub(super) fn apply_grant(
        &mut self,
        new: NewGrant,
        moved: &MovedDeadlines,
        now: ClockReading,
    ) -> Result<GrantView, GrantError> {
        self.observe(now);
        let actor = new.actor.clone();
        let result = self.try_apply_grant(new, moved, now);
        if let Err(error) = &result {
            let (command, reason) = ("grant".to_owned(), error.to_string());
            self.append_audit(now, &actor, AuditKind::CommandRefused { command, reason });
        }
        result
    }

    fn try_apply_grant(
        &mut self,
        new: NewGrant,
        moved: &MovedDeadlines,
        now: ClockReading,
    ) -> Result<GrantView, GrantError> {
        if let Some(detail) = &self.store_trouble {
            return Err(GrantError::StoreUnavailable(detail.clone()));
        }
        if matches!(new.gift, GrantKind::Extra { amount } if Duration::from(amount) > MAX_GRANT) {
            return Err(GrantError::TooMuch);
        }
        // The effective time is used, because the grant could otherwise be over before it takes effect.
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
        // An extension is for the session that runs, and its run part isn't given to the next one.
        match (moved, grant.gift, &grant.profile) {
            (MovedDeadlines::OfSession(_), GrantKind::Extra { amount }, Some(profile)) => {
                self.add_extra_run_use(&grant.grant_id, profile, amount.into(), now);
            }
            _ => self.check_effect(&grant)?,
        }
        self.charge_for_grant(&grant, now);
        let granted = AuditKind::Granted { grant_id: grant.grant_id.clone(), grant: grant_json(&grant) };
        self.append_audit(now, &new.actor, granted);
        self.snapshot.grants.push(grant.clone());
        self.next_change = NextChange::Unknown;
        self.announce(CoreEvent::EntryAvailabilityChanged);
        if grant.is_valid_at(at) {
            let concerned: Vec<SessionId> =
                self.sessions_for_grant(&grant).map(|session| session.session_id.clone()).collect();
            for session_id in concerned {
                self.extend_by_grant(&session_id, &grant, moved, now);
            }
        }
        self.save_snapshot();
        Ok(grant)
    }

    /// Revokes a grant. Time that was already used of it stays used; a running session is shortened to what is left.
    /// The answer is the grant, or an error if there is no such grant or it was already revoked.
    pub fn revoke(
        &mut self,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> EngineReply<Result<GrantView, GrantError>> {
        let revoked = self.take_grant_back(grant_id, actor, now);
        if let Ok(grant) = &revoked {
            self.announce(CoreEvent::GrantChanged { grant: Box::new(grant.clone()) });
        }
        self.answer(revoked)
    }

    pub(super) fn take_grant_back(
        &mut self,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<GrantView, GrantError> {
        self.observe(now);
        let held = self.snapshot.grants.iter().find(|grant| grant.grant_id == *grant_id);
        let grant = held
            .filter(|grant| grant.revoked_at.is_none())
            .ok_or_else(|| GrantError::UnknownGrant(grant_id.clone()))?;
        let held = grant.clone();
        // The usage up to now is part of what is left.
        self.charge_for_grant(&held, now);
        let revoked = GrantView { revoked_at: Some(now.wall), ..held.clone() };
        if let Some(grant) = self.snapshot.grants.iter_mut().find(|grant| grant.grant_id == *grant_id) {
            grant.revoked_at = revoked.revoked_at;
        }
        self.append_audit(now, actor, AuditKind::GrantRevoked { grant_id: grant_id.clone() });
        self.announce(CoreEvent::EntryAvailabilityChanged);
        let sessions: Vec<SessionId> =
            self.sessions.iter().map(|session| session.session_id.clone()).collect();
        for session_id in sessions {
            self.retract_from_session(&session_id, &held, now);
        }
        self.save_snapshot();
        Ok(revoked)
    }

    /// Charges the sessions of everyone who has a grant.
    fn charge_for_grant(&mut self, grant: &GrantView, now: ClockReading) {
        match &grant.profile {
            Some(profile) => self.charge_profile(profile, now),
            None => self.charge_all(now),
        }
    }

    /// Checks that the profile, and the entry or budget, exist.
    fn check_recipient(&self, grant: &GrantView) -> Result<(), GrantError> {
        let known = |profile: &&ProfileId| self.policy.rules().profiles.contains_key(*profile);
        if let Some(unknown) = grant.profile.as_ref().filter(|profile| !known(profile)) {
            return Err(GrantError::UnknownProfile(unknown.clone()));
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

    /// Returns the days on which a grant is valid, at most a year.
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
                // A grant gives its time on each of its days, so the ceiling has to hold on each.
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
                let day = self.window_day(grant.valid_from, grant.profile.as_ref(), concerned);
                let latest = self.latest_open_until(grant.valid_from, day);
                let too_late = latest.is_some_and(|latest| until > latest);
                match self.policy.rules().ceilings.open_until.filter(|_| too_late) {
                    Some(latest) => Err(GrantError::TooLate { latest }),
                    None => Ok(()),
                }
            }
        }
    }

    /// Returns the latest moment, from `at` on, to which a window of this day may be extended.
    pub(super) fn latest_open_until(&self, at: Timestamp, day: Day) -> Option<Timestamp> {
        let latest = self.policy.rules().ceilings.open_until?;
        let wall = ZoneClock::cached_from(self.zone(), at);
        wall.first_instant_showing(at, start_of_day(day) + i64::from(latest.minutes()) * 60)
    }

    /// Returns the day that the windows of these entries, and the bedtimes of these profiles (`None` is all), belong to at a
    /// moment; of several days, the first.
    pub(super) fn window_day(
        &self,
        at: Timestamp,
        profile: Option<&ProfileId>,
        concerned: impl Fn(&PolicyEntry) -> bool,
    ) -> Day {
        let facts = self.evaluation_context(self.evaluation_time_at(at));
        let entries = self.policy.entries().iter().filter(|entry| concerned(entry));
        let days = entries.map(|entry| facts.opening_hours(entry).window_day_at(at));
        let profiles = self.policy.rules().bedtimes.keys();
        let profiles = profiles.filter(|known| profile.is_none_or(|profile| profile == *known));
        let evenings = profiles.filter_map(|profile| facts.bedtime_hours(profile)?.evening_at(at));
        days.chain(evenings).min().unwrap_or_else(|| facts.wall.local(at).day())
    }
}

/// Returns a grant as JSON. A grant is plain data, so this can't fail.
fn grant_json(grant: &GrantView) -> serde_json::Value {
    serde_json::to_value(grant).unwrap_or(serde_json::Value::Null)
}
