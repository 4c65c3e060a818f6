//! Limits of time requests, and how long requests and grants are kept (S2.7).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::policy::Policy;
use shepherd_core::{GrantError, NewTimeRequest};
use shepherd_util::RequestId;

use crate::harness::{
    EngineHarness, MONDAY_NOON, entry_with_max_run, extra, grant, hours, minutes, policy_with,
};

const SECOND: Duration = Duration::from_secs(1);

/// The time for which a request waits for an answer.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The time for which an answered request or a lapsed grant is kept.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 3600);

/// Two children and a game without a quota, so that nothing happens at midnight.
fn two_children() -> Policy {
    policy_with(vec![entry_with_max_run(minutes(30))], |rules| {
        let profile = rules.profiles.values().next().unwrap().clone();
        rules.profiles = ["anna", "ben"].map(|name| (name.parse().unwrap(), profile.clone())).into();
    })
}

fn ask(world: &mut EngineHarness, id: u128, child: &str, amount: Duration) -> Result<(), GrantError> {
    let request = NewTimeRequest {
        request_id: RequestId::from_random(id),
        profile: child.parse().unwrap(),
        entry_id: "game".parse().unwrap(),
        amount,
        note: None,
        actor: child.to_owned(),
    };
    let asked = world.engine.request_time(request, world.now());
    world.sync();
    asked
}

fn deny(world: &mut EngineHarness, id: u128) {
    world.engine.deny_request(&RequestId::from_random(id), None, "parent", world.now()).unwrap();
    world.sync();
}

#[test]
fn a_request_is_for_a_day_at_most() {
    let mut world = EngineHarness::new(two_children(), MONDAY_NOON);
    assert_eq!(ask(&mut world, 1, "anna", hours(24)), Ok(()));
    for longer in [hours(24) + SECOND, hours(25)] {
        assert_eq!(ask(&mut world, 2, "anna", longer), Err(GrantError::RequestTooLong), "{longer:?}");
    }
}

#[test]
fn each_child_has_five_open_requests_at_most() {
    let mut world = EngineHarness::new(two_children(), MONDAY_NOON);
    for id in 1..=5 {
        assert_eq!(ask(&mut world, id, "anna", minutes(5)), Ok(()));
    }
    assert_eq!(ask(&mut world, 6, "anna", minutes(5)), Err(GrantError::TooManyRequests));
    // Her brother has his own five, and an answered request doesn't count.
    for id in 11..=15 {
        assert_eq!(ask(&mut world, id, "ben", minutes(5)), Ok(()));
    }
    assert_eq!(ask(&mut world, 16, "ben", minutes(5)), Err(GrantError::TooManyRequests));
    deny(&mut world, 3);
    assert_eq!(ask(&mut world, 6, "anna", minutes(5)), Ok(()));
    assert_eq!(ask(&mut world, 7, "anna", minutes(5)), Err(GrantError::TooManyRequests));
}

/// Returns the number of stored requests and grants.
fn stored(world: &EngineHarness) -> [usize; 2] {
    [world.store.snapshot.requests.len(), world.store.snapshot.grants.len()]
}

#[test]
fn an_answered_request_is_kept_for_two_weeks() {
    let mut world = EngineHarness::new(two_children(), MONDAY_NOON);
    ask(&mut world, 1, "anna", minutes(5)).unwrap();
    deny(&mut world, 1);
    world.clock.advance(LIFETIME + RETENTION - SECOND);
    world.tick();
    assert_eq!(stored(&world), [1, 0]);
    world.clock.advance(SECOND);
    world.tick();
    assert_eq!(stored(&world), [0, 0]);
}

#[test]
fn a_lapsed_grant_is_kept_for_two_weeks() {
    // The grant lapses at midnight.
    let mut world = EngineHarness::new(two_children(), MONDAY_NOON);
    world.grant(grant(1, extra(minutes(5))));
    world.clock.advance(hours(12) + RETENTION - SECOND);
    world.tick();
    assert_eq!(stored(&world), [0, 1]);
    world.clock.advance(SECOND);
    world.tick();
    assert_eq!(stored(&world), [0, 0]);
}

#[test]
fn a_tick_without_an_event_writes_nothing() {
    // S4.7: also while a request is open and a grant is valid.
    let mut world = EngineHarness::new(two_children(), MONDAY_NOON);
    ask(&mut world, 1, "anna", minutes(5)).unwrap();
    world.grant(grant(1, extra(minutes(5))));
    world.tick();
    world.clock.advance(SECOND);
    assert_eq!(world.engine.tick(world.now()), []);
    assert_eq!(world.engine.take_writes(), []);
}

#[test]
fn nothing_is_due_twice_when_a_request_lapses() {
    // S4.7: by a trusted clock, and by one that is two days behind.
    for behind in [0, 48] {
        let mut world = EngineHarness::new(two_children(), MONDAY_NOON);
        world.tick();
        world.move_wall(SignedDuration::from_hours(-behind));
        ask(&mut world, 1, "anna", minutes(5)).unwrap();
        world.clock.advance(LIFETIME);
        world.tick();
        assert_ne!(world.engine.next_due(), Some(world.now().mono), "{behind} hours behind");
    }
}
