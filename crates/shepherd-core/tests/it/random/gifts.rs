//! What is given and taken back: how it is done, and what it truly means for what runs.

use std::time::Duration;

use shepherd_api::{Gift, GrantView, Scope};
use shepherd_core::{NewGrant, NewRequest};
use shepherd_util::{GrantId, Now, RequestId};

use super::book::{concerns, extra};
use super::household::{BUDGETS, CHILDREN, ENTRIES};
use super::life::Life;
use super::play::Given;
use super::span::Span;
use super::truth::Truth;

impl Life {
    pub(super) fn extend(&mut self) {
        self.look();
        let (by, id) = (self.dice.minutes(1, 30), GrantId::from_random(self.next_id()));
        let now = self.world.now();
        if let Ok(events) = self.world.engine.extend_current(by, &id, "parent", now) {
            let grant = self.record(&id);
            self.truth.give(grant, by, now);
            self.tally.gifts += 1;
            self.carry_out(&events);
        }
    }

    fn record(&self, id: &GrantId) -> GrantView {
        self.check_may_give();
        let grants = &self.world.engine.snapshot().grants;
        grants.iter().find(|grant| grant.grant_id == *id).expect("a grant is on record").clone()
    }

    pub(super) fn grant(&mut self) {
        self.look();
        let now = self.world.now();
        let ahead = self.dice.minutes(1, 36 * 60);
        let valid_from = self.dice.maybe(30, |_| now.wall + ahead);
        let begins = valid_from.unwrap_or(now.wall);
        let scope = match self.dice.roll(4) {
            0 | 1 => Scope::Everything {},
            2 => Scope::Entry { entry_id: self.dice.pick(&ENTRIES).parse().unwrap() },
            _ => Scope::Budget { budget_id: self.dice.pick(&BUDGETS).parse().unwrap() },
        };
        let amount = self.dice.minutes(1, 60);
        let gift = if self.dice.percent(50) {
            Gift::Extra { amount: amount.into() }
        } else {
            Gift::OpenUntil { until: begins + amount * 2 }
        };
        let grant_id = GrantId::from_random(self.next_id());
        let new = NewGrant {
            grant_id: grant_id.clone(),
            profile: self.dice.maybe(50, |dice| dice.pick(&CHILDREN).parse().unwrap()),
            scope,
            gift,
            why: None,
            valid_from,
            lapses_at: self.dice.maybe(20, |dice| begins + dice.minutes(10, 3_000)),
            actor: "parent".to_owned(),
        };
        self.say(|_| format!("  {new:?}"));
        if let Ok(events) = self.world.engine.grant(new, now) {
            let grant = self.record(&grant_id);
            self.truth.give(grant, Duration::ZERO, now);
            self.tally.gifts += 1;
            self.carry_out(&events);
        }
    }

    pub(super) fn revoke(&mut self) {
        self.look();
        let ids: Vec<GrantId> = self.truth.grants.iter().map(|grant| grant.grant_id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let (id, now) = (self.dice.pick(&ids).clone(), self.world.now());
        if let Ok(events) = self.world.engine.revoke(&id, "parent", now) {
            self.truth.take_back(&id, now);
            self.carry_out(&events);
        }
    }

    pub(super) fn ask_for_time(&mut self) {
        self.look();
        let now = self.world.now();
        let request_id = RequestId::from_random(self.next_id());
        let new = NewRequest {
            request_id: request_id.clone(),
            profile: self.dice.pick(&CHILDREN).parse().unwrap(),
            entry_id: self.dice.pick(&ENTRIES).parse().unwrap(),
            amount: self.dice.minutes(1, 60),
            note: None,
            actor: "child".to_owned(),
        };
        if self.world.engine.request_time(new, now).is_err() {
            return self.carry_out(&[]);
        }
        self.carry_out(&[]);
        if self.dice.percent(30) {
            self.world.engine.deny_request(&request_id, None, "parent", now).unwrap();
            return self.carry_out(&[]);
        }
        let id = GrantId::from_random(self.next_id());
        if let Ok(events) = self.world.engine.grant_request(&request_id, None, id.clone(), "parent", now) {
            let grant = self.record(&id);
            self.truth.give(grant, Duration::ZERO, now);
            self.carry_out(&events);
        }
    }
}

impl Truth {
    /// Somebody gave something, perhaps with a longer window for what runs.
    pub(super) fn give(&mut self, grant: GrantView, window: Duration, now: Now) {
        if grant.holds_at(self.watch.time(now)) || !window.is_zero() {
            self.give_to_play(&grant, window, now);
        }
        self.grants.push(grant);
    }

    /// What was given in advance reaches what runs when it begins to hold.
    pub(super) fn give_what_begins(&mut self, now: Now) {
        if self.play.as_ref().is_some_and(|play| play.booked_to.is_some()) {
            self.give_what_is_new(now);
        }
    }

    /// Other rules come after all that holds, also for what is still being launched.
    pub(super) fn give_what_is_new(&mut self, now: Now) {
        let time = self.watch.time(now);
        let Some(play) = &self.play else { return };
        let begins = |grant: &&GrantView| grant.holds_at(time) && play.is_new(grant);
        let begun: Vec<GrantView> = self.grants.iter().filter(begins).cloned().collect();
        for grant in begun {
            self.give_to_play(&grant, Duration::ZERO, now);
        }
    }

    fn give_to_play(&mut self, grant: &GrantView, window: Duration, now: Now) {
        let (terms, time) = (&self.terms, self.watch.time(now));
        let Some(play) = self.play.as_mut().filter(|play| !play.told_to_end) else { return };
        if terms.entry(play.entry).is_some_and(|rules| !concerns(grant, play.child, play.entry, rules)) {
            return;
        }
        // It is given by the rules that apply now.
        play.upset();
        let until = match grant.gift {
            Gift::OpenUntil { until } => Some(until.min(grant.lapses_at)),
            Gift::Extra { .. } => None,
        };
        let opened =
            until.filter(|until| time < *until).map(|until| Span::open_until(until, terms, time, now));
        // What is opened may end inside a window, which goes on.
        let left = || play.left.saturating_add(extra(grant) + window);
        play.left = if opened.is_some() { Duration::MAX } else { left() };
        // More of a budget is not a longer run, but it may be one by the rules that apply by now.
        let of_a_budget = matches!(grant.scope, Scope::Budget { .. }) && !play.is_superseded();
        let run = if of_a_budget { Duration::ZERO } else { extra(grant) };
        play.gifts.push(Given { grant_id: grant.grant_id.clone(), run, window, opened });
    }

    /// Somebody took something back.
    pub(super) fn take_back(&mut self, grant_id: &GrantId, now: Now) {
        let time = self.watch.time(now);
        let grant = self.grants.iter_mut().find(|grant| grant.grant_id == *grant_id).unwrap();
        let held = grant.holds_at(time);
        grant.revoked_at = Some(time);
        if let Some(play) = &mut self.play {
            play.take_back(&self.terms);
            play.gifts.retain(|gift| gift.grant_id != *grant_id);
            if !held {
                play.kept.insert(grant_id.clone());
            }
        }
    }
}
