//! Both stores pass the tests for any store (S8.1).

use shepherd_api::AuditEvent;
use shepherd_store::conformance::{ALL_CHECKS, StoreFixture};
use shepherd_store::{MemoryBackend, MemoryStore, Store, StoreError};

use crate::support::{TestStore, batch};

struct MemoryFixture(MemoryBackend);

impl StoreFixture for MemoryFixture {
    fn open(&mut self) -> Box<dyn Store> {
        Box::new(MemoryStore::with_backend(&self.0))
    }

    fn read_audit_events(&mut self) -> Vec<AuditEvent> {
        self.0.audit()
    }
}

impl StoreFixture for TestStore {
    fn open(&mut self) -> Box<dyn Store> {
        Box::new(TestStore::open(self))
    }

    fn read_audit_events(&mut self) -> Vec<AuditEvent> {
        assert!(self.verify().is_sound());
        self.events()
    }
}

#[test]
fn the_store_in_memory_conforms() {
    for (_, check) in ALL_CHECKS {
        check(&mut MemoryFixture(MemoryBackend::default()));
    }
}

#[test]
fn the_store_on_disk_conforms() {
    for (_, check) in ALL_CHECKS {
        check(&mut TestStore::new());
    }
}

#[test]
fn the_store_in_memory_fails_as_often_as_requested() {
    let memory = MemoryBackend::default();
    let mut store = MemoryStore::with_backend(&memory);
    memory.fail_next_applies(2);
    for _ in 0..2 {
        assert!(matches!(store.apply(&batch(1)), Err(StoreError::Injected)));
    }
    assert_eq!(store.load().unwrap().usage.len(), 0);
    store.apply(&batch(1)).unwrap();
    assert_eq!(store.load().unwrap().usage.len(), 1);
}
