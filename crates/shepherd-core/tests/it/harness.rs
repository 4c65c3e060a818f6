//! The shared set-up of the tests: small policies, a manual clock, and a store in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_api::{EntryKind, EntryScope, EntryView, EventKind, GrantKind, ReasonCode, WarningSeverity};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, EntrySlot, LimitsPolicy, MinuteOfDay, Policy, PolicyEntry, PolicyRules,
    RunPolicy, TimeBudget, TimeCost, TimeWindow, WarningPolicy, WarningThreshold, Weekdays,
};
use shepherd_core::{
    CoreEvent, DaemonHeartbeat, EngineEnvironment, ExitInfo, HEARTBEAT_INTERVAL, HostCapabilities,
    LaunchDecision, LaunchRequest, NewGrant, SessionPlan, StoreWrite, StoredState, WarningMessage,
};
use shepherd_util::{
    BootId, Clock, ClockReading, GrantId, HumanDuration, ManualClock, MonotonicInstant, SessionId,
};

use crate::engine_driver::EngineDriver;

pub(crate) const BERLIN: &str = "Europe/Berlin";

pub(crate) const MONDAY_NOON: &str = "2026-11-16 12:00";

pub(crate) fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

pub(crate) fn hours(count: u64) -> Duration {
    minutes(count * 60)
}

pub(crate) fn zone(name: &str) -> TimeZone {
    TimeZone::get(name)
        .unwrap_or_else(|_| panic!("no zone {name}: tzdata is missing, `cargo xtask setup` installs it"))
}

/// Returns the moment at which a clock in this zone shows this time.
pub(crate) fn wall_time(zone_name: &str, civil: &str) -> Timestamp {
    civil.parse::<DateTime>().unwrap().to_zoned(zone(zone_name)).unwrap().timestamp()
}

pub(crate) fn entry(id: &str) -> PolicyEntry {
    PolicyEntry {
        entry_id: id.parse().unwrap(),
        label: id.to_owned(),
        icon_ref: None,
        kind: EntryKind::Process { argv: vec!["/bin/true".into()], env: BTreeMap::new(), cwd: None },
        profiles: None,
        availability: AvailabilityPolicy::Always,
        limits: LimitsPolicy::default(),
        warnings: WarningPolicy::default(),
        disabled: None,
        budgets: Vec::new(),
        cost: TimeCost::Counts,
        earns: None,
        slot: EntrySlot::Foreground,
        unlock: None,
        run: RunPolicy::default(),
    }
}

/// Returns the entry `game`, available every day between these times.
pub(crate) fn entry_in_window(from: (u16, u16), to: (u16, u16)) -> PolicyEntry {
    let mut game = entry("game");
    game.availability = AvailabilityPolicy::Windows(vec![window(Weekdays::ALL, from, to)]);
    game
}

/// Returns the entry `game`, always available, whose sessions last this long.
pub(crate) fn entry_with_max_run(max_run: Duration) -> PolicyEntry {
    let mut game = entry("game");
    game.limits.max_run = Some(max_run);
    game
}

pub(crate) fn window(days: Weekdays, from: (u16, u16), to: (u16, u16)) -> TimeWindow {
    let minute = |(hour, minute)| MinuteOfDay::new(hour, minute).unwrap();
    TimeWindow { days, start: minute(from), end: minute(to), modes: None }
}

pub(crate) fn warning(before: Duration) -> WarningThreshold {
    WarningThreshold { before, severity: WarningSeverity::Warn, message_template: None }
}

pub(crate) fn budget(daily: Duration) -> TimeBudget {
    TimeBudget { label: "budget".to_owned(), daily: DailyQuota::every_day(daily), weekly: None }
}

pub(crate) fn policy(entries: Vec<PolicyEntry>) -> Policy {
    policy_with(entries, |_| {})
}

pub(crate) fn policy_with(entries: Vec<PolicyEntry>, change: impl FnOnce(&mut PolicyRules)) -> Policy {
    let mut rules = PolicyRules { zone: Some(zone(BERLIN)), entries, ..PolicyRules::default() };
    change(&mut rules);
    Policy::new(rules).unwrap()
}

/// Returns a grant for everyone and everything, from now on.
pub(crate) fn grant(id: u128, gift: GrantKind) -> NewGrant {
    NewGrant {
        grant_id: GrantId::from_random(id),
        profile: None,
        scope: EntryScope::Everything {},
        gift,
        why: None,
        valid_from: None,
        lapses_at: None,
        actor: "parent".to_owned(),
    }
}

/// Returns a grant for a budget or an entry, from now on.
pub(crate) fn scoped_grant(id: u128, scope: EntryScope, gift: GrantKind) -> NewGrant {
    NewGrant { scope, ..grant(id, gift) }
}

/// Returns the gift of extra time.
pub(crate) fn extra(amount: Duration) -> GrantKind {
    GrantKind::Extra { amount: amount.into() }
}

/// An engine with a manual clock and a store in memory, driven as the daemon drives it.
pub(crate) struct EngineHarness {
    pub(crate) engine: EngineDriver,
    pub(crate) clock: ManualClock,
    pub(crate) store: StoredState,
    pub(crate) place: EngineEnvironment,
    pub(crate) audit: Vec<shepherd_api::AuditEvent>,
    sessions: u128,
}

impl EngineHarness {
    pub(crate) fn new(policy: Policy, at: &str) -> Self {
        let clock = ManualClock::starting_at(wall_time(BERLIN, at));
        // A machine that has been up for a while.
        clock.advance(hours(5));
        clock.set_wall(wall_time(BERLIN, at));
        let place = EngineEnvironment { boot: boot(1), zone: zone(BERLIN) };
        let engine = EngineDriver::new(
            policy,
            StoredState::default(),
            HostCapabilities::all_supported(),
            place.clone(),
        );
        Self { engine, clock, store: StoredState::default(), place, audit: Vec::new(), sessions: 0 }
    }

    pub(crate) fn now(&self) -> ClockReading {
        self.clock.now()
    }

    /// Makes the writes durable, as a store would.
    pub(crate) fn sync(&mut self) {
        for write in self.engine.take_writes() {
            match write {
                StoreWrite::AddUsage { key, amount } => *self.store.usage.entry(key).or_default() += amount,
                StoreWrite::SetCooldown { profile, entry_id, until } => {
                    self.store.cooldowns.insert((profile, entry_id), until);
                }
                StoreWrite::SaveSession(session) => {
                    self.store.sessions.insert(session.session_id.clone(), *session);
                }
                StoreWrite::DeleteSession(session_id) => drop(self.store.sessions.remove(&session_id)),
                StoreWrite::SaveSnapshot(snapshot) => self.store.snapshot = *snapshot,
                StoreWrite::AppendAudit(event) => self.audit.push(*event),
            }
        }
    }

    /// Lets the store fail; the writes are kept for another attempt.
    pub(crate) fn fail_to_sync(&mut self) {
        self.engine.store_failed("no space left".to_owned());
    }

    pub(crate) fn view(&self, id: &str) -> EntryView {
        let views = self.engine.list_entries(self.now());
        views.into_iter().find(|view| view.entry_id.as_str() == id).unwrap()
    }

    pub(crate) fn reason_codes(&self, id: &str) -> Vec<&'static str> {
        self.view(id).reasons.iter().map(ReasonCode::code).collect()
    }

    pub(crate) fn request_launch(&mut self, id: &str) -> LaunchDecision {
        self.request_launch_for(id, None)
    }

    pub(crate) fn request_launch_for(&mut self, id: &str, child: Option<&str>) -> LaunchDecision {
        self.sessions += 1;
        let request = LaunchRequest {
            entry_id: id.parse().unwrap(),
            profile: child.map(|child| child.parse().unwrap()),
            session_id: SessionId::from_random(self.sessions),
            actor: "test".to_owned(),
            display: None,
        };
        let decision = self.engine.request_launch(&request, self.now());
        if matches!(decision, LaunchDecision::Approved(_)) {
            self.write_heartbeat();
        }
        self.sync();
        decision
    }

    /// Launches an entry, and starts its session.
    pub(crate) fn launch(&mut self, id: &str) -> SessionPlan {
        let decision = self.request_launch(id);
        self.start(id, decision)
    }

    /// Launches and starts, for one of several children.
    pub(crate) fn launch_for(&mut self, id: &str, child: &str) -> SessionPlan {
        let decision = self.request_launch_for(id, Some(child));
        self.start(id, decision)
    }

    fn start(&mut self, id: &str, decision: LaunchDecision) -> SessionPlan {
        match decision {
            LaunchDecision::Approved(plan) => {
                self.engine.start_session(&plan.session_id, "handle".to_owned(), self.now()).unwrap();
                self.sync();
                Arc::unwrap_or_clone(plan)
            }
            LaunchDecision::Denied { reasons } => panic!("{id} was denied: {reasons:?}"),
        }
    }

    pub(crate) fn denied_codes(&mut self, id: &str) -> Vec<&'static str> {
        match self.request_launch(id) {
            LaunchDecision::Approved(_) => panic!("{id} was approved"),
            LaunchDecision::Denied { reasons } => reasons.iter().map(ReasonCode::code).collect(),
        }
    }

    pub(crate) fn grant(&mut self, grant: NewGrant) {
        self.engine.grant(grant, self.now()).unwrap();
    }

    pub(crate) fn revoke(&mut self, id: u128) {
        self.engine.revoke(&GrantId::from_random(id), "parent", self.now()).unwrap();
    }

    pub(crate) fn tick(&mut self) -> Vec<CoreEvent> {
        let events = self.engine.tick(self.now());
        self.sync();
        events
    }

    /// Lets time pass as a daemon does, from one due event to the next.
    pub(crate) fn run_for(&mut self, length: Duration) -> Vec<CoreEvent> {
        let end = self.now().mono.total() + length;
        let mut events = self.tick();
        loop {
            let now = self.now();
            let left = end.saturating_sub(now.mono.total());
            let due = self.engine.next_due().map_or(left, |due| due.total_since(now.mono)).min(left);
            if left.is_zero() {
                return events;
            }
            // The tick handles the events that are due now; time goes on in any case.
            self.advance(due.max(Duration::from_millis(1)).min(left));
            events.extend(self.tick());
        }
    }

    /// Lets time pass without waking the engine. Only heartbeats are written, if there is a session.
    pub(crate) fn advance(&mut self, length: Duration) {
        let end = self.now().mono.after(length);
        while let Some(due) = self.heartbeat_due().filter(|due| due.awake() <= end.awake()) {
            self.clock.advance(due.awake_since(self.now().mono));
            self.write_heartbeat();
        }
        self.clock.advance(end.awake_since(self.now().mono));
    }

    /// Returns when the next heartbeat is due: at the launch, and then at each interval while the machine is awake.
    fn heartbeat_due(&self) -> Option<MonotonicInstant> {
        let session = self.engine.sessions().only()?;
        let last = self.store.heartbeat.filter(|last| last.boot == self.place.boot).map(|last| last.at.mono);
        let last = last.filter(|last| last.total() >= session.started.total());
        Some(last.map_or(self.now().mono, |last| last.after(HEARTBEAT_INTERVAL)))
    }

    pub(crate) fn write_heartbeat(&mut self) {
        self.store.heartbeat = Some(DaemonHeartbeat { boot: self.place.boot, at: self.now() });
    }

    pub(crate) fn exit(&mut self) -> Vec<CoreEvent> {
        self.exit_with(Some(0), None)
    }

    /// Lets the program exit by itself, with this code or signal.
    pub(crate) fn exit_with(&mut self, code: Option<i32>, signal: Option<i32>) -> Vec<CoreEvent> {
        let session_id = self.engine.sessions().only().unwrap().session_id.clone();
        let exit = ExitInfo { session_id, code, signal };
        let events = self.engine.notify_session_exited(&exit, self.now());
        self.sync();
        events
    }

    /// Lets the session run until its time is over and its program exits, and returns how long that took.
    pub(crate) fn play_until_expired(&mut self) -> Duration {
        let before = self.now().mono;
        for _ in 0..10_000 {
            let due = self.engine.next_due().expect("a session that ends");
            self.clock.advance(due.total_since(self.now().mono).max(Duration::from_millis(1)));
            if self.tick().iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. })) {
                self.exit();
                return self.now().mono.total_since(before);
            }
        }
        panic!("it never expired")
    }

    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.engine.sessions().only().and_then(|session| session.ends.remaining(self.now().mono))
    }

    pub(crate) fn move_wall(&mut self, by: SignedDuration) {
        self.clock.move_wall(by);
        self.tick();
    }

    /// Kills the daemon and starts another in the same boot, with only the durable state.
    pub(crate) fn crash(&mut self) {
        let policy = self.engine.policy().clone();
        self.engine = EngineDriver::new(
            policy,
            self.store.clone(),
            HostCapabilities::all_supported(),
            self.place.clone(),
        );
    }

    /// Returns an event in the form of the protocol. A warning is described by its label and the remaining time.
    pub(crate) fn event_kind(&self, event: &CoreEvent) -> EventKind {
        let describe = |message: &WarningMessage, left| format!("{}: {}", message.label, HumanDuration(left));
        self.engine.event_kind(event, self.now(), describe)
    }

    /// Returns the stored usage of an entry over all days.
    pub(crate) fn used(&self, id: &str) -> Duration {
        let of = |counter: &shepherd_core::UsageCounter| {
            *counter == shepherd_core::UsageCounter::Entry(id.parse().unwrap())
        };
        self.store.usage.iter().filter(|(key, _)| of(&key.counter)).map(|(_, used)| *used).sum()
    }
}

pub(crate) fn boot(number: u128) -> BootId {
    let text = format!("{number:032x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
        .parse()
        .unwrap()
}

/// Returns true if the time of the session is over.
pub(crate) fn has_expiry(events: &[CoreEvent]) -> bool {
    events.iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. }))
}

pub(crate) fn warnings(events: &[CoreEvent]) -> Vec<u64> {
    let threshold = |event: &CoreEvent| match event {
        CoreEvent::Warning { threshold_secs, .. } => Some(*threshold_secs),
        _ => None,
    };
    events.iter().filter_map(threshold).collect()
}
