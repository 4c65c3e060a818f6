//! From what the engine says to what is done: what takes something away at once, what grants something when it is
//! on disk (house rule: judge, write down, act).

use shepherd_api::{ApiError, AuditEvent, AuditKind, CommandReply, ErrorCode, Event, EventKind};
use shepherd_core::policy::WindowDisplay;
use shepherd_core::{CoreEvent, SessionStage, StoreWrite, UndoAction};
use shepherd_host_api::{HostSpawnRequest, HostStopRequest};
use shepherd_util::{ClockReading, SessionId};

use super::{AnnouncedState, DaemonService, RequestAddress};
use crate::store_thread::{BatchSubmission, BatchWaiter, DISK_UNRESPONSIVE, StoreReport};

/// What a command has come to.
#[derive(Debug)]
pub(crate) struct CommandEffects {
    /// The answer, when it is on record.
    reply: CommandReply,
    /// What the engine said.
    events: Vec<CoreEvent>,
    /// What else everybody is told.
    announcements: Vec<EventKind>,
    /// A program that may be started when that is on record.
    spawn: Option<Box<HostSpawnRequest>>,
    /// What there is to undo if it can't be recorded.
    undo: UndoAction,
}

impl CommandEffects {
    /// One that gives nothing.
    pub(super) fn new(reply: CommandReply, events: Vec<CoreEvent>) -> Self {
        Self { reply, events, announcements: Vec::new(), spawn: None, undo: UndoAction::Nothing }
    }

    pub(super) fn with_announcements(self, told: impl IntoIterator<Item = EventKind>) -> Self {
        Self { announcements: told.into_iter().collect(), ..self }
    }

    pub(super) fn with_undo(self, undo: UndoAction) -> Self {
        Self { undo, ..self }
    }

    pub(super) fn with_spawn(self, order: HostSpawnRequest) -> Self {
        let undo = UndoAction::Launch(order.session_id.clone());
        Self { spawn: Some(Box::new(order)), undo, ..self }
    }
}

/// What happens when a batch is durable.
pub(crate) struct PendingCommit {
    batch: u64,
    to: RequestAddress,
    effects: CommandEffects,
}

impl DaemonService {
    /// Does what the engine said, and tells everybody.
    pub(crate) fn apply_events(&mut self, events: Vec<CoreEvent>, now: ClockReading) {
        let told = self.act_on_events(events, now);
        self.submit_writes(Vec::new(), BatchWaiter::Nobody, now);
        self.broadcast(told, now);
    }

    /// The same, for a command: its answer waits until what it changed is durable.
    pub(super) fn commit_effects(
        &mut self,
        to: RequestAddress,
        mut outcome: CommandEffects,
        now: ClockReading,
    ) {
        let told = self.act_on_events(std::mem::take(&mut outcome.events), now);
        outcome.announcements.splice(..0, told);
        match self.submit_writes(Vec::new(), BatchWaiter::EventLoop, now) {
            Some(BatchSubmission::Queued(batch)) => {
                self.pending_commits.push_back(PendingCommit { batch, to, effects: outcome });
            }
            Some(BatchSubmission::Overloaded) => self.undo_unrecorded(&to, outcome, DISK_UNRESPONSIVE, now),
            None => self.finish_recorded(&to, outcome, now),
        }
    }

    /// Puts something on record that the engine has no part in.
    pub(crate) fn append_audit(&mut self, actor: &str, what: AuditKind, now: ClockReading) {
        let event = AuditEvent { at: now.wall, actor: actor.to_owned(), what };
        self.submit_writes(vec![StoreWrite::AppendAudit(Box::new(event))], BatchWaiter::Nobody, now);
    }

    /// Gives the orders that can't wait, and says what clients are to be told.
    fn act_on_events(&mut self, events: Vec<CoreEvent>, now: ClockReading) -> Vec<EventKind> {
        let mut told = Vec::new();
        for event in events {
            match &event {
                CoreEvent::ExpireDue { session_id } => self.stop_session(session_id, now),
                CoreEvent::SessionStarted { session_id, entry_id, .. } => {
                    let display = self.engine.policy().entry(entry_id).map(|entry| entry.run.display);
                    if let Some(display) = display.filter(|display| *display != WindowDisplay::Unchanged) {
                        self.host.show_window(session_id, display);
                    }
                }
                CoreEvent::Warning { .. }
                | CoreEvent::DeadlineChanged { .. }
                | CoreEvent::SessionEnded { .. }
                | CoreEvent::EntryAvailabilityChanged
                | CoreEvent::PolicyReloaded { .. } => {}
            }
            self.metrics.count_event(&event);
            told.push(self.engine.event_kind(&event, now));
        }
        told
    }

    fn stop_session(&mut self, session_id: &SessionId, now: ClockReading) {
        let session = self.engine.snapshot().session.as_ref();
        let session = session.filter(|session| session.session_id == *session_id);
        let grace = session.map(|session| session.grace_left(now.mono));
        self.host.stop(HostStopRequest { session_id: session_id.clone(), grace: grace.unwrap_or_default() });
    }

    /// Hands over what has to be durable. `None` if there is nothing.
    pub(super) fn submit_writes(
        &mut self,
        more: Vec<StoreWrite>,
        awaited: BatchWaiter,
        now: ClockReading,
    ) -> Option<BatchSubmission> {
        let mut writes = self.engine.take_writes();
        writes.extend(more);
        if writes.is_empty() {
            return None;
        }
        let handed_over = self.store.submit(writes, awaited);
        if handed_over == BatchSubmission::Overloaded {
            self.mark_store_failed(DISK_UNRESPONSIVE, now);
        }
        Some(handed_over)
    }

    pub(super) fn broadcast(&mut self, events: Vec<EventKind>, now: ClockReading) {
        for kind in events {
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
        let state = self.engine.get_state(now);
        let announced = AnnouncedState { mode: state.mode, clock_trusted: state.clock_trusted };
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
    pub(super) fn handle_store_report(&mut self, report: StoreReport, now: ClockReading) {
        match report {
            StoreReport::Opened { stored, opened } => self.adopt_reopened_store(*stored, &opened, now),
            StoreReport::Durable { up_to, lines } => {
                if self.store_error.is_some() && self.store.has_caught_up() {
                    self.mark_store_working(now);
                }
                while let Some(waiting) = self.pending_commits.pop_front_if(|waiting| waiting.batch <= up_to)
                {
                    self.finish_recorded(&waiting.to, waiting.effects, now);
                }
                let lines = lines.into_iter().map(|record| EventKind::AuditAppended { record }).collect();
                self.broadcast(lines, now);
            }
            StoreReport::Failed { batch, detail } => {
                self.mark_store_failed(&detail, now);
                let failed = self.pending_commits.partition_point(|waiting| waiting.batch <= batch);
                let failed: Vec<PendingCommit> = self.pending_commits.drain(..failed).collect();
                // What came last may stand on what came before.
                for waiting in failed.into_iter().rev() {
                    self.undo_unrecorded(&waiting.to, waiting.effects, &detail, now);
                }
            }
            StoreReport::Audit { query_id: question, lines } => {
                if let Some(to) = self.audit_queries.remove(&question) {
                    let unavailable = |detail| ApiError::new(ErrorCode::StoreUnavailable, detail);
                    let reply = lines.map(|records| CommandReply::Audit { records }).map_err(unavailable);
                    self.respond(&to, reply);
                }
            }
        }
    }

    fn finish_recorded(&mut self, to: &RequestAddress, outcome: CommandEffects, now: ClockReading) {
        if let Some(order) = outcome.spawn {
            // Somebody may have stopped it meanwhile.
            if self.is_launching(&order.session_id) {
                self.host.spawn(*order);
            } else {
                let detail = "it was stopped before it was started".to_owned();
                let events = self.engine.launch_failed(&order.session_id, detail, now);
                self.apply_events(events, now);
            }
        }
        self.respond(to, Ok(outcome.reply));
        self.broadcast(outcome.announcements, now);
    }

    fn is_launching(&self, session_id: &SessionId) -> bool {
        let session = self.engine.snapshot().session.as_ref();
        session.is_some_and(|session| {
            session.session_id == *session_id && session.stage == SessionStage::Launching
        })
    }

    /// What could not be recorded is not given; what was taken away stays taken.
    fn undo_unrecorded(
        &mut self,
        to: &RequestAddress,
        outcome: CommandEffects,
        detail: &str,
        now: ClockReading,
    ) {
        let CommandEffects { announcements: told, undo, .. } = outcome;
        // First what has happened, then that it is undone.
        self.broadcast(told, now);
        let events = self.engine.undo(&undo, detail, now);
        self.apply_events(events, now);
        let undone = self.events_after_undo(&undo);
        self.broadcast(undone, now);
        let sentence = match undo {
            UndoAction::Nothing => format!("It is done, but could not be recorded yet: {detail}."),
            UndoAction::Launch(_)
            | UndoAction::Grant(_)
            | UndoAction::RequestAnswer { .. }
            | UndoAction::Mode(_)
            | UndoAction::Clock(_) => {
                format!("Nothing can be recorded now, so nothing is given: {detail}.")
            }
        };
        self.respond(to, Err(ApiError::new(ErrorCode::StoreUnavailable, sentence)));
    }

    /// What clients were told of a gift, told anew.
    fn events_after_undo(&self, undone: &UndoAction) -> Vec<EventKind> {
        let (request_id, grant_id) = match undone {
            UndoAction::Grant(grant_id) => (None, grant_id),
            UndoAction::RequestAnswer { request_id, grant_id, .. } => (Some(request_id), grant_id),
            UndoAction::Nothing | UndoAction::Launch(_) | UndoAction::Mode(_) | UndoAction::Clock(_) => {
                return Vec::new();
            }
        };
        let request = request_id.and_then(|request_id| self.engine.find_request(request_id));
        let request = request.map(|request| EventKind::RequestChanged { request });
        let grant = self.engine.find_grant(grant_id).map(|grant| EventKind::GrantChanged { grant });
        request.into_iter().chain(grant).collect()
    }

    fn mark_store_failed(&mut self, detail: &str, now: ClockReading) {
        self.metrics.store_failures.inc();
        self.engine.store_failed(detail.to_owned());
        if self.store_error.replace(detail.to_owned()).is_none() {
            tracing::warn!(detail, "the store does not work; nothing is granted until it does");
            self.broadcast(vec![EventKind::EntriesChanged {}], now);
        }
    }

    fn mark_store_working(&mut self, now: ClockReading) {
        self.store_error = None;
        self.engine.store_recovered();
        tracing::info!("the store works again");
        self.broadcast(vec![EventKind::EntriesChanged {}], now);
    }
}
