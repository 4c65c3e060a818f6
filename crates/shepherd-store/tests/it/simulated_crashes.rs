//! The model of `process_kills.rs` without processes and disks: many more crashes, and the same in every run (S8.2,
//! S9.1, S9.2b).

use crate::household_model::{AckTiming, HouseholdModel, PendingStep, RunCounts};

const HOUSEHOLDS: u64 = 60;
const DEATHS_EACH: u32 = 150;

/// Runs the daemon until it crashes. Returns the step that was stored without an acknowledgement.
fn run_until_crash(world: &mut HouseholdModel, landed: Option<PendingStep>) -> Option<PendingStep> {
    world.restart_engine(landed);
    let mut step = world.recovery_step();
    for _ in 0..world.rng.below(10) {
        let pending = world.predict_step(step);
        world.commit_step(pending, AckTiming::Immediate);
        step = world.next_step();
    }
    if world.rng.below(100) < 25 {
        // The daemon crashes while it is idle.
        world.simulate_daemon_death(None);
        return None;
    }
    let pending = world.predict_step(step);
    world.simulate_daemon_death(Some(&pending.step));
    (world.rng.below(100) < 50).then_some(pending)
}

fn lose_heartbeat_sometimes(world: &mut HouseholdModel) {
    if world.stored().heartbeat.is_some() && world.rng.below(100) < 25 {
        world.lose_heartbeat();
    }
}

#[test]
fn a_household_survives_thousands_of_deaths_of_its_daemon() {
    let mut tally = RunCounts::default();
    for seed in 1..=HOUSEHOLDS {
        let mut world = HouseholdModel::new(seed);
        let mut landed = None;
        for _ in 0..DEATHS_EACH {
            let boot = world.boot_id();
            landed = run_until_crash(&mut world, landed);
            if landed.is_none() && world.boot_id() != boot {
                lose_heartbeat_sometimes(&mut world);
            }
        }
        world.restart_engine(landed);
        tally.add(&world.counts);
    }
    // A test in which nothing happens shows nothing.
    assert!(tally.sessions >= 2_000 && tally.charged_exactly >= 500 && tally.reboots >= 500, "{tally:?}");
    assert!(tally.warnings >= 500 && tally.expired >= 200 && tally.reattached >= 1_000, "{tally:?}");
    assert!(tally.heartbeats >= 2_000 && tally.torn >= 100, "{tally:?}");
}
