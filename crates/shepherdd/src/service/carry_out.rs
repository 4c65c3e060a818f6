//! From what the engine says to what is done: what takes something away at once, what grants something when it is
//! on disk (house rule: judge, write down, act).

use shepherd_api::{ApiError, AuditEvent, AuditKind, ErrorCode, Event, EventKind, Reply};
use shepherd_core::policy::Display;
use shepherd_core::{CoreEvent, Stage, StoreWrite};
use shepherd_host_api::{SpawnOrder, StopOrder};
use shepherd_util::{GrantId, Now, SessionId};

use super::{Announced, RequestAddress, Service};
use crate::store_thread::{Awaited, Report};

/// What happens when a batch is durable.
pub(crate) struct Waiting {
    batch: u64,
    answer: Option<(RequestAddress, Reply)>,
    granted: Granted,
    events: Vec<EventKind>,
}

/// What a command has granted, and what has to be taken back if that can't be recorded.
#[derive(Debug)]
pub(crate) enum Granted {
    /// Nothing that would have to be taken back.
    Nothing,
    /// A program may be started.
    Launch(Box<SpawnOrder>),
    /// Time was given.
    Time(GrantId),
}

impl Service {
    /// Does what the engine said, and tells everybody.
    pub(crate) fn carry_out(&mut self, events: Vec<CoreEvent>, now: Now) {
        let told = self.act(events, now);
        self.write(Vec::new(), Awaited::ByNobody);
        self.tell(told, now);
    }

    /// The same, for a command: its answer waits until what it changed is durable.
    pub(super) fn carry_out_for(
        &mut self,
        to: RequestAddress,
        reply: Reply,
        granted: Granted,
        events: Vec<CoreEvent>,
        more: Vec<EventKind>,
        now: Now,
    ) {
        let mut events = self.act(events, now);
        events.extend(more);
        match self.write(Vec::new(), Awaited::ByUs) {
            Some(batch) => {
                self.waiting.push_back(Waiting { batch, answer: Some((to, reply)), granted, events });
            }
            None if matches!(granted, Granted::Nothing) => {
                self.respond(&to, Ok(reply));
                self.tell(events, now);
            }
            None => self.take_back(Some(&to), &granted, "there is no store", now),
        }
    }

    /// Puts something on record that the engine has no part in.
    pub(crate) fn note(&mut self, actor: &str, what: AuditKind, now: Now) {
        let event = AuditEvent { at: now.wall, actor: actor.to_owned(), what };
        self.write(vec![StoreWrite::AppendAudit(Box::new(event))], Awaited::ByNobody);
    }

    /// Gives the orders that can't wait, and says what clients are to be told.
    fn act(&mut self, events: Vec<CoreEvent>, now: Now) -> Vec<EventKind> {
        let mut told = Vec::new();
        for event in events {
            match &event {
                CoreEvent::ExpireDue { session_id } => self.stop(session_id),
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

    fn stop(&mut self, session_id: &SessionId) {
        let session = self.engine.snapshot().session.as_ref();
        let grace =
            session.filter(|session| session.session_id == *session_id).map(|session| session.stop_grace);
        self.host.stop(StopOrder { session_id: session_id.clone(), grace: grace.unwrap_or_default() });
    }

    /// Hands over what has to be durable. `None` if there is nothing, or no store.
    fn write(&mut self, more: Vec<StoreWrite>, awaited: Awaited) -> Option<u64> {
        let mut writes = self.engine.take_writes();
        writes.extend(more);
        if writes.is_empty() { None } else { self.store.write(writes, awaited) }
    }

    pub(super) fn tell(&mut self, events: Vec<EventKind>, now: Now) {
        for kind in events {
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
        let state = self.engine.get_state(now);
        let announced = Announced { mode: state.mode, clock_trusted: state.clock_trusted };
        if announced != self.announced {
            if announced.mode != self.announced.mode {
                let kind = EventKind::ModeSwitched { mode: announced.mode.clone() };
                self.clients.broadcast(&Event { at: now.wall, kind });
            }
            if announced.clock_trusted != self.announced.clock_trusted {
                let kind = EventKind::ClockTrustChanged { trusted: announced.clock_trusted };
                self.clients.broadcast(&Event { at: now.wall, kind });
            }
            self.announced = announced;
        }
    }

    /// The store has something to say.
    pub(super) fn store_report(&mut self, report: Report, now: Now) {
        match report {
            Report::Durable { up_to, lines } => {
                self.store_works(now);
                while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.batch <= up_to) {
                    self.granted(waiting, now);
                }
                let lines = lines.into_iter().map(|record| EventKind::AuditAppended { record }).collect();
                self.tell(lines, now);
            }
            Report::Failed { batch, detail } => {
                self.store_fails(&detail, now);
                while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.batch <= batch) {
                    let to = waiting.answer.map(|(to, _)| to);
                    // First what has happened, then that it is undone.
                    self.tell(waiting.events, now);
                    self.take_back(to.as_ref(), &waiting.granted, &detail, now);
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

    fn granted(&mut self, waiting: Waiting, now: Now) {
        if let Granted::Launch(order) = waiting.granted {
            // Somebody may have stopped it meanwhile.
            if self.is_launching(&order.session_id) {
                self.host.spawn(*order);
            } else {
                let detail = "it was stopped before it was started".to_owned();
                let events = self.engine.launch_failed(&order.session_id, detail, now);
                self.carry_out(events, now);
            }
        }
        if let Some((to, reply)) = waiting.answer {
            self.respond(&to, Ok(reply));
        }
        self.tell(waiting.events, now);
    }

    fn is_launching(&self, session_id: &SessionId) -> bool {
        let session = self.engine.snapshot().session.as_ref();
        session.is_some_and(|session| session.session_id == *session_id && session.stage == Stage::Launching)
    }

    /// What could not be recorded is not granted.
    fn take_back(&mut self, to: Option<&RequestAddress>, granted: &Granted, detail: &str, now: Now) {
        let events = match granted {
            Granted::Nothing => Vec::new(),
            Granted::Launch(order) => {
                let detail = format!("it could not be recorded: {detail}");
                self.engine.launch_failed(&order.session_id, detail, now)
            }
            Granted::Time(grant_id) => self.engine.revoke(grant_id, "policy", now).unwrap_or_default(),
        };
        self.carry_out(events, now);
        if let Some(to) = to {
            let sentence = format!("Nothing can be recorded now, so nothing is given: {detail}.");
            self.respond(to, Err(ApiError::new(ErrorCode::StoreUnavailable, sentence)));
        }
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
        if self.store_trouble.take().is_some() {
            self.engine.store_works();
            tracing::info!("the store works again");
            self.tell(vec![EventKind::EntriesChanged {}], now);
        }
    }
}
