//! A model of a household that does not depend on its daemon: who really played for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::AuditEvent;
use shepherd_core::{
    CoreEngine, CoreEvent, DaemonHeartbeat, SessionDeadlines, SessionRecord, SessionStage, StoreWrite,
    StoredState, UsageCounter,
};
use shepherd_store::conformance::household::{
    COOLDOWN, HouseholdAction, HouseholdStep, MAX_RUN, PersistedState, StepOutcome, apply_step,
    household_policy, new_engine,
};
use shepherd_store::conformance::sample::entry_id;
use shepherd_util::{BootId, Clock, ClockReading, EntryId, ManualClock, MonotonicInstant, SessionId};

use crate::support::XorshiftRng;

mod step_generator;

/// The longest time that a power cut loses: the heartbeat interval, and the time to write a heartbeat.
const MAX_POWER_CUT_LOSS: Duration = Duration::from_secs(31);

/// Longer than any play in these tests.
const UNBOUNDED_LOSS: Duration = Duration::from_secs(1_000_000);

/// The state of the session's program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProgramState {
    None,
    Alive,
    /// The program has ended, and the daemon does not know yet.
    Dead {
        at: MonotonicInstant,
    },
}

/// The model of a session.
#[derive(Debug)]
struct SessionModel {
    id: SessionId,
    entry_id: EntryId,
    launched: ClockReading,
    boot: u64,
    ends: SessionDeadlines,
    /// True if the wall clock was changed since the launch.
    wall_clock_moved: bool,
    warned: BTreeSet<u64>,
    /// The time that had been charged to the entry before the launch.
    before: Duration,
    /// The time that the program has really run.
    played: Duration,
    /// The time from the launch to a start that may not have been stored.
    launch_took: Duration,
    /// The time that may be charged in addition, because it is uncertain.
    max_overcharge: Duration,
    /// The same for a program that was found gone.
    max_end_overcharge: Duration,
}

/// A step that may or may not have been stored.
pub(crate) struct PendingStep {
    pub(crate) step: HouseholdStep,
    pub(crate) events: Vec<CoreEvent>,
    boot: u64,
    engine: CoreEngine,
    stored: StoredState,
    audit: Vec<AuditEvent>,
}

/// When it became known that a step was stored.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum AckTiming {
    Immediate,
    AfterRestart,
}

/// Counts of events, so that a test in which nothing happens fails.
#[derive(Debug, Default)]
pub(crate) struct RunCounts {
    pub(crate) sessions: u64,
    pub(crate) charged_exactly: u64,
    pub(crate) reboots: u64,
    pub(crate) warnings: u64,
    pub(crate) expired: u64,
    pub(crate) reattached: u64,
    pub(crate) found_after_restart: u64,
    pub(crate) heartbeats: u64,
    pub(crate) torn: u64,
}

impl RunCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.charged_exactly += other.charged_exactly;
        self.reboots += other.reboots;
        self.warnings += other.warnings;
        self.expired += other.expired;
        self.reattached += other.reattached;
        self.found_after_restart += other.found_after_restart;
        self.heartbeats += other.heartbeats;
        self.torn += other.torn;
    }
}

pub(crate) struct HouseholdModel {
    pub(crate) rng: XorshiftRng,
    pub(crate) counts: RunCounts,
    clock: ManualClock,
    boot: u64,
    /// An engine with the same history as the daemon, and the state that must be stored by now.
    engine: CoreEngine,
    stored: StoredState,
    audit: Vec<AuditEvent>,
    session: Option<SessionModel>,
    program: ProgramState,
    /// True if the program was started, but the start was not stored.
    unrecorded: bool,
    last_run: Option<(u64, EntryId, MonotonicInstant)>,
    denied: bool,
}

impl HouseholdModel {
    pub(crate) fn new(seed: u64) -> Self {
        let clock = ManualClock::starting_at("2026-11-16T12:00:00Z".parse::<Timestamp>().unwrap());
        clock.advance(Duration::from_secs(40));
        Self {
            rng: XorshiftRng::new(seed),
            counts: RunCounts::default(),
            clock,
            boot: 1,
            engine: new_engine(StoredState::default(), boot_id(1)),
            stored: StoredState::default(),
            audit: Vec::new(),
            session: None,
            program: ProgramState::None,
            unrecorded: false,
            last_run: None,
            denied: false,
        }
    }

    pub(crate) fn boot_id(&self) -> BootId {
        boot_id(self.boot)
    }

    pub(crate) fn stored(&self) -> &StoredState {
        &self.stored
    }

    pub(crate) fn audit(&self) -> &[AuditEvent] {
        &self.audit
    }

    fn record(&self) -> Option<&SessionRecord> {
        self.stored.sessions.values().next()
    }

    /// Returns the last heartbeat, if it belongs to the stored session.
    fn last_heartbeat(&self) -> Option<MonotonicInstant> {
        let record = self.record()?;
        let began = record.started.total();
        let of_session =
            |heartbeat: &DaemonHeartbeat| heartbeat.boot == record.boot && heartbeat.at.mono.total() >= began;
        self.stored.heartbeat.filter(of_session).map(|heartbeat| heartbeat.at.mono)
    }

    /// Forgets the last heartbeat, because a power cut destroyed it.
    pub(crate) fn lose_heartbeat(&mut self) {
        self.stored.heartbeat = None;
        self.counts.torn += 1;
    }

    fn now(&self) -> ClockReading {
        self.clock.now()
    }

    /// Predicts the state after a step.
    pub(crate) fn predict_step(&self, step: HouseholdStep) -> PendingStep {
        let (mut engine, mut stored, mut audit) = (self.engine.clone(), self.stored.clone(), Vec::new());
        let StepOutcome { writes, events } = apply_step(&mut engine, &step);
        if step.action == HouseholdAction::Pulse {
            stored.heartbeat = Some(DaemonHeartbeat { boot: self.boot_id(), at: step.now });
        }
        for write in writes {
            match write {
                StoreWrite::AddUsage { key, amount } => *stored.usage.entry(key).or_default() += amount,
                StoreWrite::SetCooldown { profile, entry_id, until } => {
                    stored.cooldowns.insert((profile, entry_id), until);
                }
                StoreWrite::SaveSession(session) => {
                    stored.sessions.insert(session.session_id.clone(), *session);
                }
                StoreWrite::DeleteSession(session_id) => drop(stored.sessions.remove(&session_id)),
                StoreWrite::SaveSnapshot(snapshot) => stored.snapshot = *snapshot,
                StoreWrite::AppendAudit(event) => audit.push(*event),
            }
        }
        let is_distinguishable = audit.is_empty() || audit.last() != self.audit.last();
        assert!(is_distinguishable, "nobody could tell whether it has landed: {step:?}");
        PendingStep { step, events, boot: self.boot, engine, stored, audit }
    }

    /// Checks the state that a restarted daemon found: everything acknowledged, and the pending step completely or not
    /// at all (S8.2).
    pub(crate) fn check_reopened_state(&mut self, found: &PersistedState, pending: Option<PendingStep>) {
        let before = PersistedState::expected(self.stored.clone(), self.audit.last().cloned());
        let after = pending.map(|pending| {
            let last = pending.audit.last().or(self.audit.last()).cloned();
            (PersistedState::expected(pending.stored.clone(), last), pending)
        });
        match after {
            Some((after, pending)) if *found == after => {
                self.counts.found_after_restart += u64::from(after != before);
                self.restart_engine(Some(pending));
            }
            _ => {
                assert_eq!(*found, before, "everything acknowledged is there, and nothing else");
                self.restart_engine(None);
            }
        }
    }

    /// Restarts the engine. `landed` is the pending step, if it was stored.
    pub(crate) fn restart_engine(&mut self, landed: Option<PendingStep>) {
        if let Some(pending) = landed {
            self.commit_step(pending, AckTiming::AfterRestart);
        }
        self.engine = new_engine(self.stored.clone(), self.boot_id());
    }

    /// Applies a stored step to the model.
    pub(crate) fn commit_step(&mut self, pending: PendingStep, timing: AckTiming) {
        let PendingStep { step, events, boot, engine, stored, audit } = pending;
        self.counts.heartbeats += u64::from(step.action == HouseholdAction::Pulse);
        let before = std::mem::replace(&mut self.stored, stored).sessions.into_values().next();
        self.engine = engine;
        self.audit.extend(audit);
        let after = self.record().cloned();
        if let HouseholdAction::Launch { entry_id, .. } = &step.action {
            self.denied = before.is_some() || after.is_none();
            if let (None, Some(record)) = (&before, &after) {
                self.record_launch(entry_id, record, step.now, boot);
            }
        }
        if step.action == HouseholdAction::Start && timing == AckTiming::Immediate {
            let runs = after.as_ref().is_some_and(|record| record.stage != SessionStage::Launching);
            self.program = if runs { ProgramState::Alive } else { ProgramState::None };
        }
        if step.action == HouseholdAction::TakeBack
            && let (Some(before), Some(session)) = (&before, &mut self.session)
        {
            self.counts.reattached += 1;
            if before.stage == SessionStage::Launching {
                // The time of the start is unknown, so the launch counts, too.
                session.max_overcharge = session.launch_took;
            }
        }
        self.unrecorded &= after.as_ref().is_some_and(|record| record.stage == SessionStage::Launching);
        self.check_warnings(&events);
        self.check_end(&step, after.as_ref());
        let least = self.minimum_charge(&step, before.as_ref(), boot);
        self.check_charge(&step, after.is_none(), timing, least);
        if after.is_none() && self.session.is_some() {
            self.record_end(before.as_ref(), step.now, boot);
        }
    }

    fn record_launch(&mut self, entry_id: &EntryId, record: &SessionRecord, now: ClockReading, boot: u64) {
        if let Some((last_boot, last, at)) = &self.last_run
            && *last_boot == boot
            && last == entry_id
        {
            assert!(now.mono.total_since(*at) >= COOLDOWN, "launched before its pause was over");
        }
        self.counts.sessions += 1;
        self.program = ProgramState::None;
        self.session = Some(SessionModel {
            id: record.session_id.clone(),
            entry_id: entry_id.clone(),
            launched: now,
            boot,
            ends: record.ends,
            wall_clock_moved: false,
            warned: BTreeSet::new(),
            before: entry_usage(&self.stored, entry_id),
            played: Duration::ZERO,
            launch_took: Duration::ZERO,
            max_overcharge: Duration::ZERO,
            max_end_overcharge: Duration::ZERO,
        });
    }

    /// Checks that no warning is repeated (S9.1).
    fn check_warnings(&mut self, events: &[CoreEvent]) {
        for event in events {
            match event {
                CoreEvent::Warning { session_id, threshold_secs, .. } => {
                    let session = self.session.as_mut().expect("only a session is warned");
                    assert_eq!(*session_id, session.id);
                    assert!(session.warned.insert(*threshold_secs), "warned twice: {event:?}");
                    self.counts.warnings += 1;
                }
                CoreEvent::ExpireDue { .. } => self.counts.expired += 1,
                _ => {}
            }
        }
    }

    /// Checks that the session keeps its planned end (S9.1).
    fn check_end(&self, step: &HouseholdStep, after: Option<&SessionRecord>) {
        let (Some(session), Some(record)) = (&self.session, after) else { return };
        assert_eq!(record.session_id, session.id);
        let now = step.now.mono;
        // The rest of a daily quota ends with the day: an end after midnight may come nearer at midnight, or by sleep
        // before it.
        let planned = step.now.wall + session.ends.remaining(now).unwrap_or_default();
        let same_day = TimeZone::UTC.to_datetime(session.launched.wall).date()
            == TimeZone::UTC.to_datetime(planned).date();
        if session.wall_clock_moved || !same_day {
            assert!(record.ends.remaining(now) <= session.ends.remaining(now), "the end moved away");
        } else {
            assert_eq!(record.ends, session.ends, "the end is the original one: {step:?}, {record:?}");
        }
        let looked = matches!(step.action, HouseholdAction::Tick | HouseholdAction::TakeBack);
        let over = now.awake_since(session.launched.mono) >= MAX_RUN;
        if looked && over && session.entry_id == entry_id("game") {
            assert!(matches!(record.stage, SessionStage::Expiring { .. }), "ran over its end: {record:?}");
        }
    }

    /// Returns the time that must be charged: the played time. If the program was found gone, time after its planned
    /// end does not count, because no daemon was running to end it.
    fn minimum_charge(&self, step: &HouseholdStep, before: Option<&SessionRecord>, boot: u64) -> Duration {
        let Some(session) = &self.session else { return Duration::ZERO };
        let gone =
            before.filter(|record| step.action == HouseholdAction::FindGone && record.boot == boot_id(boot));
        let planned = gone.and_then(|record| {
            let left = record.ends.remaining(record.charged_to)?;
            let grace = if record.stage.end_reason().is_some() { record.stop_grace } else { Duration::ZERO };
            Some(record.charged + left.max(grace))
        });
        planned.map_or(session.played, |planned| planned.min(session.played))
    }

    /// Checks that at least the played time is charged, and more only where it is uncertain (S9.2b).
    fn check_charge(&mut self, step: &HouseholdStep, ended: bool, timing: AckTiming, least: Duration) {
        let Some(session) = &self.session else { return };
        let charges = matches!(
            step.action,
            HouseholdAction::Tick
                | HouseholdAction::Stop
                | HouseholdAction::Exit
                | HouseholdAction::TakeBack
                | HouseholdAction::FindGone
        );
        if !ended && (!charges || timing == AckTiming::AfterRestart) {
            return;
        }
        let charged = entry_usage(&self.stored, &session.entry_id) - session.before;
        let most = session.played + session.max_overcharge + session.max_end_overcharge;
        assert!(
            least <= charged && charged <= most,
            "played {:?}, charged {charged:?}, at most {most:?}: {step:?}, {session:?}",
            session.played
        );
        self.counts.charged_exactly += u64::from(ended && !charged.is_zero() && session.played == most);
        let entries =
            household_policy().entries().iter().map(|entry| entry_usage(&self.stored, &entry.entry_id)).sum();
        assert_eq!(budget_usage(&self.stored), entries, "the budget was charged with the same");
    }

    fn record_end(&mut self, before: Option<&SessionRecord>, now: ClockReading, boot: u64) {
        let session = self.session.take().expect("there was one");
        if before.is_some_and(|record| record.stage.host_session_handle().is_some()) {
            self.last_run = Some((boot, session.entry_id, now.mono));
        }
        self.program = ProgramState::None;
    }
}

fn boot_id(number: u64) -> BootId {
    format!("3f1c1e9a-5d0b-4c57-9f0e-{number:012x}").parse().unwrap()
}

fn sum_usage(state: &StoredState, counts: impl Fn(&UsageCounter) -> bool) -> Duration {
    state.usage.iter().filter(|(key, _)| counts(&key.counter)).map(|(_, used)| *used).sum()
}

fn entry_usage(state: &StoredState, entry_id: &EntryId) -> Duration {
    sum_usage(state, |counter| matches!(counter, UsageCounter::Entry(id) if id == entry_id))
}

fn budget_usage(state: &StoredState) -> Duration {
    sum_usage(state, |counter| matches!(counter, UsageCounter::Budget(_)))
}
