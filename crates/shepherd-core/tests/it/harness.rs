//! Small policies, a manual clock, and a store that is a value.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_api::{EntryKind, EntryScope, EntryView, GrantKind, ReasonCode, WarningSeverity};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, LimitsPolicy, MinuteOfDay, Policy, PolicyEntry, PolicyRules, RunPolicy,
    TimeBudget, TimeCost, TimeWindow, WarningPolicy, WarningThreshold, Weekdays,
};
use shepherd_core::{
    CoreEvent, DaemonHeartbeat, EngineEnvironment, ExitInfo, HEARTBEAT_INTERVAL, HostCapabilities,
    LaunchDecision, LaunchRequest, NewGrant, SessionPlan, StoreWrite, StoredState,
};
use shepherd_util::{BootId, Clock, ClockReading, GrantId, ManualClock, MonotonicInstant, SessionId};

use crate::engine_driver::EngineDriver;

pub(crate) const BERLIN: &str = "Europe/Berlin";

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

/// A moment given as a clock on the wall in a zone shows it.
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
        unlock: None,
        run: RunPolicy::default(),
    }
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

/// A grant for everyone and everything, from now on.
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

/// So much more of everything.
pub(crate) fn extra(amount: Duration) -> GrantKind {
    GrantKind::Extra { amount: amount.into() }
}

/// An engine with everything around it that a daemon would be.
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
                StoreWrite::SaveSnapshot(snapshot) => self.store.snapshot = *snapshot,
                StoreWrite::AppendAudit(event) => self.audit.push(*event),
            }
        }
    }

    /// The store refuses the writes, and keeps them to try again.
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
        self.sessions += 1;
        let request = LaunchRequest {
            entry_id: id.parse().unwrap(),
            profile: None,
            session_id: SessionId::from_random(self.sessions),
            actor: "test".to_owned(),
        };
        let decision = self.engine.request_launch(&request, self.now());
        if matches!(decision, LaunchDecision::Approved(_)) {
            self.write_heartbeat();
        }
        self.sync();
        decision
    }

    /// Launches and starts.
    pub(crate) fn launch(&mut self, id: &str) -> SessionPlan {
        match self.request_launch(id) {
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

    pub(crate) fn tick(&mut self) -> Vec<CoreEvent> {
        let events = self.engine.tick(self.now());
        self.sync();
        events
    }

    /// Lets time pass as a daemon does: from one thing that is due to the next.
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
            // A due moment that is now is dealt with by the tick; time goes on in any case.
            self.advance(due.max(Duration::from_millis(1)).min(left));
            events.extend(self.tick());
        }
    }

    /// Lets time pass without waking the engine; only signs of life are written meanwhile, if there is a session.
    pub(crate) fn advance(&mut self, length: Duration) {
        let end = self.now().mono.after(length);
        while let Some(due) = self.heartbeat_due().filter(|due| due.awake() <= end.awake()) {
            self.clock.advance(due.awake_since(self.now().mono));
            self.write_heartbeat();
        }
        self.clock.advance(end.awake_since(self.now().mono));
    }

    /// When the next sign of life is due: at the launch, and then again and again while the machine is awake.
    fn heartbeat_due(&self) -> Option<MonotonicInstant> {
        let session = self.engine.snapshot().session.as_ref()?;
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

    /// The program ends by itself, with this code or by this signal.
    pub(crate) fn exit_with(&mut self, code: Option<i32>, signal: Option<i32>) -> Vec<CoreEvent> {
        let session_id = self.engine.snapshot().session.as_ref().unwrap().session_id.clone();
        let exit = ExitInfo { session_id, code, signal };
        let events = self.engine.notify_session_exited(&exit, self.now());
        self.sync();
        events
    }

    /// Lets the session run to its end and go.
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
        self.engine.snapshot().session.as_ref().and_then(|session| session.ends.remaining(self.now().mono))
    }

    pub(crate) fn move_wall(&mut self, by: SignedDuration) {
        self.clock.move_wall(by);
        self.tick();
    }

    /// A killed daemon that comes back in the same boot, knowing only what was durable.
    pub(crate) fn crash(&mut self) {
        let policy = self.engine.policy().clone();
        self.engine = EngineDriver::new(
            policy,
            self.store.clone(),
            HostCapabilities::all_supported(),
            self.place.clone(),
        );
    }

    /// Use of an entry over all days, as the store has it.
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

pub(crate) fn warnings(events: &[CoreEvent]) -> Vec<u64> {
    let threshold = |event: &CoreEvent| match event {
        CoreEvent::Warning { threshold_secs, .. } => Some(*threshold_secs),
        _ => None,
    };
    events.iter().filter_map(threshold).collect()
}
