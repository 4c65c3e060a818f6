//! The world that outlives a fake host, as the machine outlives a daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shepherd_util::{EntryId, SessionId};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::program::{Act, Program};
use super::{FakeHost, FakeOrder, FakeProgram, FakeStart};
use crate::{ExitStatus, HostEvent, HostEvents, HostSessionHandle, SpawnFailure, SpawnOrder, StopOrder};

/// Where fake programs run. A handle: every clone is the same world.
#[derive(Clone, Debug, Default)]
pub struct FakeWorld(Arc<Mutex<State>>);

#[derive(Debug, Default)]
pub(super) struct State {
    now: Duration,
    scripts: BTreeMap<EntryId, FakeProgram>,
    pub(super) programs: BTreeMap<SessionId, Program>,
    over: BTreeSet<SessionId>,
    pub(super) orders: Vec<FakeOrder>,
    /// What is said before anybody listens.
    unheard: Vec<HostEvent>,
    events: Option<UnboundedSender<HostEvent>>,
}

impl FakeWorld {
    /// A host in this world. One that was there before is as dead as a daemon that was killed: what runs goes on, and
    /// this one knows nothing of it until it takes it back.
    #[must_use]
    pub fn host(&self) -> FakeHost {
        let mut state = self.state();
        state.events = None;
        state.unheard.clear();
        state.over.clear();
        state.programs.retain(|_, program| program.has_started());
        state.programs.values_mut().for_each(|program| program.attached = false);
        drop(state);
        FakeHost::new(self.clone())
    }

    /// What the programs of an entry do from now on.
    pub fn script(&self, entry_id: &EntryId, program: FakeProgram) {
        self.state().scripts.insert(entry_id.clone(), program);
    }

    /// Time passes, and what was to happen in it happens, in order.
    pub fn elapse(&self, duration: Duration) {
        self.state().elapse(duration);
    }

    /// A program ends now. Whether there was one.
    pub fn end(&self, session_id: &SessionId, status: ExitStatus) -> bool {
        self.state().end(session_id, status)
    }

    /// The host reports something.
    pub fn report(&self, event: HostEvent) {
        self.state().say(event);
    }

    /// Which programs run.
    #[must_use]
    pub fn running(&self) -> Vec<SessionId> {
        let state = self.state();
        let running = state.programs.iter().filter(|(_, program)| program.has_started());
        running.map(|(session_id, _)| session_id.clone()).collect()
    }

    /// All orders so far.
    #[must_use]
    pub fn orders(&self) -> Vec<FakeOrder> {
        self.state().orders.clone()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked was a test.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn subscribe(&mut self) -> HostEvents {
        let (sender, events) = unbounded_channel();
        self.events = Some(sender);
        std::mem::take(&mut self.unheard).into_iter().for_each(|event| self.say(event));
        events
    }

    pub(super) fn spawn(&mut self, order: &SpawnOrder) {
        let script = self.scripts.get(&order.entry.entry_id).cloned().unwrap_or_default();
        let session_id = order.session_id.clone();
        let starts = match &script.start {
            FakeStart::AtOnce => self.now,
            FakeStart::After(wait) => self.now.saturating_add(*wait),
            FakeStart::Fails { detail } => {
                let failure = SpawnFailure { detail: detail.clone() };
                self.over.insert(session_id.clone());
                return self.say(HostEvent::SpawnFailed { session_id, failure });
            }
        };
        self.programs.insert(session_id, Program::new(script, starts));
        self.elapse(Duration::ZERO);
    }

    pub(super) fn stop(&mut self, order: &StopOrder) {
        match self.programs.get_mut(&order.session_id) {
            Some(program) if program.attached => program.stop(self.now, order.grace),
            _ if self.over.contains(&order.session_id) => {}
            _ => self.gone(&order.session_id),
        }
        self.elapse(Duration::ZERO);
    }

    pub(super) fn reattach(&mut self, session_id: &SessionId) {
        match self.programs.get_mut(session_id) {
            Some(program) => {
                program.attached = true;
                let (session_id, handle) = (session_id.clone(), handle(session_id));
                self.say(HostEvent::Reattached { session_id, handle });
            }
            None => self.gone(session_id),
        }
    }

    fn gone(&mut self, session_id: &SessionId) {
        self.over.insert(session_id.clone());
        self.say(HostEvent::Gone { session_id: session_id.clone() });
    }

    fn elapse(&mut self, duration: Duration) {
        let end = self.now.saturating_add(duration);
        while let Some((at, session_id, act)) = self.next_act().filter(|(at, ..)| *at <= end) {
            self.now = self.now.max(at);
            self.act(&session_id, act);
        }
        self.now = end;
    }

    fn next_act(&self) -> Option<(Duration, SessionId, Act)> {
        let acts = self.programs.iter().filter_map(|(session_id, program)| {
            let (at, act) = program.next()?;
            Some((at, session_id, act))
        });
        acts.min_by_key(|(at, ..)| *at).map(|(at, session_id, act)| (at, session_id.clone(), act))
    }

    fn act(&mut self, session_id: &SessionId, act: Act) {
        let Some(program) = self.programs.get_mut(session_id) else { return };
        program.did(act);
        let attached = program.attached;
        let event = match act {
            Act::Start => HostEvent::Spawned {
                session_id: session_id.clone(),
                handle: handle(session_id),
                output: None,
                shortcomings: Vec::new(),
            },
            Act::ShowWindow => HostEvent::WindowReady { session_id: session_id.clone() },
            Act::End(status) => {
                self.end(session_id, status);
                return;
            }
        };
        if attached {
            self.say(event);
        }
    }

    fn end(&mut self, session_id: &SessionId, status: ExitStatus) -> bool {
        let Some(program) = self.programs.remove(session_id) else { return false };
        if program.attached {
            self.over.insert(session_id.clone());
            self.say(HostEvent::Exited { session_id: session_id.clone(), status });
        }
        true
    }

    fn say(&mut self, event: HostEvent) {
        match &self.events {
            // Nobody has to listen.
            Some(events) => _ = events.send(event),
            None => self.unheard.push(event),
        }
    }
}

fn handle(session_id: &SessionId) -> HostSessionHandle {
    HostSessionHandle::new(format!("fake {session_id}"))
}
