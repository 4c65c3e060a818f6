//! Effects: the orders that a change of the engine gives to the daemon, in the order in which they are carried out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{AuditEvent, AuditKind, TimeRequestState};
use shepherd_util::{ClockReading, GrantId, RequestId, SessionId};

use super::{CoreEngine, CoreEvent};
use crate::policy::{ModeName, WindowDisplay};
use crate::session::SessionPlan;
use crate::state::{ClockRecord, StoreWrite, UsageKey};

/// A complete order to the daemon: carrying it out needs no decision and no look at the engine's state.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the program of this session to end, and kill it after the grace period. The outcome is an exit
    /// ([`CoreEngine::notify_session_exited`]).
    Stop { session_id: SessionId, grace: Duration },
    /// Show the window of this session as its entry specifies.
    ShowWindow { session_id: SessionId, display: WindowDisplay },
    /// Make these writes durable, all or none.
    ///
    /// With `grants`, the daemon reports the outcome to [`CoreEngine::persist_succeeded`] or
    /// [`CoreEngine::persist_failed`]. The store keeps and retries writes that failed; the engine doesn't repeat them.
    Persist { writes: Vec<StoreWrite>, grants: Option<ProvisionalGrant> },
    /// Start the program of an approved session. The engine orders this only once the approval is durable. The
    /// outcome is [`CoreEngine::start_session`] or [`CoreEngine::launch_failed`].
    Spawn(Arc<SessionPlan>),
    /// Tell clients that this happened.
    Announce(CoreEvent),
}

/// A change in memory that counts only if its record becomes durable: what can't be recorded isn't granted (S8.2).
#[derive(Clone, Debug, PartialEq)]
pub enum ProvisionalGrant {
    /// An approved launch. Its program starts when the approval is durable.
    Launch(Arc<SessionPlan>),
    /// A session that was adopted. It ends if its record can't be written.
    Adoption(SessionId),
    Grant(GrantId),
    /// A time request that was answered with a grant.
    RequestAnswer {
        request_id: RequestId,
        before: TimeRequestState,
        grant_id: GrantId,
    },
    /// A change of mode.
    Mode {
        before: Option<ModeName>,
    },
    /// A clock that an administrator confirmed.
    Clock {
        before: Box<ClockRecord>,
    },
}

/// The effects of one change of the engine, in the order in which they are carried out.
///
/// Stops come first, because they take something away and wait for nothing. The writes follow, then a program to
/// start, then the announcements.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "the daemon has to carry out effects"]
pub struct Effects(Vec<Effect>);

impl Effects {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Effect> {
        self.0.iter()
    }

    /// Removes audit lines of some kinds from the writes. The other writes are kept.
    pub fn discard_audit_lines(&mut self, is_unwanted: impl Fn(&AuditKind) -> bool) {
        let is_kept = |write: &StoreWrite| match write {
            StoreWrite::AppendAudit(line) => !is_unwanted(&line.what),
            StoreWrite::AddUsage { .. }
            | StoreWrite::SetCooldown { .. }
            | StoreWrite::SaveSession(_)
            | StoreWrite::DeleteSession(_)
            | StoreWrite::SaveSnapshot(_) => true,
        };
        for effect in &mut self.0 {
            if let Effect::Persist { writes, .. } = effect {
                writes.retain(is_kept);
            }
        }
    }
}

impl IntoIterator for Effects {
    type Item = Effect;
    type IntoIter = std::vec::IntoIter<Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Effects {
    type Item = &'a Effect;
    type IntoIter = std::slice::Iter<'a, Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The engine's answer to a requested change, and the effects that the daemon has to carry out.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the daemon has to carry out effects, also those of a refusal"]
pub struct EngineReply<T> {
    pub answer: T,
    pub effects: Effects,
}

/// Collects the effects of the change in progress. Between two changes the buffer holds only usage that was counted
/// for a question ([`CoreEngine::count_usage_until`]) and waits for the next change to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct EffectBuffer {
    /// Orders to the host that wait for no write.
    host_orders: Vec<Effect>,
    /// Usage that was charged, by counter and day.
    pub(super) usage: BTreeMap<UsageKey, Duration>,
    pub(super) writes: Vec<StoreWrite>,
    /// True if the snapshot has changed.
    snapshot_changed: bool,
    grants: Option<ProvisionalGrant>,
    spawn: Option<Arc<SessionPlan>>,
    events: Vec<CoreEvent>,
}

impl EffectBuffer {
    pub(super) fn stop(&mut self, session_id: SessionId, grace: Duration) {
        self.host_orders.push(Effect::Stop { session_id, grace });
    }

    pub(super) fn show_window(&mut self, session_id: SessionId, display: WindowDisplay) {
        self.host_orders.push(Effect::ShowWindow { session_id, display });
    }

    pub(super) fn spawn(&mut self, plan: Arc<SessionPlan>) {
        self.spawn = Some(plan);
    }

    pub(super) fn announce(&mut self, event: CoreEvent) {
        self.events.push(event);
    }

    /// Makes a provisional grant depend on the writes of this change.
    pub(super) fn grant_provisionally(&mut self, granted: ProvisionalGrant) {
        self.grants = Some(granted);
    }

    pub(super) fn has_announcements(&self) -> bool {
        !self.events.is_empty()
    }
}

impl CoreEngine {
    /// Hands out the effects of the change that ends here.
    pub(super) fn take_effects(&mut self) -> Effects {
        let EffectBuffer { host_orders, usage, writes: others, snapshot_changed, grants, spawn, events } =
            std::mem::take(&mut self.effects);
        let usage = usage.into_iter().map(|(key, amount)| StoreWrite::AddUsage { key, amount });
        let snapshot = snapshot_changed.then(|| StoreWrite::SaveSnapshot(Box::new(self.snapshot.clone())));
        let writes: Vec<StoreWrite> =
            usage.chain(others).chain(self.sessions.take_writes()).chain(snapshot).collect();
        let persist = (!writes.is_empty()).then_some(Effect::Persist { writes, grants });
        let events = events.into_iter().map(Effect::Announce);
        Effects(
            host_orders.into_iter().chain(persist).chain(spawn.map(Effect::Spawn)).chain(events).collect(),
        )
    }

    pub(super) fn answer<T>(&mut self, answer: T) -> EngineReply<T> {
        EngineReply { answer, effects: self.take_effects() }
    }

    /// Returns the effects of an event that needs no write.
    pub(super) fn announcement(event: CoreEvent) -> Effects {
        Effects(vec![Effect::Announce(event)])
    }

    pub(super) fn announce(&mut self, event: CoreEvent) {
        self.effects.announce(event);
    }

    /// Records something that happened outside the engine.
    pub fn record_audit(&mut self, actor: &str, what: AuditKind, now: ClockReading) -> Effects {
        self.append_audit(now, actor, what);
        self.take_effects()
    }

    pub(super) fn append_audit(&mut self, now: ClockReading, actor: &str, what: AuditKind) {
        let event = AuditEvent { at: now.wall, actor: actor.to_owned(), what };
        self.effects.writes.push(StoreWrite::AppendAudit(Box::new(event)));
    }

    /// Writes the snapshot with the effects of this change.
    pub(super) fn save_snapshot(&mut self) {
        self.effects.snapshot_changed = true;
    }
}
