//! Grants and their revocation: the actions, and their effect on the model.

use std::time::Duration;

use shepherd_api::{EntryScope, GrantKind, GrantView};
use shepherd_core::{NewGrant, NewTimeRequest};
use shepherd_util::{ClockReading, GrantId, RequestId};

use super::household::{BUDGETS, CHILDREN, ENTRIES};
use super::open_span::OpenSpan;
use super::reference_model::ReferenceModel;
use super::runner::HouseholdSimulation;
use super::session_model::AppliedGrant;
use super::usage_model::{extra_time, grant_applies, is_for_child};

impl HouseholdSimulation {
    pub(super) fn extend(&mut self) {
        self.observe_clock();
        let (by, id) = (self.rng.minutes(1, 30), GrantId::from_random(self.next_id()));
        let now = self.world.now();
        if let Ok(events) = self.world.engine.extend_current(by, &id, "parent", now) {
            let grant = self.recorded_grant(&id);
            self.model.add_grant(grant, by, now);
            self.counts.gifts += 1;
            self.apply_events(&events);
        }
    }

    fn recorded_grant(&self, id: &GrantId) -> GrantView {
        self.assert_store_works();
        let grants = &self.world.engine.snapshot().grants;
        grants.iter().find(|grant| grant.grant_id == *id).expect("a grant is on record").clone()
    }

    pub(super) fn grant(&mut self) {
        self.observe_clock();
        let now = self.world.now();
        let ahead = self.rng.minutes(1, 36 * 60);
        let valid_from = self.rng.random_option(30, |_| now.wall + ahead);
        let begins = valid_from.unwrap_or(now.wall);
        let scope = match self.rng.roll(4) {
            0 | 1 => EntryScope::Everything {},
            2 => EntryScope::Entry { entry_id: self.rng.pick(&ENTRIES).parse().unwrap() },
            _ => EntryScope::Budget { budget_id: self.rng.pick(&BUDGETS).parse().unwrap() },
        };
        let amount = self.rng.minutes(1, 60);
        let gift = if self.rng.percent(50) {
            GrantKind::Extra { amount: amount.into() }
        } else {
            GrantKind::OpenUntil { until: begins + amount * 2 }
        };
        let grant_id = GrantId::from_random(self.next_id());
        let new = NewGrant {
            grant_id: grant_id.clone(),
            profile: self.rng.random_option(50, |rng| rng.pick(&CHILDREN).parse().unwrap()),
            scope,
            gift,
            why: None,
            valid_from,
            lapses_at: self.rng.random_option(20, |rng| begins + rng.minutes(10, 3_000)),
            actor: "parent".to_owned(),
        };
        self.log_line(|_| format!("  {new:?}"));
        if let Ok(events) = self.world.engine.grant(new, now) {
            let grant = self.recorded_grant(&grant_id);
            self.model.add_grant(grant, Duration::ZERO, now);
            self.counts.gifts += 1;
            self.apply_events(&events);
        }
    }

    pub(super) fn revoke(&mut self) {
        self.observe_clock();
        let ids: Vec<GrantId> = self.model.grants.iter().map(|grant| grant.grant_id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let (id, now) = (self.rng.pick(&ids).clone(), self.world.now());
        if let Ok(events) = self.world.engine.revoke(&id, "parent", now) {
            self.model.revoke_grant(&id, now);
            self.apply_events(&events);
        }
    }

    pub(super) fn ask_for_time(&mut self) {
        self.observe_clock();
        let now = self.world.now();
        let request_id = RequestId::from_random(self.next_id());
        let new = NewTimeRequest {
            request_id: request_id.clone(),
            profile: self.rng.pick(&CHILDREN).parse().unwrap(),
            entry_id: self.rng.pick(&ENTRIES).parse().unwrap(),
            amount: self.rng.minutes(1, 60),
            note: None,
            actor: "child".to_owned(),
        };
        if self.world.engine.request_time(new, now).is_err() {
            return self.apply_events(&[]);
        }
        self.apply_events(&[]);
        if self.rng.percent(30) {
            self.world.engine.deny_request(&request_id, None, "parent", now).unwrap();
            return self.apply_events(&[]);
        }
        let id = GrantId::from_random(self.next_id());
        if let Ok(events) = self.world.engine.grant_request(&request_id, None, id.clone(), "parent", now) {
            let grant = self.recorded_grant(&id);
            self.model.add_grant(grant, Duration::ZERO, now);
            self.apply_events(&events);
        }
    }
}

impl ReferenceModel {
    /// Adds a grant, which also extends the window of the running session by `window`.
    pub(super) fn add_grant(&mut self, grant: GrantView, window: Duration, now: ClockReading) {
        if grant.is_valid_at(self.clock.time(now)) || !window.is_zero() {
            self.apply_grant_to_session(&grant, window, now);
        }
        // An extension is only for the running session.
        if let (false, Some(child)) = (window.is_zero(), self.session.as_ref().map(|play| play.child)) {
            self.add_extra_use(grant.grant_id.clone(), child, extra_time(&grant), now);
        }
        self.grants.push(grant);
    }

    /// Applies grants that were given in advance and have become valid.
    pub(super) fn apply_due_grants(&mut self, now: ClockReading) {
        if self.session.as_ref().is_some_and(|play| play.booked_to.is_some()) {
            self.apply_new_grants(now);
        }
    }

    /// Applies every new grant that is valid, also to a session that is still being launched.
    pub(super) fn apply_new_grants(&mut self, now: ClockReading) {
        let time = self.clock.time(now);
        let Some(play) = &self.session else { return };
        let begins = |grant: &&GrantView| grant.is_valid_at(time) && play.is_new(grant);
        let begun: Vec<GrantView> = self.grants.iter().filter(begins).cloned().collect();
        for grant in begun {
            self.apply_grant_to_session(&grant, Duration::ZERO, now);
        }
    }

    fn apply_grant_to_session(&mut self, grant: &GrantView, window: Duration, now: ClockReading) {
        let (terms, time) = (&self.terms, self.clock.time(now));
        let Some(play) = self.session.as_mut().filter(|play| !play.end_requested) else { return };
        let is_of_its_budget = |budget: &usize| matches!(&grant.scope, EntryScope::Budget { budget_id } if budget_id.as_str() == BUDGETS[*budget]);
        // After a crash, a reload that was not stored may have changed the budgets of the entry, but not of the session.
        let applies = match (&grant.scope, terms.entry(play.entry)) {
            (EntryScope::Budget { .. }, _) => {
                play.budgets.iter().any(is_of_its_budget) && is_for_child(grant, play.child)
            }
            (_, Some(rules)) => grant_applies(grant, play.child, play.entry, rules),
            (_, None) => true,
        };
        if !applies {
            return;
        }
        // The grant is applied by the rules in force now.
        play.drop_superseded_day_bounds();
        let until = match grant.gift {
            GrantKind::OpenUntil { until } => Some(until.min(grant.lapses_at)),
            GrantKind::Extra { .. } => None,
        };
        let opened =
            until.filter(|until| time < *until).map(|until| OpenSpan::open_until(until, terms, time, now));
        // An opening may end inside a window, and then the entry stays open.
        let left = || play.left.saturating_add(extra_time(grant) + window);
        play.left = if opened.is_some() { Duration::MAX } else { left() };
        // Extra time for a budget makes no run longer, except where a later policy applies.
        let of_a_budget = matches!(grant.scope, EntryScope::Budget { .. }) && !play.is_superseded();
        let run = if of_a_budget { Duration::ZERO } else { extra_time(grant) };
        play.applied_grants.push(AppliedGrant { grant_id: grant.grant_id.clone(), run, window, opened });
    }

    /// Revokes a grant.
    pub(super) fn revoke_grant(&mut self, grant_id: &GrantId, now: ClockReading) {
        let time = self.clock.time(now);
        let grant = self.grants.iter_mut().find(|grant| grant.grant_id == *grant_id).unwrap();
        let held = grant.is_valid_at(time);
        grant.revoked_at = Some(time);
        if let Some(play) = &mut self.session {
            play.cut_plans_to_rules(&self.terms);
            play.applied_grants.retain(|gift| gift.grant_id != *grant_id);
            if !held {
                play.grants_revoked_late.insert(grant_id.clone());
            }
        }
    }
}
