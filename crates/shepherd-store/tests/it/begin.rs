//! Beginning anew after damage: by an administrator, told of in the log, and nothing thrown away (S8.4).

use std::fs;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::StoredState;
use shepherd_store::conformance::sample::note;
use shepherd_store::{Administrator, Begun, OpenError, Part, SqliteStore, Store};

use crate::support::{Place, batch, key, now};

fn with(batches: u64) -> Place {
    let place = Place::new();
    let mut store = place.open();
    (1..=batches).for_each(|number| store.apply(&batch(number)).unwrap());
    place
}

fn parent() -> Administrator {
    Administrator { name: "uid 1000".to_owned(), reason: "the disk was exchanged".to_owned() }
}

fn begin(place: &Place) -> (SqliteStore, Begun) {
    SqliteStore::begin_anew(&place.folder, &parent(), now()).unwrap()
}

/// What the last event says.
fn last_note(place: &Place) -> (String, String) {
    let event = place.events().pop().unwrap();
    let AuditKind::Note { text } = event.what else { panic!("{event:?}") };
    (event.actor, text)
}

#[test]
fn a_damaged_database_is_begun_anew_and_the_log_goes_on() {
    let place = with(3);
    fs::write(place.file("shepherd.db"), "damaged").unwrap();
    assert!(place.try_open().is_err());
    let (mut store, begun) = begin(&place);
    assert_eq!((begun.database, begun.audit), (Part::Anew, Part::Kept));
    let kept_in = begun.kept_in.unwrap();
    assert_eq!(fs::read(kept_in.join("shepherd.db")).unwrap(), b"damaged");
    assert_eq!(store.load().unwrap(), StoredState::default());
    let (actor, text) = last_note(&place);
    assert_eq!(actor, "uid 1000");
    assert_eq!(
        text,
        "the database was begun anew, so that nothing is known of earlier usage; \
         the damaged files are in damaged-20270115T080000Z-1: the disk was exchanged"
    );
    store.apply(&batch(4)).unwrap();
    drop(store);
    assert_eq!(place.load().usage[&key()], Duration::from_secs(1));
    assert_eq!(place.events().len(), 5);
    assert!(place.verify().is_sound());
}

#[test]
fn a_damaged_log_is_begun_anew_and_usage_goes_on() {
    let place = with(3);
    let text = fs::read_to_string(place.file("audit.log")).unwrap();
    fs::write(place.file("audit.log"), text.replace("number 3", "number 4")).unwrap();
    let (store, begun) = begin(&place);
    assert_eq!((begun.database, begun.audit), (Part::Kept, Part::Anew));
    assert!(fs::read_to_string(begun.kept_in.unwrap().join("audit.log")).unwrap().contains("number 4"));
    assert_eq!(store.load().unwrap().usage[&key()], Duration::from_secs(3));
    drop(store);
    assert!(last_note(&place).1.starts_with("the audit log was begun anew; usage is known; "));
    assert!(place.verify().is_sound());
    assert_eq!(place.load().usage[&key()], Duration::from_secs(3));
}

#[test]
fn a_log_edited_in_the_middle_can_be_begun_anew() {
    let place = with(3);
    let text = fs::read_to_string(place.file("audit.log")).unwrap();
    fs::write(place.file("audit.log"), text.replace("number 1,", "number 5,")).unwrap();
    let refusal = place.refusal();
    assert!(
        refusal.contains("then begin anew: broken at record 1 (audit.log, line 1), edited: "),
        "{refusal}"
    );
    let (_, begun) = begin(&place);
    assert_eq!((begun.database, begun.audit), (Part::Kept, Part::Anew));
}

#[test]
fn both_damaged_are_both_begun_anew() {
    let place = with(3);
    fs::write(place.file("shepherd.db"), "damaged").unwrap();
    fs::write(place.file("audit.log"), "damaged\n").unwrap();
    let (store, begun) = begin(&place);
    assert_eq!((begun.database, begun.audit), (Part::Anew, Part::Anew));
    drop(store);
    assert_eq!(place.events().len(), 1);
    assert_eq!(place.load(), StoredState::default());
    let kept: Vec<String> = place.names().into_iter().filter(|name| name.starts_with("damaged-")).collect();
    assert_eq!(kept, ["damaged-20270115T080000Z-1", "damaged-20270115T080000Z-2"]);
}

#[test]
fn a_folder_with_nothing_but_the_lock_is_begun_anew() {
    let place = with(3);
    for name in place.names().iter().filter(|name| *name != "shepherd.lock") {
        fs::remove_file(place.file(name)).unwrap();
    }
    let (store, begun) = begin(&place);
    assert_eq!(begun, Begun { database: Part::Anew, audit: Part::Anew, kept_in: None });
    drop(store);
    assert_eq!(last_note(&place).0, "uid 1000");
    assert_eq!(place.load(), StoredState::default());
}

#[test]
fn an_older_copy_of_the_database_keeps_what_it_knows() {
    let place = with(3);
    let older = ["shepherd.db", "shepherd.db.head"].map(|name| (name, fs::read(place.file(name)).unwrap()));
    place.open().apply(&batch(4)).unwrap();
    place.open().apply(&batch(5)).unwrap();
    for (name, bytes) in older {
        fs::write(place.file(name), bytes).unwrap();
    }
    assert!(matches!(place.try_open(), Err(OpenError::Audit { .. })));
    let (store, begun) = begin(&place);
    assert_eq!(begun, Begun { database: Part::Kept, audit: Part::Kept, kept_in: None });
    assert_eq!(store.load().unwrap().usage[&key()], Duration::from_secs(3));
    drop(store);
    assert_eq!(place.events()[..5], (1..=5).map(note).collect::<Vec<_>>());
    assert!(last_note(&place).1.starts_with("an older copy of the database goes on"));
}

#[test]
fn a_store_in_order_is_not_begun_anew() {
    for place in [with(2), Place::new()] {
        let before = place.folder.exists().then(|| place.load());
        let refused = SqliteStore::begin_anew(&place.folder, &parent(), now());
        assert!(matches!(refused, Err(OpenError::InOrder { .. })));
        if let Some(before) = before {
            assert_eq!(place.load(), before);
        }
    }
}
