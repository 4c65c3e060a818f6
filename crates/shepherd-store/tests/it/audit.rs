//! The audit log and the database must belong together (S8.3).

use std::fs;

use shepherd_store::conformance::sample::note_event;
use shepherd_store::{Store, StoreOpenError, audit_format};
use ward_ledger::{Ledger, LedgerOptions};

use crate::support::{TestStore, batch, error_chain};

fn store_with_batches(batches: u64) -> TestStore {
    let place = TestStore::new();
    let mut store = place.open();
    (1..=batches).for_each(|number| store.apply(&batch(number)).unwrap());
    place
}

/// Checks that the log is refused, and that both files stay for an examination.
fn assert_open_fails(place: &TestStore, fault: &str) {
    for _ in 0..2 {
        let error = place.try_open().unwrap_err();
        let text = error_chain(&error);
        assert!(matches!(error, StoreOpenError::Audit { .. }), "{text}");
        assert!(text.contains(fault), "{fault}: {text}");
    }
    assert!(!place.file_names().iter().any(|name| name.starts_with("damaged-")));
    assert!(place.file_names().contains(&"shepherd.db".to_owned()));
}

fn remove_log(place: &TestStore) {
    for name in place.file_names().iter().filter(|name| name.starts_with("audit.log")) {
        fs::remove_file(place.file_path(name)).unwrap();
    }
}

#[test]
fn every_event_is_in_the_chain_when_the_batch_is_acknowledged() {
    let place = TestStore::new();
    let mut store = place.open();
    for number in 1..=5 {
        store.apply(&batch(number)).unwrap();
        assert_eq!(place.events(), (1..=number).map(note_event).collect::<Vec<_>>());
        assert!(place.verify().is_sound());
    }
}

#[test]
fn a_removed_log_is_detected() {
    let place = store_with_batches(3);
    remove_log(&place);
    assert_open_fails(&place, "it ends with record 0, but the database expects record ");
}

#[test]
fn a_log_cut_together_with_its_head_is_detected() {
    let place = store_with_batches(3);
    let copy = ["audit.log", "audit.log.head"].map(|name| (name, fs::read(place.file_path(name)).unwrap()));
    place.open().apply(&batch(4)).unwrap();
    place.open().apply(&batch(5)).unwrap();
    for (name, bytes) in copy {
        fs::write(place.file_path(name), bytes).unwrap();
    }
    assert_open_fails(
        &place,
        "it ends with record 3, but the database expects record 4: its end was cut off",
    );
}

#[test]
fn another_log_of_the_same_length_is_detected() {
    let place = store_with_batches(3);
    place.open().append_audit(note_event(9)).unwrap();
    remove_log(&place);
    let (mut ledger, _) =
        Ledger::open(&place.file_path("audit.log"), LedgerOptions::new(audit_format())).unwrap();
    for _ in 0..4 {
        ledger.append(shepherd_store::event_to_record(&note_event(1)).unwrap()).unwrap();
    }
    assert_open_fails(&place, "another program wrote them");
}

#[test]
fn a_foreign_audit_event_is_detected() {
    let place = store_with_batches(3);
    let (mut ledger, _) =
        Ledger::open(&place.file_path("audit.log"), LedgerOptions::new(audit_format())).unwrap();
    ledger.append(shepherd_store::event_to_record(&note_event(4)).unwrap()).unwrap();
    assert_open_fails(&place, "it has events after record 2 that the database lacks");
}

#[test]
fn a_foreign_audit_event_during_a_run_stops_the_store() {
    let place = TestStore::new();
    let mut store = place.open();
    store.apply(&batch(1)).unwrap();
    let (mut ledger, _) =
        Ledger::open(&place.file_path("audit.log"), LedgerOptions::new(audit_format())).unwrap();
    ledger.append(shepherd_store::event_to_record(&note_event(7)).unwrap()).unwrap();
    store.apply(&batch(2)).unwrap();
    let refused = store.apply(&batch(3)).unwrap_err().to_string();
    assert!(refused.contains("could not continue the audit log "), "{refused}");
    drop(store);
    assert!(place.try_open().is_err());
}

#[test]
fn a_torn_last_line_is_moved_aside_and_reported() {
    let place = store_with_batches(2);
    let mut bytes = fs::read(place.file_path("audit.log")).unwrap();
    bytes.extend_from_slice(b"{\"torn\":");
    fs::write(place.file_path("audit.log"), bytes).unwrap();
    let mut store = place.open();
    store.apply(&batch(3)).unwrap();
    assert_eq!(place.events(), [note_event(1), note_event(2), note_event(3)]);
    assert!(place.verify().is_sound());
    drop(store);
    drop(place.open());
}

#[test]
fn an_edited_last_event_is_detected() {
    let place = store_with_batches(2);
    let text = fs::read_to_string(place.file_path("audit.log")).unwrap();
    fs::write(place.file_path("audit.log"), text.replace("number 2", "number 3")).unwrap();
    assert_open_fails(&place, "its hash doesn't match its content");
}
