//! Clocks that were wrong and are correct again, and journeys with a correct clock (S4.3, S4.5).

use std::time::Duration;

use jiff::SignedDuration;
use shepherd_api::AuditKind;
use shepherd_core::policy::{BreakRule, DailyQuota, Policy, PolicyEntry};
use shepherd_core::{ClockRecord, SessionLiveness};
use shepherd_util::{BootId, ManualClock};

use crate::harness::{
    EngineHarness, boot, entry, entry_in_window, hours, minutes, policy, policy_with, zone,
};

pub(crate) const MONDAY_NOON: &str = "2026-11-16 12:00";

/// Sets the clock years ahead, as a dead battery or another system does.
const FAR_AHEAD: SignedDuration = SignedDuration::from_hours(24 * 1_200);

pub(crate) fn an_hour_a_day() -> PolicyEntry {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game
}

/// Reboots at the same time. The new daemon knows only the stored state.
pub(crate) fn reboot(world: &mut EngineHarness, id: BootId) {
    let wall = world.now().wall;
    world.clock = ManualClock::starting_at(wall);
    world.clock.advance(minutes(1));
    world.clock.set_wall(wall);
    world.place.boot = id;
    world.crash();
    world.engine.recover(SessionLiveness::Gone, world.now());
    world.sync();
}

fn synchronise(world: &mut EngineHarness) {
    world.engine.clock_synchronised(world.now());
    world.sync();
}

/// The two ways to trust a corrected clock again: a command, or the system's time synchronisation.
pub(crate) const CURES: [fn(&mut EngineHarness); 2] = [
    |world| {
        world.engine.confirm_clock("parent", world.now());
        world.sync();
    },
    synchronise,
];

#[test]
fn a_journey_through_time_zones_never_makes_the_clock_untrusted() {
    let test_policy = policy_with(vec![an_hour_a_day()], |rules| rules.zone = None);
    let mut world = EngineHarness::new(test_policy, MONDAY_NOON);
    for place in
        ["Asia/Tokyo", "America/New_York", "Pacific/Auckland", "America/Los_Angeles", "Europe/Berlin"]
    {
        world.engine.zone_changed(zone(place), world.now());
        world.sync();
        assert!(world.engine.get_state(world.now()).clock_trusted, "{place}");
        let view = world.view("game");
        assert!(view.enabled, "{place}: {:?}", view.reasons);
        world.launch("game");
        world.run_for(minutes(5));
        world.exit();
        world.run_for(hours(3));
        world.crash();
    }
    // On a flight to the east, days begin early. None of them begins again on the way back.
    let days: Vec<_> = world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
    assert_eq!(days, [("2026-11-16".to_owned(), minutes(10)), ("2026-11-17".to_owned(), minutes(15))]);
    assert!(!world.audit.iter().any(|line| matches!(line.what, AuditKind::ClockUntrusted { .. })));
}

#[test]
fn the_record_of_an_older_daemon_prevents_no_launch() {
    // An older daemon distrusted the clock after a flight to the west, and stored until when.
    let stored = r#"{ "latest_seen": "2026-11-16T11:00:00Z", "seen_at": null, "accounting_day": 20773,
        "zone": ["America/New_York", -18000], "held_until": "2026-11-16T17:00:00Z" }"#;
    let record: ClockRecord = serde_json::from_str(stored).unwrap();
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    world.store.snapshot.clock = record;
    world.crash();
    assert!(world.view("game").enabled);
}

#[test]
fn a_clock_that_was_far_ahead_can_be_trusted_again_in_both_ways() {
    for cure in CURES {
        let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
        world.tick();
        world.move_wall(FAR_AHEAD);
        world.move_wall(-FAR_AHEAD);
        assert_eq!(world.denied_codes("game"), ["clock-untrusted"]);
        cure(&mut world);
        assert!(world.view("game").enabled);
        world.launch("game");
        assert_eq!(world.play_until_expired(), hours(1));
        let days: Vec<_> = world.store.usage.keys().map(|key| key.day.to_string()).collect();
        assert_eq!(days, ["2026-11-16"]);
        // A restarted daemon trusts it, too.
        world.crash();
        assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
    }
}

#[test]
fn time_that_was_used_while_the_clock_was_far_ahead_counts_for_the_real_day() {
    // Usage on a day that is years away would never be charged to a real day.
    for cure in CURES {
        let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
        world.move_wall(FAR_AHEAD);
        world.launch("game");
        world.run_for(minutes(20));
        world.exit();
        world.run_for(hours(24));
        world.launch("game");
        world.run_for(minutes(45));
        world.exit();
        world.move_wall(-FAR_AHEAD);
        cure(&mut world);
        assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(15).into()), "of Tuesday");
        let used = |day: &str| -> Duration {
            let of = |key: &&shepherd_core::UsageKey| key.day.to_string() == day;
            world.store.usage.keys().filter(of).map(|key| world.store.usage[key]).sum()
        };
        assert_eq!((used("2026-11-16"), used("2026-11-17")), (minutes(20), minutes(45)));
    }
}

#[test]
fn time_borrowed_from_tomorrow_stays_used_tomorrow() {
    for cure in CURES {
        let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
        world.move_wall(SignedDuration::from_hours(24));
        world.launch("game");
        world.play_until_expired();
        world.move_wall(SignedDuration::from_hours(-24));
        cure(&mut world);
        world.launch("game");
        world.exit();
        world.run_for(hours(24));
        assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
    }
}

#[test]
fn only_time_more_than_a_week_ahead_is_charged_to_the_real_day_as_well() {
    for (ahead, days) in [
        (7, vec![("2026-11-16", minutes(10)), ("2026-11-23", minutes(20))]),
        (8, vec![("2026-11-16", minutes(30)), ("2026-11-24", minutes(20))]),
    ] {
        for cure in CURES {
            let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
            let ahead = SignedDuration::from_hours(24 * ahead);
            for (moved, played) in [(SignedDuration::ZERO, 10), (ahead, 20)] {
                world.move_wall(moved);
                world.launch("game");
                world.run_for(minutes(played));
                world.exit();
            }
            world.move_wall(-ahead);
            cure(&mut world);
            let used: Vec<_> =
                world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
            let expected: Vec<_> = days.iter().map(|(day, used)| ((*day).to_owned(), *used)).collect();
            assert_eq!(used, expected);
        }
    }
}

#[test]
fn a_clock_that_is_far_ahead_twice_charges_no_time_twice() {
    for cure in CURES {
        let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
        for played in [20, 10] {
            world.move_wall(FAR_AHEAD);
            world.launch("game");
            world.run_for(minutes(played));
            world.exit();
            world.move_wall(-FAR_AHEAD);
            cure(&mut world);
        }
        assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(30).into()));
        let used: Vec<_> = world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect();
        let used: Vec<_> = used.iter().map(|(day, used)| (day.as_str(), *used)).collect();
        assert_eq!(used, [("2026-11-16", minutes(30)), ("2030-02-28", minutes(30))]);
        // A restarted daemon knows the same.
        world.crash();
        assert_eq!(world.view("game").max_run_if_started_now, Some(minutes(30).into()));
    }
}

/// Pauses after each run: twenty minutes for the game, and half an hour for all entries.
fn with_pauses() -> Policy {
    let mut game = entry("game");
    game.limits.cooldown_after_run = minutes(20);
    policy_with(vec![game, entry("film")], |rules| {
        rules.breaks = Some(BreakRule { after: minutes(10), length: minutes(30) });
    })
}

#[test]
fn pauses_that_were_recorded_in_the_future_end_after_their_length() {
    for cure in CURES {
        let mut world = EngineHarness::new(with_pauses(), MONDAY_NOON);
        world.move_wall(FAR_AHEAD);
        world.launch("game");
        assert_eq!(world.play_until_expired(), minutes(10));
        world.move_wall(-FAR_AHEAD);
        reboot(&mut world, boot(2));
        assert_eq!(world.denied_codes("game"), ["clock-untrusted", "cooldown", "break-needed"]);
        cure(&mut world);
        assert_eq!(world.denied_codes("game"), ["cooldown", "break-needed"]);
        world.run_for(minutes(20));
        assert_eq!(world.denied_codes("game"), ["break-needed"]);
        world.run_for(minutes(10));
        assert!(world.view("game").enabled);
        // The shortened pause is stored.
        world.crash();
        assert!(world.view("game").enabled);
    }
}

#[test]
fn time_synchronisation_changes_nothing_while_the_clock_is_trusted() {
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    world.tick();
    let before = world.audit.len();
    synchronise(&mut world);
    assert_eq!(world.audit.len(), before);
    assert!(world.view("game").enabled);
}

#[test]
fn the_audit_log_names_who_confirmed_the_clock() {
    for (cure, actor) in CURES.into_iter().zip(["parent", "time synchronisation"]) {
        let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
        world.tick();
        world.move_wall(SignedDuration::from_hours(-2));
        cure(&mut world);
        let trusted = world.audit.iter().filter(|line| line.what == AuditKind::ClockTrusted);
        assert_eq!(trusted.map(|line| line.actor.as_str()).collect::<Vec<_>>(), [actor]);
    }
}

#[test]
fn a_time_source_that_contradicts_itself_is_not_trusted() {
    // Otherwise a fake time server could bring back days that are over.
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    world.launch("game");
    world.play_until_expired();
    synchronise(&mut world);
    world.tick();
    world.move_wall(SignedDuration::from_hours(-48));
    synchronise(&mut world);
    assert_eq!(world.denied_codes("game"), ["clock-untrusted", "quota-exhausted"]);
    world.crash();
    synchronise(&mut world);
    assert_eq!(
        world.denied_codes("game"),
        ["clock-untrusted", "quota-exhausted"],
        "the next daemon knows it"
    );
    // Only a parent can decide that.
    world.engine.confirm_clock("parent", world.now());
    assert!(world.view("game").enabled);
}

#[test]
fn a_time_source_that_has_lost_hours_is_not_trusted() {
    // A fake time server says 13:00 at 22:00: later than the last synchronisation, but still too early.
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    synchronise(&mut world);
    world.run_for(hours(10));
    world.move_wall(SignedDuration::from_hours(-9));
    synchronise(&mut world);
    assert_eq!(world.denied_codes("game"), ["clock-untrusted"]);
    world.move_wall(SignedDuration::from_hours(9));
    synchronise(&mut world);
    assert!(world.view("game").enabled);
}

#[test]
fn a_time_source_may_fall_behind_by_the_tolerance_and_no_more() {
    // Ten minutes. The clock was far ahead meanwhile, so it isn't trusted by itself.
    for (behind, trusted) in [(600, true), (601, false)] {
        let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
        synchronise(&mut world);
        world.move_wall(FAR_AHEAD);
        world.move_wall(-FAR_AHEAD - SignedDuration::from_secs(behind));
        assert!(!world.engine.is_clock_trusted(world.now()));
        synchronise(&mut world);
        assert_eq!(world.engine.is_clock_trusted(world.now()), trusted, "{behind} seconds behind");
    }
}

#[test]
fn small_steps_back_of_a_time_source_do_not_add_up() {
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    synchronise(&mut world);
    world.tick();
    for trusted in [true, false] {
        world.move_wall(SignedDuration::from_mins(-6));
        synchronise(&mut world);
        assert_eq!(world.engine.is_clock_trusted(world.now()), trusted);
    }
}

#[test]
fn the_last_synchronised_time_counts_after_a_reboot() {
    // The clock was synchronised at noon and at 22:00. A fake time server says 13:00.
    let mut world = EngineHarness::new(policy(vec![an_hour_a_day()]), MONDAY_NOON);
    synchronise(&mut world);
    world.run_for(hours(10));
    synchronise(&mut world);
    world.engine.shut_down(world.now());
    world.sync();
    reboot(&mut world, boot(2));
    world.move_wall(SignedDuration::from_hours(-9));
    synchronise(&mut world);
    assert!(!world.engine.is_clock_trusted(world.now()));
}

#[test]
fn a_power_cut_brings_no_closed_hours_back() {
    // The daemon reports the synchronised clock before each tick, and the tick that closes a window saves it. Later times
    // are forgotten, but nothing has closed since.
    let mut world = EngineHarness::new(policy(vec![entry_in_window((11, 0), (13, 0))]), MONDAY_NOON);
    synchronise(&mut world);
    world.tick();
    for _ in 0..2 {
        world.advance(hours(1));
        synchronise(&mut world);
        world.tick();
    }
    world.advance(hours(8));
    synchronise(&mut world);
    // A fake time server says 12:30 at 22:00, after a power cut.
    world.clock.move_wall(-SignedDuration::from_mins(9 * 60 + 30));
    reboot(&mut world, boot(2));
    synchronise(&mut world);
    assert_eq!(world.denied_codes("game"), ["clock-untrusted", "outside-hours"]);
}

#[test]
fn a_confirmed_clock_leaves_what_is_left_of_a_pause() {
    // S4.5: the rest of the pause is known, whatever the clock showed when it began and whatever the rules are now.
    let with_cooldown = |cooldown: Duration| {
        let mut game = entry("game");
        game.limits.cooldown_after_run = cooldown;
        policy(vec![game])
    };
    for (ahead, meanwhile) in [
        (SignedDuration::ZERO, policy(vec![entry("film")])),
        (SignedDuration::ZERO, with_cooldown(minutes(1))),
        (FAR_AHEAD, with_cooldown(minutes(40))),
    ] {
        let mut world = EngineHarness::new(with_cooldown(minutes(40)), MONDAY_NOON);
        world.move_wall(ahead);
        world.launch("game");
        world.run_for(minutes(5));
        world.exit();
        world.run_for(minutes(15));
        world.engine.reload(meanwhile, None, "parent", world.now());
        world.clock.move_wall(-ahead);
        world.engine.confirm_clock("parent", world.now());
        world.engine.reload(with_cooldown(minutes(40)), None, "parent", world.now());
        world.sync();
        reboot(&mut world, boot(2));
        world.run_for(minutes(24));
        assert_eq!(world.denied_codes("game"), ["cooldown"], "set back by {ahead:#}");
        world.run_for(minutes(1));
        assert!(world.view("game").enabled, "set back by {ahead:#}");
    }
}

#[test]
fn a_confirmed_clock_leaves_what_is_left_of_a_break() {
    // S4.5: a shorter break in the rules of now doesn't shorten a break that has begun.
    let with_breaks = |length: Duration| {
        policy_with(vec![entry("game")], |rules| {
            rules.breaks = Some(BreakRule { after: minutes(5), length });
        })
    };
    let mut world = EngineHarness::new(with_breaks(minutes(40)), MONDAY_NOON);
    world.launch("game");
    world.play_until_expired();
    world.run_for(minutes(15));
    world.engine.reload(with_breaks(minutes(1)), None, "parent", world.now());
    world.engine.confirm_clock("parent", world.now());
    world.sync();
    reboot(&mut world, boot(2));
    world.run_for(minutes(24));
    assert_eq!(world.denied_codes("game"), ["break-needed"]);
    world.run_for(minutes(1));
    assert!(world.view("game").enabled);
}
