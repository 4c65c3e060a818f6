//! The actions of a simulation.

use std::rc::Rc;

use jiff::SignedDuration;
use shepherd_api::{StopMode, StopRequester};
use shepherd_core::{LaunchDecision, LaunchRequest, StopDecision, StopRequest};
use shepherd_util::SessionId;

use super::household::{CHILDREN, ENTRIES, MODES, ZONES, random_policy};
use super::runner::{HouseholdSimulation, SimulatedHost, SimulatedStore};
use super::usage_model::PolicyTerms;
use crate::harness::zone;

#[derive(Clone, Copy, Debug)]
enum SimulatedAction {
    Launch,
    PassTime,
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
    ToggleStoreFailure,
    Crash,
}

/// The actions and how often each is chosen.
const ACTION_WEIGHTS: [(SimulatedAction, usize); 16] = [
    (SimulatedAction::Launch, 10),
    (SimulatedAction::PassTime, 8),
    (SimulatedAction::Exit, 2),
    (SimulatedAction::Stop, 1),
    (SimulatedAction::Extend, 2),
    (SimulatedAction::Grant, 2),
    (SimulatedAction::Revoke, 1),
    (SimulatedAction::AskForTime, 1),
    (SimulatedAction::Reload, 2),
    (SimulatedAction::Sleep, 2),
    (SimulatedAction::SetClock, 2),
    (SimulatedAction::ChangeZone, 1),
    (SimulatedAction::ConfirmClock, 1),
    (SimulatedAction::SwitchMode, 1),
    (SimulatedAction::ToggleStoreFailure, 1),
    (SimulatedAction::Crash, 3),
];

impl HouseholdSimulation {
    pub(super) fn step(&mut self) {
        // A program that ignored the request to end is killed by the host, unless the daemon crashes first.
        if self.is_end_requested() {
            let resists = self.rng.seconds(5);
            self.pass_time(resists);
            if self.rng.percent(20) {
                return self.run_action(SimulatedAction::Crash);
            }
            self.exit();
            self.run_due_ticks();
        }
        let acts = ACTION_WEIGHTS.iter().flat_map(|(act, often)| std::iter::repeat_n(*act, *often));
        let act = *self.rng.pick(&acts.collect::<Vec<_>>());
        self.log_line(|simulation| {
            let now = simulation.world.now();
            format!("{:.3?} {} {act:?} {:?}", now.mono.total(), now.wall, simulation.host)
        });
        self.run_action(act);
    }

    fn run_action(&mut self, act: SimulatedAction) {
        match act {
            SimulatedAction::Launch => self.launch(),
            SimulatedAction::PassTime => {
                let length = self.rng.seconds(2_400);
                self.pass_time(length);
            }
            SimulatedAction::Exit => {
                self.exit();
                self.run_due_ticks();
            }
            SimulatedAction::Stop => self.stop(),
            SimulatedAction::Extend => self.extend(),
            SimulatedAction::Grant => self.grant(),
            SimulatedAction::Revoke => self.revoke(),
            SimulatedAction::AskForTime => self.ask_for_time(),
            SimulatedAction::Reload => self.reload(),
            SimulatedAction::Sleep => self.sleep(),
            SimulatedAction::SetClock => self.set_clock(),
            SimulatedAction::ChangeZone => self.change_zone(),
            SimulatedAction::ConfirmClock => self.confirm_clock(),
            SimulatedAction::SwitchMode => self.switch_mode(),
            SimulatedAction::ToggleStoreFailure => self.toggle_store_failure(),
            SimulatedAction::Crash => self.crash(),
        }
    }

    fn launch(&mut self) {
        // A launch in progress succeeds or fails first.
        if let SimulatedHost::Launching(session_id) = self.host.clone() {
            return self.finish_launch(&session_id);
        }
        let child = usize::from(self.rng.percent(20));
        if self.model.session.as_ref().is_some_and(|play| play.child != child) {
            return;
        }
        self.observe_clock();
        // Most children choose an entry that is shown as available.
        let shown = if self.rng.percent(60) { self.pick_shown_entry(child) } else { None };
        let entry = shown.unwrap_or_else(|| self.rng.index(ENTRIES.len()));
        let request = LaunchRequest {
            entry_id: ENTRIES[entry].parse().unwrap(),
            profile: Some(CHILDREN[child].parse().unwrap()),
            session_id: SessionId::from_random(self.next_id()),
            actor: "child".to_owned(),
            display: None,
        };
        let now = self.world.now();
        let decision = self.world.engine.request_launch(&request, now);
        self.log_line(|_| format!("  {decision:?}"));
        match decision {
            LaunchDecision::Denied { reasons } => {
                assert!(!reasons.is_empty(), "a denial without a reason");
                assert!(shown.is_none(), "it was shown as open, and denied: {reasons:?}");
                self.counts.denied += 1;
                self.apply_events(&[]);
            }
            LaunchDecision::Approved(_) => {
                assert_eq!(self.host, SimulatedHost::Idle, "two sessions on one seat");
                self.assert_store_works();
                self.model.check_approval(child, entry, now);
                self.host = SimulatedHost::Launching(request.session_id.clone());
                self.world.write_heartbeat();
                self.sync_store();
                if matches!(self.store, SimulatedStore::Broken { .. }) {
                    // A launch that can't be recorded is not granted.
                    self.fail_launch(&request.session_id);
                    return;
                }
                self.counts.approved += 1;
                self.run_due_ticks();
                if self.rng.percent(85) {
                    self.finish_launch(&request.session_id);
                }
            }
        }
    }

    /// Returns a random entry that is shown as available, if there is one.
    fn pick_shown_entry(&mut self, child: usize) -> Option<usize> {
        let profile = CHILDREN[child].parse().unwrap();
        let views = self.world.engine.list_entries_for(&profile, self.world.now());
        let open: Vec<_> =
            views.iter().filter(|view| view.enabled).map(|view| view.entry_id.as_str()).collect();
        if open.is_empty() {
            return None;
        }
        let chosen = *self.rng.pick(&open);
        ENTRIES.iter().position(|id| *id == chosen)
    }

    fn finish_launch(&mut self, session_id: &SessionId) {
        let takes = self.rng.seconds(20);
        self.pass_time(takes);
        if self.host != SimulatedHost::Launching(session_id.clone()) {
            return;
        }
        if self.rng.percent(8) {
            return self.fail_launch(session_id);
        }
        self.observe_clock();
        let now = self.world.now();
        self.host = SimulatedHost::Playing(session_id.clone());
        self.model.program_started(now.mono, now);
        let events = self.world.engine.start_session(session_id, "handle".to_owned(), now).unwrap();
        self.apply_events(&events);
    }

    fn fail_launch(&mut self, session_id: &SessionId) {
        self.observe_clock();
        self.host = SimulatedHost::Idle;
        let events = self.world.engine.launch_failed(session_id, "no".to_owned(), self.world.now());
        self.apply_events(&events);
    }

    fn stop(&mut self) {
        self.observe_clock();
        let request = StopRequest {
            by: *self.rng.pick(&[StopRequester::User, StopRequester::Admin]),
            mode: StopMode::Force,
            actor: "parent".to_owned(),
        };
        match self.world.engine.stop_current(&request, self.world.now()) {
            StopDecision::NothingToStop => assert_eq!(self.host, SimulatedHost::Idle),
            StopDecision::Stop { .. } => {
                self.model.session.as_mut().unwrap().end_requested = true;
                self.sync_store();
                // With a broken store, nobody could know how long a program ignored the request.
                if self.rng.percent(70) || matches!(self.store, SimulatedStore::Broken { .. }) {
                    self.exit();
                }
            }
        }
        self.apply_events(&[]);
    }

    fn reload(&mut self) {
        self.observe_clock();
        let policy = random_policy(&mut self.rng, self.first);
        let now = self.world.now();
        let suspended_time = self.model.terms.policy.rules().suspended_time;
        if matches!(self.store, SimulatedStore::Broken { .. })
            && policy.rules().suspended_time != suspended_time
        {
            // The model could not tell how earlier sleep was counted, so skip this reload.
            return;
        }
        let zone = policy.rules().zone.clone().unwrap_or_else(|| self.world.place.zone.clone());
        let terms =
            PolicyTerms { policy: Rc::new(policy.clone()), mode: self.model.terms.mode.clone(), zone };
        self.model.reload(terms, now);
        let events = self.world.engine.reload(policy, None, "parent", now);
        self.apply_events(&events);
    }

    fn sleep(&mut self) {
        let asleep = self.rng.seconds(20_000);
        self.world.clock.suspend(asleep);
        self.model.drop_superseded_day_bounds();
        self.run_due_ticks();
    }

    /// Moves the clock by minutes, hours or days, forward or back.
    fn set_clock(&mut self) {
        let unit = *self.rng.pick(&[1, 47, 60, 24 * 60]);
        let by = i64::try_from(self.rng.roll(60)).unwrap() - 30;
        let by = if unit > 60 { by / 8 } else { by };
        self.world.clock.move_wall(SignedDuration::from_mins(by * unit));
        self.model.drop_superseded_day_bounds();
        self.run_due_ticks();
    }

    fn change_zone(&mut self) {
        self.observe_clock();
        let zone = zone(self.rng.pick::<&str>(&ZONES));
        self.world.place.zone = zone.clone();
        if self.model.terms.policy.rules().zone.is_none() {
            self.model.terms.zone = zone.clone();
        }
        self.model.drop_superseded_day_bounds();
        self.observe_clock();
        let events = self.world.engine.zone_changed(zone, self.world.now());
        self.apply_events(&events);
    }

    fn confirm_clock(&mut self) {
        let now = self.world.now();
        // Usage on days far ahead is charged again to the days on which it was really used.
        self.observe_clock();
        self.model.correct_to_earlier_day(now);
        self.model.confirm_clock(now);
        self.model.drop_superseded_day_bounds();
        self.observe_clock();
        let events = self.world.engine.confirm_clock("parent", now);
        self.apply_events(&events);
    }

    fn switch_mode(&mut self) {
        self.observe_clock();
        let mode = self.rng.random_option(70, |rng| (*rng.pick(&MODES)).to_owned());
        self.model.terms.mode.clone_from(&mode);
        if let Some(play) = &mut self.model.session {
            play.supersede_plans();
        }
        let events = self.world.engine.switch_mode(mode, "parent", self.world.now()).unwrap();
        self.apply_events(&events);
    }

    fn toggle_store_failure(&mut self) {
        if matches!(self.store, SimulatedStore::Broken { .. }) {
            self.store = SimulatedStore::Works;
            self.world.engine.store_recovered();
        } else if !matches!(self.host, SimulatedHost::Launching(_)) {
            self.store = SimulatedStore::Broken { before: Box::new(self.model.clone()), known: false };
        }
        self.run_due_ticks();
    }
}
