//! Carries out the engine's effects and reports their outcomes back to it. Nothing here decides anything: an effect is
//! a complete order.

use std::sync::Arc;

use shepherd_api::{ApiError, AuditKind, CommandReply, ErrorCode, Event, EventKind};
use shepherd_core::{Effect, Effects, ProvisionalGrant, SessionPlan, StoreWrite};
use shepherd_host_api::HostSpawnRequest;
use shepherd_util::{ClockReading, SessionId};

use super::{AnnouncedState, DaemonService, RequestAddress};
use crate::store_thread::{BatchSubmission, BatchWaiter, DISK_UNRESPONSIVE, StoreReport};

/// The rest of a change whose writes are on their way to the disk.
#[derive(Default)]
struct ChangeInProgress {
    /// The grant that the engine takes back if the writes fail.
    grants: Option<ProvisionalGrant>,
    /// The reply to the client that asked for the change.
    reply: Option<(RequestAddress, CommandReply)>,
    /// Events for all clients. With a reply, the client that asked hears the reply first.
    announcements: Vec<EventKind>,
}

impl ChangeInProgress {
    fn waiter(&self) -> BatchWaiter {
        if self.grants.is_some() || self.reply.is_some() {
            BatchWaiter::EventLoop
        } else {
            BatchWaiter::Nobody
        }
    }
}

/// A change that waits until its batch is durable.
pub(crate) struct PendingCommit {
    batch: u64,
    change: ChangeInProgress,
}

impl DaemonService {
    /// Carries out the effects of a change that no client waits for.
    pub(crate) fn carry_out(&mut self, effects: Effects, now: ClockReading) {
        self.execute(effects, ChangeInProgress::default(), now);
    }

    /// Carries out the effects of a command. The client gets the reply when the writes are durable.
    pub(super) fn carry_out_and_reply(
        &mut self,
        effects: Effects,
        to: &RequestAddress,
        reply: CommandReply,
        now: ClockReading,
    ) {
        let reply = Some((to.clone(), reply));
        self.execute(effects, ChangeInProgress { reply, ..ChangeInProgress::default() }, now);
    }

    fn execute(&mut self, effects: Effects, mut change: ChangeInProgress, now: ClockReading) {
        let mut submission = None;
        for effect in effects {
            match effect {
                Effect::Stop { session_id, grace } => self.stop_session_program(session_id, grace),
                Effect::ShowWindow { session_id, display } => self.host.show_window(&session_id, display),
                Effect::Persist { writes, grants } => {
                    change.grants = grants;
                    submission = Some(self.submit_writes(writes, change.waiter(), now));
                    // The host prepares the start while the disk works.
                    if let (Some(BatchSubmission::Queued(_)), Some(ProvisionalGrant::Launch(plan))) =
                        (&submission, &change.grants)
                    {
                        self.host.prepare(spawn_request(Arc::clone(plan)));
                    }
                }
                Effect::Spawn(plan) => self.host.spawn(spawn_request(plan)),
                Effect::Announce(event) => {
                    self.metrics.count_event(&event);
                    change.announcements.push(self.event_kind(&event, now));
                }
            }
        }
        match (submission, change.waiter()) {
            (Some(BatchSubmission::Queued(batch)), BatchWaiter::EventLoop) => {
                self.pending_commits.push_back(PendingCommit { batch, change });
            }
            (Some(BatchSubmission::Overloaded), BatchWaiter::EventLoop) => {
                self.fail_change(change, DISK_UNRESPONSIVE, now);
            }
            (_, BatchWaiter::Nobody) | (None, BatchWaiter::EventLoop) => self.finish_change(change, now),
        }
    }

    /// Records something that happened outside the engine.
    pub(crate) fn append_audit(&mut self, actor: &str, what: AuditKind, now: ClockReading) {
        let effects = self.engine.record_audit(actor, what, now);
        self.carry_out(effects, now);
    }

    fn submit_writes(
        &mut self,
        writes: Vec<StoreWrite>,
        waiter: BatchWaiter,
        now: ClockReading,
    ) -> BatchSubmission {
        let submission = self.store.submit(writes, waiter);
        if submission == BatchSubmission::Overloaded {
            self.mark_store_failed(DISK_UNRESPONSIVE, now);
        }
        submission
    }

    fn finish_change(&mut self, change: ChangeInProgress, now: ClockReading) {
        if let Some(granted) = change.grants {
            let launched = launched_session(&granted);
            let effects = self.engine.persist_succeeded(granted, now);
            self.carry_out(effects, now);
            self.abandon_start(launched);
        }
        if let Some((to, reply)) = change.reply {
            self.respond(&to, Ok(reply));
        }
        self.broadcast(change.announcements, now);
    }

    fn fail_change(&mut self, change: ChangeInProgress, detail: &str, now: ClockReading) {
        // Clients hear first what happened, then that it was taken back.
        self.broadcast(change.announcements, now);
        let sentence = match change.grants {
            Some(granted) => {
                let effects = self.engine.persist_failed(&granted, detail, now);
                self.carry_out(effects, now);
                self.abandon_start(launched_session(&granted));
                format!("Could not record this, so it was undone: {detail}.")
            }
            None => format!("This took effect, but could not be recorded yet: {detail}."),
        };
        if let Some((to, _)) = change.reply {
            self.respond(&to, Err(ApiError::new(ErrorCode::StoreUnavailable, sentence)));
        }
    }

    /// Drops a prepared start that the engine didn't order after all.
    fn abandon_start(&mut self, launched: Option<SessionId>) {
        if let Some(session_id) = launched {
            self.host.abandon(&session_id);
        }
    }

    pub(super) fn broadcast(&mut self, events: Vec<EventKind>, now: ClockReading) {
        for kind in events {
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
        let announced = AnnouncedState::of(&self.engine, now);
        let before = std::mem::replace(&mut self.announced, announced.clone());
        if announced.mode != before.mode {
            let kind = EventKind::ModeSwitched { mode: announced.mode };
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
        if announced.clock_trusted != before.clock_trusted {
            // The engine has to observe this moment before clients hear of it.
            self.tick(now);
            let kind = EventKind::ClockTrustChanged { trusted: announced.clock_trusted };
            self.clients.broadcast(&Event { at: now.wall, kind });
        }
    }

    pub(super) fn handle_store_report(&mut self, report: StoreReport, now: ClockReading) {
        match report {
            StoreReport::Opened { stored, opened } => self.adopt_reopened_store(*stored, &opened, now),
            StoreReport::Durable { up_to, lines } => {
                if self.engine.store_trouble().is_some() && self.store.has_caught_up() {
                    self.mark_store_working(now);
                }
                while let Some(pending) = self.pending_commits.pop_front_if(|pending| pending.batch <= up_to)
                {
                    self.finish_change(pending.change, now);
                }
                let lines = lines.into_iter().map(|record| EventKind::AuditAppended { record }).collect();
                self.broadcast(lines, now);
            }
            StoreReport::Failed { batch, detail } => {
                self.mark_store_failed(&detail, now);
                let failed = self.pending_commits.partition_point(|pending| pending.batch <= batch);
                let failed: Vec<PendingCommit> = self.pending_commits.drain(..failed).collect();
                // The latest first, because a later change may build on an earlier one.
                for pending in failed.into_iter().rev() {
                    self.fail_change(pending.change, &detail, now);
                }
            }
            StoreReport::Audit { query_id, lines } => {
                if let Some(to) = self.audit_queries.remove(&query_id) {
                    let unavailable = |detail| ApiError::new(ErrorCode::StoreUnavailable, detail);
                    let reply = lines.map(|records| CommandReply::Audit { records }).map_err(unavailable);
                    self.respond(&to, reply);
                }
            }
        }
    }

    fn mark_store_failed(&mut self, detail: &str, now: ClockReading) {
        self.metrics.store_failures.inc();
        if self.engine.store_trouble().is_none() {
            tracing::warn!(detail, "the store does not work; nothing is granted until it works again");
        }
        let effects = self.engine.store_failed(detail.to_owned());
        self.carry_out(effects, now);
    }

    fn mark_store_working(&mut self, now: ClockReading) {
        tracing::info!("the store works again");
        let effects = self.engine.store_recovered();
        self.carry_out(effects, now);
    }
}

fn launched_session(granted: &ProvisionalGrant) -> Option<SessionId> {
    match granted {
        ProvisionalGrant::Launch(plan) => Some(plan.session_id.clone()),
        ProvisionalGrant::Adoption(_)
        | ProvisionalGrant::Grant(_)
        | ProvisionalGrant::RequestAnswer { .. }
        | ProvisionalGrant::Mode { .. }
        | ProvisionalGrant::Clock { .. } => None,
    }
}

fn spawn_request(plan: Arc<SessionPlan>) -> HostSpawnRequest {
    let SessionPlan { session_id, entry, profile, display, .. } = Arc::unwrap_or_clone(plan);
    HostSpawnRequest { session_id, entry, profile, display }
}
