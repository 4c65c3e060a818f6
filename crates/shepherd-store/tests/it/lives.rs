//! The household of `kills` without processes and disks: many more deaths, and the same at every run (S8.2, S9.1,
//! S9.2b).

use crate::household::{Heard, Pending, Tally, World};

const HOUSEHOLDS: u64 = 60;
const DEATHS_EACH: u32 = 150;

/// One life of the daemon, up to its violent end. Returns the step that has landed without anybody hearing of it.
fn live_and_die(world: &mut World, landed: Option<Pending>) -> Option<Pending> {
    world.reopened(landed);
    let mut step = world.recovery();
    for _ in 0..world.dice.below(10) {
        let pending = world.foresee(step);
        world.accept(pending, Heard::AtOnce);
        step = world.next_step();
    }
    if world.dice.below(100) < 25 {
        // Dies while it sleeps.
        world.daemon_died(None);
        return None;
    }
    let pending = world.foresee(step);
    world.daemon_died(Some(&pending.step));
    (world.dice.below(100) < 50).then_some(pending)
}

fn tear_pulse(world: &mut World) {
    if world.stored().pulse.is_some() && world.dice.below(100) < 25 {
        world.pulse_is_torn();
    }
}

#[test]
fn a_household_survives_thousands_of_deaths_of_its_daemon() {
    let mut tally = Tally::default();
    for seed in 1..=HOUSEHOLDS {
        let mut world = World::new(seed);
        let mut landed = None;
        for _ in 0..DEATHS_EACH {
            let boot = world.boot_id();
            landed = live_and_die(&mut world, landed);
            if landed.is_none() && world.boot_id() != boot {
                tear_pulse(&mut world);
            }
        }
        world.reopened(landed);
        tally.add(&world.tally);
    }
    // A run in which nothing happened has shown nothing.
    assert!(tally.sessions >= 2_000 && tally.charged_exactly >= 500 && tally.reboots >= 500, "{tally:?}");
    assert!(tally.warnings >= 500 && tally.expired >= 200 && tally.taken_back >= 1_000, "{tally:?}");
    assert!(tally.pulses >= 2_000 && tally.torn >= 100, "{tally:?}");
}
