//! What can happen in a household.

use std::rc::Rc;

use jiff::SignedDuration;
use shepherd_api::{StopMode, StopRequester};
use shepherd_core::{LaunchDecision, LaunchRequest, StopDecision, StopRequest};
use shepherd_util::SessionId;

use super::book::Terms;
use super::household::{CHILDREN, ENTRIES, MODES, ZONES, household};
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
const ACTS: [(Act, usize); 16] = [
    (Act::Launch, 10),
    (Act::Pass, 8),
    (Act::Exit, 2),
    (Act::Stop, 1),
    (Act::Extend, 2),
    (Act::Grant, 2),
    (Act::Revoke, 1),
    (Act::AskForTime, 1),
    (Act::Reload, 2),
    (Act::Sleep, 2),
    (Act::SetClock, 2),
    (Act::ChangeZone, 1),
    (Act::ConfirmClock, 1),
    (Act::SwitchMode, 1),
    (Act::BreakOrMendStore, 1),
    (Act::Crash, 3),
];

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
        let acts = ACTS.iter().flat_map(|(act, often)| std::iter::repeat_n(*act, *often));
        let act = *self.dice.pick(&acts.collect::<Vec<_>>());
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
                self.check_may_give();
                self.truth.approve(child, entry, now);
                self.host = Host::Launching(request.session_id.clone());
                self.world.pulse();
                self.write();
                if matches!(self.store, Store::Broken { .. }) {
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

    fn reload(&mut self) {
        self.look();
        let policy = household(&mut self.dice, self.first);
        let now = self.world.now();
        let suspended_time = self.truth.terms.policy.rules().suspended_time;
        if matches!(self.store, Store::Broken { .. }) && policy.rules().suspended_time != suspended_time {
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
        self.truth.upset();
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
        if matches!(self.store, Store::Broken { .. }) {
            self.store = Store::Works;
            self.world.engine.store_works();
        } else if !matches!(self.host, Host::Launching(_)) {
            self.store = Store::Broken { before: Box::new(self.truth.clone()), known: false };
        }
        self.turn();
    }
}
