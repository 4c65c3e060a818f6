//! Grants (S2.7): records that stretch what the policy gives, up to its ceilings.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, Gift, GrantView, Scope};
use shepherd_util::{GrantId, Now, ProfileId};

use super::refusal::GiftError;
use super::{CoreEngine, CoreEvent, NextChange};
use crate::civil::{Local, Wall, start_of};
use crate::policy::{Day, Entry};

/// A grant that somebody wants to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    /// Its name: the engine makes up nothing.
    pub grant_id: GrantId,
    /// For whom; `None` is everyone.
    pub profile: Option<ProfileId>,
    /// For what.
    pub scope: Scope,
    /// What.
    pub gift: Gift,
    /// Why.
    pub why: Option<String>,
    /// From when it holds; `None` is from now.
    pub valid_from: Option<Timestamp>,
    /// When it lapses; `None` is at the end of the day it begins on, or when the window that it opens closes.
    pub lapses_at: Option<Timestamp>,
    /// Who gives it.
    pub actor: String,
}

/// The most that is given at once: more than anybody means, and a number that every record can hold.
const MOST_TIME: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// How far a grant of time reaches in the session that runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It lengthens the run; the window stands.
    Rules,
    /// It lengthens the session itself, past its window as well.
    Session,
}

impl CoreEngine {
    /// Gives something, also in advance. A session that runs and is concerned gets its share at once.
    ///
    /// # Errors
    /// When the ceilings of the policy forbid it, or the grant makes no sense.
    pub fn grant(&mut self, new: NewGrant, now: Now) -> Result<Vec<CoreEvent>, GiftError> {
        self.give(new, Reach::Rules, now)
    }

    pub(super) fn give(
        &mut self,
        new: NewGrant,
        reach: Reach,
        now: Now,
    ) -> Result<Vec<CoreEvent>, GiftError> {
        self.observe(now);
        let actor = new.actor.clone();
        let result = self.try_to_give(new, reach, now);
        if let Err(error) = &result {
            let (command, reason) = ("grant".to_owned(), error.to_string());
            self.audit(now, &actor, AuditKind::CommandRefused { command, reason });
        }
        result
    }

    fn try_to_give(&mut self, new: NewGrant, reach: Reach, now: Now) -> Result<Vec<CoreEvent>, GiftError> {
        if let Some(detail) = &self.store_trouble {
            return Err(GiftError::StoreUnavailable(detail.clone()));
        }
        if matches!(new.gift, Gift::Extra { amount } if Duration::from(amount) > MOST_TIME) {
            return Err(GiftError::TooMuch);
        }
        // By the time that counts, or it would be over before it is felt.
        let at = self.counted(now);
        let valid_from = new.valid_from.map_or(at, |from| from.max(at));
        if self.snapshot.grants.iter().any(|known| known.grant_id == new.grant_id) {
            return Err(GiftError::GrantExists(new.grant_id));
        }
        let day = Local::at(self.zone(), valid_from).day();
        let lapses_at = match (new.lapses_at, new.gift) {
            (Some(at), _) | (None, Gift::OpenUntil { until: at }) => at,
            (None, Gift::Extra { .. }) => {
                Wall::near(self.zone(), valid_from).end_of_day(valid_from, day).unwrap_or(Timestamp::MAX)
            }
        };
        let over = match new.gift {
            Gift::OpenUntil { until } => until.min(lapses_at),
            Gift::Extra { .. } => lapses_at,
        };
        if over <= valid_from {
            return Err(GiftError::Empty);
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
        self.check_receiver(&grant)?;
        self.charge(now);
        let told = serde_json_of(&grant);
        self.audit(now, &new.actor, AuditKind::Granted { grant_id: grant.grant_id.clone(), grant: told });
        self.snapshot.grants.push(grant.clone());
        self.next_change = NextChange::Unknown;
        let mut events = vec![CoreEvent::EntryAvailabilityChanged];
        if grant.holds_at(at) {
            events.extend(self.give_to_running(&grant, reach, now));
        }
        self.save();
        Ok(events)
    }

    /// Takes a grant back. What was used of it is used; a session that runs on it is cut to what is left.
    ///
    /// # Errors
    /// When there is no such grant, or it was taken back already.
    pub fn revoke(&mut self, grant_id: &GrantId, actor: &str, now: Now) -> Result<Vec<CoreEvent>, GiftError> {
        self.observe(now);
        self.charge(now);
        let held = self.snapshot.grants.iter_mut().find(|grant| grant.grant_id == *grant_id);
        let grant = held
            .filter(|grant| grant.revoked_at.is_none())
            .ok_or_else(|| GiftError::UnknownGrant(grant_id.clone()))?;
        let held = grant.clone();
        grant.revoked_at = Some(now.wall);
        self.audit(now, actor, AuditKind::GrantRevoked { grant_id: grant_id.clone() });
        let mut events = vec![CoreEvent::EntryAvailabilityChanged];
        events.extend(self.take_from_running(&held, now));
        self.save();
        Ok(events)
    }

    /// Whether there is somebody, and something, to give to.
    fn check_receiver(&self, grant: &GrantView) -> Result<(), GiftError> {
        let known = |profile: &&ProfileId| self.policy.rules().profiles.contains_key(*profile);
        if let Some(nobody) = grant.profile.as_ref().filter(|profile| !known(profile)) {
            return Err(GiftError::UnknownProfile(nobody.clone()));
        }
        match &grant.scope {
            Scope::Entry { entry_id } if self.policy.entry(entry_id).is_none() => {
                Err(GiftError::UnknownEntry(entry_id.clone()))
            }
            Scope::Budget { budget_id } if !self.policy.rules().budgets.contains_key(budget_id) => {
                Err(GiftError::UnknownBudget(budget_id.clone()))
            }
            Scope::Everything {} | Scope::Entry { .. } | Scope::Budget { .. } => Ok(()),
        }
    }

    /// The days on which a grant holds; of one that never seems to end, the first year.
    pub(super) fn days_of(&self, grant: &GrantView) -> std::ops::RangeInclusive<Day> {
        let first = Local::at(self.zone(), grant.valid_from).day();
        let end = grant.lapses_at.checked_sub(Duration::from_nanos(1)).unwrap_or(grant.lapses_at);
        let last = Local::at(self.zone(), end).day();
        first..=last.clamp(first, first.plus(366))
    }

    fn check_ceilings(&self, grant: &GrantView) -> Result<(), GiftError> {
        match grant.gift {
            Gift::Extra { amount } => {
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
                        Gift::Extra { amount } if self.days_of(other).contains(&day) => Some(amount.into()),
                        Gift::Extra { .. } | Gift::OpenUntil { .. } => None,
                    });
                    extra.fold(Duration::ZERO, Duration::saturating_add)
                };
                // On every day it holds, since it gives on every one of them.
                let (first, last) = self.days_of(grant).into_inner();
                let left = (first.0..=last.0).map(|day| ceiling.saturating_sub(given_on(Day(day)))).min();
                let left = left.unwrap_or(ceiling);
                if extra > left { Err(GiftError::AboveCeiling { left }) } else { Ok(()) }
            }
            Gift::OpenUntil { until } => {
                let concerned = |entry: &Entry| {
                    grant.scope.includes(&entry.entry_id, &entry.budgets)
                        && grant.profile.as_ref().is_none_or(|profile| entry.is_for(profile))
                };
                let day = self.window_day(grant.valid_from, concerned);
                let latest = self.latest_opening(grant.valid_from, day);
                let too_late = latest.is_some_and(|latest| until > latest);
                match self.policy.rules().ceilings.open_until.filter(|_| too_late) {
                    Some(latest) => Err(GiftError::TooLate { latest }),
                    None => Ok(()),
                }
            }
        }
    }

    /// The latest moment from `at` on to which a window of this day may be stretched.
    pub(super) fn latest_opening(&self, at: Timestamp, day: Day) -> Option<Timestamp> {
        let latest = self.policy.rules().ceilings.open_until?;
        let wall = Wall::near(self.zone(), at);
        wall.first_showing(at, start_of(day) + i64::from(latest.minutes()) * 60)
    }

    /// The day that the windows of these entries belong to at a moment; of several days the first.
    pub(super) fn window_day(&self, at: Timestamp, concerned: impl Fn(&Entry) -> bool) -> Day {
        let facts = self.facts(self.other_moment(at));
        let entries = self.policy.entries().iter().filter(|entry| concerned(entry));
        let days = entries.map(|entry| facts.hours(entry).day_at(at));
        days.min().unwrap_or_else(|| facts.wall.local(at).day())
    }
}

/// A grant is plain data; it always has a JSON form.
fn serde_json_of(grant: &GrantView) -> serde_json::Value {
    serde_json::to_value(grant).unwrap_or(serde_json::Value::Null)
}
