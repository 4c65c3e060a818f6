//! The fake platform, which survives a fake host as a machine survives a daemon.

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

/// The place where fake programs run. Every clone is a handle to the same platform.
#[derive(Clone, Debug, Default)]
pub struct FakePlatform(Arc<Mutex<FakePlatformState>>);

#[derive(Debug, Default)]
pub(super) struct FakePlatformState {
    now: Duration,
    scripts: BTreeMap<EntryId, FakeProgram>,
    pub(super) programs: BTreeMap<SessionId, FakeProcess>,
    ended_sessions: BTreeSet<SessionId>,
    pub(super) requests: Vec<FakeHostRequest>,
    /// Events that were sent before anybody subscribed.
    undelivered: Vec<HostEvent>,
    events: Option<UnboundedSender<HostEvent>>,
}

impl FakePlatform {
    /// Makes a host on this platform, as if the daemon of the previous host had been killed: programs go on, and the
    /// new host knows nothing of them until it reattaches them.
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

    /// Sets the script that programs of an entry follow from now on.
    pub fn set_script(&self, entry_id: &EntryId, program: FakeProgram) {
        self.lock_state().scripts.insert(entry_id.clone(), program);
    }

    /// Lets time pass. All steps that are due in that time happen, in order.
    pub fn advance_time(&self, duration: Duration) {
        self.lock_state().advance_time(duration);
    }

    /// Ends a program now. Returns whether it existed.
    pub fn end_program(&self, session_id: &SessionId, status: ExitStatus) -> bool {
        self.lock_state().end_program(session_id, status)
    }

    /// Sends an event as if the host had reported it.
    pub fn emit_event(&self, event: HostEvent) {
        self.lock_state().emit(event);
    }

    /// Returns the sessions whose programs are running.
    #[must_use]
    pub fn running_sessions(&self) -> Vec<SessionId> {
        let state = self.lock_state();
        let running = state.programs.iter().filter(|(_, program)| program.has_started());
        running.map(|(session_id, _)| session_id.clone()).collect()
    }

    /// Returns all requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<FakeHostRequest> {
        self.lock_state().requests.clone()
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, FakePlatformState> {
        // Only a failing test can have poisoned the lock.
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

    pub(super) fn spawn(&mut self, request: &HostSpawnRequest) {
        let script = self.scripts.get(&request.entry.entry_id).cloned().unwrap_or_default();
        let session_id = request.session_id.clone();
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

    pub(super) fn stop(&mut self, request: &HostStopRequest) {
        match self.programs.get_mut(&request.session_id) {
            Some(program) if program.attached => program.stop(self.now, request.grace),
            _ if self.ended_sessions.contains(&request.session_id) => {}
            _ => self.report_gone(&request.session_id),
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
        while let Some((at, session_id, step)) = self.next_step().filter(|(at, ..)| *at <= end) {
            self.now = self.now.max(at);
            self.run_step(&session_id, step);
        }
        self.now = end;
    }

    fn next_step(&self) -> Option<(Duration, SessionId, FakeProcessStep)> {
        let steps = self.programs.iter().filter_map(|(session_id, program)| {
            let (at, step) = program.next_step()?;
            Some((at, session_id, step))
        });
        steps.min_by_key(|(at, ..)| *at).map(|(at, session_id, step)| (at, session_id.clone(), step))
    }

    fn run_step(&mut self, session_id: &SessionId, step: FakeProcessStep) {
        let Some(program) = self.programs.get_mut(session_id) else { return };
        program.record_step(step);
        let attached = program.attached;
        let event = match step {
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
            // Sending fails only if the subscriber is gone.
            Some(events) => _ = events.send(event),
            None => self.undelivered.push(event),
        }
    }
}

fn handle(session_id: &SessionId) -> HostSessionHandle {
    HostSessionHandle::new(format!("fake {session_id}"))
}
