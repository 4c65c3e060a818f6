//! The checks that every store has to pass (S8.1, S8.2), as functions that panic on a failure.
//!
//! Give each of [`ALL_CHECKS`] a new [`StoreFixture`].

use std::time::Duration;

use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::policy::Day;
use shepherd_core::{EngineSnapshot, SessionRecord, StoreWrite, StoredState};

use crate::error::StoreError;
use crate::store::Store;

pub mod household;
pub mod sample;

use sample::{budget_counter, entry_counter, entry_id, note_event, profile, snapshot, until, usage_key};

/// A place for a store under test, which begins empty.
pub trait StoreFixture {
    /// Opens the store, again if it was open before. Acknowledged batches are still there.
    fn open(&mut self) -> Box<dyn Store>;

    /// Returns the audit log as it is on disk. The store has been dropped.
    fn read_audit_events(&mut self) -> Vec<AuditEvent>;
}

/// A check with its name.
pub type ConformanceCheck = (&'static str, fn(&mut dyn StoreFixture));

/// The list of all checks.
pub const ALL_CHECKS: &[ConformanceCheck] = &[
    ("a_new_store_knows_of_nothing", a_new_store_knows_of_nothing),
    ("usage_adds_up_by_profile_counter_and_day", usage_adds_up_by_profile_counter_and_day),
    ("usage_is_counted_in_microseconds_rounded_up", usage_is_counted_in_microseconds_rounded_up),
    ("usage_that_would_overflow_is_refused", usage_that_would_overflow_is_refused),
    ("a_cooldown_is_replaced", a_cooldown_is_replaced),
    ("a_snapshot_comes_back_as_it_was", a_snapshot_comes_back_as_it_was),
    ("each_session_is_stored_by_itself", each_session_is_stored_by_itself),
    ("a_batch_is_all_there_after_opening_again", a_batch_is_all_there_after_opening_again),
    ("a_refused_batch_leaves_nothing_behind", a_refused_batch_leaves_nothing_behind),
    ("events_keep_their_order_and_come_once", events_keep_their_order_and_come_once),
    ("the_log_is_read_in_pages_from_any_number", the_log_is_read_in_pages_from_any_number),
    (
        "the_end_of_the_log_counts_the_events_of_each_batch",
        the_end_of_the_log_counts_the_events_of_each_batch,
    ),
    ("a_store_counts_its_batches", a_store_counts_its_batches),
    ("a_store_can_move_to_another_thread", a_store_can_move_to_another_thread),
    ("an_event_that_no_log_can_carry_is_refused", an_event_that_no_log_can_carry_is_refused),
    ("an_empty_batch_changes_nothing", an_empty_batch_changes_nothing),
];

fn expect_ok<T>(result: Result<T, StoreError>) -> T {
    result.expect("the store carries out the operation")
}

fn a_new_store_knows_of_nothing(workbench: &mut dyn StoreFixture) {
    let store = workbench.open();
    assert_eq!(expect_ok(store.load()), StoredState::default());
    assert_eq!(expect_ok(store.get_usage(&profile("ada"), &entry_counter("chess"), Day(1))), Duration::ZERO);
    assert_eq!(expect_ok(store.get_cooldown_until(&profile("ada"), &entry_id("chess"))), None);
    assert_eq!(expect_ok(store.load_snapshot()), EngineSnapshot::default());
    drop(store);
    assert_eq!(workbench.read_audit_events(), []);
}

fn usage_adds_up_by_profile_counter_and_day(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    // An entry and a budget of the same name are two counters.
    let keys = [
        usage_key("ada", entry_counter("chess"), 20_000),
        usage_key("ada", entry_counter("chess"), 20_001),
        usage_key("ada", entry_counter("chess"), -1),
        usage_key("ada", budget_counter("chess"), 20_000),
        usage_key("bob", entry_counter("chess"), 20_000),
        usage_key("ada", entry_counter("chess2"), 20_000),
    ];
    for round in 1..=3 {
        for (number, key) in (1..).zip(&keys) {
            let amount = Duration::from_millis(number * round);
            expect_ok(store.add_usage(&key.profile, &key.counter, key.day, amount));
        }
    }
    drop(store);
    let store = workbench.open();
    for (number, key) in (1..).zip(&keys) {
        let used = expect_ok(store.get_usage(&key.profile, &key.counter, key.day));
        assert_eq!(used, Duration::from_millis(number * 6), "{key:?}");
        assert_eq!(expect_ok(store.load()).usage.get(key), Some(&used));
    }
    assert_eq!(expect_ok(store.load()).usage.len(), keys.len());
}

fn usage_is_counted_in_microseconds_rounded_up(workbench: &mut dyn StoreFixture) {
    // S8.4b.
    let mut store = workbench.open();
    let (ada, chess) = (profile("ada"), entry_counter("chess"));
    expect_ok(store.add_usage(&ada, &chess, Day(1), Duration::from_nanos(1_001)));
    expect_ok(store.add_usage(&ada, &chess, Day(1), Duration::from_micros(3)));
    assert_eq!(expect_ok(store.get_usage(&ada, &chess, Day(1))), Duration::from_micros(5));
}

fn usage_that_would_overflow_is_refused(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    let (ada, chess) = (profile("ada"), entry_counter("chess"));
    let most = Duration::from_micros(i64::MAX.unsigned_abs());
    expect_ok(store.add_usage(&ada, &chess, Day(1), most));
    for amount in [Duration::from_micros(1), most, Duration::MAX] {
        let refused = store.add_usage(&ada, &chess, Day(1), amount);
        assert!(matches!(refused, Err(StoreError::Overflow { .. })), "{refused:?}");
    }
    assert_eq!(expect_ok(store.get_usage(&ada, &chess, Day(1))), most);
}

fn a_cooldown_is_replaced(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    let (ada, chess) = (profile("ada"), entry_id("chess"));
    for second in [1_800_000_000, 1_900_000_000, 1_700_000_000] {
        expect_ok(store.set_cooldown_until(&ada, &chess, until(second)));
        assert_eq!(expect_ok(store.get_cooldown_until(&ada, &chess)), Some(until(second)));
    }
    assert_eq!(expect_ok(store.get_cooldown_until(&profile("bob"), &chess)), None);
    drop(store);
    let state = expect_ok(workbench.open().load());
    assert_eq!(state.cooldowns.into_iter().collect::<Vec<_>>(), [((ada, chess), until(1_700_000_000))]);
}

fn a_snapshot_comes_back_as_it_was(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    for number in [1, 2] {
        expect_ok(store.save_snapshot(snapshot(number)));
        assert_eq!(expect_ok(store.load_snapshot()), snapshot(number));
    }
    drop(store);
    assert_eq!(expect_ok(workbench.open().load()).snapshot, snapshot(2));
}

fn each_session_is_stored_by_itself(workbench: &mut dyn StoreFixture) {
    // S19.1.
    let mut store = workbench.open();
    let save = |session: &SessionRecord| StoreWrite::SaveSession(Box::new(session.clone()));
    let sessions: Vec<SessionRecord> = (1..=3).map(sample::session).collect();
    expect_ok(store.apply(&sessions.iter().map(save).collect::<Vec<_>>()));
    let changed = SessionRecord { free: true, ..sample::session(2) };
    expect_ok(store.apply(&[
        save(&changed),
        StoreWrite::DeleteSession(sample::session(1).session_id),
        StoreWrite::DeleteSession(sample::session(9).session_id),
    ]));
    let expected = [changed, sample::session(3)].map(|session| (session.session_id.clone(), session)).into();
    assert_eq!(expect_ok(store.load()).sessions, expected);
    drop(store);
    assert_eq!(expect_ok(workbench.open().load()).sessions, expected);
}

fn batch(number: u64) -> Vec<StoreWrite> {
    sample::batch(number, &usage_key("ada", entry_counter("chess"), 20_000))
}

fn a_batch_is_all_there_after_opening_again(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    expect_ok(store.apply(&batch(7)));
    let before = expect_ok(store.load());
    assert!(before.usage.len() == 1 && before.cooldowns.len() == 1 && before.snapshot == snapshot(7));
    drop(store);
    assert_eq!(expect_ok(workbench.open().load()), before);
    assert_eq!(workbench.read_audit_events(), [note_event(7)]);
}

fn a_refused_batch_leaves_nothing_behind(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    expect_ok(store.apply(&batch(1)));
    let before = expect_ok(store.load());
    let mut refused = batch(2);
    refused.push(StoreWrite::AddUsage {
        key: usage_key("ada", entry_counter("chess"), 20_000),
        amount: Duration::MAX,
    });
    assert!(store.apply(&refused).is_err());
    assert_eq!(expect_ok(store.load()), before);
    expect_ok(store.apply(&batch(3)));
    drop(store);
    assert_eq!(expect_ok(workbench.open().load()).snapshot, snapshot(3));
    assert_eq!(workbench.read_audit_events(), [note_event(1), note_event(3)]);
}

fn events_keep_their_order_and_come_once(workbench: &mut dyn StoreFixture) {
    let events: Vec<AuditEvent> = (0..10).map(note_event).collect();
    for pair in events.chunks(2) {
        let mut store = workbench.open();
        let append = |event: &AuditEvent| StoreWrite::AppendAudit(Box::new(event.clone()));
        expect_ok(store.apply(&pair.iter().map(append).collect::<Vec<_>>()));
    }
    drop(workbench.open());
    assert_eq!(workbench.read_audit_events(), events);
}

fn the_log_is_read_in_pages_from_any_number(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    assert_eq!(expect_ok(store.read_audit(None, 9)), []);
    let append = |number| StoreWrite::AppendAudit(Box::new(note_event(number)));
    expect_ok(store.apply(&(1..=500).map(append).collect::<Vec<_>>()));
    let expected = |from: u64, to: u64| -> Vec<AuditRecord> {
        (from..=to).map(|sequence| AuditRecord { sequence, line: note_event(sequence) }).collect()
    };
    for (after, limit, to) in [(0, 500, 500), (0, 3, 3), (250, 7, 257), (498, 7, 500), (499, 1, 500)] {
        assert_eq!(expect_ok(store.read_audit(Some(after), limit)), expected(after + 1, to));
    }
    assert_eq!(expect_ok(store.read_audit(None, u32::MAX)), expected(1, 500));
    for (after, limit) in [(Some(500), 9), (Some(9_999), 9), (Some(u64::MAX), 9), (Some(7), 0)] {
        assert_eq!(expect_ok(store.read_audit(after, limit)), [], "{after:?}");
    }
}

fn the_end_of_the_log_counts_the_events_of_each_batch(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    assert_eq!(store.audit_end(), 0);
    expect_ok(store.apply(&batch(1)));
    assert_eq!(store.audit_end(), 1);
    expect_ok(store.apply(&[batch(2), batch(3)].concat()));
    assert_eq!(store.audit_end(), 3);
    expect_ok(store.add_usage(&profile("ada"), &entry_counter("chess"), Day(1), Duration::from_secs(1)));
    assert_eq!(store.audit_end(), 3);
    drop(store);
    assert_eq!(workbench.open().audit_end(), 3);
}

fn a_store_counts_its_batches(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    let before = store.generation();
    expect_ok(store.apply(&batch(1)));
    expect_ok(store.add_usage(&profile("ada"), &entry_counter("chess"), Day(1), Duration::from_secs(1)));
    assert_eq!(store.generation(), before + 2);
    let refused = store.apply(&[StoreWrite::AppendAudit(Box::new(sample::unloggable_event()))]);
    assert!(refused.is_err());
    expect_ok(store.apply(&[]));
    assert_eq!(store.generation(), before + 2, "a failed batch is not counted");
    drop(store);
    assert_eq!(workbench.open().generation(), before + 2);
}

fn a_store_can_move_to_another_thread(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    expect_ok(store.apply(&batch(1)));
    let elsewhere = std::thread::spawn(move || {
        expect_ok(store.apply(&batch(2)));
        store
    });
    let store = elsewhere.join().expect("the thread does not panic");
    assert_eq!(expect_ok(store.load_snapshot()), snapshot(2));
}

fn an_event_that_no_log_can_carry_is_refused(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    let mut writes = batch(1);
    writes.push(StoreWrite::AppendAudit(Box::new(sample::unloggable_event())));
    let refused = store.apply(&writes);
    assert!(matches!(refused, Err(StoreError::Event { index: 1, .. })), "{refused:?}");
    assert_eq!(expect_ok(store.load()), StoredState::default());
    expect_ok(store.append_audit(note_event(2)));
    drop(store);
    assert_eq!(workbench.read_audit_events(), [note_event(2)]);
}

fn an_empty_batch_changes_nothing(workbench: &mut dyn StoreFixture) {
    let mut store = workbench.open();
    expect_ok(store.apply(&batch(1)));
    let before = expect_ok(store.load());
    expect_ok(store.apply(&[]));
    assert_eq!(expect_ok(store.load()), before);
}
