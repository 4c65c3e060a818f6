//! The audit log and the database know each other (S8.3).

use std::fs;

use shepherd_store::conformance::sample::note;
use shepherd_store::{OpenError, Store, audit_format};
use ward_ledger::{Ledger, Options};

use crate::support::{Place, batch, chain};

fn with(batches: u64) -> Place {
    let place = Place::new();
    let mut store = place.open();
    (1..=batches).for_each(|number| store.apply(&batch(number)).unwrap());
    place
}

/// The log is refused, the database stays where it is, and so does the log, for whoever wants to verify it.
fn check(place: &Place, fault: &str) {
    for _ in 0..2 {
        let error = place.try_open().unwrap_err();
        let text = chain(&error);
        assert!(matches!(error, OpenError::Audit { .. }), "{text}");
        assert!(text.contains(fault), "{fault}: {text}");
    }
    assert!(!place.names().iter().any(|name| name.starts_with("damaged-")));
    assert!(place.names().contains(&"shepherd.db".to_owned()));
}

fn remove_log(place: &Place) {
    for name in place.names().iter().filter(|name| name.starts_with("audit.log")) {
        fs::remove_file(place.file(name)).unwrap();
    }
}

#[test]
fn every_event_is_in_the_chain_when_the_batch_is_acknowledged() {
    let place = Place::new();
    let mut store = place.open();
    for number in 1..=5 {
        store.apply(&batch(number)).unwrap();
        assert_eq!(place.events(), (1..=number).map(note).collect::<Vec<_>>());
        assert!(place.verify().is_sound());
    }
}

#[test]
fn a_removed_log_is_noticed() {
    let place = with(3);
    remove_log(&place);
    check(&place, "it ends with number 0, and the database knows of ");
}

#[test]
fn a_log_cut_together_with_its_head_is_noticed() {
    let place = with(3);
    let copy = ["audit.log", "audit.log.head"].map(|name| (name, fs::read(place.file(name)).unwrap()));
    place.open().apply(&batch(4)).unwrap();
    place.open().apply(&batch(5)).unwrap();
    for (name, bytes) in copy {
        fs::write(place.file(name), bytes).unwrap();
    }
    check(&place, "it ends with number 3, and the database knows of 4: its end was cut off");
}

#[test]
fn another_log_of_the_same_length_is_noticed() {
    let place = with(3);
    place.open().append_audit(note(9)).unwrap();
    remove_log(&place);
    let (mut ledger, _) = Ledger::open(&place.file("audit.log"), Options::new(audit_format())).unwrap();
    for _ in 0..4 {
        ledger.append(shepherd_store::record_of(&note(1)).unwrap()).unwrap();
    }
    check(&place, "somebody else wrote it");
}

#[test]
fn an_event_that_somebody_else_appended_is_noticed() {
    let place = with(3);
    let (mut ledger, _) = Ledger::open(&place.file("audit.log"), Options::new(audit_format())).unwrap();
    ledger.append(shepherd_store::record_of(&note(4)).unwrap()).unwrap();
    check(&place, "it has events after number 2 that the database doesn't know of");
}

#[test]
fn an_event_that_somebody_else_appends_meanwhile_stops_the_store() {
    let place = Place::new();
    let mut store = place.open();
    store.apply(&batch(1)).unwrap();
    let (mut ledger, _) = Ledger::open(&place.file("audit.log"), Options::new(audit_format())).unwrap();
    ledger.append(shepherd_store::record_of(&note(7)).unwrap()).unwrap();
    store.apply(&batch(2)).unwrap();
    let refused = store.apply(&batch(3)).unwrap_err().to_string();
    assert!(refused.contains("audit.log can't be continued; "), "{refused}");
    drop(store);
    assert!(place.try_open().is_err());
}

#[test]
fn a_torn_end_is_put_aside_and_told_of() {
    let place = with(2);
    let mut bytes = fs::read(place.file("audit.log")).unwrap();
    bytes.extend_from_slice(b"{\"torn\":");
    fs::write(place.file("audit.log"), bytes).unwrap();
    let mut store = place.open();
    store.apply(&batch(3)).unwrap();
    assert_eq!(place.events(), [note(1), note(2), note(3)]);
    assert!(place.verify().is_sound());
    drop(store);
    drop(place.open());
}

#[test]
fn an_edited_last_event_is_noticed() {
    let place = with(2);
    let text = fs::read_to_string(place.file("audit.log")).unwrap();
    fs::write(place.file("audit.log"), text.replace("number 2", "number 3")).unwrap();
    check(&place, "its hash does not fit its content");
}
