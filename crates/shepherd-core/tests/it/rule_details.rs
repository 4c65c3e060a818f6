//! The facts and the next opening that an explanation names (S3.10).

use jiff::Timestamp;
use shepherd_api::{EntryScope, GrantKind, ReasonCode};
use shepherd_core::NewGrant;
use shepherd_core::policy::{
    AvailabilityPolicy, BreakRule, DailyQuota, DateException, Day, DayRule, MinuteOfDay, TimeBudget,
    TimeWindow, UnlockRule, Weekdays,
};

use crate::harness::{
    BERLIN, EngineHarness, MONDAY_NOON, budget, entry, entry_in_window, extra, grant, hours, minutes, policy,
    policy_with, wall_time, window, zone,
};
use crate::queries::{add_modes, date_exception, day};

/// Returns the facts of each rule of `game` with this name.
fn facts_of(world: &EngineHarness, rule: &str) -> Vec<String> {
    let profile = world.engine.policy().default_profile();
    let explained = world.engine.why(&profile, &"game".parse().unwrap(), world.now()).unwrap();
    explained.rules.into_iter().filter(|known| known.rule == rule).map(|known| known.facts).collect()
}

fn next_opening(world: &EngineHarness) -> Option<Timestamp> {
    let reasons = world.view("game").reasons;
    let opening = reasons.iter().find_map(|reason| match reason {
        ReasonCode::OutsideHours { next_opening } => Some(*next_opening),
        _ => None,
    });
    opening.expect("it is outside its hours")
}

#[test]
fn facts_name_the_label_and_the_period() {
    let mut maths = entry("maths");
    maths.label = "Maths".to_owned();
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    game.limits.weekly_quota = Some(hours(3));
    game.unlock = Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(5) });
    let world = EngineHarness::new(policy(vec![maths, game]), MONDAY_NOON);
    assert_eq!(facts_of(&world, "unlock"), ["no time used for Maths today"]);
    let used = [facts_of(&world, "daily-quota"), facts_of(&world, "weekly-quota")].concat();
    assert_eq!(used, ["no time used today", "no time used this week"]);
}

#[test]
fn the_next_opening_is_the_earliest_window_that_a_grant_or_the_policy_opens() {
    let mut other = entry("other");
    other.limits.max_run = Some(hours(1));
    let world = |grants: Vec<NewGrant>| {
        let policy = policy(vec![entry_in_window((18, 0), (19, 0)), other.clone()]);
        let mut world = EngineHarness::new(policy, MONDAY_NOON);
        grants.into_iter().for_each(|grant| world.grant(grant));
        world
    };
    let at = |civil: &str| wall_time(BERLIN, civil);
    let open = |id, scope| NewGrant {
        scope,
        valid_from: Some(at("2026-11-16 15:00")),
        ..grant(id, GrantKind::OpenUntil { until: at("2026-11-16 16:00") })
    };
    let of = |id: &str| EntryScope::Entry { entry_id: id.parse().unwrap() };
    assert_eq!(next_opening(&world(vec![])), Some(at("2026-11-16 18:00")));
    assert_eq!(next_opening(&world(vec![open(1, of("game"))])), Some(at("2026-11-16 15:00")));
    assert_eq!(next_opening(&world(vec![open(1, of("other"))])), Some(at("2026-11-16 18:00")));
    // Extra time opens nothing.
    let extra_time = NewGrant { valid_from: Some(at("2026-11-16 15:00")), ..grant(1, extra(minutes(10))) };
    assert_eq!(next_opening(&world(vec![extra_time])), Some(at("2026-11-16 18:00")));
    // A revoked grant opens nothing, either, and a grant that is over is no opening to come.
    let mut revoked = world(vec![open(1, of("game"))]);
    revoked.revoke(1);
    assert_eq!(next_opening(&revoked), Some(at("2026-11-16 18:00")));
    let mut over = world(vec![open(1, of("game"))]);
    over.run_for(hours(5));
    assert_eq!(next_opening(&over), Some(at("2026-11-16 18:00")));
}

#[test]
fn a_window_opens_when_the_clock_shows_its_time_for_good() {
    // At 03:00 summer time the clocks of Berlin go back to 02:00, so the window on Sunday opens an hour later.
    let mut game = entry("game");
    let sunday = Weekdays::default().with(6);
    game.availability = AvailabilityPolicy::Windows(vec![window(sunday, (3, 0), (4, 0))]);
    for asked in ["2026-10-24 12:00", "2026-10-19 12:00"] {
        let world = EngineHarness::new(policy(vec![game.clone()]), asked);
        assert_eq!(next_opening(&world), Some("2026-10-25T02:00:00Z".parse().unwrap()), "{asked}");
    }
}

#[test]
fn the_next_opening_is_found_a_week_or_a_year_ahead() {
    // It is Monday noon.
    let on = |weekday| window(Weekdays::default().with(weekday), (10, 0), (11, 0));
    let mut in_holidays = window(Weekdays::ALL, (10, 0), (11, 0));
    in_holidays.modes = Some(["holiday".to_owned()].into());
    let next_year = date_exception("2027-12-20", "2027-12-20", DayRule::Open);
    let found = |windows: Vec<TimeWindow>, exceptions: &[DateException], holiday: &str| {
        let mut game = entry("game");
        game.availability = AvailabilityPolicy::Windows(windows);
        let policy = policy_with(vec![game], |rules| {
            add_modes(rules);
            rules.modes.by_date = vec![(day(holiday), day(holiday), "holiday".to_owned())];
            rules.exceptions = exceptions.to_vec();
        });
        next_opening(&EngineHarness::new(policy, MONDAY_NOON))
    };
    let at = |civil: &str| Some(wall_time(BERLIN, civil));
    let past = "2026-11-15";
    assert_eq!(found(vec![on(6)], &[], past), at("2026-11-22 10:00"));
    assert_eq!(found(vec![on(0)], &[], past), at("2026-11-23 10:00"), "today it is over");
    assert_eq!(found(vec![], &[next_year], past), at("2027-12-20 00:00"));
    assert_eq!(found(vec![in_holidays.clone()], &[], "2027-12-20"), at("2027-12-20 10:00"));
    assert_eq!(found(vec![in_holidays], &[], past), None);
}

#[test]
fn a_closing_is_known_up_to_four_hundred_days_ahead() {
    // In a zone without daylight saving time, because each jump of the clock starts the search again.
    for (days, known) in [(1, true), (400, true), (401, false)] {
        let closed = Day::from_date("2026-11-16".parse().unwrap()).plus_days(days);
        let exception = date_exception(&closed.to_string(), &closed.to_string(), DayRule::Closed);
        let policy = policy_with(vec![entry("game")], |rules| {
            rules.zone = Some(zone("Asia/Tokyo"));
            rules.exceptions = vec![exception];
        });
        let world = EngineHarness::new(policy, MONDAY_NOON);
        world.clock.set_wall(wall_time("Asia/Tokyo", "2026-11-16 00:00"));
        let length = hours(24 * u64::try_from(days).unwrap());
        let expected = known.then(|| length.into());
        assert_eq!(world.view("game").max_run_if_started_now, expected, "{days} days");
    }
}

#[test]
fn an_exception_that_ends_when_it_begins_is_open_for_a_day() {
    let eight = MinuteOfDay::new(8, 0).unwrap();
    let policy = policy_with(vec![entry_in_window((18, 0), (19, 0))], |rules| {
        rules.exceptions =
            vec![date_exception("2026-11-16", "2026-11-16", DayRule::Windows(vec![(eight, eight)]))];
    });
    let world = EngineHarness::new(policy, MONDAY_NOON);
    assert_eq!(world.view("game").max_run_if_started_now, Some(hours(20).into()), "until 08:00 on Tuesday");
}

#[test]
fn an_opening_ends_at_its_time_although_its_grant_lapses_later() {
    let until = wall_time(BERLIN, "2026-11-16 13:00");
    let mut world = EngineHarness::new(policy(vec![entry_in_window((18, 0), (19, 0))]), MONDAY_NOON);
    let lapses_at = Some(wall_time(BERLIN, "2026-11-16 15:00"));
    world.grant(NewGrant { lapses_at, ..grant(1, GrantKind::OpenUntil { until }) });
    assert_eq!(world.view("game").max_run_if_started_now, Some(hours(1).into()));
    world.run_for(hours(1));
    assert_eq!(next_opening(&world), Some(wall_time(BERLIN, "2026-11-16 18:00")));
}

#[test]
fn extra_time_is_part_of_the_time_before_a_break_but_not_of_a_break_that_is_due() {
    let policy = policy_with(vec![entry("game")], |rules| {
        rules.breaks = Some(BreakRule { after: minutes(45), length: minutes(15) });
    });
    let extra_time = ", with 5 minutes of extra time";
    for (played, used, with) in
        [(0, "no time", extra_time), (44, "44 minutes", extra_time), (45, "45 minutes", "")]
    {
        let mut world = EngineHarness::new(policy.clone(), MONDAY_NOON);
        world.launch("game");
        world.run_for(minutes(played));
        world.exit();
        world.grant(grant(1, extra(minutes(5))));
        assert_eq!(facts_of(&world, "break"), [format!("{used} used since the last break{with}")]);
    }
}

#[test]
fn a_policy_has_quotas_if_an_entry_or_a_budget_has_one() {
    let with_budget = |budget: TimeBudget| {
        policy_with(vec![entry("game")], |rules| {
            rules.budgets.insert("budget".parse().unwrap(), budget);
        })
    };
    let weekly = TimeBudget { daily: DailyQuota::default(), weekly: Some(hours(3)), ..budget(hours(1)) };
    let without = TimeBudget { weekly: None, ..weekly.clone() };
    assert!(with_budget(weekly).has_quotas());
    assert!(with_budget(budget(hours(1))).has_quotas());
    assert!(!with_budget(without).has_quotas());
}
