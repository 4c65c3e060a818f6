//! A small household and the steps that happen in it: for a process that is killed, and for a test that knows the
//! expected state.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use shepherd_api::{AuditEvent, AuditKind, EntryKind, StopMode, StopRequester, WarningSeverity};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, EntrySlot, LimitsPolicy, Policy, PolicyEntry, PolicyRules, RunPolicy,
    TimeBudget, TimeCost, WarningPolicy, WarningThreshold,
};
use shepherd_core::{
    CoreEngine, CoreEvent, DaemonHeartbeat, Effect, Effects, EngineEnvironment, EngineSnapshot, ExitInfo,
    HostCapabilities, LaunchRequest, PauseEnd, SessionLiveness, SessionRecord, StopRequest, StoreWrite,
    StoredState, UsageKey,
};
use shepherd_util::{BootId, ClockReading, EntryId, ProfileId, SessionId};

use super::sample::entry_id;
use crate::error::StoreError;
use crate::store::Store;

/// The longest run of the one entry.
pub const MAX_RUN: Duration = Duration::from_secs(120);
/// The cooldown after a run of either entry.
pub const COOLDOWN: Duration = Duration::from_secs(20);

/// The number of recovery records at the end of the log: a daemon that is killed while it opens adds one each time.
const RECENT_AUDIT_LINES: u32 = 64;

/// Two entries on one budget: `game` has every limit on a run, `chess` only the budget.
#[must_use]
pub fn household_policy() -> Policy {
    let play = "play".parse().expect("a valid name");
    let game = LimitsPolicy {
        max_run: Some(MAX_RUN),
        daily_quota: DailyQuota::every_day(Duration::from_secs(300)),
        weekly_quota: None,
        cooldown_after_run: COOLDOWN,
        ..LimitsPolicy::default()
    };
    let chess = LimitsPolicy { cooldown_after_run: COOLDOWN, ..LimitsPolicy::default() };
    let budget = TimeBudget {
        label: "Play".to_owned(),
        daily: DailyQuota::every_day(Duration::from_secs(500)),
        weekly: None,
    };
    let rules = PolicyRules {
        zone: Some(TimeZone::UTC),
        entries: vec![household_entry("game", game), household_entry("chess", chess)],
        budgets: BTreeMap::from([(play, budget)]),
        ..PolicyRules::default()
    };
    Policy::new(rules).expect("every reference of the policy resolves")
}

fn household_entry(name: &str, limits: LimitsPolicy) -> PolicyEntry {
    let warning = |before| WarningThreshold {
        before: Duration::from_secs(before),
        severity: WarningSeverity::Warn,
        message_template: None,
    };
    PolicyEntry {
        entry_id: entry_id(name),
        label: name.to_owned(),
        icon_ref: None,
        kind: EntryKind::Process { argv: vec!["/bin/true".into()], env: BTreeMap::new(), cwd: None },
        profiles: None,
        availability: AvailabilityPolicy::Always,
        limits,
        warnings: WarningPolicy::new([60, 20, 5].map(warning).into()),
        disabled: None,
        budgets: vec!["play".parse().expect("a valid name")],
        cost: TimeCost::Counts,
        earns: None,
        slot: EntrySlot::Foreground,
        unlock: None,
        run: RunPolicy::default(),
    }
}

/// Creates an engine of the household from a stored state.
#[must_use]
pub fn new_engine(state: StoredState, boot: BootId) -> CoreEngine {
    let place = EngineEnvironment { boot, zone: TimeZone::UTC };
    CoreEngine::new(household_policy(), state, HostCapabilities::all_supported(), place)
}

/// A step of the household's life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HouseholdStep {
    /// The time of the step.
    pub now: ClockReading,
    /// The kind of the step.
    pub action: HouseholdAction,
}

/// The kinds of steps. Programs are simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HouseholdAction {
    /// The daemon started, and the program of its session is still running.
    TakeBack,
    /// The daemon started, and the program of its session, if there was one, is gone.
    FindGone,
    /// A launch was requested.
    Launch {
        /// The entry to launch.
        entry_id: EntryId,
        /// The number of the new session.
        number: u64,
    },
    /// The program is running.
    Start,
    /// The program did not start.
    FailLaunch,
    /// Time has passed.
    Tick,
    /// A heartbeat was written. The engine doesn't take part.
    Pulse,
    /// A stop was requested.
    Stop,
    /// The program has exited.
    Exit,
    /// An administrator confirms the clock.
    ConfirmClock,
}

/// The daemon's work after a step: writes to make durable, and events to announce. Orders to the host are left out,
/// because there are no programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutcome {
    /// The writes, which are applied all or none.
    pub writes: Vec<StoreWrite>,
    /// The events in the order in which they are announced.
    pub events: Vec<CoreEvent>,
}

impl From<Effects> for StepOutcome {
    fn from(effects: Effects) -> Self {
        let mut outcome = Self::default();
        for effect in effects {
            match effect {
                Effect::Persist { writes, .. } => outcome.writes.extend(writes),
                Effect::Announce(event) => outcome.events.push(event),
                Effect::Stop { .. } | Effect::ShowWindow { .. } | Effect::Spawn(_) => {}
            }
        }
        outcome
    }
}

/// Reports a step to an engine, and returns its writes and events.
pub fn apply_step(engine: &mut CoreEngine, step: &HouseholdStep) -> StepOutcome {
    let now = step.now;
    let session_id = engine.sessions().only().map(|session| session.session_id.clone());
    let effects = match (&step.action, session_id) {
        (HouseholdAction::TakeBack, session_id) => {
            let alive = SessionLiveness::Alive { handle: "found".to_owned() };
            let liveness = session_id.into_iter().map(|session_id| (session_id, alive.clone())).collect();
            engine.recover(&liveness, now)
        }
        (HouseholdAction::FindGone, _) => engine.recover(&BTreeMap::new(), now),
        (HouseholdAction::Launch { entry_id, number }, _) => {
            let request = LaunchRequest {
                entry_id: entry_id.clone(),
                profile: None,
                session_id: SessionId::from_random(u128::from(*number)),
                actor: "child".to_owned(),
                display: None,
            };
            // The session in the snapshot, or its absence, shows the decision.
            engine.request_launch(&request, now).effects
        }
        (HouseholdAction::Start, Some(session_id)) => {
            engine.start_session(&session_id, "handle".to_owned(), now).effects
        }
        (HouseholdAction::FailLaunch, Some(session_id)) => {
            engine.launch_failed(&session_id, "pretended".to_owned(), now)
        }
        (HouseholdAction::Exit, Some(session_id)) => {
            engine.notify_session_exited(&ExitInfo { session_id, code: Some(0), signal: None }, now)
        }
        (HouseholdAction::Stop, Some(session_id)) => {
            let (by, mode, actor) = (StopRequester::User, StopMode::Graceful, "child".to_owned());
            engine.stop_session(&session_id, &StopRequest { by, mode, actor }, now).effects
        }
        (HouseholdAction::Tick, _) => engine.tick(now),
        (HouseholdAction::ConfirmClock, _) => engine.confirm_clock("parent", now),
        (HouseholdAction::Pulse, _)
        | (
            HouseholdAction::Start
            | HouseholdAction::FailLaunch
            | HouseholdAction::Exit
            | HouseholdAction::Stop,
            None,
        ) => Effects::default(),
    };
    effects.into()
}

/// The output of the process, one line of JSON each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HouseholdReport {
    /// The store is open, with this state.
    Opened(Box<PersistedState>),
    /// A step is durable; these are its events, as `Debug` prints them.
    Done(Vec<String>),
}

/// The state of a store in a form that can be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersistedState {
    /// The usage by key.
    pub usage: Vec<(UsageKey, Duration)>,
    /// The cooldowns after a run.
    pub cooldowns: Vec<((ProfileId, EntryId), PauseEnd)>,
    /// The rest of the state.
    pub sessions: BTreeMap<SessionId, SessionRecord>,
    pub snapshot: EngineSnapshot,
    /// The last heartbeat.
    pub pulse: Option<DaemonHeartbeat>,
    /// The last line of the audit log that isn't a recovery record.
    pub last_event: Option<AuditEvent>,
}

impl PersistedState {
    /// Returns the expected state.
    #[must_use]
    pub fn expected(state: StoredState, last_event: Option<AuditEvent>) -> Self {
        let StoredState { usage, cooldowns, sessions, snapshot, heartbeat: pulse } = state;
        Self {
            usage: usage.into_iter().collect(),
            cooldowns: cooldowns.into_iter().collect(),
            sessions,
            snapshot,
            pulse,
            last_event,
        }
    }

    /// Returns the state of a store.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn read_from(store: &impl Store) -> Result<Self, StoreError> {
        let end = store.audit_end();
        let lines =
            store.read_audit(Some(end.saturating_sub(u64::from(RECENT_AUDIT_LINES))), RECENT_AUDIT_LINES)?;
        let own = lines.into_iter().rev().find(|record| !matches!(record.line.what, AuditKind::Note { .. }));
        Ok(Self::expected(store.load()?, own.map(|record| record.line)))
    }
}
