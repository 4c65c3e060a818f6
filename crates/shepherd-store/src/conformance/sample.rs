//! Sample values for tests and benchmarks of stores.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use shepherd_api::{
    AuditEvent, AuditKind, EndReason, EntryScope, GrantKind, GrantView, Millis, SessionCounting, SessionSlot,
    StopRequester, TimeRequestState, TimeRequestView, WarningSeverity,
};
use shepherd_core::policy::Day;
use shepherd_core::{
    ClockCorrection, ClockRecord, EngineSnapshot, ExtraRunUse, PauseEnd, PlayStreak, ScheduledWarning,
    SessionDeadlines, SessionExtension, SessionRecord, SessionStage, StoreWrite, UsageAmount, UsageCounter,
    UsageKey,
};
use shepherd_util::{
    BootId, BootInstant, BudgetId, Deadline, DeadlineClock, EntryId, GrantId, MonotonicInstant, ProfileId,
    RequestId, SessionId,
};

const GOOD_NAME: &str = "the names of samples are valid";

#[must_use]
pub fn profile(name: &str) -> ProfileId {
    name.parse().expect(GOOD_NAME)
}

#[must_use]
pub fn entry_id(name: &str) -> EntryId {
    name.parse().expect(GOOD_NAME)
}

#[must_use]
pub fn entry_counter(name: &str) -> UsageCounter {
    UsageCounter::Entry(entry_id(name))
}

#[must_use]
pub fn budget_counter(name: &str) -> UsageCounter {
    UsageCounter::Budget(name.parse::<BudgetId>().expect(GOOD_NAME))
}

#[must_use]
pub fn usage_key(whose: &str, counter: UsageCounter, day: i32) -> UsageKey {
    UsageKey { profile: profile(whose), counter, day: Day(day) }
}

/// Returns the time this many seconds after the start of 1970.
#[must_use]
pub fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second in the range of timestamps")
}

fn boot_id() -> BootId {
    "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e".parse().expect("a boot id")
}

/// Returns a moment after boot, with some suspended time.
fn monotonic_instant(second: u64) -> MonotonicInstant {
    MonotonicInstant::new(Duration::from_secs(second + 60), Duration::from_secs(second))
}

/// Returns the end of a pause.
#[must_use]
pub fn until(second: i64) -> PauseEnd {
    PauseEnd { wall: timestamp(second), boot: BootInstant::new(boot_id(), monotonic_instant(4_000)) }
}

/// Returns an event with a number.
#[must_use]
pub fn note_event(number: u64) -> AuditEvent {
    let text = format!("number {number}, \"quoted\" and é");
    AuditEvent { at: timestamp(1_800_000_000), actor: "policy".to_owned(), what: AuditKind::Note { text } }
}

/// Returns an event with a fraction, which a hash chain can't contain.
#[must_use]
pub fn unloggable_event() -> AuditEvent {
    let what = AuditKind::Granted { grant_id: GrantId::from_random(1), grant: json!({ "hours": 0.5 }) };
    AuditEvent { at: timestamp(1_800_000_000), actor: "parent".to_owned(), what }
}

/// Returns a batch as the engine makes it during a session: usage of one second, a cooldown, the session, the snapshot
/// and an event, all with this number.
#[must_use]
pub fn batch(number: u64, key: &UsageKey) -> Vec<StoreWrite> {
    vec![
        StoreWrite::AddUsage { key: key.clone(), amount: Duration::from_secs(1) },
        StoreWrite::SetCooldown {
            profile: key.profile.clone(),
            entry_id: entry_id("chess"),
            until: until(1_800_000_000),
        },
        StoreWrite::SaveSession(Box::new(session(number % 2))),
        StoreWrite::SaveSnapshot(Box::new(snapshot(number))),
        StoreWrite::AppendAudit(Box::new(note_event(number))),
    ]
}

/// Returns a running session that has been warned once.
#[must_use]
pub fn session(number: u64) -> SessionRecord {
    let warning = |before| ScheduledWarning {
        before: Duration::from_secs(before),
        severity: WarningSeverity::Critical,
        message_template: Some("{remaining} left, “really”".to_owned()),
        armed: true,
        repeated: true,
    };
    SessionRecord {
        session_id: SessionId::from_random(u128::from(number)),
        entry_id: entry_id("chess"),
        label: "Schach für Anna".to_owned(),
        profile: profile("anna"),
        slot: SessionSlot::Login { account: "anna".to_owned() },
        counting: SessionCounting::Idle,
        started_at: timestamp(1_800_000_000),
        judged_at: timestamp(1_800_000_000),
        boot: boot_id(),
        started: monotonic_instant(1_000),
        ends: SessionDeadlines {
            run: Some(Deadline::after(
                monotonic_instant(1_000),
                Duration::from_millis(1_800_001),
                DeadlineClock::Awake,
            )),
            window: Some(Deadline::after(
                monotonic_instant(1_000),
                Duration::from_secs(7_200),
                DeadlineClock::Total,
            )),
        },
        warnings: vec![warning(60)],
        given: vec![Duration::from_secs(300)],
        extensions: vec![SessionExtension {
            grant_id: GrantId::from_random(3),
            run: Duration::from_secs(900),
            window: Duration::ZERO,
        }],
        charged_to: monotonic_instant(1_000 + number),
        charged_day: Day(20_833),
        charged: Duration::from_micros(1_234_567),
        in_a_row: Duration::from_secs(300),
        charged_before_row: Duration::from_secs(1),
        earned: BTreeMap::from([("games".parse().expect(GOOD_NAME), Duration::from_secs(600))]),
        stage: SessionStage::Expiring {
            host_session_handle: "{\"pid\":4711}".to_owned(),
            reason: EndReason::Stopped { by: StopRequester::Admin },
            called: monotonic_instant(999),
        },
        stop_grace: Duration::from_secs(10),
        budgets: vec!["games".parse().expect(GOOD_NAME)],
        free: false,
        cooldown: Duration::from_secs(600),
        crash_within: Duration::from_secs(10),
    }
}

/// Returns a snapshot with a value in every field.
#[must_use]
pub fn snapshot(number: u64) -> EngineSnapshot {
    EngineSnapshot {
        clock: ClockRecord {
            latest_seen: Some(timestamp(1_800_000_001)),
            seen_at: Some(BootInstant::new(boot_id(), monotonic_instant(5_000))),
            accounting_day: Some(Day(20_833)),
            synchronised: Some(timestamp(1_800_000_000)),
            synchronised_at: Some(BootInstant::new(boot_id(), monotonic_instant(4_000))),
        },
        mode: Some("holiday".to_owned()),
        grants: vec![GrantView {
            grant_id: GrantId::from_random(3),
            profile: None,
            scope: EntryScope::Budget { budget_id: "games".parse().expect(GOOD_NAME) },
            gift: GrantKind::Extra { amount: Millis(1_800_000) },
            by: "parent".to_owned(),
            why: Some("a good report, “very” good".to_owned()),
            given_at: timestamp(1_799_000_000),
            valid_from: timestamp(1_799_000_000),
            lapses_at: timestamp(1_799_086_400),
            revoked_at: None,
        }],
        requests: vec![TimeRequestView {
            request_id: RequestId::from_random(4),
            profile: profile("ada"),
            entry_id: entry_id("chess"),
            amount: Millis(number * 1_000),
            note: None,
            asked_at: timestamp(1_799_000_000),
            lapses_at: timestamp(1_799_003_600),
            state: TimeRequestState::Granted { grant_id: GrantId::from_random(3) },
        }],
        streaks: BTreeMap::from([(
            profile("ada"),
            PlayStreak { played: Duration::from_millis(5_250_001), rested: until(1_799_005_000) },
        )]),
        extra_runs: vec![ExtraRunUse {
            grant_id: GrantId::from_random(3),
            profile: profile("ada"),
            day: Day(20_833),
            used: Duration::from_secs(90),
        }],
        crashes: BTreeMap::from([(profile("ada"), BTreeMap::from([(entry_id("chess"), 2)]))]),
        clock_correction: Some(ClockCorrection {
            last_days: [Day(20_840)].into(),
            charged_twice: vec![UsageAmount {
                key: usage_key("ada", entry_counter("chess"), 20_840),
                amount: Duration::from_nanos(1_500_000_001),
            }],
            used_since: vec![UsageAmount {
                key: usage_key("ada", budget_counter("games"), 20_833),
                amount: Duration::from_secs(60),
            }],
        }),
    }
}
