//! Starting with a new store after damage: an administrator decides, the log records it, and no file is removed (S8.4).

use std::fs;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::StoredState;
use shepherd_store::conformance::sample::note_event;
use shepherd_store::{ResetPartOutcome, ResetReport, ResetRequest, SqliteStore, Store, StoreOpenError};

use crate::support::{TestStore, batch, key, now};

fn store_with_batches(batches: u64) -> TestStore {
    let place = TestStore::new();
    let mut store = place.open();
    (1..=batches).for_each(|number| store.apply(&batch(number)).unwrap());
    place
}

fn reset_request() -> ResetRequest {
    ResetRequest { name: "uid 1000".to_owned(), reason: "the disk was exchanged".to_owned() }
}

fn reset_store(place: &TestStore) -> (SqliteStore, ResetReport) {
    SqliteStore::reset_damaged(&place.folder, &reset_request(), now()).unwrap()
}

/// Returns the text of the last event.
fn last_note(place: &TestStore) -> (String, String) {
    let event = place.events().pop().unwrap();
    let AuditKind::Note { text } = event.what else { panic!("{event:?}") };
    (event.actor, text)
}

#[test]
fn a_damaged_database_is_replaced_and_the_log_continues() {
    let place = store_with_batches(3);
    fs::write(place.file_path("shepherd.db"), "damaged").unwrap();
    assert!(place.try_open().is_err());
    let (mut store, begun) = reset_store(&place);
    assert_eq!((begun.database, begun.audit), (ResetPartOutcome::Recreated, ResetPartOutcome::Kept));
    let kept_in = begun.kept_in.unwrap();
    assert_eq!(fs::read(kept_in.join("shepherd.db")).unwrap(), b"damaged");
    assert_eq!(store.load().unwrap(), StoredState::default());
    let (actor, text) = last_note(&place);
    assert_eq!(actor, "uid 1000");
    assert_eq!(
        text,
        "the database was replaced, so earlier usage is lost; \
         the damaged files are in damaged-20270115T080000Z-1: the disk was exchanged"
    );
    store.apply(&batch(4)).unwrap();
    drop(store);
    assert_eq!(place.load().usage[&key()], Duration::from_secs(1));
    assert_eq!(place.events().len(), 5);
    assert!(place.verify().is_sound());
}

#[test]
fn a_damaged_log_is_replaced_and_usage_is_kept() {
    let place = store_with_batches(3);
    let text = fs::read_to_string(place.file_path("audit.log")).unwrap();
    fs::write(place.file_path("audit.log"), text.replace("number 3", "number 4")).unwrap();
    let (store, begun) = reset_store(&place);
    assert_eq!((begun.database, begun.audit), (ResetPartOutcome::Kept, ResetPartOutcome::Recreated));
    assert!(fs::read_to_string(begun.kept_in.unwrap().join("audit.log")).unwrap().contains("number 4"));
    assert_eq!(store.load().unwrap().usage[&key()], Duration::from_secs(3));
    drop(store);
    assert!(last_note(&place).1.starts_with("the audit log was replaced; usage is kept; "));
    assert!(place.verify().is_sound());
    assert_eq!(place.load().usage[&key()], Duration::from_secs(3));
}

#[test]
fn a_log_edited_in_the_middle_can_be_replaced() {
    let place = store_with_batches(3);
    let text = fs::read_to_string(place.file_path("audit.log")).unwrap();
    fs::write(place.file_path("audit.log"), text.replace("number 1,", "number 5,")).unwrap();
    let refusal = place.open_error_text();
    assert!(
        refusal.contains("then reset the store: broken at record 1 (audit.log, line 1), edited: "),
        "{refusal}"
    );
    let (_, begun) = reset_store(&place);
    assert_eq!((begun.database, begun.audit), (ResetPartOutcome::Kept, ResetPartOutcome::Recreated));
}

#[test]
fn a_damaged_database_and_log_are_both_replaced() {
    let place = store_with_batches(3);
    fs::write(place.file_path("shepherd.db"), "damaged").unwrap();
    fs::write(place.file_path("audit.log"), "damaged\n").unwrap();
    let (store, begun) = reset_store(&place);
    assert_eq!((begun.database, begun.audit), (ResetPartOutcome::Recreated, ResetPartOutcome::Recreated));
    drop(store);
    assert_eq!(place.events().len(), 1);
    assert_eq!(place.load(), StoredState::default());
    let kept: Vec<String> =
        place.file_names().into_iter().filter(|name| name.starts_with("damaged-")).collect();
    assert_eq!(kept, ["damaged-20270115T080000Z-1", "damaged-20270115T080000Z-2"]);
}

#[test]
fn a_folder_with_only_the_lock_becomes_a_new_store() {
    let place = store_with_batches(3);
    for name in place.file_names().iter().filter(|name| *name != "shepherd.lock") {
        fs::remove_file(place.file_path(name)).unwrap();
    }
    let (store, begun) = reset_store(&place);
    assert_eq!(
        begun,
        ResetReport {
            database: ResetPartOutcome::Recreated,
            audit: ResetPartOutcome::Recreated,
            kept_in: None
        }
    );
    drop(store);
    assert_eq!(last_note(&place).0, "uid 1000");
    assert_eq!(place.load(), StoredState::default());
}

#[test]
fn an_older_copy_of_the_database_is_accepted_with_its_usage() {
    let place = store_with_batches(3);
    let older =
        ["shepherd.db", "shepherd.db.head"].map(|name| (name, fs::read(place.file_path(name)).unwrap()));
    place.open().apply(&batch(4)).unwrap();
    place.open().apply(&batch(5)).unwrap();
    for (name, bytes) in older {
        fs::write(place.file_path(name), bytes).unwrap();
    }
    assert!(matches!(place.try_open(), Err(StoreOpenError::Audit { .. })));
    let (store, begun) = reset_store(&place);
    assert_eq!(
        begun,
        ResetReport { database: ResetPartOutcome::Kept, audit: ResetPartOutcome::Kept, kept_in: None }
    );
    assert_eq!(store.load().unwrap().usage[&key()], Duration::from_secs(3));
    drop(store);
    assert_eq!(place.events()[..5], (1..=5).map(note_event).collect::<Vec<_>>());
    assert!(last_note(&place).1.starts_with("an older copy of the database is used"));
}

#[test]
fn an_intact_store_is_not_replaced() {
    for place in [store_with_batches(2), TestStore::new()] {
        let before = place.folder.exists().then(|| place.load());
        let refused = SqliteStore::reset_damaged(&place.folder, &reset_request(), now());
        assert!(matches!(refused, Err(StoreOpenError::NotDamaged { .. })));
        if let Some(before) = before {
            assert_eq!(place.load(), before);
        }
    }
}
