//! Corrections of the clock to an earlier day: the clock may have been ahead before, or be behind now. In both cases
//! nobody gains time (S4.5). Where that charges a day without reason, a parent can give the time back.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use shepherd_core::policy::{Day, Policy, SuspendedTime, TimeCost, UnlockRule};

use crate::clock_recovery::{CURES, MONDAY_NOON, an_hour_a_day, reboot};
use crate::grant_and_clock_abuse::maths_earns;
use crate::harness::{EngineHarness, boot, entry, extra, grant, hours, minutes, policy};

fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

fn hourly() -> Policy {
    policy(vec![an_hour_a_day()])
}

fn play(world: &mut EngineHarness, length: u64) {
    use_entry(world, "game", length);
}

fn use_entry(world: &mut EngineHarness, id: &str, length: u64) {
    world.launch(id);
    world.run_for(minutes(length));
    world.exit();
}

/// Returns the stored usage of the game in minutes, by day.
fn used(world: &EngineHarness) -> Vec<(String, u64)> {
    let minutes = |used: Duration| used.as_secs() / 60;
    world
        .store
        .usage
        .iter()
        .map(|(key, used)| (key.day.to_string()[5..].to_owned(), minutes(*used)))
        .collect()
}

fn assert_used(world: &EngineHarness, expected: &[(&str, u64)]) {
    let expected: Vec<_> = expected.iter().map(|(day, used)| ((*day).to_owned(), *used)).collect();
    assert_eq!(used(world), expected);
}

fn left(world: &EngineHarness) -> Option<Duration> {
    world.view("game").max_run_if_started_now.map(Duration::from)
}

/// Returns the last days of the stored correction.
fn last_days(world: &EngineHarness) -> BTreeSet<Day> {
    world.store.snapshot.clock_correction.as_ref().unwrap().last_days.clone()
}

#[test]
fn a_day_that_is_used_up_stays_used_up_when_a_clock_that_was_set_back_is_right_again() {
    for cure in CURES {
        for restarts in [false, true] {
            let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
            world.launch("game");
            world.play_until_expired();
            world.move_wall(days(-15));
            cure(&mut world);
            assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "the clock may have been ahead");
            if restarts {
                world.crash();
            }
            world.move_wall(days(15));
            assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
            assert_used(&world, &[("11-01", 60), ("11-16", 60)]);
        }
    }
}

#[test]
fn a_parent_can_give_back_time_that_was_charged_to_two_days() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    world.launch("game");
    world.play_until_expired();
    world.move_wall(days(-15));
    CURES[0](&mut world);
    world.grant(grant(1, extra(minutes(30))));
    assert_eq!(left(&world), Some(minutes(30)));
}

#[test]
fn time_that_was_used_with_a_clock_that_was_behind_counts_for_the_real_day() {
    for cure in CURES {
        let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
        play(&mut world, 10);
        world.move_wall(days(-15));
        cure(&mut world);
        play(&mut world, 10);
        // It is used on two days, of which the second was Monday.
        world.run_for(hours(24));
        play(&mut world, 20);
        world.crash();
        world.move_wall(days(14));
        assert_used(&world, &[("11-01", 20), ("11-02", 20), ("11-15", 10), ("11-16", 30)]);
        assert_eq!(left(&world), Some(minutes(30)));
        // It is charged once.
        world.tick();
        world.move_wall(days(30));
        assert_eq!(left(&world), Some(hours(1)));
    }
}

#[test]
fn a_clock_that_is_set_back_again_and_again_charges_no_time_to_a_day_twice() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    for (back, monday) in [(10, 20), (10, 40)] {
        play(&mut world, 10);
        world.move_wall(days(-15));
        CURES[0](&mut world);
        play(&mut world, back);
        world.crash();
        world.move_wall(days(15));
        assert_used(&world, &[("11-01", monday), ("11-16", monday)]);
    }
}

#[test]
fn a_clock_that_reaches_the_far_day_in_daily_use_charges_nothing_again() {
    // The clock was eight days ahead, and then right. Only if nobody used time for more than a week before the far day, it
    // looks like a clock that was behind.
    for (pause, used_before) in [(7, 0), (8, 5)] {
        let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
        world.move_wall(days(8));
        play(&mut world, 20);
        world.move_wall(days(-8));
        CURES[0](&mut world);
        if pause == 7 {
            world.run_for(hours(24));
        }
        play(&mut world, 5);
        world.advance(hours(24 * pause));
        world.tick();
        // The far day keeps what was charged to it when the clock was ahead.
        assert_eq!(left(&world), Some(minutes(40 - used_before)));
        world.crash();
        world.tick();
        assert_eq!(left(&world), Some(minutes(40 - used_before)), "charged once");
    }
}

#[test]
fn time_that_is_used_on_the_far_day_charges_nothing_again() {
    // The clock is set back by an hour, so it isn't trusted, and a session lasts into the far day.
    for (jump, charged_again) in [(7, false), (8, true)] {
        let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
        world.tick();
        world.move_wall(days(-15));
        CURES[0](&mut world);
        // The evening before the far day.
        world.advance(hours(14 * 24 + 11) + minutes(50));
        world.launch("game");
        world.run_for(minutes(5));
        world.move_wall(SignedDuration::from_hours(-1));
        world.run_for(minutes(10));
        world.exit();
        assert_used(&world, &[("11-15", 10), ("11-16", 5)]);
        world.move_wall(days(jump) + SignedDuration::from_hours(1));
        assert_eq!(used(&world).len() > 2, charged_again, "{jump}: {:?}", used(&world));
    }
}

#[test]
fn the_day_before_the_far_day_charges_nothing_again() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    world.tick();
    world.move_wall(days(-15));
    CURES[0](&mut world);
    play(&mut world, 5);
    world.move_wall(days(14));
    assert_used(&world, &[("11-01", 5)]);
    // Time that is used now belongs to an earlier day, too.
    world.move_wall(days(1));
    assert_used(&world, &[("11-01", 5), ("11-16", 5)]);
    play(&mut world, 5);
    world.move_wall(days(20));
    assert_used(&world, &[("11-01", 5), ("11-16", 10)]);
}

#[test]
fn only_the_last_week_before_a_jump_is_charged_again() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    world.tick();
    world.move_wall(days(-30));
    CURES[0](&mut world);
    for played in [1, 2, 4] {
        play(&mut world, played);
        // Seven days between the first and the last, six between the second and the last.
        world.advance(hours(if played == 1 { 24 } else { 24 * 6 }));
        world.tick();
    }
    world.move_wall(days(30));
    let after: Vec<_> = used(&world).into_iter().filter(|(day, _)| day.as_str() > "11-01").collect();
    let expected = [("11-23".to_owned(), 2), ("11-29".to_owned(), 4)];
    assert_eq!(after, expected);
}

#[test]
fn a_clock_that_is_set_ahead_several_times_charges_today() {
    for cure in CURES {
        // It was last used with the right clock so many days ago, or never.
        for (before, expected) in [
            (None, [("11-15", 10), ("11-16", 25)].as_slice()),
            (Some(2), &[("11-14", 1), ("11-15", 10), ("11-16", 25)]),
            (Some(1), &[("11-15", 1), ("11-16", 35)]),
            (Some(0), &[("11-16", 36)]),
        ] {
            let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
            world.move_wall(days(-before.unwrap_or(0)));
            if before.is_some() {
                play(&mut world, 1);
            }
            world.move_wall(days(before.unwrap_or(0)));
            let mut ahead = 0;
            // The first is so far away that it would be a week ago, the last two are adjacent.
            for (by, played) in [(93, 5), (99, 10), (100, 20)] {
                world.move_wall(days(by - ahead));
                ahead = by;
                play(&mut world, played);
            }
            world.move_wall(days(-ahead));
            cure(&mut world);
            let real: Vec<_> = used(&world).into_iter().filter(|(day, _)| day.as_str() > "11").collect();
            let expected: Vec<_> = expected.iter().map(|(day, used)| ((*day).to_owned(), *used)).collect();
            assert_eq!(real, expected, "{before:?}");
        }
    }
}

#[test]
fn time_that_was_used_six_days_ago_is_charged_to_that_day() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    for by in [94, 6] {
        world.move_wall(days(by));
        play(&mut world, 5);
    }
    world.move_wall(days(-100));
    CURES[0](&mut world);
    let real: Vec<_> = used(&world).into_iter().filter(|(day, _)| day.as_str() > "11").collect();
    assert_eq!(real, [("11-10".to_owned(), 5), ("11-16".to_owned(), 5)]);
}

#[test]
fn a_month_of_far_days_is_charged_again_and_no_more() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    for _ in 0..32 {
        world.move_wall(days(10));
        play(&mut world, 1);
    }
    world.move_wall(days(-320));
    CURES[0](&mut world);
    assert_eq!(left(&world), Some(minutes(29)));
    let correction = world.store.snapshot.clock_correction.clone().unwrap();
    assert_eq!(correction.charged_twice.len(), 31);
    // The other days stay as they were.
    assert_eq!(world.used("game"), minutes(32 + 31));
}

#[test]
fn two_corrections_in_a_row_leave_time_charged_to_every_possible_day() {
    // The clock is set back twice, and was right before.
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    play(&mut world, 10);
    world.move_wall(days(-15));
    CURES[0](&mut world);
    play(&mut world, 10);
    world.move_wall(days(-15));
    CURES[0](&mut world);
    assert_used(&world, &[("10-17", 20), ("11-01", 20), ("11-16", 10)]);
    world.move_wall(days(30));
    assert_used(&world, &[("10-17", 20), ("11-01", 20), ("11-16", 20)]);
}

#[test]
fn a_correction_keeps_the_doubts_about_an_earlier_one() {
    // One by up to a week adds none.
    for (back, doubtful) in [(7, 1), (8, 2)] {
        let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
        world.tick();
        world.move_wall(days(-30));
        CURES[0](&mut world);
        let far = last_days(&world);
        world.move_wall(days(-back));
        CURES[0](&mut world);
        assert!(last_days(&world).is_superset(&far));
        assert_eq!(last_days(&world).len(), doubtful);
    }
}

#[test]
fn a_month_of_corrections_is_doubted_and_no_more() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    let mut expected = BTreeSet::new();
    for _ in 0..31 {
        world.tick();
        expected.extend(world.engine.snapshot().clock.accounting_day);
        world.move_wall(days(-15));
        CURES[0](&mut world);
        assert_eq!(last_days(&world), expected);
    }
    expected.extend(world.engine.snapshot().clock.accounting_day);
    world.move_wall(days(-15));
    CURES[0](&mut world);
    // The latest day is dropped.
    expected.pop_last();
    assert_eq!(last_days(&world), expected);
}

#[test]
fn a_first_correction_by_less_than_a_week_charges_nothing_again() {
    // The days of a week pay back what was borrowed from them, also in the end.
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    play(&mut world, 10);
    world.move_wall(days(-3));
    CURES[0](&mut world);
    play(&mut world, 10);
    world.move_wall(days(3));
    assert_used(&world, &[("11-13", 10), ("11-16", 10)]);
}

#[test]
fn a_reboot_forgets_no_correction() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    play(&mut world, 40);
    world.move_wall(days(-15));
    CURES[0](&mut world);
    world.launch("game");
    world.play_until_expired();
    reboot(&mut world, boot(2));
    world.move_wall(days(15));
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

#[test]
fn a_running_session_ends_with_the_quota_of_the_day_that_the_clock_jumps_to() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    play(&mut world, 20);
    world.move_wall(days(-15));
    CURES[0](&mut world);
    world.launch("game");
    world.run_for(minutes(30));
    world.move_wall(days(15));
    assert_eq!(world.remaining(), Some(minutes(10)));
}

#[test]
fn time_that_earns_time_is_rewarded_on_one_day() {
    for cure in CURES {
        for cost in [TimeCost::Free, TimeCost::Counts] {
            // The clock was ahead.
            let mut world = EngineHarness::new(maths_earns(cost, SuspendedTime::Free), MONDAY_NOON);
            world.move_wall(days(15));
            use_entry(&mut world, "maths", 60);
            use_entry(&mut world, "game", 10);
            world.move_wall(days(-15));
            cure(&mut world);
            assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "{cost:?}");
            // The game itself counts for both days.
            use_entry(&mut world, "maths", 20);
            assert_eq!(left(&world), Some(minutes(10)), "{cost:?}");
            world.move_wall(days(15));
            assert_eq!(left(&world), Some(minutes(50)), "{cost:?}");

            // The clock was behind.
            let mut world = EngineHarness::new(maths_earns(cost, SuspendedTime::Free), MONDAY_NOON);
            world.tick();
            world.move_wall(days(-15));
            cure(&mut world);
            use_entry(&mut world, "maths", 60);
            use_entry(&mut world, "game", 10);
            world.move_wall(days(15));
            assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "{cost:?}");
            use_entry(&mut world, "maths", 20);
            assert_eq!(left(&world), Some(minutes(10)), "{cost:?}");
        }
    }
}

#[test]
fn time_that_unlocks_an_entry_unlocks_it_on_one_day() {
    let mut game = entry("game");
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(10) });
    let unlocked_by_maths = policy(vec![entry("maths"), game]);
    for (away, back) in [(15, -15), (-15, 15)] {
        let mut world = EngineHarness::new(unlocked_by_maths.clone(), MONDAY_NOON);
        world.tick();
        world.move_wall(days(away));
        CURES[0](&mut world);
        use_entry(&mut world, "maths", 10);
        use_entry(&mut world, "game", 1);
        world.move_wall(days(back));
        CURES[0](&mut world);
        assert_eq!(world.denied_codes("game"), ["not-unlocked"], "{away}");
    }
}

#[test]
fn a_clock_that_returns_in_two_steps_charges_the_time_at_each() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    world.tick();
    for _ in 0..2 {
        world.move_wall(days(-15));
        CURES[0](&mut world);
    }
    play(&mut world, 10);
    world.move_wall(days(15));
    assert_used(&world, &[("10-17", 10), ("11-01", 10)]);
    play(&mut world, 5);
    world.crash();
    world.move_wall(days(15));
    assert_used(&world, &[("10-17", 10), ("11-01", 15), ("11-16", 15)]);
}

#[test]
fn a_correction_is_forgotten_four_weeks_after_the_last_day_that_it_doubts() {
    let mut world = EngineHarness::new(hourly(), MONDAY_NOON);
    play(&mut world, 10);
    world.move_wall(days(-15));
    CURES[0](&mut world);
    world.move_wall(days(15 + 28));
    assert!(world.store.snapshot.clock_correction.is_some());
    world.move_wall(days(1));
    assert_eq!(world.store.snapshot.clock_correction, None);
    // Without usage there is no doubt.
    world.move_wall(days(-15));
    CURES[0](&mut world);
    world.move_wall(days(15));
    assert_eq!(world.store.snapshot.clock_correction, None);
}
