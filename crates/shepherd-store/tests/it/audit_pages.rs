//! Reading the audit log page by page (S8.3, S10.4).

use std::fs;

use shepherd_api::{AuditKind, AuditRecord};
use shepherd_core::StoreWrite;
use shepherd_store::conformance::sample::note_event;
use shepherd_store::{AUDIT_PAGE_BYTES, SqliteStore, Store, audit_format, read_audit_log};
use ward_ledger::{Sha256Hash, seal};

use crate::support::{TestStore, batch, error_chain};

fn append_notes(store: &mut SqliteStore, numbers: std::ops::RangeInclusive<u64>) {
    let writes: Vec<StoreWrite> =
        numbers.map(|number| StoreWrite::AppendAudit(Box::new(note_event(number)))).collect();
    store.apply(&writes).unwrap();
}

fn sequences(records: &[AuditRecord]) -> Vec<u64> {
    records.iter().map(|record| record.sequence).collect()
}

#[test]
fn a_log_of_many_pages_is_read_from_any_number_to_its_end() {
    let place = TestStore::new();
    let mut store = place.open();
    append_notes(&mut store, 1..=1_200);
    for after in [0, 1, 2, 599, 600, 1_198, 1_199] {
        let page = store.read_audit(Some(after), 3).unwrap();
        let expected: Vec<u64> = (after + 1..=1_200).take(3).collect();
        assert_eq!(sequences(&page), expected, "after {after}");
        assert_eq!(page[0].line, note_event(after + 1));
    }
    // A page has a maximum size, however many records are requested; the rest follows on the next page.
    let (mut after, mut pages) = (0, 0);
    while let Some(last) = sequences(&store.read_audit(Some(after), u32::MAX).unwrap()).last() {
        (after, pages) = (*last, pages + 1);
    }
    assert_eq!(after, 1_200);
    let bytes = usize::try_from(fs::metadata(place.file_path("audit.log")).unwrap().len()).unwrap();
    assert!((2..=bytes / AUDIT_PAGE_BYTES + 1).contains(&pages), "{pages} pages of {bytes} bytes");
}

#[test]
fn a_log_of_several_segments_is_one_log() {
    let place = TestStore::new();
    drop(place.open());
    // The segments of the ledger: closed segments have a number, the last one has none.
    let mut tip = (1, Sha256Hash::GENESIS);
    for (name, events) in
        [("audit.log.000001", 1..=40), ("audit.log.000002", 41..=80), ("audit.log", 81..=90)]
    {
        let mut text = Vec::new();
        for number in events {
            let record = shepherd_store::event_to_record(&note_event(number)).unwrap();
            let sealed = seal(&audit_format(), None, tip, record).unwrap();
            tip = (tip.0 + 1, sealed.hash);
            text.extend_from_slice(&sealed.line);
        }
        fs::write(place.file_path(name), text).unwrap();
    }
    for after in [0, 39, 40, 41, 79, 80, 89, 90] {
        let page = read_audit_log(&place.folder, Some(after), 100).unwrap();
        assert_eq!(sequences(&page), (after + 1..=90).collect::<Vec<_>>(), "after {after}");
    }
}

#[test]
fn the_ledger_s_own_account_has_its_number_and_its_line() {
    let place = TestStore::new();
    place.open().apply(&batch(1)).unwrap();
    let mut bytes = fs::read(place.file_path("audit.log")).unwrap();
    bytes.extend_from_slice(b"{\"torn\":");
    fs::write(place.file_path("audit.log"), bytes).unwrap();
    let mut store = place.open();
    let before = store.audit_end();
    store.apply(&batch(2)).unwrap();
    let lines = store.read_audit(None, 9).unwrap();
    assert_eq!(sequences(&lines), [1, 2, 3]);
    assert_eq!((before, store.audit_end()), (2, 3));
    let AuditKind::Note { text } = &lines[1].line.what else { panic!("{lines:?}") };
    assert!(text.starts_with("the audit log was repaired: ") && text.contains("torn"), "{text}");
    assert_eq!(lines[1].line.at, lines[0].line.at);
    assert_eq!(lines[2].line, note_event(2));
}

#[test]
fn a_line_that_was_changed_is_not_shown() {
    let place = TestStore::new();
    let mut store = place.open();
    append_notes(&mut store, 1..=9);
    let text = fs::read_to_string(place.file_path("audit.log")).unwrap();
    let removed: String =
        text.lines().filter(|line| !line.contains("number 5")).map(|line| format!("{line}\n")).collect();
    for forged in [text.replace("number 5", "number 6"), removed] {
        fs::write(place.file_path("audit.log"), forged).unwrap();
        let refused = error_chain(&store.read_audit(Some(2), 9).unwrap_err());
        assert!(refused.contains("run `shepherd audit verify`: "), "{refused}");
        assert!(refused.contains("is damaged after record 4"), "{refused}");
        // The records before the damage can still be read.
        assert_eq!(sequences(&store.read_audit(Some(2), 2).unwrap()), [3, 4]);
    }
}

#[test]
fn a_line_that_is_being_written_is_not_there_yet() {
    let place = TestStore::new();
    let mut store = place.open();
    append_notes(&mut store, 1..=2);
    let mut bytes = fs::read(place.file_path("audit.log")).unwrap();
    bytes.pop();
    fs::write(place.file_path("audit.log"), bytes).unwrap();
    assert_eq!(sequences(&store.read_audit(None, 9).unwrap()), [1]);
}
