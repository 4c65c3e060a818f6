//! The world that outlives a fake host, as the machine outlives a daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shepherd_util::{EntryId, SessionId};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::program::{FakeProcess, FakeProcessStep};
use super::{FakeHost, FakeHostRequest, FakeProgram, FakeStart};
use crate::{
    ExitStatus, HostEvent, HostEvents, HostSessionHandle, HostSpawnRequest, HostStopRequest, SpawnFailure,
};

/// Where fake programs run. A handle: every clone is the same world.
#[derive(Clone, Debug, Default)]
pub struct FakePlatform(Arc<Mutex<FakePlatformState>>);

#[derive(Debug, Default)]
pub(super) struct FakePlatformState {
    now: Duration,
    scripts: BTreeMap<EntryId, FakeProgram>,
    pub(super) programs: BTreeMap<SessionId, FakeProcess>,
    ended_sessions: BTreeSet<SessionId>,
    pub(super) requests: Vec<FakeHostRequest>,
    /// What is said before anybody listens.
    undelivered: Vec<HostEvent>,
    events: Option<UnboundedSender<HostEvent>>,
}

impl FakePlatform {
    /// A host in this world. One that was there before is as dead as a daemon that was killed: what runs goes on, and
    /// this one knows nothing of it until it takes it back.
    #[must_use]
    pub fn host(&self) -> FakeHost {
        let mut state = self.lock_state();
        state.events = None;
        state.undelivered.clear();
        state.ended_sessions.clear();
        state.programs.retain(|_, program| program.has_started());
        state.programs.values_mut().for_each(|program| program.attached = false);
        drop(state);
        FakeHost::new(self.clone())
    }

    /// What the programs of an entry do from now on.
    pub fn set_script(&self, entry_id: &EntryId, program: FakeProgram) {
        self.lock_state().scripts.insert(entry_id.clone(), program);
    }

    /// Time passes, and what was to happen in it happens, in order.
    pub fn advance_time(&self, duration: Duration) {
        self.lock_state().advance_time(duration);
    }

    /// A program ends now. Whether there was one.
    pub fn end_program(&self, session_id: &SessionId, status: ExitStatus) -> bool {
        self.lock_state().end_program(session_id, status)
    }

    /// The host reports something.
    pub fn emit_event(&self, event: HostEvent) {
        self.lock_state().emit(event);
    }

    /// Which programs run.
    #[must_use]
    pub fn running_sessions(&self) -> Vec<SessionId> {
        let state = self.lock_state();
        let running = state.programs.iter().filter(|(_, program)| program.has_started());
        running.map(|(session_id, _)| session_id.clone()).collect()
    }

    /// All orders so far.
    #[must_use]
    pub fn requests(&self) -> Vec<FakeHostRequest> {
        self.lock_state().requests.clone()
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, FakePlatformState> {
        // Whoever panicked was a test.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakePlatformState {
    pub(super) fn subscribe(&mut self) -> HostEvents {
        let (sender, events) = unbounded_channel();
        self.events = Some(sender);
        std::mem::take(&mut self.undelivered).into_iter().for_each(|event| self.emit(event));
        events
    }

    pub(super) fn spawn(&mut self, order: &HostSpawnRequest) {
        let script = self.scripts.get(&order.entry.entry_id).cloned().unwrap_or_default();
        let session_id = order.session_id.clone();
        let starts = match &script.start {
            FakeStart::AtOnce => self.now,
            FakeStart::After(wait) => self.now.saturating_add(*wait),
            FakeStart::Fails { detail } => {
                let failure = SpawnFailure { detail: detail.clone() };
                self.ended_sessions.insert(session_id.clone());
                return self.emit(HostEvent::SpawnFailed { session_id, failure });
            }
        };
        self.programs.insert(session_id, FakeProcess::new(script, starts));
        self.advance_time(Duration::ZERO);
    }

    pub(super) fn stop(&mut self, order: &HostStopRequest) {
        match self.programs.get_mut(&order.session_id) {
            Some(program) if program.attached => program.stop(self.now, order.grace),
            _ if self.ended_sessions.contains(&order.session_id) => {}
            _ => self.report_gone(&order.session_id),
        }
        self.advance_time(Duration::ZERO);
    }

    pub(super) fn reattach(&mut self, session_id: &SessionId) {
        match self.programs.get_mut(session_id) {
            Some(program) => {
                program.attached = true;
                let (session_id, handle) = (session_id.clone(), handle(session_id));
                self.emit(HostEvent::Reattached { session_id, handle });
            }
            None => self.report_gone(session_id),
        }
    }

    fn report_gone(&mut self, session_id: &SessionId) {
        self.ended_sessions.insert(session_id.clone());
        self.emit(HostEvent::Gone { session_id: session_id.clone() });
    }

    fn advance_time(&mut self, duration: Duration) {
        let end = self.now.saturating_add(duration);
        while let Some((at, session_id, act)) = self.next_step().filter(|(at, ..)| *at <= end) {
            self.now = self.now.max(at);
            self.run_step(&session_id, act);
        }
        self.now = end;
    }

    fn next_step(&self) -> Option<(Duration, SessionId, FakeProcessStep)> {
        let acts = self.programs.iter().filter_map(|(session_id, program)| {
            let (at, act) = program.next_step()?;
            Some((at, session_id, act))
        });
        acts.min_by_key(|(at, ..)| *at).map(|(at, session_id, act)| (at, session_id.clone(), act))
    }

    fn run_step(&mut self, session_id: &SessionId, act: FakeProcessStep) {
        let Some(program) = self.programs.get_mut(session_id) else { return };
        program.record_step(act);
        let attached = program.attached;
        let event = match act {
            FakeProcessStep::Start => HostEvent::Spawned {
                session_id: session_id.clone(),
                handle: handle(session_id),
                output: None,
                shortcomings: Vec::new(),
            },
            FakeProcessStep::ShowWindow => HostEvent::WindowReady { session_id: session_id.clone() },
            FakeProcessStep::End(status) => {
                self.end_program(session_id, status);
                return;
            }
        };
        if attached {
            self.emit(event);
        }
    }

    fn end_program(&mut self, session_id: &SessionId, status: ExitStatus) -> bool {
        let Some(program) = self.programs.remove(session_id) else { return false };
        if program.attached {
            self.ended_sessions.insert(session_id.clone());
            self.emit(HostEvent::Exited { session_id: session_id.clone(), status });
        }
        true
    }

    fn emit(&mut self, event: HostEvent) {
        match &self.events {
            // Nobody has to listen.
            Some(events) => _ = events.send(event),
            None => self.undelivered.push(event),
        }
    }
}

fn handle(session_id: &SessionId) -> HostSessionHandle {
    HostSessionHandle::new(format!("fake {session_id}"))
}
