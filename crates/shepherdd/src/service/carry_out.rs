//! From what the engine says to what is done: what takes something away at once, what grants something when it is
//! on disk (house rule: judge, write down, act).

use shepherd_api::{ApiError, AuditEvent, AuditKind, ErrorCode, Event, EventKind, Reply};
use shepherd_core::policy::Display;
use shepherd_core::{CoreEvent, Stage, StoreWrite, Undo};
use shepherd_host_api::{SpawnOrder, StopOrder};
use shepherd_util::{Now, SessionId};

use super::{Announced, RequestAddress, Service};
use crate::store_thread::{Awaited, HandedOver, NO_ANSWER, Report};

/// What a command has come to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The answer, when it is on record.
    reply: Reply,
    /// What the engine said.
    events: Vec<CoreEvent>,
    /// What else everybody is told.
    told: Vec<EventKind>,
    /// A program that may be started when that is on record.
    spawn: Option<Box<SpawnOrder>>,
    /// What there is to undo if it can't be recorded.
    undo: Undo,
}

impl Outcome {
    /// One that gives nothing.
    pub(super) fn new(reply: Reply, events: Vec<CoreEvent>) -> Self {
        Self { reply, events, told: Vec::new(), spawn: None, undo: Undo::Nothing }
    }

    pub(super) fn telling(self, told: impl IntoIterator<Item = EventKind>) -> Self {
        Self { told: told.into_iter().collect(), ..self }
    }

    pub(super) fn giving(self, undo: Undo) -> Self {
        Self { undo, ..self }
    }

    pub(super) fn starting(self, order: SpawnOrder) -> Self {
        let undo = Undo::Launch(order.session_id.clone());
        Self { spawn: Some(Box::new(order)), undo, ..self }
    }
}

/// What happens when a batch is durable.
pub(crate) struct Waiting {
    batch: u64,
    to: RequestAddress,
    outcome: Outcome,
}

impl Service {
    /// Does what the engine said, and tells everybody.
    pub(crate) fn carry_out(&mut self, events: Vec<CoreEvent>, now: Now) {
        let told = self.act(events, now);
        self.write(Vec::new(), Awaited::ByNobody, now);
        self.tell(told, now);
    }

    /// The same, for a command: its answer waits until what it changed is durable.
    pub(super) fn carry_out_for(&mut self, to: RequestAddress, mut outcome: Outcome, now: Now) {
        let told = self.act(std::mem::take(&mut outcome.events), now);
        outcome.told.splice(..0, told);
        match self.write(Vec::new(), Awaited::ByUs, now) {
            Some(HandedOver::Reported(batch)) => self.waiting.push_back(Waiting { batch, to, outcome }),
            Some(HandedOver::Crowded) => self.not_recorded(&to, outcome, NO_ANSWER, now),
            None => self.recorded(&to, outcome, now),
        }
    }

    /// Puts something on record that the engine has no part in.
    pub(crate) fn note(&mut self, actor: &str, what: AuditKind, now: Now) {
        let event = AuditEvent { at: now.wall, actor: actor.to_owned(), what };
        self.write(vec![StoreWrite::AppendAudit(Box::new(event))], Awaited::ByNobody, now);
    }

    /// Gives the orders that can't wait, and says what clients are to be told.
    fn act(&mut self, events: Vec<CoreEvent>, now: Now) -> Vec<EventKind> {
        let mut told = Vec::new();
        for event in events {
            match &event {
                CoreEvent::ExpireDue { session_id } => self.stop(session_id, now),
                CoreEvent::SessionStarted { session_id, entry_id, .. } => {
                    let display = self.engine.policy().entry(entry_id).map(|entry| entry.run.display);
                    if let Some(display) = display.filter(|display| *display != Display::AsItIs) {
                        self.host.show(session_id, display);
                    }
                }
                CoreEvent::Warning { .. }
                | CoreEvent::DeadlineChanged { .. }
                | CoreEvent::SessionEnded { .. }
                | CoreEvent::EntryAvailabilityChanged
                | CoreEvent::PolicyReloaded { .. } => {}
            }
            self.metrics.count(&event);
            told.push(self.engine.event_kind(&event, now));
        }
        told
    }

    fn stop(&mut self, session_id: &SessionId, now: Now) {
        let session = self.engine.snapshot().session.as_ref();
        let session = session.filter(|session| session.session_id == *session_id);
        let grace = session.map(|session| session.grace_left(now.mono));
        self.host.stop(StopOrder { session_id: session_id.clone(), grace: grace.unwrap_or_default() });
    }

    /// Hands over what has to be durable. `None` if there is nothing.
    pub(super) fn write(&mut self, more: Vec<StoreWrite>, awaited: Awaited, now: Now) -> Option<HandedOver> {
        let mut writes = self.engine.take_writes();
        writes.extend(more);
        if writes.is_empty() {
            return None;
        }
        let handed_over = self.store.write(writes, awaited);
        if handed_over == HandedOver::Crowded {
            self.store_fails(NO_ANSWER, now);
        }
        Some(handed_over)
    }

    pub(super) fn tell(&mut self, events: Vec<EventKind>, now: Now) {
        for kind in events {
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
        let state = self.engine.get_state(now);
        let announced = Announced { mode: state.mode, clock_trusted: state.clock_trusted };
        let before = std::mem::replace(&mut self.announced, announced.clone());
        if announced.mode != before.mode {
            let kind = EventKind::ModeSwitched { mode: announced.mode };
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
        if announced.clock_trusted != before.clock_trusted {
            // The state says so of any moment; the engine has to take note of this one before anybody hears of it.
            self.tick(now);
            let kind = EventKind::ClockTrustChanged { trusted: announced.clock_trusted };
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
    }

    /// The store has something to say.
    pub(super) fn store_report(&mut self, report: Report, now: Now) {
        match report {
            Report::Opened { stored, opened } => self.store_opened(*stored, &opened, now),
            Report::Durable { up_to, lines } => {
                if self.store_trouble.is_some() && self.store.has_caught_up() {
                    self.store_works(now);
                }
                while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.batch <= up_to) {
                    self.recorded(&waiting.to, waiting.outcome, now);
                }
                let lines = lines.into_iter().map(|record| EventKind::AuditAppended { record }).collect();
                self.tell(lines, now);
            }
            Report::Failed { batch, detail } => {
                self.store_fails(&detail, now);
                let failed = self.waiting.partition_point(|waiting| waiting.batch <= batch);
                let failed: Vec<Waiting> = self.waiting.drain(..failed).collect();
                // What came last may stand on what came before.
                for waiting in failed.into_iter().rev() {
                    self.not_recorded(&waiting.to, waiting.outcome, &detail, now);
                }
            }
            Report::Audit { question, lines } => {
                if let Some(to) = self.audit_questions.remove(&question) {
                    let unavailable = |detail| ApiError::new(ErrorCode::StoreUnavailable, detail);
                    let reply = lines.map(|records| Reply::Audit { records }).map_err(unavailable);
                    self.respond(&to, reply);
                }
            }
        }
    }

    fn recorded(&mut self, to: &RequestAddress, outcome: Outcome, now: Now) {
        if let Some(order) = outcome.spawn {
            // Somebody may have stopped it meanwhile.
            if self.is_launching(&order.session_id) {
                self.host.spawn(*order);
            } else {
                let detail = "it was stopped before it was started".to_owned();
                let events = self.engine.launch_failed(&order.session_id, detail, now);
                self.carry_out(events, now);
            }
        }
        self.respond(to, Ok(outcome.reply));
        self.tell(outcome.told, now);
    }

    fn is_launching(&self, session_id: &SessionId) -> bool {
        let session = self.engine.snapshot().session.as_ref();
        session.is_some_and(|session| session.session_id == *session_id && session.stage == Stage::Launching)
    }

    /// What could not be recorded is not given; what was taken away stays taken.
    fn not_recorded(&mut self, to: &RequestAddress, outcome: Outcome, detail: &str, now: Now) {
        let Outcome { told, undo, .. } = outcome;
        // First what has happened, then that it is undone.
        self.tell(told, now);
        let events = self.engine.undo(&undo, detail, now);
        self.carry_out(events, now);
        let undone = self.as_it_stands(&undo);
        self.tell(undone, now);
        let sentence = match undo {
            Undo::Nothing => format!("It is done, but could not be recorded yet: {detail}."),
            Undo::Launch(_) | Undo::Grant(_) | Undo::Answer { .. } | Undo::Mode(_) | Undo::Clock(_) => {
                format!("Nothing can be recorded now, so nothing is given: {detail}.")
            }
        };
        self.respond(to, Err(ApiError::new(ErrorCode::StoreUnavailable, sentence)));
    }

    /// What clients were told of a gift, told anew.
    fn as_it_stands(&self, undone: &Undo) -> Vec<EventKind> {
        let (request_id, grant_id) = match undone {
            Undo::Grant(grant_id) => (None, grant_id),
            Undo::Answer { request_id, grant_id, .. } => (Some(request_id), grant_id),
            Undo::Nothing | Undo::Launch(_) | Undo::Mode(_) | Undo::Clock(_) => return Vec::new(),
        };
        let request = request_id.and_then(|request_id| self.engine.find_request(request_id));
        let request = request.map(|request| EventKind::RequestChanged { request });
        let grant = self.engine.find_grant(grant_id).map(|grant| EventKind::GrantChanged { grant });
        request.into_iter().chain(grant).collect()
    }

    fn store_fails(&mut self, detail: &str, now: Now) {
        self.metrics.store_failures.inc();
        self.engine.store_failed(detail.to_owned());
        if self.store_trouble.replace(detail.to_owned()).is_none() {
            tracing::warn!(detail, "the store does not work; nothing is granted until it does");
            self.tell(vec![EventKind::EntriesChanged {}], now);
        }
    }

    fn store_works(&mut self, now: Now) {
        self.store_trouble = None;
        self.engine.store_works();
        tracing::info!("the store works again");
        self.tell(vec![EventKind::EntriesChanged {}], now);
    }
}
