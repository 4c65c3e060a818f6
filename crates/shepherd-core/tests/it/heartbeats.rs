//! Heartbeats: the cost of a power cut, and charging to the right day although no tick was due (S4.6, S8.2, S9.2b).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::policy::{BreakRule, DailyQuota};
use shepherd_core::{CoreEvent, DaemonHeartbeat, SessionLiveness};
use shepherd_util::{ClockReading, ManualClock, MonotonicInstant};

use crate::harness::{
    BERLIN, EngineHarness, boot, entry, entry_with_max_run, hours, minutes, policy, policy_with, wall_time,
};

const EVENING: &str = "2026-11-16 23:00";

/// The longest lost time: the heartbeat interval, and the time to write a heartbeat.
const MAX_LOST: Duration = Duration::from_secs(31);

/// How far behind a trusted clock may be.
const TOLERANCE: Duration = Duration::from_secs(600);

/// A session of two hours that starts at 23:00.
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

/// Cuts the power for this long.
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
fn a_power_cut_costs_at_most_one_heartbeat_interval() {
    // S8.2, S9.2b. Nothing else was due meanwhile, so nothing else was written.
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
fn a_program_that_ignores_its_end_is_charged_for_the_uncertain_time_after_a_power_cut() {
    // S9.2b: after the kill of the daemon, the program may have run on for a while.
    let mut world = world_with_two_hour_session();
    world.run_for(hours(2));
    world.clock.advance(Duration::from_secs(28));
    power_cut(&mut world, minutes(5));
    assert_eq!(world.used("game"), hours(2) + MAX_LOST);
}

#[test]
fn a_power_cut_is_charged_to_the_days_of_play() {
    // S4.6: not to the day on which the machine starts again.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(90));
    power_cut(&mut world, hours(30));
    assert_eq!(used_by_day(&world), [used_on("16", hours(1)), used_on("17", minutes(30) + MAX_LOST)]);
    // The lost time is not charged to that day, either.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(30));
    power_cut(&mut world, hours(30));
    assert_eq!(used_by_day(&world), [used_on("16", minutes(30) + MAX_LOST)]);
}

#[test]
fn without_a_heartbeat_all_possible_play_is_charged() {
    // S9.2b: a missing, torn or foreign heartbeat file gains nothing.
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
    // If the clock has lost the time as well, the time without power is unknown.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(10));
    world.store.heartbeat = None;
    world.clock.set_wall(wall_time(BERLIN, "2000-01-01 00:00"));
    power_cut(&mut world, minutes(1));
    assert_eq!(world.used("game"), hours(2));
}

#[test]
fn a_heartbeat_that_is_older_than_the_last_charge_changes_nothing() {
    let mut world = world_with_two_hour_session();
    world.advance(minutes(10));
    world.clock.advance(Duration::from_secs(20));
    world.tick();
    let charged = world.used("game");
    power_cut(&mut world, hours(1));
    assert_eq!(world.used("game"), charged + MAX_LOST);
}

#[test]
fn a_heartbeat_that_is_older_than_the_last_write_leaves_the_clock_alone() {
    // S4.2: the trusted time must not run ahead of the clock after a crash.
    let mut world = world_with_two_hour_session();
    world.clock.advance(Duration::from_secs(20));
    world.engine.checkpoint_usage(world.now());
    world.sync();
    world.clock.advance(Duration::from_secs(5));
    world.crash();
    world.engine.recover(SessionLiveness::Alive { handle: "handle".to_owned() }, world.now());
    world.sync();
    assert_eq!(world.store.snapshot.clock.latest_seen, Some(world.now().wall));
}

#[test]
fn the_lost_time_of_a_power_cut_before_midnight_is_charged_to_the_day_that_the_clock_shows() {
    // S4.6: the machine is back before midnight, but up to half a minute is charged.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(60) - Duration::from_secs(30));
    power_cut(&mut world, Duration::from_secs(5));
    assert_eq!(used_by_day(&world), [used_on("16", minutes(60) - Duration::from_secs(30) + MAX_LOST)]);
}

#[test]
fn the_clock_of_the_last_heartbeat_is_remembered() {
    // S4.5: a clock that starts over after a power cut is not trusted, although only heartbeats were written.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(100));
    let last = world.now().wall;
    power_cut(&mut world, Duration::ZERO);
    world.clock.move_wall(SignedDuration::from_mins(-60));
    assert_eq!(world.reason_codes("game"), ["clock-untrusted"]);
    assert!(world.store.snapshot.clock.latest_seen >= Some(last - minutes(1)));
}

#[test]
fn the_trusted_time_continues_after_a_crash_while_the_clock_is_behind() {
    // S4.2: a clock that was set back by minutes is trusted, but gains nothing, even after a crash.
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
fn play_before_a_sleep_is_charged_to_the_day_before_it() {
    // S4.4, S4.6: the machine sleeps over midnight, and nothing else was due for hours.
    let mut world = world_with_two_hour_session();
    world.advance(minutes(40));
    let last = world.store.heartbeat.unwrap();
    world.clock.suspend(hours(8));
    world.engine.count_usage_until(last.at);
    world.tick();
    assert_eq!(used_by_day(&world), [used_on("16", minutes(40))]);
    // A repeated or late heartbeat changes nothing.
    let before = world.engine.stored_state();
    world.engine.count_usage_until(last.at);
    assert_eq!(world.engine.stored_state(), before);
    world.run_for(minutes(1));
    assert_eq!(used_by_day(&world), [used_on("16", minutes(40)), used_on("17", minutes(1))]);
}

#[test]
fn queries_show_usage_up_to_now_and_it_is_written_once() {
    // S8.4b: usage is counted although nothing is due.
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
    assert_eq!(writes.len(), 3, "the use of one day, the session and the snapshot: {writes:?}");
}

#[test]
fn setting_the_clock_forward_before_a_power_cut_is_no_break() {
    // S2.4: by the wall clock there was a break, but by the monotonic clock of that boot there was none.
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
fn a_heartbeat_from_the_future_is_ignored() {
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
