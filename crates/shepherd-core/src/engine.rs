//! `CoreEngine`: the policy engine and the session state machine. The daemon tells it what happens and when, and
//! carries out the [`Effects`] that it returns; the engine never asks the world for anything.
//!
//! Any number of sessions run at once, each in a slot that holds one ([`SessionSlot`](crate::SessionSlot), S19.1). The
//! state machine (S3.6) is that of one slot. `Idle` means that it is free; the other states are the session's
//! [`SessionStage`](crate::SessionStage):
//!
//! ```text
//!          request_launch              start_session             deadline, stop_session
//!   Idle ──────────────────▶ Launching ──────────────▶ Running ─────────────────────────▶ Expiring
//!    ▲                        │     │                     │ warnings                      │   ▲
//!    │                        │     │ stop_session        │ (Warned)                      │   │
//!    │                        │     ▼                     │                               │   │
//!    │                        │  Withdrawn ───────────────│─────── start_session ─────────│───┘
//!    │                        │     │                     │                               │
//!    └────────────────────────┴─────┴─────────────────────┴───────────────────────────────┘
//!     Ended: notify_session_exited; before the program came up also launch_failed and a timeout
//! ```
//!
//! `Warned` is a `Running` session that has given a warning, at the level of its most severe warning. A restarted
//! daemon continues from the stage that was stored ([`CoreEngine::recover`]).
//!
//! Queries take `&self`. Changes take `&mut self` and the moment, and return their [`Effects`] in order, some of
//! them together with an answer ([`EngineReply`]). The outcome of an effect comes back as another change:
//!
//! | effect | outcome |
//! | --- | --- |
//! | [`Effect::Stop`] | [`CoreEngine::notify_session_exited`] |
//! | [`Effect::Persist`] | [`CoreEngine::persist_succeeded`], [`CoreEngine::persist_failed`], [`CoreEngine::store_failed`] |
//! | [`Effect::Spawn`] | [`CoreEngine::start_session`], [`CoreEngine::launch_failed`] |

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use shepherd_api::{API_VERSION, DaemonStateSnapshot, ProfileView};
use shepherd_util::{BootId, ClockReading, EntryId, MonotonicInstant, ProfileId, SessionId};

use crate::capability::HostCapabilities;
use crate::civil::{LocalTime, ZoneClock};
use crate::evaluation::{EvaluationContext, EvaluationTime};
use crate::policy::{Day, Policy, Profile};
use crate::session::ScheduledWarning;
use crate::session_table::SessionTable;
use crate::state::{DaemonHeartbeat, EngineSnapshot, PauseEnd, StoredState};
use crate::usage::UsageTable;

mod adopt;
mod charge;
mod charged_time;
mod clock;
mod clock_correction;
mod counting;
mod crash;
mod effect;
mod errors;
mod event;
mod explain;
mod extension;
mod extra_run;
mod grants;
mod launch;
mod lifecycle;
mod listing;
mod login;
mod missed_warnings;
mod persist_outcome;
mod queries;
mod recover;
mod reload;
mod requests;
mod schedule;

pub use adopt::{AdoptionDecision, AdoptionRequest};
pub use clock::CLOCK_JITTER;
use effect::EffectBuffer;
pub use effect::{Effect, Effects, EngineReply, ProvisionalGrant};
pub use errors::{GrantError, QueryError, UnknownModeError};
pub use event::{CoreEvent, WarningMessage};
pub use extension::ExtendedSession;
pub use grants::NewGrant;
pub use launch::{LaunchDecision, LaunchNotAwaited, LaunchRequest};
pub use lifecycle::{ExitInfo, StopDecision, StopRequest};
pub use login::{LoginCheck, LoginSupport};
pub use recover::{SessionLiveness, ShutdownDecision};
pub use requests::{GrantedRequest, NewTimeRequest};

/// The actor in audit lines about what the engine does by itself.
pub(crate) const POLICY_ACTOR: &str = "policy";

/// The facts about the machine that the engine can't ask for.
#[derive(Clone, Debug)]
pub struct EngineEnvironment {
    pub boot: BootId,
    /// The system's time zone.
    pub zone: TimeZone,
}

/// The next moment at which the set of entries that can be launched may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextChange {
    /// Not computed yet.
    Unknown,
    /// `None` if nothing will change by itself.
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
    sessions: SessionTable,
    snapshot: EngineSnapshot,
    /// The last heartbeat of the daemon before this one.
    heartbeat: Option<DaemonHeartbeat>,
    /// Warnings that fell due while no daemon ran.
    missed_warnings: BTreeMap<SessionId, ScheduledWarning>,
    /// Sessions whose plan has to be checked against the quotas, because the wall clock was set or may have been.
    unchecked_plans: BTreeSet<SessionId>,
    /// The moment at which a tick last charged every session.
    all_charged_at: Option<MonotonicInstant>,
    effects: EffectBuffer,
    last_seen: Option<ClockReading>,
    /// The latest effective time, on both clocks, within this boot.
    anchor: Option<ClockReading>,
    next_change: NextChange,
    clock_changes: ClockChanges,
    store_trouble: Option<String>,
}

/// Clock changes that were observed and that the next tick handles.
#[derive(Clone, Copy, Debug, Default)]
struct ClockChanges {
    /// The wall clock was certainly set, so other entries may be available.
    clock_set: bool,
    /// The machine was suspended, which postponed the deadlines on the clock that stops meanwhile.
    slept: bool,
    /// The clock is untrusted, and the audit log says so.
    untrusted: bool,
}

impl CoreEngine {
    /// Builds an engine from the stored state (S3.1). [`CoreEngine::recover`] has to follow if there was a session.
    #[must_use]
    pub fn new(
        policy: Policy,
        store: StoredState,
        capabilities: HostCapabilities,
        environment: EngineEnvironment,
    ) -> Self {
        let anchor = store.snapshot.clock.latest_in_boot(environment.boot);
        Self {
            policy,
            capabilities,
            environment,
            usage: UsageTable::new(store.usage),
            cooldowns: store.cooldowns,
            sessions: SessionTable::new(store.sessions),
            snapshot: store.snapshot,
            heartbeat: store.heartbeat,
            missed_warnings: BTreeMap::new(),
            unchecked_plans: BTreeSet::new(),
            all_charged_at: None,
            effects: EffectBuffer::default(),
            last_seen: None,
            anchor,
            next_change: NextChange::Unknown,
            clock_changes: ClockChanges::default(),
            store_trouble: None,
        }
    }

    /// Starts over from a store that could not be read before. [`CoreEngine::recover`] has to follow. A store that
    /// failed still counts as failed until [`CoreEngine::store_recovered`].
    pub fn restart_from(&mut self, store: StoredState) {
        let (policy, capabilities, environment) =
            (self.policy.clone(), self.capabilities.clone(), self.environment.clone());
        let store_trouble = self.store_trouble.take();
        *self = Self { store_trouble, ..Self::new(policy, store, capabilities, environment) };
    }

    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    #[must_use]
    pub fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// Takes note of the logins that the policy names and the machine doesn't have at present (S5.1).
    pub fn update_missing_logins(&mut self, logins: BTreeSet<String>) -> Effects {
        if self.capabilities.missing_logins == logins {
            return Effects::default();
        }
        self.capabilities.missing_logins = logins;
        Self::announcement(CoreEvent::EntryAvailabilityChanged)
    }

    /// Returns the part of the state that is stored as a whole.
    #[must_use]
    pub fn snapshot(&self) -> &EngineSnapshot {
        &self.snapshot
    }

    #[must_use]
    pub fn sessions(&self) -> &SessionTable {
        &self.sessions
    }

    /// Returns everything that a store should hold once all writes are durable, for comparisons.
    #[must_use]
    pub fn stored_state(&self) -> StoredState {
        StoredState {
            usage: self.usage.iter().collect(),
            cooldowns: self.cooldowns.clone(),
            sessions: self.sessions.records().clone(),
            snapshot: self.snapshot.clone(),
            heartbeat: self.heartbeat,
        }
    }

    /// Returns the id of the present boot.
    #[must_use]
    pub fn boot(&self) -> BootId {
        self.environment.boot
    }

    /// Returns the time zone of the policy's windows: the policy's own, or else the system's.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        self.policy.rules().zone.as_ref().unwrap_or(&self.environment.zone)
    }

    /// Returns the system's time zone, which is the zone of the people at this machine.
    #[must_use]
    pub fn system_zone(&self) -> &TimeZone {
        &self.environment.zone
    }

    /// Refuses everything that would have to be recorded, until the store works again (S8.4b).
    pub fn store_failed(&mut self, detail: String) -> Effects {
        match self.store_trouble.replace(detail) {
            None => Self::announcement(CoreEvent::EntryAvailabilityChanged),
            Some(_) => Effects::default(),
        }
    }

    pub fn store_recovered(&mut self) -> Effects {
        match self.store_trouble.take() {
            Some(_) => Self::announcement(CoreEvent::EntryAvailabilityChanged),
            None => Effects::default(),
        }
    }

    /// Returns the fault of the store; `None` while the store works.
    #[must_use]
    pub fn store_trouble(&self) -> Option<&str> {
        self.store_trouble.as_deref()
    }

    /// Returns everything that a client needs to draw its first screen.
    #[must_use]
    pub fn get_state(&self, now: ClockReading) -> DaemonStateSnapshot {
        let sessions = self.session_views(now);
        DaemonStateSnapshot {
            api_version: API_VERSION,
            at: now.wall,
            session: DaemonStateSnapshot::primary_session(&sessions).cloned(),
            sessions,
            entry_count: self.policy.entries().len(),
            mode: self.mode(now).to_owned(),
            clock_trusted: self.clock_behind(now.wall).is_none(),
            profiles: self.profile_views(),
            language: Some(self.policy.rules().language),
        }
    }

    fn profile_views(&self) -> Vec<ProfileView> {
        let profiles = self.policy.rules().profiles.iter();
        let view = |(id, profile): (&ProfileId, &Profile)| ProfileView {
            profile: id.clone(),
            label: profile.label.clone(),
        };
        profiles.map(view).collect()
    }

    /// Returns the household's mode that applies now.
    #[must_use]
    pub fn mode(&self, now: ClockReading) -> &str {
        self.mode_on(LocalTime::at(self.zone(), self.effective_time(now)).day())
    }

    fn mode_on(&self, day: Day) -> &str {
        self.snapshot.mode.as_deref().unwrap_or_else(|| self.policy.rules().modes.mode_on(day))
    }

    fn evaluation_context(&self, at: EvaluationTime) -> EvaluationContext<'_> {
        EvaluationContext {
            policy: &self.policy,
            capabilities: &self.capabilities,
            usage: &self.usage,
            cooldowns: &self.cooldowns,
            grants: &self.snapshot.grants,
            streaks: &self.snapshot.streaks,
            extra_runs: &self.snapshot.extra_runs,
            mode: self.snapshot.mode.as_deref(),
            wall: ZoneClock::cached_from(self.zone(), at.wall),
            boot: self.environment.boot,
            sessions: &self.sessions,
            account: None,
            clock_behind: self.clock_behind(at.shown),
            clock_trusted_at: self.clock_trusted_at(at.shown),
            store_trouble: self.store_trouble.as_deref(),
        }
    }
}
