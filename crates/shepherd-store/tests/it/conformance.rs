//! Both stores do what any store has to do (S8.1).

use shepherd_api::AuditEvent;
use shepherd_store::conformance::{ALL, Workbench};
use shepherd_store::{Memory, MemoryStore, Store, StoreError};

use crate::support::{Place, batch};

struct InMemory(Memory);

impl Workbench for InMemory {
    fn open(&mut self) -> Box<dyn Store> {
        Box::new(MemoryStore::on(&self.0))
    }

    fn audit(&mut self) -> Vec<AuditEvent> {
        self.0.audit()
    }
}

impl Workbench for Place {
    fn open(&mut self) -> Box<dyn Store> {
        Box::new(Place::open(self))
    }

    fn audit(&mut self) -> Vec<AuditEvent> {
        assert!(self.verify().is_sound());
        self.events()
    }
}

#[test]
fn the_store_in_memory_conforms() {
    for (_, check) in ALL {
        check(&mut InMemory(Memory::default()));
    }
}

#[test]
fn the_store_on_disk_conforms() {
    for (_, check) in ALL {
        check(&mut Place::new());
    }
}

#[test]
fn the_store_in_memory_fails_as_often_as_it_is_told() {
    let memory = Memory::default();
    let mut store = MemoryStore::on(&memory);
    memory.fail_next_applies(2);
    for _ in 0..2 {
        assert!(matches!(store.apply(&batch(1)), Err(StoreError::Injected)));
    }
    assert_eq!(store.load().unwrap().usage.len(), 0);
    store.apply(&batch(1)).unwrap();
    assert_eq!(store.load().unwrap().usage.len(), 1);
}
