//! Windows when the wall clock jumps (S2.3, S3.4, S4.3). The rule: a window is open while the wall clock shows a time
//! inside it.

use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditKind, GrantKind, ReasonCode, TimeInterval};
use shepherd_core::policy::{
    AvailabilityPolicy, DailyQuota, MinuteOfDay, Policy, PolicyEntry, TimeWindow, Weekdays,
};
use shepherd_core::{CoreEngine, CoreEvent, EngineEnvironment, HostCapabilities, StoredState};
use shepherd_util::ProfileId;

use crate::harness::{
    EngineHarness, boot, entry, grant, hours, minutes, policy_with, wall_time, window, zone,
};

fn game(windows: Vec<TimeWindow>) -> PolicyEntry {
    let mut game = entry("game");
    game.availability = AvailabilityPolicy::Windows(windows);
    game
}

/// Parses `"22:00-01:00"`, or several windows separated by commas, for every day.
fn windows(text: &str) -> Vec<TimeWindow> {
    let time = |text: &str| {
        let (hour, minute) = text.split_once(':').unwrap();
        (hour.parse().unwrap(), minute.parse().unwrap())
    };
    let parse = |text: &str| {
        let (from, to) = text.split_once('-').unwrap();
        window(Weekdays::ALL, time(from), time(to))
    };
    text.split(',').map(parse).collect()
}

fn engine_in(policy_zone: &str, entries: Vec<PolicyEntry>) -> CoreEngine {
    let policy = policy_with(entries, |rules| rules.zone = Some(zone(policy_zone)));
    engine_of(policy)
}

fn engine_of(policy: Policy) -> CoreEngine {
    let place = EngineEnvironment { boot: boot(1), zone: zone("UTC") };
    CoreEngine::new(policy, StoredState::default(), HostCapabilities::all_supported(), place)
}

/// The expected state of a window at a time.
enum ExpectedOpening {
    /// Open, and closes at this time.
    Closes(&'static str),
    /// Closed, and opens at this time.
    Opens(&'static str),
}

use ExpectedOpening::{Closes, Opens};

/// Checks to the second that the longest run ends when the window closes, and that the next opening is right.
fn check(zone_name: &str, spans: &str, at: &str, expect: &ExpectedOpening) {
    let engine = engine_in(zone_name, vec![game(windows(spans))]);
    let at: Timestamp = at.parse().unwrap();
    let view = engine.list_entries_at(&ProfileId::default(), at).remove(0);
    let context = format!("{zone_name}, {spans} at {at}");
    match expect {
        Closes(end) => {
            let end: Timestamp = end.parse().unwrap();
            let run = Duration::try_from(end.duration_since(at)).unwrap();
            assert!(view.enabled, "{context}: {:?}", view.reasons);
            assert_eq!(view.max_run_if_started_now.map(Duration::from), Some(run), "{context}");
        }
        Opens(next) => {
            let next_opening = Some(next.parse().unwrap());
            assert_eq!(view.reasons, [ReasonCode::OutsideHours { next_opening }], "{context}");
            assert_eq!(view.next_available, next_opening, "{context}");
        }
    }
}

#[test]
fn in_spring_a_window_loses_the_skipped_hour() {
    // Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC. 01:30–02:30 has half an hour, then closes at 03:00.
    check("Europe/Berlin", "1:30-2:30", "2026-03-29T00:29:59Z", &Opens("2026-03-29T00:30:00Z"));
    check("Europe/Berlin", "1:30-2:30", "2026-03-29T00:30:00Z", &Closes("2026-03-29T01:00:00Z"));
    check("Europe/Berlin", "1:30-2:30", "2026-03-29T01:00:00Z", &Opens("2026-03-29T23:30:00Z"));
    // 02:30–03:30 opens when the wall clock jumps into it.
    check("Europe/Berlin", "2:30-3:30", "2026-03-29T00:59:59Z", &Opens("2026-03-29T01:00:00Z"));
    check("Europe/Berlin", "2:30-3:30", "2026-03-29T01:00:00Z", &Closes("2026-03-29T01:30:00Z"));
    // Across the gap: an hour shorter.
    check("Europe/Berlin", "1:00-4:00", "2026-03-29T00:00:00Z", &Closes("2026-03-29T02:00:00Z"));
    check("America/New_York", "1:30-2:30", "2026-03-08T06:30:00Z", &Closes("2026-03-08T07:00:00Z"));
    check("America/New_York", "1:30-2:30", "2026-03-08T07:00:00Z", &Opens("2026-03-09T05:30:00Z"));
}

#[test]
fn a_window_inside_the_gap_does_not_open_that_day() {
    check("Europe/Berlin", "2:00-3:00", "2026-03-28T12:00:00Z", &Opens("2026-03-30T00:00:00Z"));
    check("Europe/Berlin", "2:10-2:50", "2026-03-29T00:59:59Z", &Opens("2026-03-30T00:10:00Z"));
    // Lord Howe loses half an hour only: 02:00 becomes 02:30 at 15:30 UTC.
    check("Australia/Lord_Howe", "2:05-2:25", "2026-10-03T12:00:00Z", &Opens("2026-10-04T15:05:00Z"));
    check("Australia/Lord_Howe", "2:15-2:45", "2026-10-03T15:00:00Z", &Opens("2026-10-03T15:30:00Z"));
    check("Australia/Lord_Howe", "2:15-2:45", "2026-10-03T15:30:00Z", &Closes("2026-10-03T15:45:00Z"));
    // Troll jumps by two hours, from 01:00 to 03:00.
    check("Antarctica/Troll", "1:00-3:00", "2026-03-28T12:00:00Z", &Opens("2026-03-29T23:00:00Z"));
}

#[test]
fn in_autumn_a_window_inside_the_fold_opens_twice() {
    // Berlin, 25 October 2026: 03:00 becomes 02:00 at 01:00 UTC.
    check("Europe/Berlin", "2:15-2:45", "2026-10-25T00:15:00Z", &Closes("2026-10-25T00:45:00Z"));
    check("Europe/Berlin", "2:15-2:45", "2026-10-25T00:45:00Z", &Opens("2026-10-25T01:15:00Z"));
    check("Europe/Berlin", "2:15-2:45", "2026-10-25T01:15:00Z", &Closes("2026-10-25T01:45:00Z"));
    check("Europe/Berlin", "2:15-2:45", "2026-10-25T01:45:00Z", &Opens("2026-10-26T01:15:00Z"));
    // Into the fold: the first 02:30 closes it, the second 02:00 opens it again.
    check("Europe/Berlin", "1:30-2:30", "2026-10-24T23:30:00Z", &Closes("2026-10-25T00:30:00Z"));
    check("Europe/Berlin", "1:30-2:30", "2026-10-25T00:30:00Z", &Opens("2026-10-25T01:00:00Z"));
    check("Europe/Berlin", "1:30-2:30", "2026-10-25T01:00:00Z", &Closes("2026-10-25T01:30:00Z"));
    // Across the fold: an hour longer; the whole fold: two hours.
    check("Europe/Berlin", "1:00-4:00", "2026-10-24T23:00:00Z", &Closes("2026-10-25T03:00:00Z"));
    check("Europe/Berlin", "2:00-3:00", "2026-10-25T00:00:00Z", &Closes("2026-10-25T02:00:00Z"));
    check("America/New_York", "1:00-2:00", "2026-11-01T05:00:00Z", &Closes("2026-11-01T07:00:00Z"));
    check("America/New_York", "1:30-1:40", "2026-11-01T05:45:00Z", &Opens("2026-11-01T06:30:00Z"));
    // Lord Howe, 5 April 2026: 02:00 becomes 01:30 at 15:00 UTC.
    check("Australia/Lord_Howe", "1:30-2:00", "2026-04-04T14:30:00Z", &Closes("2026-04-04T15:30:00Z"));
    check("Australia/Lord_Howe", "1:40-1:50", "2026-04-04T14:50:00Z", &Opens("2026-04-04T15:10:00Z"));
}

#[test]
fn a_skipped_or_repeated_midnight_needs_no_special_rule() {
    // São Paulo, 15 October 2017: 00:00 became 01:00 at 03:00 UTC.
    check("America/Sao_Paulo", "0:00-1:00", "2017-10-14T12:00:00Z", &Opens("2017-10-16T02:00:00Z"));
    check("America/Sao_Paulo", "23:00-1:30", "2017-10-15T02:00:00Z", &Closes("2017-10-15T03:30:00Z"));
    check("America/Sao_Paulo", "22:00-24:00", "2017-10-15T01:00:00Z", &Closes("2017-10-15T03:00:00Z"));
    check("America/Sao_Paulo", "0:30-1:30", "2017-10-15T02:59:59Z", &Opens("2017-10-15T03:00:00Z"));
    // 18 February 2018: 00:00 became 23:00 of the day before at 02:00 UTC.
    check("America/Sao_Paulo", "23:00-24:00", "2018-02-18T01:00:00Z", &Closes("2018-02-18T03:00:00Z"));
    check("America/Sao_Paulo", "23:30-0:30", "2018-02-18T01:30:00Z", &Closes("2018-02-18T02:00:00Z"));
    check("America/Sao_Paulo", "23:30-0:30", "2018-02-18T02:00:00Z", &Opens("2018-02-18T02:30:00Z"));
    check("America/Sao_Paulo", "23:30-0:30", "2018-02-18T02:30:00Z", &Closes("2018-02-18T03:30:00Z"));
}

#[test]
fn clock_changes_for_ramadan_need_no_special_rule() {
    // Casablanca, 15 February 2026: 03:00 became 02:00 at 02:00 UTC; 22 March: 02:00 becomes 03:00 at 02:00 UTC.
    check("Africa/Casablanca", "2:15-2:45", "2026-02-15T01:45:00Z", &Opens("2026-02-15T02:15:00Z"));
    check("Africa/Casablanca", "2:00-3:00", "2026-02-15T01:00:00Z", &Closes("2026-02-15T03:00:00Z"));
    check("Africa/Casablanca", "2:00-3:00", "2026-03-21T12:00:00Z", &Opens("2026-03-23T01:00:00Z"));
    check("Africa/Casablanca", "1:30-3:30", "2026-03-22T01:30:00Z", &Closes("2026-03-22T02:30:00Z"));
}

#[test]
fn odd_offsets_and_missing_days_follow_the_wall() {
    // Kathmandu is 5:45 ahead, and never changes.
    check("Asia/Kathmandu", "15:00-16:00", "2026-11-16T09:14:59Z", &Opens("2026-11-16T09:15:00Z"));
    check("Asia/Kathmandu", "15:00-16:00", "2026-11-16T09:15:00Z", &Closes("2026-11-16T10:15:00Z"));
    // Apia went from 29 to 31 December 2011 at 10:00 UTC.
    check("Pacific/Apia", "10:00-11:00", "2011-12-29T21:00:00Z", &Opens("2011-12-30T20:00:00Z"));
    check("Pacific/Apia", "22:00-2:00", "2011-12-30T08:00:00Z", &Closes("2011-12-30T12:00:00Z"));
    check("Pacific/Apia", "12:00-24:00", "2011-12-29T22:00:00Z", &Closes("2011-12-30T10:00:00Z"));
    // Monrovia was 44 minutes and 30 seconds behind until 7 January 1972, and then not at all.
    check("Africa/Monrovia", "15:00-16:00", "1972-01-06T15:44:29Z", &Opens("1972-01-06T15:44:30Z"));
    check("Africa/Monrovia", "15:00-16:00", "1972-01-06T15:44:30Z", &Closes("1972-01-06T16:44:30Z"));
    check("Africa/Monrovia", "0:15-1:00", "1972-01-07T00:44:00Z", &Opens("1972-01-07T00:44:30Z"));
    check("Africa/Monrovia", "0:15-1:00", "1972-01-07T00:44:30Z", &Closes("1972-01-07T01:00:00Z"));
}

#[test]
fn windows_that_touch_count_as_one_also_over_midnight_and_new_year() {
    // S3.4.
    check("UTC", "9:00-10:00,10:00-11:00", "2026-11-16T09:30:00Z", &Closes("2026-11-16T11:00:00Z"));
    check("UTC", "9:00-10:30,10:00-11:00", "2026-11-16T09:30:00Z", &Closes("2026-11-16T11:00:00Z"));
    check("UTC", "9:00-10:00,10:01-11:00", "2026-11-16T09:30:00Z", &Closes("2026-11-16T10:00:00Z"));
    check("UTC", "20:00-24:00,0:00-1:00", "2026-11-16T20:00:00Z", &Closes("2026-11-17T01:00:00Z"));
    check("UTC", "22:00-1:00,1:00-2:00", "2026-12-31T23:59:59Z", &Closes("2027-01-01T02:00:00Z"));
    check("UTC", "23:59-24:00", "2026-12-31T23:59:00Z", &Closes("2027-01-01T00:00:00Z"));
    check("UTC", "23:59-24:00", "2027-01-01T00:00:00Z", &Opens("2027-01-01T23:59:00Z"));
    check("UTC", "23:00-0:00", "2026-11-16T23:30:00Z", &Closes("2026-11-17T00:00:00Z"));
    // Windows that touch only because the hour between them is skipped.
    check("Europe/Berlin", "1:00-2:00,3:00-4:00", "2026-03-29T00:00:00Z", &Closes("2026-03-29T02:00:00Z"));
    // Windows that touch, but the wall clock goes back and shows the end of the first window again.
    check("Europe/Berlin", "1:00-2:30,3:00-4:00", "2026-10-24T23:00:00Z", &Closes("2026-10-25T00:30:00Z"));
}

/// Returns when a window on certain days opens next, asked at noon UTC of a day.
fn check_days(days: Weekdays, from: (u16, u16), to: (u16, u16), at: &str, expect: (&str, &str)) {
    let engine = engine_in("UTC", vec![game(vec![window(days, from, to)])]);
    let at: Timestamp = at.parse().unwrap();
    let week = at.checked_add(hours(7 * 24)).unwrap();
    let timeline = engine.timeline(&ProfileId::default(), at, week).unwrap();
    let first = TimeInterval { from: expect.0.parse().unwrap(), to: expect.1.parse().unwrap() };
    assert_eq!(timeline.entries[0].intervals, [first], "{days:?}");
}

#[test]
fn a_window_across_midnight_belongs_to_the_day_it_starts_on() {
    // S2.3: Sunday's window reaches into Monday, the leap day is a normal day, and no weekday is skipped.
    let on = |weekday| Weekdays::default().with(weekday);
    let at = "2026-11-16T12:00:00Z";
    check_days(on(6), (22, 0), (1, 0), at, ("2026-11-22T22:00:00Z", "2026-11-23T01:00:00Z"));
    let at = "2028-02-28T12:00:00Z";
    check_days(on(1), (0, 0), (24, 0), at, ("2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"));
    check_days(on(1), (22, 0), (1, 0), at, ("2028-02-29T22:00:00Z", "2028-03-01T01:00:00Z"));
    let at = "2027-02-27T12:00:00Z";
    check_days(on(0), (0, 0), (0, 0), at, ("2027-03-01T00:00:00Z", "2027-03-02T00:00:00Z"));
}

#[test]
fn a_session_across_a_clock_change_keeps_its_real_length() {
    // S4.3: a run of an hour lasts an hour, whatever the wall clock shows. A window ends when the wall clock shows its
    // end.
    for (start, until_window_ends) in [("2026-03-29 01:30", minutes(90)), ("2026-10-25 01:30", minutes(210))]
    {
        let mut runner = entry("run");
        runner.limits.max_run = Some(hours(1));
        let mut world =
            EngineHarness::new(policy_with(vec![runner, game(windows("1:00-4:00"))], |_| {}), start);
        world.launch("run");
        assert_eq!(world.play_until_expired(), hours(1), "{start}");
        assert_eq!(world.used("run"), hours(1), "{start}");
        let mut world = EngineHarness::new(policy_with(vec![game(windows("1:00-4:00"))], |_| {}), start);
        world.launch("game");
        assert_eq!(world.play_until_expired(), until_window_ends, "{start}");
        assert_eq!(world.used("game"), until_window_ends, "{start}");
    }
}

#[test]
fn a_day_of_23_or_25_hours_has_one_quota() {
    // S4.6, S4.3: use before and after the jump is charged to the same day, and the quota refills at the real midnight.
    for (day, next) in [("2026-03-29 00:30", "2026-03-30 00:00"), ("2026-10-25 00:30", "2026-10-26 00:00")] {
        let mut game = entry("game");
        game.limits.daily_quota = DailyQuota::every_day(hours(5));
        let mut world = EngineHarness::new(policy_with(vec![game], |_| {}), day);
        world.launch("game");
        assert_eq!(world.play_until_expired(), hours(5));
        assert_eq!(world.store.usage.len(), 1, "one day");
        assert_eq!(world.view("game").next_available, Some(wall_time("Europe/Berlin", next)));
    }
}

#[test]
fn another_zone_moves_the_windows_but_not_the_session() {
    // S4.3: 15:00–18:00, started at 17:00 in Berlin. London is an hour behind; the session still ends as planned.
    let policy = policy_with(vec![game(windows("15:00-18:00"))], |rules| rules.zone = None);
    let mut world = EngineHarness::new(policy, "2026-11-16 17:00");
    world.launch("game");
    world.run_for(minutes(10));
    let events = world.engine.zone_changed(zone("Europe/London"), world.now());
    world.sync();
    assert_eq!(events, [CoreEvent::EntryAvailabilityChanged]);
    assert_eq!(world.remaining(), Some(minutes(50)));
    let zone_change = AuditKind::ZoneChanged { zone: "Europe/London".to_owned() };
    assert!(world.audit.iter().any(|event| event.what == zone_change));
    assert_eq!(world.play_until_expired(), minutes(50));
    // It is 17:00 in London now, on a correct clock: a family that travels can use its afternoon there.
    assert_eq!(world.view("game").max_run_if_started_now.map(Duration::from), Some(hours(1)));
    // To the east, the window has closed for launches, but a running session keeps its plan.
    world.launch("game");
    let _ = world.engine.zone_changed(zone("Asia/Kathmandu"), world.now());
    assert_eq!(world.remaining(), Some(hours(1)));
    world.exit();
    assert_eq!(world.denied_codes("game"), ["outside-hours"]);
}

#[test]
fn the_policy_zone_wins_over_the_system_zone() {
    // S4.3.
    let at = |policy: Policy| {
        let at = "2026-11-16T14:30:00Z".parse().unwrap();
        engine_of(policy).list_entries_at(&ProfileId::default(), at).remove(0).enabled
    };
    let afternoon = || vec![game(windows("15:00-16:00"))];
    assert!(at(policy_with(afternoon(), |rules| rules.zone = Some(zone("Europe/Berlin")))));
    assert!(!at(policy_with(afternoon(), |rules| rules.zone = None)), "the system's zone is UTC here");
    let mut world = EngineHarness::new(policy_with(afternoon(), |_| {}), "2026-11-16 15:30");
    let _ = world.engine.zone_changed(zone("Asia/Kathmandu"), world.now());
    assert!(world.view("game").enabled, "a change of the system's zone is none of the policy's");
    assert_eq!(world.engine.zone().iana_name(), Some("Europe/Berlin"));
}

#[test]
fn moving_to_a_zone_further_west_gives_no_second_quota() {
    // S4.5: the accounting day never goes back, even if a flight or a setting moves the clock back over midnight.
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let mut world =
        EngineHarness::new(policy_with(vec![game], |rules| rules.zone = None), "2026-11-16 23:00");
    world.launch("game");
    assert_eq!(world.play_until_expired(), hours(2), "Monday's hour, and Tuesday's");
    let _ = world.engine.zone_changed(zone("America/New_York"), world.now());
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "no second Monday");
    world.clock.advance(hours(23));
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"], "Tuesday's hour is used up");
    world.clock.advance(hours(6));
    world.launch("game");
}

#[test]
fn ceilings_and_midnights_follow_the_wall_clock() {
    // S2.7 in the night of the change: "open until 04:00" means four o'clock on the wall clock.
    let ceiling = |rules: &mut shepherd_core::policy::PolicyRules| {
        rules.ceilings.open_until = MinuteOfDay::new(4, 0);
    };
    for (evening, until, works) in [
        ("2026-03-29 00:30", "2026-03-29 04:00", true),
        ("2026-03-29 00:30", "2026-03-29 04:01", false),
        ("2026-10-25 00:30", "2026-10-25 04:00", true),
        ("2026-10-25 00:30", "2026-10-25 04:01", false),
    ] {
        let mut world = EngineHarness::new(policy_with(vec![game(windows("15:00-16:00"))], ceiling), evening);
        let open = grant(1, GrantKind::OpenUntil { until: wall_time("Europe/Berlin", until) });
        let now = world.now();
        assert_eq!(world.engine.grant(open, now).is_ok(), works, "{until}");
    }
}

/// A policy in Newfoundland, where the clock went back one minute after midnight: 7 November 2010 began, and a minute
/// later it was 23:01 on the 6th again.
fn world_in_newfoundland(at: &str) -> EngineHarness {
    let mut game = entry("game");
    game.limits.daily_quota = DailyQuota::every_day(hours(1));
    let policy = policy_with(vec![game], |rules| rules.zone = Some(zone("America/St_Johns")));
    let mut world = EngineHarness::new(policy, "2010-11-06 12:00");
    world.clock.set_wall(at.parse().unwrap());
    world.tick();
    world
}

fn charged_by_day(world: &EngineHarness) -> Vec<(String, Duration)> {
    world.store.usage.iter().map(|(key, used)| (key.day.to_string(), *used)).collect()
}

#[test]
fn a_repeated_midnight_gives_no_extra_day() {
    // S4.3, S4.5, S4.6: half an hour before the first midnight.
    let mut world = world_in_newfoundland("2010-11-07T02:00:00Z");
    world.launch("game");
    assert_eq!(world.play_until_expired(), minutes(90), "the rest of the 6th, and the hour of the 7th");
    let days = [("2010-11-06".to_owned(), minutes(30)), ("2010-11-07".to_owned(), hours(1))];
    assert_eq!(charged_by_day(&world), days);
    // The second midnight refills nothing; the midnight of the 8th does.
    assert_eq!(world.view("game").next_available, Some("2010-11-08T03:30:00Z".parse().unwrap()));
    world.run_for(hours(1));
    assert_eq!(world.denied_codes("game"), ["quota-exhausted"]);
}

#[test]
fn setting_the_clock_back_over_a_repeated_midnight_gains_no_time() {
    // S4.2, S4.5: set back by minutes, which is trusted, and by an hour, which is not; before, between and after both.
    for back in [minutes(3), minutes(9), minutes(61)] {
        for start in ["2010-11-07T02:29:00Z", "2010-11-07T02:31:00Z", "2010-11-07T03:29:00Z"] {
            let mut world = world_in_newfoundland(start);
            for _ in 0..20 {
                if let shepherd_core::LaunchDecision::Approved(plan) = world.request_launch("game") {
                    world.engine.start_session(&plan.session_id, "handle".to_owned(), world.now()).unwrap();
                    world.run_for(world.remaining().unwrap().min(minutes(10)));
                    world.exit();
                }
                world.move_wall(jiff::SignedDuration::try_from(back).unwrap() * -1);
                world.run_for(minutes(4));
            }
            let days = charged_by_day(&world);
            assert!(days.len() <= 2, "{start}, back by {back:?}: {days:?}");
            // Play across a midnight may use the rest of one day and the hour of the next.
            assert!(days.iter().all(|(_, used)| *used <= hours(1)), "{start}, back by {back:?}: {days:?}");
        }
    }
}
