//! Signs of life: what a power cut costs, and what is charged to which day though nobody was woken for it (S4.6, S8.2,
//! S9.2b).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::policy::{BreakRule, DailyQuota};
use shepherd_core::{CoreEvent, DaemonHeartbeat, SessionLiveness};
use shepherd_util::{ClockReading, ManualClock, MonotonicInstant};

use crate::harness::{
    BERLIN, EngineHarness, boot, entry, entry_with_max_run, hours, minutes, policy, policy_with, wall_time,
};

const EVENING: &str = "2026-11-16 23:00";

/// The time to the next sign of life, and what a disk takes to write it.
const MAX_LOST: Duration = Duration::from_secs(31);

/// How far behind a clock may be that is believed.
const TOLERANCE: Duration = Duration::from_secs(600);

/// Two hours of a game, from eleven in the evening.
fn world_with_two_hour_session() -> EngineHarness {
    let mut game = entry_with_max_run(hours(2));
    game.limits.daily_quota = DailyQuota::every_day(hours(3));
    let mut world = EngineHarness::new(policy(vec![game]), EVENING);
    world.launch("game");
    world
}

fn used_by_day(world: &EngineHarness) -> Vec<(String, Duration)> {
    world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect()
}

fn used_on(day: &str, used: Duration) -> (String, Duration) {
    (format!("2026-11-{day}"), used)
}

/// The machine loses power and is off for so long.
fn power_cut(world: &mut EngineHarness, off: Duration) {
    let wall = world.now().wall + off;
    world.clock = ManualClock::starting_at(wall);
    world.place.boot = boot(2);
    world.crash();
    let events = world.engine.recover(SessionLiveness::Gone, world.now());
    assert!(matches!(&events[0], CoreEvent::SessionEnded { .. }), "{events:?}");
    world.sync();
}

#[test]
fn a_power_cut_costs_at_most_the_time_to_the_next_sign_of_life() {
    // S8.2, S9.2b. Nothing else was due meanwhile, and so nothing else was written.
    for played in [0, 1, 29, 30, 31, 59, 1_000, 7_190].map(Duration::from_secs) {
        let mut world = world_with_two_hour_session();
        world.advance(played);
        power_cut(&mut world, hours(5));
        let used = world.used("game");
        assert!(used >= played, "played {played:?}, charged {used:?}: time was won");
        assert!(used <= (played + MAX_LOST).min(hours(2)), "played {played:?}, charged {used:?}");
    }
}

#[test]
fn what_resists_its_end_when_the_power_fails_may_have_done_so_for_longer() {
    // S9.2b: a killed daemon may have left it alone for a while.
    let mut world = world_with_two_hour_session();
    world.run_for(hours(2));
    world.clock.advance(Duration::from_secs(28));
    power_cut(&mut world, minutes(5));
    assert_eq!(world.used("game"), hours(2) + MAX_LOST);
}

#[test]
fn a_power_cut_charges_the_days_that_were_played() {
    // S4.6: not to the one on which the machine comes up again.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(90));
    power_cut(&mut world, hours(30));
    assert_eq!(used_by_day(&world), [used_on("16", hours(1)), used_on("17", minutes(30) + MAX_LOST)]);
    // Nor is the last moment.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(30));
    power_cut(&mut world, hours(30));
    assert_eq!(used_by_day(&world), [used_on("16", minutes(30) + MAX_LOST)]);
}

#[test]
fn without_a_sign_of_life_all_that_may_have_been_played_is_charged() {
    // S9.2b: a file that is gone, torn or somebody else's wins nothing.
    let lost: [fn(&EngineHarness) -> Option<DaemonHeartbeat>; 3] = [
        |_| None,
        |world| Some(DaemonHeartbeat { boot: boot(9), at: world.now() }),
        |world| {
            let before_it_began = MonotonicInstant::new(hours(1), hours(1));
            Some(DaemonHeartbeat {
                boot: boot(1),
                at: ClockReading { wall: world.now().wall, mono: before_it_began },
            })
        },
    ];
    for lost_heartbeat in lost {
        for (off, used) in [(minutes(3), minutes(13) + TOLERANCE), (hours(7), hours(2))] {
            let mut world = world_with_two_hour_session();
            world.advance(minutes(10));
            world.store.heartbeat = lost_heartbeat(&world);
            power_cut(&mut world, off);
            assert_eq!(world.used("game"), used, "off for {off:?}");
        }
    }
    // A clock that has forgotten the time, too, does not tell how long it was off.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(10));
    world.store.heartbeat = None;
    world.clock.set_wall(wall_time(BERLIN, "2000-01-01 00:00"));
    power_cut(&mut world, minutes(1));
    assert_eq!(world.used("game"), hours(2));
}

#[test]
fn a_sign_of_life_that_is_older_than_what_was_charged_takes_nothing_back() {
    let mut world = world_with_two_hour_session();
    world.advance(minutes(10));
    world.clock.advance(Duration::from_secs(20));
    world.tick();
    let charged = world.used("game");
    power_cut(&mut world, hours(1));
    assert_eq!(world.used("game"), charged + MAX_LOST);
}

#[test]
fn the_clock_of_the_last_sign_of_life_is_remembered() {
    // S4.5: a machine whose clock starts over after a power cut is not believed, though nothing else was written.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(100));
    let last = world.now().wall;
    power_cut(&mut world, Duration::ZERO);
    world.clock.move_wall(SignedDuration::from_mins(-60));
    assert_eq!(world.reason_codes("game"), ["clock-untrusted"]);
    assert!(world.store.snapshot.clock.latest_seen >= Some(last - minutes(1)));
}

#[test]
fn a_clock_that_is_a_little_behind_is_counted_on_over_a_crash() {
    // S4.2: set back by minutes it is still believed, and still wins nothing: not by a killed daemon, either.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(10));
    world.move_wall(SignedDuration::from_mins(-3));
    world.advance(minutes(40));
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    let seen = world.store.snapshot.clock.latest_seen.unwrap();
    assert_eq!(seen, wall_time(BERLIN, "2026-11-16 23:50"));
}

#[test]
fn what_was_played_before_a_sleep_is_charged_to_the_day_before_it() {
    // S4.4, S4.6: the machine sleeps over midnight, and nothing else was due for hours.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(40));
    let last = world.store.heartbeat.unwrap();
    world.clock.suspend(hours(8));
    world.engine.count_usage_until(last.at);
    world.tick();
    assert_eq!(used_by_day(&world), [used_on("16", minutes(40))]);
    // Told again, or too late, it says nothing.
    let before = world.engine.stored_state();
    world.engine.count_usage_until(last.at);
    assert_eq!(world.engine.stored_state(), before);
    world.run_for(minutes(1));
    assert_eq!(used_by_day(&world), [used_on("16", minutes(40)), used_on("17", minutes(1))]);
}

#[test]
fn whoever_asks_is_told_what_was_used_until_now_and_it_is_written_once() {
    // S8.4b: counted as it happens, though nothing is due.
    let mut world = world_with_two_hour_session();
    for minute in 1..=5 {
        world.advance(minutes(1));
        world.engine.count_usage_until(world.now());
        let today = "2026-11-16".parse().unwrap();
        let usage = world.engine.usage(today, today, None).unwrap();
        assert_eq!(usage.iter().map(|view| Duration::from(view.used)).sum::<Duration>(), minutes(minute));
    }
    world.engine.checkpoint_usage(world.now());
    let writes = world.engine.take_writes();
    assert_eq!(writes.len(), 2, "the use of one day and the snapshot: {writes:?}");
}

#[test]
fn a_clock_put_forward_and_a_power_cut_are_no_break() {
    // S2.4: an hour in a row, then a break; the wall says that there was one, and the clock of that boot knows better.
    let policy = policy_with(vec![entry("game"), entry("film")], |rules| {
        rules.breaks = Some(BreakRule { after: hours(1), length: minutes(10) });
    });
    let mut world = EngineHarness::new(policy, "2026-11-16 12:00");
    world.launch("game");
    world.run_for(minutes(30));
    world.exit();
    world.move_wall(SignedDuration::from_mins(15));
    world.launch("film");
    world.advance(minutes(20));
    power_cut(&mut world, minutes(1));
    world.launch("game");
    assert!(world.remaining() <= Some(minutes(10)), "{:?} in a row are left", world.remaining());
}

#[test]
fn a_sign_of_life_from_the_future_is_none() {
    let mut world = world_with_two_hour_session();
    world.advance(minutes(10));
    world.clock.advance(hours(1));
    world.write_heartbeat();
    world.clock = ManualClock::starting_at(wall_time(BERLIN, EVENING));
    world.clock.advance(hours(5) + minutes(10));
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
    assert_eq!(world.used("game"), minutes(10));
}
