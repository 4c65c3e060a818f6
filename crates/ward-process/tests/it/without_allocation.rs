//! Killing a tree allocates no memory, so it works on a machine that has run out of memory.
#![expect(unsafe_code, reason = "a counting allocator shows that nothing is allocated")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ward_process::StopLadder;

use crate::harness::{TestRun, containments, supervisor, wait_until};

struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees the conditions of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees the conditions of `dealloc`.
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
        wait_until("the end of all members", || run.survivors().is_empty());
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        // Shows that the counter works and the assertion above could fail.
        let before = ALLOCATIONS.with(Cell::get);
        drop(std::hint::black_box(Box::new(1)));
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 1);
    }
}
