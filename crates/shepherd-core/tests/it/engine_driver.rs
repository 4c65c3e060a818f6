//! An engine whose effects are collected as a daemon would: events are returned, and writes wait until they are
//! durable.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::SessionCounting;
use shepherd_core::policy::Policy;
use shepherd_core::{
    AdoptionDecision, AdoptionRequest, CoreEngine, CoreEvent, Effect, Effects, EngineEnvironment,
    EngineReply, ExitInfo, GrantError, HostCapabilities, LaunchDecision, LaunchNotAwaited, LaunchRequest,
    NewGrant, NewTimeRequest, ProvisionalGrant, SessionLiveness, StopDecision, StopRequest, StoreWrite,
    StoredState, UnknownModeError,
};
use shepherd_util::{ClockReading, GrantId, RequestId, SessionId};

/// An engine with its open effects. Queries go to the engine itself.
pub(crate) struct EngineDriver {
    engine: CoreEngine,
    writes: Vec<StoreWrite>,
    unconfirmed: Option<ProvisionalGrant>,
    host_orders: Vec<Effect>,
}

impl From<CoreEngine> for EngineDriver {
    fn from(engine: CoreEngine) -> Self {
        Self { engine, writes: Vec::new(), unconfirmed: None, host_orders: Vec::new() }
    }
}

impl Deref for EngineDriver {
    type Target = CoreEngine;

    fn deref(&self) -> &CoreEngine {
        &self.engine
    }
}

impl EngineDriver {
    pub(crate) fn new(
        policy: Policy,
        store: StoredState,
        host: HostCapabilities,
        place: EngineEnvironment,
    ) -> Self {
        CoreEngine::new(policy, store, host, place).into()
    }

    /// Takes the writes that are not durable yet.
    pub(crate) fn take_writes(&mut self) -> Vec<StoreWrite> {
        std::mem::take(&mut self.writes)
    }

    /// Takes the instructions to start and stop programs and to show windows.
    pub(crate) fn take_host_orders(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.host_orders)
    }

    /// Reports that the last writes that granted something are durable.
    pub(crate) fn confirm_last_grant(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let granted = self.unconfirmed.take().expect("a change that grants something");
        let effects = self.engine.persist_succeeded(granted, now);
        self.collect(effects)
    }

    /// Reports that the last writes that granted something can't be made durable.
    pub(crate) fn lose_last_grant(&mut self, detail: &str, now: ClockReading) -> Vec<CoreEvent> {
        let granted = self.unconfirmed.take().expect("a change that grants something");
        let effects = self.engine.persist_failed(&granted, detail, now);
        self.collect(effects)
    }

    /// Keeps the writes and the orders, in order, and returns the events.
    fn collect(&mut self, effects: Effects) -> Vec<CoreEvent> {
        let mut events = Vec::new();
        let mut is_written = false;
        for effect in effects {
            match effect {
                Effect::Announce(event) => events.push(event),
                Effect::Persist { writes, grants } => {
                    assert!(!writes.is_empty() && !is_written, "one batch for each change");
                    is_written = true;
                    self.writes.extend(writes);
                    self.unconfirmed = grants.or(self.unconfirmed.take());
                }
                Effect::Stop { .. } => {
                    assert!(!is_written && events.is_empty(), "a stop waits for nothing");
                    self.host_orders.push(effect);
                }
                Effect::Spawn(_) | Effect::ShowWindow { .. } => self.host_orders.push(effect),
            }
        }
        events
    }

    fn split<T>(&mut self, outcome: EngineReply<T>) -> (T, Vec<CoreEvent>) {
        (outcome.answer, self.collect(outcome.effects))
    }

    /// The events of a change that was made, or the reason why it was not.
    fn events_or<T, E>(&mut self, outcome: EngineReply<Result<T, E>>) -> Result<Vec<CoreEvent>, E> {
        let (answer, events) = self.split(outcome);
        answer.map(|_| events)
    }

    pub(crate) fn request_launch(&mut self, request: &LaunchRequest, now: ClockReading) -> LaunchDecision {
        let outcome = self.engine.request_launch(request, now);
        self.split(outcome).0
    }

    pub(crate) fn start_session(
        &mut self,
        session_id: &SessionId,
        handle: String,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, LaunchNotAwaited> {
        let outcome = self.engine.start_session(session_id, handle, now);
        self.events_or(outcome)
    }

    pub(crate) fn launch_failed(
        &mut self,
        session_id: &SessionId,
        detail: String,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        let effects = self.engine.launch_failed(session_id, detail, now);
        self.collect(effects)
    }

    pub(crate) fn tick(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let effects = self.engine.tick(now);
        self.collect(effects)
    }

    /// Stops the only session.
    pub(crate) fn stop_current(&mut self, request: &StopRequest, now: ClockReading) -> StopDecision {
        let session_id = self.only_session_id();
        self.stop_session(&session_id, request, now)
    }

    pub(crate) fn stop_session(
        &mut self,
        session_id: &SessionId,
        request: &StopRequest,
        now: ClockReading,
    ) -> StopDecision {
        let outcome = self.engine.stop_session(session_id, request, now);
        self.split(outcome).0
    }

    /// Returns the id of the only session; a strange one if there is none.
    fn only_session_id(&self) -> SessionId {
        assert!(self.engine.sessions().len() < 2, "several sessions");
        let session = self.engine.sessions().only();
        session.map_or_else(|| SessionId::from_random(u128::MAX), |session| session.session_id.clone())
    }

    pub(crate) fn notify_session_exited(&mut self, exit: &ExitInfo, now: ClockReading) -> Vec<CoreEvent> {
        let effects = self.engine.notify_session_exited(exit, now);
        self.collect(effects)
    }

    pub(crate) fn reload(
        &mut self,
        policy: Policy,
        digest: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        let effects = self.engine.reload(policy, digest, actor, now);
        self.collect(effects)
    }

    pub(crate) fn reload_failed(&mut self, faults: Vec<String>, actor: &str, now: ClockReading) {
        let effects = self.engine.reload_failed(faults, actor, now);
        assert_eq!(self.collect(effects), []);
    }

    /// Recovers; the programs of all sessions are found in this state.
    pub(crate) fn recover(&mut self, liveness: SessionLiveness, now: ClockReading) -> Vec<CoreEvent> {
        let session_ids: Vec<SessionId> =
            self.engine.sessions().iter().map(|session| session.session_id.clone()).collect();
        let states = std::iter::repeat_n(liveness, session_ids.len());
        self.recover_each(&session_ids.into_iter().zip(states).collect(), now)
    }

    pub(crate) fn recover_each(
        &mut self,
        liveness: &BTreeMap<SessionId, SessionLiveness>,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        let effects = self.engine.recover(liveness, now);
        self.collect(effects)
    }

    pub(crate) fn set_counting(
        &mut self,
        session_id: &SessionId,
        counting: SessionCounting,
        now: ClockReading,
    ) -> Vec<CoreEvent> {
        let effects = self.engine.set_counting(session_id, counting, now);
        self.collect(effects)
    }

    pub(crate) fn adopt_session(&mut self, request: &AdoptionRequest, now: ClockReading) -> AdoptionDecision {
        let outcome = self.engine.adopt_session(request, now);
        self.split(outcome).0
    }

    pub(crate) fn shut_down(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let outcome = self.engine.shut_down(now);
        self.split(outcome).1
    }

    pub(crate) fn confirm_clock(&mut self, actor: &str, now: ClockReading) -> Vec<CoreEvent> {
        let effects = self.engine.confirm_clock(actor, now);
        self.collect(effects)
    }

    pub(crate) fn clock_synchronised(&mut self, now: ClockReading) -> Vec<CoreEvent> {
        let effects = self.engine.clock_synchronised(now);
        self.collect(effects)
    }

    pub(crate) fn zone_changed(&mut self, zone: TimeZone, now: ClockReading) -> Vec<CoreEvent> {
        let effects = self.engine.zone_changed(zone, now);
        self.collect(effects)
    }

    pub(crate) fn switch_mode(
        &mut self,
        mode: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, UnknownModeError> {
        let outcome = self.engine.switch_mode(mode, actor, now);
        self.events_or(outcome)
    }

    pub(crate) fn grant(&mut self, new: NewGrant, now: ClockReading) -> Result<Vec<CoreEvent>, GrantError> {
        let outcome = self.engine.grant(new, now);
        self.events_or(outcome)
    }

    pub(crate) fn extend_current(
        &mut self,
        by: Duration,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        let session_id = self.only_session_id();
        self.extend_session(&session_id, by, grant_id, actor, now)
    }

    pub(crate) fn extend_session(
        &mut self,
        session_id: &SessionId,
        by: Duration,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        let outcome = self.engine.extend_session(session_id, by, grant_id, actor, now);
        self.events_or(outcome)
    }

    pub(crate) fn revoke(
        &mut self,
        grant_id: &GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        let outcome = self.engine.revoke(grant_id, actor, now);
        self.events_or(outcome)
    }

    pub(crate) fn request_time(&mut self, new: NewTimeRequest, now: ClockReading) -> Result<(), GrantError> {
        let outcome = self.engine.request_time(new, now);
        self.events_or(outcome).map(drop)
    }

    pub(crate) fn mark_request_seen(
        &mut self,
        request_id: &RequestId,
        actor: &str,
        now: ClockReading,
    ) -> Result<(), GrantError> {
        let outcome = self.engine.mark_request_seen(request_id, actor, now);
        self.events_or(outcome).map(drop)
    }

    pub(crate) fn grant_request(
        &mut self,
        request_id: &RequestId,
        amount: Option<Duration>,
        grant_id: GrantId,
        actor: &str,
        now: ClockReading,
    ) -> Result<Vec<CoreEvent>, GrantError> {
        let outcome = self.engine.grant_request(request_id, amount, grant_id, actor, now);
        self.events_or(outcome)
    }

    pub(crate) fn deny_request(
        &mut self,
        request_id: &RequestId,
        why: Option<String>,
        actor: &str,
        now: ClockReading,
    ) -> Result<(), GrantError> {
        let outcome = self.engine.deny_request(request_id, why, actor, now);
        self.events_or(outcome).map(drop)
    }

    pub(crate) fn count_usage_until(&mut self, at: ClockReading) {
        self.engine.count_usage_until(at);
    }

    /// Counts usage and writes it, including usage that was counted for earlier queries.
    pub(crate) fn checkpoint_usage(&mut self, now: ClockReading) {
        let effects = self.engine.checkpoint_usage(now);
        assert_eq!(self.collect(effects), []);
    }

    pub(crate) fn take_missed_warning(&mut self, now: ClockReading) -> Option<CoreEvent> {
        let session_id = self.only_session_id();
        let missed = self.engine.missed_warning(&session_id, now);
        assert_eq!(self.engine.missed_warning(&session_id, now), missed, "asking changes nothing");
        self.engine.forget_missed_warning(&session_id);
        missed
    }

    pub(crate) fn store_failed(&mut self, detail: String) {
        let effects = self.engine.store_failed(detail);
        self.collect(effects);
    }

    pub(crate) fn update_missing_logins(&mut self, logins: BTreeSet<String>) -> Vec<CoreEvent> {
        let effects = self.engine.update_missing_logins(logins);
        self.collect(effects)
    }

    pub(crate) fn store_recovered(&mut self) {
        let effects = self.engine.store_recovered();
        self.collect(effects);
    }
}
