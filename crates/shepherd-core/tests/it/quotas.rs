//! Weekly quotas, and quotas by weekday (S2.4).

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_api::ReasonCode;
use shepherd_core::NewGrant;
use shepherd_core::policy::{DailyQuota, Day};
use shepherd_util::ProfileId;

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, entry, extra, grant, hours, minutes, policy, wall_time,
};
use crate::queries::{afternoon_entry, day};

#[test]
fn a_week_begins_on_monday_also_for_its_quota() {
    // S2.4: a session on Sunday continues into the new week.
    let mut game = entry("game");
    game.limits.weekly_quota = Some(hours(3));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-20 12:00");
    world.launch("game");
    world.run_for(hours(2));
    world.exit();
    world.clock.advance(hours(57) + minutes(30));
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(hours(3) + minutes(30)));
    world.launch("game");
    assert_eq!(
        world.play_until_expired(),
        hours(3) + minutes(30),
        "half an hour of Sunday, three of the new week"
    );
    let used: Vec<(Day, Duration)> = world.store.usage.iter().map(|(key, used)| (key.day, *used)).collect();
    assert_eq!(
        used,
        [(day("2026-11-20"), hours(2)), (day("2026-11-22"), minutes(30)), (day("2026-11-23"), hours(3))]
    );
    assert_eq!(world.view("game").next_available, Some(wall_time(BERLIN, "2026-11-30 00:00")));
}

#[test]
fn a_weekly_quota_larger_than_the_rest_of_the_week_continues_in_the_next() {
    // S2.4: on Saturday at 20:00, 30 of 40 hours are left: 28 hours until Monday, and then the 40 hours of the new
    // week.
    let mut game = entry("game");
    game.limits.weekly_quota = Some(hours(40));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-20 12:00");
    world.launch("game");
    world.run_for(hours(10));
    world.exit();
    world.clock.advance(hours(22));
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(hours(68)));
}

#[test]
fn quotas_differ_by_weekday() {
    // S2.4: no time on Tuesday, no limit on Wednesday, half an hour on other days.
    let mut amounts = [Some(minutes(30)); 7];
    amounts[1] = Some(Duration::ZERO);
    amounts[2] = None;
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota { base: amounts, by_mode: BTreeMap::new() };
    let mut world = EngineHarness::new(policy(vec![game]), MONDAY_NOON);
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(30));
    // S3.2: Tuesday has no time, so the answer is Wednesday, and the reason says the same.
    let wednesday = Some(wall_time(BERLIN, "2026-11-18 00:00"));
    assert_eq!(world.view("game").next_available, wednesday);
    assert_eq!(world.view("game").reasons[0].until(), wednesday, "when there will be some again");
    // A run on a day without a limit ends at Thursday's limit.
    world.clock.set_wall(wall_time(BERLIN, "2026-11-18 22:00"));
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(hours(2) + minutes(30)));
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(2) + minutes(30));
}

#[test]
fn the_next_opening_skips_days_without_quota() {
    // S3.2: the entry is closed now and opens tomorrow, but Tuesday has no time, so the answer is Wednesday.
    let mut amounts = [Some(minutes(30)); 7];
    amounts[1] = Some(Duration::ZERO);
    let mut game = afternoon_entry();
    game.limits.daily_quota = DailyQuota { base: amounts, by_mode: BTreeMap::new() };
    let world = EngineHarness::new(policy(vec![game]), "2026-11-16 19:00");
    let view = world.view("game");
    let next_opening = Some(wall_time(BERLIN, "2026-11-17 15:00"));
    assert_eq!(view.reasons, [ReasonCode::OutsideHours { next_opening }]);
    assert_eq!(view.next_available, Some(wall_time(BERLIN, "2026-11-18 15:00")));
}

#[test]
fn usage_after_sunday_is_not_part_of_the_week() {
    // S2.4: one of three hours is used on Monday; the question is about the Sunday before.
    let mut game = entry("game");
    game.limits.weekly_quota = Some(hours(3));
    let mut world = EngineHarness::new(policy(vec![game]), "2026-11-23 12:00");
    world.launch("game");
    world.run_for(hours(1));
    world.exit();
    let longest = |civil: &str| {
        let views = world.engine.list_entries_at(&ProfileId::default(), wall_time(BERLIN, civil));
        views[0].max_run_if_started_now.map(Duration::from)
    };
    assert_eq!(longest("2026-11-22 12:00"), Some(hours(3)));
    assert_eq!(longest("2026-11-24 12:00"), Some(hours(2)));
}

#[test]
fn a_run_into_the_next_day_or_week_has_the_extra_time_granted_for_it() {
    // S2.4, S2.7: at 23:30, half an hour is left of this day or week, and then a whole hour.
    let (mut daily, mut weekly) = (entry("game"), entry("game"));
    daily.limits.daily_quota = DailyQuota::every_day(hours(1));
    weekly.limits.weekly_quota = Some(hours(1));
    let sunday = "2026-11-15 23:30";
    let monday = "2026-11-16 23:30";
    for (game, asked, from, lapses, length) in [
        (&daily, monday, "2026-11-17 08:00", "2026-11-18 00:00", 110),
        (&daily, monday, "2026-11-17 08:00", "2026-11-20 00:00", 110),
        (&daily, monday, "2026-11-18 00:00", "2026-11-19 00:00", 90),
        (&daily, monday, "2026-11-16 23:45", "2026-11-17 00:00", 90),
        (&weekly, sunday, "2026-11-17 08:00", "2026-11-18 00:00", 110),
        (&weekly, sunday, "2026-11-22 08:00", "2026-11-23 00:00", 110),
        (&weekly, sunday, "2026-11-23 00:00", "2026-11-24 00:00", 90),
    ] {
        let mut world = EngineHarness::new(policy(vec![game.clone()]), asked);
        world.grant(NewGrant {
            valid_from: Some(wall_time(BERLIN, from)),
            lapses_at: Some(wall_time(BERLIN, lapses)),
            ..grant(1, extra(minutes(20)))
        });
        let longest = world.view("game").max_run_if_started_now;
        assert_eq!(longest, Some(minutes(length).into()), "asked {asked}, granted {from} to {lapses}");
    }
}
