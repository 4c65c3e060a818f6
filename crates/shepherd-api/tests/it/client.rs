//! A client that applied every event sees the same state as a client that asked just now.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use shepherd_api::{
    API_VERSION, ClientState, DaemonStateSnapshot, EndReason, Event, EventKind, Millis, RequiredRefresh,
    SessionCounting, SessionPhase, SessionSlot, SessionView, WarningSeverity,
};
use shepherd_util::SessionId;

/// A daemon that performs every action and reports it.
#[derive(Clone, Debug)]
struct SimulatedDaemon {
    state: DaemonStateSnapshot,
    launched: u128,
    changes: usize,
}

#[derive(Clone, Debug)]
enum DaemonAction {
    Wait(u32),
    Suspend(u32),
    Launch(Option<u32>),
    Start,
    Warn,
    Extend(u32),
    StopCounting,
    Expire,
    End,
    EndAnother,
    Reload(usize),
    Switch(String),
    Trust(bool),
    Open,
}

fn actions_strategy() -> impl Strategy<Value = Vec<DaemonAction>> {
    let step = prop_oneof![
        any::<u32>().prop_map(DaemonAction::Wait),
        any::<u32>().prop_map(DaemonAction::Suspend),
        prop::option::of(any::<u32>()).prop_map(DaemonAction::Launch),
        Just(DaemonAction::Start),
        Just(DaemonAction::Warn),
        any::<u32>().prop_map(DaemonAction::Extend),
        Just(DaemonAction::StopCounting),
        Just(DaemonAction::Expire),
        Just(DaemonAction::End),
        Just(DaemonAction::EndAnother),
        any::<u16>().prop_map(|count| DaemonAction::Reload(count.into())),
        "[a-z]{1,5}".prop_map(DaemonAction::Switch),
        any::<bool>().prop_map(DaemonAction::Trust),
        Just(DaemonAction::Open),
    ];
    prop::collection::vec(step, 0..40)
}

impl SimulatedDaemon {
    fn new() -> Self {
        let state = DaemonStateSnapshot {
            api_version: API_VERSION,
            at: "2026-03-28T09:00:00Z".parse().unwrap(),
            session: None,
            sessions: Vec::new(),
            entry_count: 3,
            mode: String::new(),
            clock_trusted: true,
            profiles: Vec::new(),
            language: None,
        };
        Self { state, launched: 0, changes: 0 }
    }

    /// Performs an action, and returns the event for clients.
    fn perform(&mut self, step: &DaemonAction) -> Option<EventKind> {
        match step {
            DaemonAction::Wait(millis) => {
                self.advance_clock(*millis);
                let counting = self.state.sessions.iter_mut();
                for session in counting.filter(|session| session.counting != SessionCounting::Stopped) {
                    if let Some(Millis(remaining)) = &mut session.remaining {
                        *remaining = remaining.saturating_sub((*millis).into());
                    }
                }
                self.update_primary_session();
                None
            }
            DaemonAction::Suspend(millis) => {
                self.advance_clock(*millis);
                Some(EventKind::StateChanged { snapshot: self.state.clone() })
            }
            DaemonAction::Launch(max_run) => {
                if self.state.sessions.len() >= 3 {
                    return None;
                }
                self.launched += 1;
                let session = SessionView {
                    session_id: SessionId::from_random(self.launched),
                    entry_id: "tuxmath".parse().unwrap(),
                    label: "Tux Math".to_owned(),
                    profile: "mia".parse().unwrap(),
                    slot: if self.launched.is_multiple_of(3) {
                        SessionSlot::Background
                    } else {
                        SessionSlot::Foreground
                    },
                    counting: SessionCounting::Active,
                    phase: SessionPhase::Launching,
                    warned: None,
                    started_at: self.state.at,
                    remaining: max_run.map(|millis| Millis(millis.into())),
                    hours_end: None,
                    ran: None,
                };
                self.state.sessions.push(session.clone());
                self.update_primary_session();
                Some(EventKind::SessionLaunching { session })
            }
            DaemonAction::Start => self
                .set_session_phase(SessionPhase::Running)
                .map(|session| EventKind::SessionStarted { session }),
            DaemonAction::Warn => {
                self.set_session_phase(SessionPhase::Warned).map(|session| EventKind::WarningIssued {
                    session,
                    threshold_secs: 60,
                    severity: WarningSeverity::Warn,
                    message: "soon".to_owned(),
                })
            }
            DaemonAction::Extend(millis) => {
                let extend = |session: &mut SessionView| {
                    session.remaining =
                        session.remaining.map(|Millis(left)| Millis(left + u64::from(*millis)));
                };
                self.change_session(extend).map(|session| EventKind::DeadlineChanged { session })
            }
            DaemonAction::StopCounting => {
                let session = self.change_session(|session| session.counting = SessionCounting::Stopped)?;
                Some(EventKind::DeadlineChanged { session })
            }
            DaemonAction::Expire => {
                let session = self.set_session_phase(SessionPhase::Expiring)?;
                Some(EventKind::SessionExpired { session, end: EndReason::Expired })
            }
            DaemonAction::End => {
                let session_id = self.state.sessions.pop()?.session_id;
                self.update_primary_session();
                Some(EventKind::SessionEnded { session_id, end: EndReason::Expired })
            }
            DaemonAction::EndAnother => {
                let session_id = SessionId::from_random(0);
                Some(EventKind::SessionEnded { session_id, end: EndReason::Lost })
            }
            DaemonAction::Reload(entry_count) => {
                self.state.entry_count = *entry_count;
                Some(EventKind::PolicyReloaded { entry_count: *entry_count, language: None })
            }
            DaemonAction::Switch(mode) => {
                self.state.mode.clone_from(mode);
                Some(EventKind::ModeSwitched { mode: mode.clone() })
            }
            DaemonAction::Trust(trusted) => {
                self.state.clock_trusted = *trusted;
                Some(EventKind::ClockTrustChanged { trusted: *trusted })
            }
            DaemonAction::Open => Some(EventKind::EntriesChanged {}),
        }
    }

    fn advance_clock(&mut self, millis: u32) {
        self.state.at += SignedDuration::from_millis(millis.into());
    }

    fn set_session_phase(&mut self, phase: SessionPhase) -> Option<SessionView> {
        self.change_session(|session| session.phase = phase)
    }

    /// Changes the session whose turn it is.
    fn change_session(&mut self, change: impl FnOnce(&mut SessionView)) -> Option<SessionView> {
        self.changes += 1;
        let count = self.state.sessions.len();
        let session = self.state.sessions.get_mut(self.changes.checked_rem(count)?)?;
        change(session);
        let session = session.clone();
        self.update_primary_session();
        Some(session)
    }

    fn update_primary_session(&mut self) {
        self.state.session = DaemonStateSnapshot::primary_session(&self.state.sessions).cloned();
    }
}

proptest! {
    #[test]
    fn events_lead_to_the_same_picture_as_a_fresh_snapshot(steps in actions_strategy()) {
        let mut daemon = SimulatedDaemon::new();
        let mut client = ClientState::new(daemon.state.clone());
        for step in &steps {
            if let Some(kind) = daemon.perform(step) {
                let refresh = client.apply(&Event { at: daemon.state.at, kind });
                prop_assert_ne!(refresh, RequiredRefresh::Everything);
            }
            let fresh = ClientState::new(daemon.state.clone());
            prop_assert_eq!(client.snapshot_at(daemon.state.at), daemon.state.clone());
            let later = daemon.state.at + SignedDuration::from_secs(77);
            prop_assert_eq!(client.snapshot_at(later), fresh.snapshot_at(later));
        }
    }

    #[test]
    fn a_client_never_shows_more_time_than_the_daemon_reported(
        reported in any::<u64>(),
        at in crate::generated::any_timestamp(),
        looked_at in crate::generated::any_timestamp(),
    ) {
        let mut daemon = SimulatedDaemon::new();
        daemon.state.at = at;
        daemon.perform(&DaemonAction::Launch(Some(0)));
        daemon.state.sessions[0].remaining = Some(Millis(reported));
        let shown = ClientState::new(daemon.state).snapshot_at(looked_at).session.unwrap().remaining.unwrap();
        prop_assert!(shown <= Millis(reported));
    }
}

#[test]
fn an_unknown_event_makes_the_client_refresh() {
    let mut client = ClientState::new(SimulatedDaemon::new().state);
    let event = Event { at: Timestamp::UNIX_EPOCH, kind: EventKind::Unknown };
    assert_eq!(client.apply(&event), RequiredRefresh::Everything);
}

#[test]
fn the_run_time_is_counted_up_while_the_program_runs() {
    let mut daemon = SimulatedDaemon::new();
    daemon.perform(&DaemonAction::Launch(Some(60_000)));
    let shown = |phase: SessionPhase| {
        let mut state = daemon.state.clone();
        let session = &mut state.sessions[0];
        (session.ran, session.phase) = (Some(Millis(5_000)), phase);
        let later = state.at + SignedDuration::from_secs(10);
        ClientState::new(state).snapshot_at(later).session.unwrap().ran
    };
    assert_eq!(shown(SessionPhase::Running), Some(Millis(15_000)));
    assert_eq!(shown(SessionPhase::Launching), Some(Millis(5_000)));
}
