//! What can happen in a household.

use std::rc::Rc;
use std::time::Duration;

use jiff::SignedDuration;
use shepherd_api::{Gift, GrantView, Scope, StopMode, StopRequester};
use shepherd_core::{LaunchDecision, LaunchRequest, NewGrant, NewRequest, StopDecision, StopRequest};
use shepherd_util::{GrantId, RequestId, SessionId};

use super::book::Terms;
use super::household::{BUDGETS, CHILDREN, ENTRIES, MODES, ZONES, household};
use super::life::{Host, Life, Store};
use crate::harness::zone;

#[derive(Clone, Copy, Debug)]
enum Act {
    Launch,
    Pass,
    Exit,
    Stop,
    Extend,
    Grant,
    Revoke,
    AskForTime,
    Reload,
    Sleep,
    SetClock,
    ChangeZone,
    ConfirmClock,
    SwitchMode,
    BreakOrMendStore,
    Crash,
}

/// Each as often as it is likely.
const ACTS: [Act; 40] = {
    use Act::*;
    [
        Launch,
        Launch,
        Launch,
        Launch,
        Launch,
        Launch,
        Launch,
        Launch,
        Launch,
        Launch,
        Pass,
        Pass,
        Pass,
        Pass,
        Pass,
        Pass,
        Pass,
        Pass,
        Exit,
        Exit,
        Stop,
        Extend,
        Extend,
        Grant,
        Grant,
        Revoke,
        AskForTime,
        Reload,
        Reload,
        Sleep,
        Sleep,
        SetClock,
        SetClock,
        ChangeZone,
        ConfirmClock,
        SwitchMode,
        BreakOrMendStore,
        Crash,
        Crash,
        Crash,
    ]
};

impl Life {
    pub(super) fn step(&mut self) {
        // A program that resisted its end is made to by the host, if nothing happens to the daemon.
        if self.is_told_to_end() {
            let resists = self.dice.seconds(5);
            self.pass(resists);
            if self.dice.percent(20) {
                return self.act(Act::Crash);
            }
            self.exit();
            self.turn();
        }
        let act = *self.dice.pick(&ACTS);
        self.say(|life| {
            let now = life.world.now();
            format!("{:.3?} {} {act:?} {:?}", now.mono.total(), now.wall, life.host)
        });
        self.act(act);
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Launch => self.launch(),
            Act::Pass => {
                let length = self.dice.seconds(2_400);
                self.pass(length);
            }
            Act::Exit => {
                self.exit();
                self.turn();
            }
            Act::Stop => self.stop(),
            Act::Extend => self.extend(),
            Act::Grant => self.grant(),
            Act::Revoke => self.revoke(),
            Act::AskForTime => self.ask_for_time(),
            Act::Reload => self.reload(),
            Act::Sleep => self.sleep(),
            Act::SetClock => self.set_clock(),
            Act::ChangeZone => self.change_zone(),
            Act::ConfirmClock => self.confirm_clock(),
            Act::SwitchMode => self.switch_mode(),
            Act::BreakOrMendStore => self.break_or_mend_store(),
            Act::Crash => self.crash(),
        }
    }

    fn launch(&mut self) {
        // What is being launched comes up, or does not.
        if let Host::Launching(session_id) = self.host.clone() {
            return self.finish_launch(&session_id);
        }
        let child = usize::from(self.dice.percent(20));
        self.look();
        // Most children look first at what they are shown.
        let shown = if self.dice.percent(60) { self.shown(child) } else { None };
        let entry = shown.unwrap_or_else(|| self.dice.index(ENTRIES.len()));
        let request = LaunchRequest {
            entry_id: ENTRIES[entry].parse().unwrap(),
            profile: Some(CHILDREN[child].parse().unwrap()),
            session_id: SessionId::from_random(self.next_id()),
            actor: "child".to_owned(),
        };
        let now = self.world.now();
        let decision = self.world.engine.request_launch(&request, now);
        self.say(|_| format!("  {decision:?}"));
        match decision {
            LaunchDecision::Denied { reasons } => {
                assert!(!reasons.is_empty(), "a denial without a reason");
                assert!(shown.is_none(), "it was shown as open, and denied: {reasons:?}");
                self.tally.denied += 1;
                self.carry_out(&[]);
            }
            LaunchDecision::Approved(_) => {
                assert_eq!(self.host, Host::Idle, "two sessions on one seat");
                self.truth.approve(child, entry, now);
                self.host = Host::Launching(request.session_id.clone());
                self.write();
                if matches!(self.store, Store::Broken(_)) {
                    // What could not be written is not granted.
                    self.fail_launch(&request.session_id);
                    return;
                }
                self.tally.approved += 1;
                self.turn();
                if self.dice.percent(85) {
                    self.finish_launch(&request.session_id);
                }
            }
        }
    }

    /// One of the entries that are shown as open, if any is.
    fn shown(&mut self, child: usize) -> Option<usize> {
        let profile = CHILDREN[child].parse().unwrap();
        let views = self.world.engine.list_entries_for(&profile, self.world.now());
        let open: Vec<_> =
            views.iter().filter(|view| view.enabled).map(|view| view.entry_id.as_str()).collect();
        if open.is_empty() {
            return None;
        }
        let chosen = *self.dice.pick(&open);
        ENTRIES.iter().position(|id| *id == chosen)
    }

    fn finish_launch(&mut self, session_id: &SessionId) {
        let takes = self.dice.seconds(20);
        self.pass(takes);
        if self.host != Host::Launching(session_id.clone()) {
            return;
        }
        if self.dice.percent(8) {
            return self.fail_launch(session_id);
        }
        self.look();
        let now = self.world.now();
        self.host = Host::Playing(session_id.clone());
        self.truth.start(now.mono, now);
        let events = self.world.engine.start_session(session_id, "handle".to_owned(), now).unwrap();
        self.carry_out(&events);
    }

    fn fail_launch(&mut self, session_id: &SessionId) {
        self.look();
        self.host = Host::Idle;
        let events = self.world.engine.launch_failed(session_id, "no".to_owned(), self.world.now());
        self.carry_out(&events);
    }

    fn stop(&mut self) {
        self.look();
        let request = StopRequest {
            by: *self.dice.pick(&[StopRequester::User, StopRequester::Admin]),
            mode: StopMode::Force,
            actor: "parent".to_owned(),
        };
        match self.world.engine.stop_current(&request, self.world.now()) {
            StopDecision::NothingToStop => assert_eq!(self.host, Host::Idle),
            StopDecision::Stop { .. } => {
                self.truth.play.as_mut().unwrap().told_to_end = true;
                self.write();
                if self.dice.percent(70) {
                    self.exit();
                }
            }
        }
        self.carry_out(&[]);
    }

    fn extend(&mut self) {
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
        let grants = &self.world.engine.snapshot().grants;
        grants.iter().find(|grant| grant.grant_id == *id).expect("a grant is on record").clone()
    }

    fn grant(&mut self) {
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

    fn revoke(&mut self) {
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

    fn ask_for_time(&mut self) {
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

    fn reload(&mut self) {
        self.look();
        let policy = household(&mut self.dice, self.first);
        let now = self.world.now();
        let suspended_time = self.truth.terms.policy.rules().suspended_time;
        if matches!(self.store, Store::Broken(_)) && policy.rules().suspended_time != suspended_time {
            // How sleep was counted until now could not be written down.
            return;
        }
        let zone = policy.rules().zone.clone().unwrap_or_else(|| self.world.place.zone.clone());
        let terms = Terms { policy: Rc::new(policy.clone()), mode: self.truth.terms.mode.clone(), zone };
        self.truth.reload(terms, now);
        let events = self.world.engine.reload(policy, None, "parent", now);
        self.carry_out(&events);
    }

    fn sleep(&mut self) {
        let asleep = self.dice.seconds(20_000);
        self.world.clock.suspend(asleep);
        self.turn();
    }

    /// By minutes, hours or days, forward or back.
    fn set_clock(&mut self) {
        let unit = *self.dice.pick(&[1, 47, 60, 24 * 60]);
        let by = i64::try_from(self.dice.roll(60)).unwrap() - 30;
        let by = if unit > 60 { by / 8 } else { by };
        self.world.clock.move_wall(SignedDuration::from_mins(by * unit));
        self.truth.upset();
        self.turn();
    }

    fn change_zone(&mut self) {
        self.look();
        let zone = zone(self.dice.pick::<&str>(&ZONES));
        self.world.place.zone = zone.clone();
        if self.truth.terms.policy.rules().zone.is_none() {
            self.truth.terms.zone = zone.clone();
        }
        self.truth.upset();
        self.look();
        let events = self.world.engine.zone_changed(zone, self.world.now());
        self.carry_out(&events);
    }

    fn confirm_clock(&mut self) {
        let now = self.world.now();
        self.truth.watch.confirm(now);
        self.truth.upset();
        self.look();
        let events = self.world.engine.confirm_clock("parent", now);
        self.carry_out(&events);
    }

    fn switch_mode(&mut self) {
        self.look();
        let mode = self.dice.maybe(70, |dice| (*dice.pick(&MODES)).to_owned());
        self.truth.terms.mode.clone_from(&mode);
        if let Some(play) = &mut self.truth.play {
            play.supersede();
        }
        let events = self.world.engine.switch_mode(mode, "parent", self.world.now()).unwrap();
        self.carry_out(&events);
    }

    fn break_or_mend_store(&mut self) {
        if matches!(self.store, Store::Broken(_)) {
            self.store = Store::Works;
            self.world.engine.store_works();
        } else if !matches!(self.host, Host::Launching(_)) {
            self.store = Store::Broken(Box::new(self.truth.clone()));
        }
        self.turn();
    }
}
