//! A starved machine must not keep a kill from happening: it needs no memory.
#![expect(unsafe_code, reason = "an allocator that counts is how absence is shown")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ward_process::StopLadder;

use crate::harness::{TestRun, containments, supervisor, wait_until};

struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_kill_allocates_nothing_in_any_containment() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let run = TestRun::new();
        let mut tree = run.spawn(&supervisor, "ignore term; fork 5 [ FOREVER ]; FOREVER");
        run.wait_until_sleeping(6);
        let before = ALLOCATIONS.with(Cell::get);
        tree.kill();
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0, "{containment}");
        wait_until("end after the kill", || run.survivors().is_empty());
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        // The counter counts, or the test above could not fail.
        let before = ALLOCATIONS.with(Cell::get);
        drop(std::hint::black_box(Box::new(1)));
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 1);
    }
}
