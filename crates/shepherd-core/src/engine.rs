//! `CoreEngine`: told what happens and when, it says what must be done. It never asks the world for anything.
//!
//! The state machine (S3.6) is the session in [`Snapshot::session`]; `Idle` is that there is none, and the rest is its
//! [`Stage`](crate::Stage):
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
use shepherd_util::{BootId, EntryId, Now, ProfileId};

use crate::capability::HostCapabilities;
use crate::civil::{Local, Wall};
use crate::judge::{Facts, Hearing, Moment, Nobody, Record};
use crate::policy::{Day, Entry, Policy};
use crate::session::ScheduledWarning;
use crate::state::{Pulse, Snapshot, StoreWrite, StoredState, Until};
use crate::usage::UsageBook;

mod answer;
mod charge;
mod clock;
mod event;
mod explain;
mod gifts;
mod launch;
mod recover;
mod refusal;
mod reload;
mod requests;
mod run;
mod stretch;
mod undo;
mod unheard;

pub use clock::JITTER;
pub use event::CoreEvent;
pub use gifts::NewGrant;
pub use launch::{LaunchDecision, LaunchRequest, NotAwaited};
pub use recover::SessionFate;
pub use refusal::{AskError, GiftError, UnknownMode};
pub use requests::NewRequest;
pub use run::{ExitInfo, StopDecision, StopRequest};
pub use undo::Undo;

/// On whose behalf the engine itself acts, in the audit log.
pub(crate) const POLICY: &str = "policy";

/// Where the engine finds itself.
#[derive(Clone, Debug)]
pub struct Place {
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
    place: Place,
    usage: UsageBook,
    cooldowns: BTreeMap<(ProfileId, EntryId), Until>,
    snapshot: Snapshot,
    /// The last sign of life of the daemon before this one.
    pulse: Option<Pulse>,
    /// A warning that fell due while there was no daemon.
    unheard: Option<ScheduledWarning>,
    writes: Vec<StoreWrite>,
    last_seen: Option<Now>,
    /// The latest time that counted, on both clocks, as far as this boot goes.
    anchor: Option<Now>,
    next_change: NextChange,
    noticed: Noticed,
    store_trouble: Option<String>,
}

/// What was noticed of the clocks. The next tick deals with it.
#[derive(Clone, Copy, Debug, Default)]
struct Noticed {
    /// The clock was set, or may have been: what was planned has to be looked at again.
    upset: bool,
    /// The clock was set for certain: what can be launched may have changed.
    set: bool,
    /// The machine slept: ends on the clock that stops meanwhile have moved away.
    slept: bool,
    /// The clock is not believed, and the log has it.
    untrusted: bool,
}

impl CoreEngine {
    /// An engine that knows what the store knew (S3.1). If there was a session, [`CoreEngine::recover`] comes next.
    #[must_use]
    pub fn new(policy: Policy, store: StoredState, capabilities: HostCapabilities, place: Place) -> Self {
        let anchor = store.snapshot.clock.seen_in(place.boot);
        Self {
            policy,
            capabilities,
            place,
            usage: UsageBook::new(store.usage),
            cooldowns: store.cooldowns,
            snapshot: store.snapshot,
            pulse: store.pulse,
            unheard: None,
            writes: Vec::new(),
            last_seen: None,
            anchor,
            next_change: NextChange::Unknown,
            noticed: Noticed::default(),
            store_trouble: None,
        }
    }

    /// Begins again with what a store knows that could not be read before. [`CoreEngine::recover`] comes next.
    pub fn begin_again(&mut self, store: StoredState) {
        let (policy, capabilities, place) =
            (self.policy.clone(), self.capabilities.clone(), self.place.clone());
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
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Everything that a store should hold by now, for comparing.
    #[must_use]
    pub fn stored_state(&self) -> StoredState {
        StoredState {
            usage: self.usage.iter().collect(),
            cooldowns: self.cooldowns.clone(),
            snapshot: self.snapshot.clone(),
            pulse: self.pulse,
        }
    }

    /// The zone in which windows are meant.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        self.policy.rules().zone.as_ref().unwrap_or(&self.place.zone)
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
        self.save();
        self.store_failed(detail);
    }

    /// The store can't be relied on: nothing is granted until it can (S8.4b).
    pub fn store_failed(&mut self, detail: String) {
        self.store_trouble = Some(detail);
    }

    /// The store works again.
    pub fn store_works(&mut self) {
        self.store_trouble = None;
    }

    /// How it stands with every entry, for whoever names no profile (S3.2).
    #[must_use]
    pub fn list_entries(&self, now: Now) -> Vec<EntryView> {
        self.list_entries_for(&self.policy.default_profile(), now)
    }

    /// How it stands with every entry now.
    #[must_use]
    pub fn list_entries_for(&self, profile: &ProfileId, now: Now) -> Vec<EntryView> {
        self.views(profile, self.moment(now))
    }

    /// How it would stand with every entry at another time: with today's use if it is today, and no session.
    #[must_use]
    pub fn list_entries_at(&self, profile: &ProfileId, at: jiff::Timestamp) -> Vec<EntryView> {
        self.views(profile, self.other_moment(at))
    }

    fn views(&self, profile: &ProfileId, at: Moment) -> Vec<EntryView> {
        let mut hearing = Hearing::new(self.facts(at), profile, at);
        let entries = self.policy.entries();
        let mut views = Vec::with_capacity(entries.len());
        let recorded = entries.iter().zip(hearing.records());
        let shown = recorded.filter(|(entry, _)| entry.is_for(profile));
        views.extend(shown.map(|(entry, record)| hear(&mut hearing, entry, record, at)));
        views
    }

    /// All that a client needs to draw itself.
    #[must_use]
    pub fn get_state(&self, now: Now) -> DaemonStateSnapshot {
        let day = Local::at(self.zone(), self.counted(now)).day();
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
        self.snapshot.mode.as_deref().unwrap_or_else(|| self.policy.rules().modes.on(day))
    }

    fn facts(&self, at: Moment) -> Facts<'_> {
        let active = self.snapshot.session.as_ref().filter(|_| at.mono.is_some());
        Facts {
            policy: &self.policy,
            capabilities: &self.capabilities,
            usage: &self.usage,
            cooldowns: &self.cooldowns,
            grants: &self.snapshot.grants,
            streaks: &self.snapshot.streaks,
            mode: self.snapshot.mode.as_deref(),
            wall: Wall::near(self.zone(), at.wall),
            boot: self.place.boot,
            active: active.map(|session| (&session.session_id, &session.entry_id)),
            clock_behind: self.clock_behind(at.shown),
            trusted_again: self.trusted_again(at.shown),
            store_trouble: self.store_trouble.as_deref(),
        }
    }

    fn audit(&mut self, now: Now, actor: &str, what: AuditKind) {
        let event = AuditEvent { at: now.wall, actor: actor.to_owned(), what };
        self.writes.push(StoreWrite::AppendAudit(Box::new(event)));
    }

    fn save(&mut self) {
        // Of several in one step only the last matters.
        self.writes.retain(|write| !matches!(write, StoreWrite::SaveSnapshot(_)));
        self.writes.push(StoreWrite::SaveSnapshot(Box::new(self.snapshot.clone())));
    }
}

/// How it stands with one entry.
fn view(facts: &Facts<'_>, profile: &ProfileId, entry: &Entry, at: Moment) -> EntryView {
    let mut hearing = Hearing::new(*facts, profile, at);
    let record = hearing.record(entry);
    hear(&mut hearing, entry, record, at)
}

/// The same for one of many.
fn hear(hearing: &mut Hearing<'_>, entry: &Entry, record: Record<'_>, at: Moment) -> EntryView {
    let finding = hearing.judge(entry, record, &mut Nobody);
    let enabled = finding.reasons.is_empty();
    let next_available = if enabled { None } else { hearing.available_again(entry, record, &finding) };
    EntryView {
        entry_id: entry.entry_id.clone(),
        label: entry.label.clone(),
        icon_ref: entry.icon_ref.clone(),
        kind: entry.kind.name().to_owned(),
        enabled,
        max_run_if_started_now: if enabled { finding.longest(at.wall).map(Into::into) } else { None },
        reasons: finding.reasons,
        next_available,
    }
}
