//! `CoreEngine`: told what happens and when, it says what must be done. It never asks the world for anything.
//!
//! The state machine (S3.6) is the session in [`EngineSnapshot::session`]; `Idle` is that there is none, and the rest is its
//! [`SessionStage`](crate::Stage):
//!
//! ```text
//!          request_launch              start_session             deadline, stop_current
//!   Idle ──────────────────▶ Launching ──────────────▶ Running ─────────────────────────▶ Expiring
//!    ▲                        │     │                     │ warnings                      │   ▲
//!    │                        │     │ stop_current        │ (Warned)                      │   │
//!    │                        │     ▼                     │                               │   │
//!    │                        │  Withdrawn ───────────────│─────── start_session ─────────│───┘
//!    │                        │     │                     │                               │
//!    └────────────────────────┴─────┴─────────────────────┴───────────────────────────────┘
//!     Ended: notify_session_exited; before the program came up also launch_failed and a time-out
//! ```
//!
//! `Warned` is a `Running` that has given a warning, and its level is that of the loudest. A daemon that comes back goes on from the stage that was written
//! down ([`CoreEngine::recover`]).
//!
//! Questions take `&self`. Changes take `&mut self` and the moment, return events in order, and leave durable writes
//! to be fetched with [`CoreEngine::take_writes`]; what could not be written is not granted, what takes something away
//! happens anyway.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use shepherd_api::{API_VERSION, AuditEvent, AuditKind, DaemonStateSnapshot, EntryView};
use shepherd_util::{BootId, ClockReading, EntryId, ProfileId};

use crate::capability::HostCapabilities;
use crate::civil::{LocalTime, ZoneClock};
use crate::evaluation::{EntryEvaluation, EntryHistory, EvaluationContext, EvaluationTime, NoObserver};
use crate::policy::{Day, Policy, PolicyEntry};
use crate::session::ScheduledWarning;
use crate::state::{DaemonHeartbeat, EngineSnapshot, PauseEnd, StoreWrite, StoredState};
use crate::usage::UsageTable;

mod charge;
mod clock;
mod errors;
mod event;
mod explain;
mod extension;
mod grants;
mod launch;
mod lifecycle;
mod missed_warnings;
mod queries;
mod recover;
mod reload;
mod requests;
mod undo;

pub use clock::CLOCK_JITTER;
pub use errors::{GrantError, QueryError, UnknownModeError};
pub use event::CoreEvent;
pub use grants::NewGrant;
pub use launch::{LaunchDecision, LaunchNotAwaited, LaunchRequest};
pub use lifecycle::{ExitInfo, StopDecision, StopRequest};
pub use recover::SessionLiveness;
pub use requests::NewTimeRequest;
pub use undo::UndoAction;

/// On whose behalf the engine itself acts, in the audit log.
pub(crate) const POLICY_ACTOR: &str = "policy";

/// Where the engine finds itself.
#[derive(Clone, Debug)]
pub struct EngineEnvironment {
    /// The present boot of the machine.
    pub boot: BootId,
    /// The system's time zone.
    pub zone: TimeZone,
}

/// When what can be launched changes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextChange {
    /// Nobody has looked yet.
    Unknown,
    /// At this moment, if at all.
    Known(Option<jiff::Timestamp>),
}

/// The policy engine and the session state machine.
#[derive(Clone, Debug)]
pub struct CoreEngine {
    policy: Policy,
    capabilities: HostCapabilities,
    environment: EngineEnvironment,
    usage: UsageTable,
    cooldowns: BTreeMap<(ProfileId, EntryId), PauseEnd>,
    snapshot: EngineSnapshot,
    /// The last sign of life of the daemon before this one.
    heartbeat: Option<DaemonHeartbeat>,
    /// A warning that fell due while there was no daemon.
    missed_warning: Option<ScheduledWarning>,
    writes: Vec<StoreWrite>,
    last_seen: Option<ClockReading>,
    /// The latest time that counted, on both clocks, as far as this boot goes.
    anchor: Option<ClockReading>,
    next_change: NextChange,
    clock_changes: ClockChanges,
    store_trouble: Option<String>,
}

/// What was noticed of the clocks. The next tick deals with it.
#[derive(Clone, Copy, Debug, Default)]
struct ClockChanges {
    /// The clock was set, or may have been: what was planned has to be looked at again.
    needs_recheck: bool,
    /// The clock was set for certain: what can be launched may have changed.
    clock_set: bool,
    /// The machine slept: ends on the clock that stops meanwhile have moved away.
    slept: bool,
    /// The clock is not believed, and the log has it.
    untrusted: bool,
}

impl CoreEngine {
    /// An engine that knows what the store knew (S3.1). If there was a session, [`CoreEngine::recover`] comes next.
    #[must_use]
    pub fn new(
        policy: Policy,
        store: StoredState,
        capabilities: HostCapabilities,
        place: EngineEnvironment,
    ) -> Self {
        let anchor = store.snapshot.clock.latest_in_boot(place.boot);
        Self {
            policy,
            capabilities,
            environment: place,
            usage: UsageTable::new(store.usage),
            cooldowns: store.cooldowns,
            snapshot: store.snapshot,
            heartbeat: store.heartbeat,
            missed_warning: None,
            writes: Vec::new(),
            last_seen: None,
            anchor,
            next_change: NextChange::Unknown,
            clock_changes: ClockChanges::default(),
            store_trouble: None,
        }
    }

    /// Begins again with what a store knows that could not be read before. [`CoreEngine::recover`] comes next.
    pub fn restart_from(&mut self, store: StoredState) {
        let (policy, capabilities, place) =
            (self.policy.clone(), self.capabilities.clone(), self.environment.clone());
        *self = Self::new(policy, store, capabilities, place);
    }

    /// The policy that applies.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What the host can do.
    #[must_use]
    pub fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// What outlives the daemon, as it is now.
    #[must_use]
    pub fn snapshot(&self) -> &EngineSnapshot {
        &self.snapshot
    }

    /// Everything that a store should hold by now, for comparing.
    #[must_use]
    pub fn stored_state(&self) -> StoredState {
        StoredState {
            usage: self.usage.iter().collect(),
            cooldowns: self.cooldowns.clone(),
            snapshot: self.snapshot.clone(),
            heartbeat: self.heartbeat,
        }
    }

    /// The zone in which windows are meant.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        self.policy.rules().zone.as_ref().unwrap_or(&self.environment.zone)
    }

    /// What has to be made durable, all or none, before anything is done about the events. If that fails, they go back
    /// by [`CoreEngine::writes_failed`], nothing of what they would have granted is carried out, and a launch is
    /// reported as failed; what ends a session is carried out all the same.
    #[must_use]
    pub fn take_writes(&mut self) -> Vec<StoreWrite> {
        std::mem::take(&mut self.writes)
    }

    /// These writes could not be made durable: they come again with the next ones, and nothing is granted until the
    /// store works.
    pub fn writes_failed(&mut self, writes: Vec<StoreWrite>, detail: String) {
        let later = std::mem::replace(&mut self.writes, writes);
        self.writes.extend(later);
        self.save_snapshot();
        self.store_failed(detail);
    }

    /// The store can't be relied on: nothing is granted until it can (S8.4b).
    pub fn store_failed(&mut self, detail: String) {
        self.store_trouble = Some(detail);
    }

    /// The store works again.
    pub fn store_recovered(&mut self) {
        self.store_trouble = None;
    }

    /// How it stands with every entry, for whoever names no profile (S3.2).
    #[must_use]
    pub fn list_entries(&self, now: ClockReading) -> Vec<EntryView> {
        self.list_entries_for(&self.policy.default_profile(), now)
    }

    /// How it stands with every entry now.
    #[must_use]
    pub fn list_entries_for(&self, profile: &ProfileId, now: ClockReading) -> Vec<EntryView> {
        self.entry_views(profile, self.evaluation_time(now))
    }

    /// How it would stand with every entry at another time: with today's use if it is today, and no session.
    #[must_use]
    pub fn list_entries_at(&self, profile: &ProfileId, at: jiff::Timestamp) -> Vec<EntryView> {
        self.entry_views(profile, self.evaluation_time_at(at))
    }

    fn entry_views(&self, profile: &ProfileId, at: EvaluationTime) -> Vec<EntryView> {
        let mut hearing = EntryEvaluation::new(self.evaluation_context(at), profile, at);
        let entries = self.policy.entries();
        let mut views = Vec::with_capacity(entries.len());
        let recorded = entries.iter().zip(hearing.entry_histories());
        let shown = recorded.filter(|(entry, _)| entry.is_for(profile));
        views.extend(shown.map(|(entry, record)| build_entry_view(&mut hearing, entry, record, at)));
        views
    }

    /// All that a client needs to draw itself.
    #[must_use]
    pub fn get_state(&self, now: ClockReading) -> DaemonStateSnapshot {
        let day = LocalTime::at(self.zone(), self.effective_time(now)).day();
        DaemonStateSnapshot {
            api_version: API_VERSION,
            at: now.wall,
            session: self.session_view(now),
            entry_count: self.policy.entries().len(),
            mode: self.mode_on(day).to_owned(),
            clock_trusted: self.clock_behind(now.wall).is_none(),
        }
    }

    fn mode_on(&self, day: Day) -> &str {
        self.snapshot.mode.as_deref().unwrap_or_else(|| self.policy.rules().modes.mode_on(day))
    }

    fn evaluation_context(&self, at: EvaluationTime) -> EvaluationContext<'_> {
        let active = self.snapshot.session.as_ref().filter(|_| at.mono.is_some());
        EvaluationContext {
            policy: &self.policy,
            capabilities: &self.capabilities,
            usage: &self.usage,
            cooldowns: &self.cooldowns,
            grants: &self.snapshot.grants,
            streaks: &self.snapshot.streaks,
            mode: self.snapshot.mode.as_deref(),
            wall: ZoneClock::cached_from(self.zone(), at.wall),
            boot: self.environment.boot,
            active: active.map(|session| (&session.session_id, &session.entry_id)),
            clock_behind: self.clock_behind(at.shown),
            clock_trusted_at: self.clock_trusted_at(at.shown),
            store_trouble: self.store_trouble.as_deref(),
        }
    }

    fn append_audit(&mut self, now: ClockReading, actor: &str, what: AuditKind) {
        let event = AuditEvent { at: now.wall, actor: actor.to_owned(), what };
        self.writes.push(StoreWrite::AppendAudit(Box::new(event)));
    }

    fn save_snapshot(&mut self) {
        // Of several in one step only the last matters.
        self.writes.retain(|write| !matches!(write, StoreWrite::SaveSnapshot(_)));
        self.writes.push(StoreWrite::SaveSnapshot(Box::new(self.snapshot.clone())));
    }
}

/// How it stands with one entry.
fn evaluate_entry(
    facts: &EvaluationContext<'_>,
    profile: &ProfileId,
    entry: &PolicyEntry,
    at: EvaluationTime,
) -> EntryView {
    let mut hearing = EntryEvaluation::new(*facts, profile, at);
    let record = hearing.entry_history(entry);
    build_entry_view(&mut hearing, entry, record, at)
}

/// The same for one of many.
fn build_entry_view(
    hearing: &mut EntryEvaluation<'_>,
    entry: &PolicyEntry,
    record: EntryHistory<'_>,
    at: EvaluationTime,
) -> EntryView {
    let finding = hearing.evaluate(entry, record, &mut NoObserver);
    let enabled = finding.reasons.is_empty();
    let next_available = if enabled { None } else { hearing.next_available(entry, record, &finding) };
    EntryView {
        entry_id: entry.entry_id.clone(),
        label: entry.label.clone(),
        icon_ref: entry.icon_ref.clone(),
        kind: entry.kind.name().to_owned(),
        enabled,
        max_run_if_started_now: if enabled { finding.longest_run(at.wall).map(Into::into) } else { None },
        reasons: finding.reasons,
        next_available,
    }
}
