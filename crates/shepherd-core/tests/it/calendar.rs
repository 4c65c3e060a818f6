//! Days, weekdays and times of day (S2.3).

use jiff::civil::date;
use shepherd_core::policy::{Day, HouseholdModes, MinuteOfDay, Weekdays};

use crate::harness::window;

#[test]
fn a_set_of_weekdays_contains_the_added_days_only() {
    let members = |days: Weekdays| (0..9).filter(|day| days.contains(*day)).collect::<Vec<_>>();
    assert_eq!(members(Weekdays::default()), [0; 0]);
    assert_eq!(members(Weekdays::default().with(0).with(3).with(3).with(6)), [0, 3, 6]);
    assert_eq!(members(Weekdays::default().with(2).with(7).with(8)), [2]);
    assert_eq!(Weekdays::default().with(7), Weekdays::default());
    assert_eq!(members(Weekdays::ALL), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(members(Weekdays::WEEKDAYS), [0, 1, 2, 3, 4]);
    assert_eq!(members(Weekdays::WEEKENDS), [5, 6]);
}

#[test]
fn only_a_set_without_weekdays_is_empty() {
    assert!(Weekdays::default().is_empty());
    assert!((0..7).all(|day| !Weekdays::default().with(day).is_empty()));
}

#[test]
fn a_time_of_day_is_at_most_the_midnight_at_its_end() {
    let minutes = |hour, minute| MinuteOfDay::new(hour, minute).map(MinuteOfDay::minutes);
    assert_eq!(minutes(0, 0), Some(0));
    assert_eq!(minutes(7, 5), Some(425));
    assert_eq!(minutes(23, 59), Some(1439));
    assert_eq!(minutes(24, 0), Some(1440));
    assert_eq!(MinuteOfDay::new(24, 0), Some(MinuteOfDay::END));
    for (hour, minute) in [(0, 60), (23, 60), (24, 1), (24, 60), (25, 0)] {
        assert_eq!(minutes(hour, minute), None, "{hour}:{minute}");
    }
    assert_eq!(MinuteOfDay::new(7, 5).unwrap().to_string(), "07:05");
}

#[test]
fn a_window_that_ends_before_or_at_its_start_ends_on_the_next_day() {
    let span = |from, to| window(Weekdays::ALL, from, to).span();
    assert_eq!(span((9, 0), (9, 1)), (540, 541));
    assert_eq!(span((9, 0), (9, 0)), (540, 1980));
    assert_eq!(span((22, 0), (6, 30)), (1320, 1830));
    assert_eq!(span((0, 0), (24, 0)), (0, 1440));
}

#[test]
fn days_are_counted_from_1970_and_weeks_from_monday() {
    assert_eq!(Day::from_date(date(1970, 1, 1)), Day(0));
    assert_eq!(Day::from_date(date(1969, 12, 31)), Day(-1));
    let wednesday = Day::from_date(date(2026, 11, 18));
    assert_eq!(wednesday, Day(20_775));
    assert_eq!(wednesday.date(), date(2026, 11, 18));
    assert_eq!(wednesday.to_string(), "2026-11-18");
    assert_eq!(wednesday.weekday(), 2);
    assert_eq!(wednesday.week_start(), Day(20_773));
    assert_eq!(wednesday.plus_days(-20_775), Day(0));
    // Before 1970, too: 31 December 1969 was a Wednesday.
    assert_eq!((Day(-1).weekday(), Day(-1).week_start()), (2, Day(-3)));
}

#[test]
fn a_dated_mode_applies_from_its_first_to_its_last_day_and_the_last_one_wins() {
    let modes = HouseholdModes {
        default: "school".to_owned(),
        by_date: vec![(Day(10), Day(20), "holidays".to_owned()), (Day(15), Day(15), "guests".to_owned())],
        ..HouseholdModes::default()
    };
    let expected =
        [(9, "school"), (10, "holidays"), (14, "holidays"), (15, "guests"), (20, "holidays"), (21, "school")];
    for (day, mode) in expected {
        assert_eq!(modes.mode_on(Day(day)), mode, "day {day}");
    }
}
