//! Setting or suspending a clock never makes a time negative, and each deadline counts on its own clock.

use std::time::Duration;

use jiff::SignedDuration;
use proptest::prelude::*;
use shepherd_util::{
    BootId, BootInstant, Clock, ClockReading, Deadline, DeadlineClock, ManualClock, MonotonicInstant,
    SystemClock, WallTime,
};

const MINUTE: Duration = Duration::from_secs(60);

fn saturday() -> WallTime {
    "2026-11-14T10:00:00Z".parse().unwrap()
}

#[test]
fn suspended_and_awake_time_are_distinguished() {
    let clock = ManualClock::starting_at(saturday());
    let start = clock.now().mono;
    clock.advance(10 * MINUTE);
    clock.suspend(60 * MINUTE);
    clock.advance(5 * MINUTE);
    let now = clock.now();
    assert_eq!(now.mono.awake_since(start), 15 * MINUTE);
    assert_eq!(now.mono.total_since(start), 75 * MINUTE);
    assert_eq!(now.mono.suspended_since(start), 60 * MINUTE);
    assert_eq!(now.wall, "2026-11-14T11:15:00Z".parse().unwrap());
}

#[test]
fn setting_the_wall_clock_moves_nothing_else() {
    // S4.1, S4.2.
    let clock = ManualClock::starting_at(saturday());
    clock.advance(MINUTE);
    let before = clock.now().mono;
    clock.move_wall(SignedDuration::from_hours(-5));
    assert_eq!(clock.now(), ClockReading { wall: "2026-11-14T05:01:00Z".parse().unwrap(), mono: before });
    clock.set_wall(WallTime::MAX);
    clock.advance(MINUTE);
    assert_eq!(clock.now().wall, WallTime::MAX);
    assert_eq!(clock.now().mono.total_since(before), MINUTE);
}

#[test]
fn a_run_deadline_pauses_in_suspend_and_a_window_deadline_does_not() {
    // S4.4.
    let clock = ManualClock::starting_at(saturday());
    let start = clock.now().mono;
    let run = Deadline::after(start, 30 * MINUTE, DeadlineClock::Awake);
    let window = Deadline::after(start, 60 * MINUTE, DeadlineClock::Total);
    assert_eq!(run.earlier(window, start), run);
    clock.suspend(40 * MINUTE);
    let woken = clock.now().mono;
    assert_eq!(run.remaining(woken), 30 * MINUTE);
    assert_eq!(window.remaining(woken), 20 * MINUTE);
    assert_eq!(run.earlier(window, woken), window);
    assert_eq!(window.earlier(run, woken), window);
    assert_eq!(window.expected_at(woken), woken.after(20 * MINUTE));
    clock.suspend(20 * MINUTE);
    assert!(window.is_due(clock.now().mono));
    assert!(!run.is_due(clock.now().mono));
}

#[test]
fn the_window_deadline_wins_a_tie() {
    let now = MonotonicInstant::BOOT;
    let run = Deadline::after(now, MINUTE, DeadlineClock::Awake);
    let window = Deadline::after(now, MINUTE, DeadlineClock::Total);
    assert_eq!(run.earlier(window, now), window);
    assert_eq!(window.earlier(run, now), window);
    assert_eq!(window.clock(), DeadlineClock::Total);
}

#[test]
fn deadlines_move_without_overflow() {
    let now = MonotonicInstant::BOOT.after(5 * MINUTE);
    let end = Deadline::after(now, 10 * MINUTE, DeadlineClock::Awake);
    assert_eq!(end.extended(5 * MINUTE).remaining(now), 15 * MINUTE);
    assert_eq!(end.before(MINUTE).remaining(now), 9 * MINUTE);
    assert!(end.before(Duration::MAX).is_due(MonotonicInstant::BOOT));
    let never = Deadline::after(now, Duration::MAX, DeadlineClock::Awake);
    assert!(!never.extended(Duration::MAX).is_due(now.after(Duration::from_secs(1 << 40))));
}

#[test]
fn the_system_clock_goes_forward() {
    let first = SystemClock.now();
    let second = SystemClock.now();
    assert!(second.mono.total() >= first.mono.total() && second.mono.awake() >= first.mono.awake());
    assert!(first.wall > "2025-01-01T00:00:00Z".parse().unwrap());
    let shared: std::sync::Arc<dyn Clock> = std::sync::Arc::new(SystemClock);
    assert!(shared.now().mono.total() >= second.mono.total());
}

#[test]
fn the_running_boot_has_a_name() {
    let boot = BootId::read().unwrap();
    assert_eq!(boot.to_string().parse::<BootId>().unwrap(), boot);
    assert_eq!(BootId::read().unwrap(), boot);
}

#[test]
fn a_boot_id_is_a_lower_case_uuid() {
    let good = "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e";
    assert_eq!(good.parse::<BootId>().unwrap().to_string(), good);
    for bad in [
        "",
        "3f1c1e9a",
        "3F1C1E9A-5d0b-4c57-9f0e-0a8a5c1d2b3e",
        "3f1c1e9a5d0b4c579f0e0a8a5c1d2b3e",
        "+f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e",
    ] {
        assert!(bad.parse::<BootId>().is_err(), "{bad}");
    }
}

#[test]
fn an_instant_of_another_boot_is_not_returned() {
    let first: BootId = "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e".parse().unwrap();
    let second: BootId = "00000000-0000-0000-0000-000000000001".parse().unwrap();
    let moment = MonotonicInstant::BOOT.after(MINUTE);
    let stored = BootInstant::new(first, moment);
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(
        text,
        r#"{"boot":"3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e","at":{"total_us":60000000,"awake_us":60000000}}"#
    );
    let read: BootInstant = serde_json::from_str(&text).unwrap();
    assert_eq!(read.during(first), Some(moment));
    assert_eq!(read.during(second), None);
    assert_eq!(read.boot(), first);
}

#[test]
fn readings_and_deadlines_survive_serialisation() {
    let now = ClockReading { wall: saturday(), mono: MonotonicInstant::new(3 * MINUTE, 2 * MINUTE) };
    let text = serde_json::to_string(&now).unwrap();
    assert_eq!(text, r#"{"wall":"2026-11-14T10:00:00Z","mono":{"total_us":180000000,"awake_us":120000000}}"#);
    assert_eq!(serde_json::from_str::<ClockReading>(&text).unwrap(), now);
    let deadline = Deadline::after(now.mono, MINUTE, DeadlineClock::Awake);
    let text = serde_json::to_string(&deadline).unwrap();
    assert_eq!(text, r#"{"counting":"awake","at_us":180000000}"#);
    assert_eq!(serde_json::from_str::<Deadline>(&text).unwrap(), deadline);
}

#[derive(Debug, Clone)]
enum ClockEvent {
    Advance(u64),
    Suspend(u64),
    MoveWall(i64),
    SetWall(i64),
}

fn clock_event() -> impl Strategy<Value = ClockEvent> {
    let length = prop_oneof![0..10_000_000_u64, any::<u64>()];
    prop_oneof![
        length.clone().prop_map(ClockEvent::Advance),
        length.prop_map(ClockEvent::Suspend),
        any::<i64>().prop_map(ClockEvent::MoveWall),
        any::<i64>().prop_map(ClockEvent::SetWall),
    ]
}

fn apply(clock: &ManualClock, event: &ClockEvent) {
    match *event {
        ClockEvent::Advance(micros) => clock.advance(Duration::from_micros(micros)),
        ClockEvent::Suspend(micros) => clock.suspend(Duration::from_micros(micros)),
        ClockEvent::MoveWall(seconds) => clock.move_wall(SignedDuration::from_secs(seconds)),
        ClockEvent::SetWall(seconds) => {
            clock.set_wall(WallTime::from_second(seconds).unwrap_or(WallTime::MIN));
        }
    }
}

fn instant() -> impl Strategy<Value = MonotonicInstant> {
    (any::<u64>(), any::<u64>()).prop_map(|(total, awake)| {
        MonotonicInstant::new(Duration::from_micros(total), Duration::from_micros(awake))
    })
}

proptest! {
    #[test]
    fn no_clock_event_makes_time_run_backwards(events in prop::collection::vec(clock_event(), 1..40)) {
        let clock = ManualClock::starting_at(saturday());
        let start = clock.now().mono;
        let run = Deadline::after(start, MINUTE, DeadlineClock::Awake);
        let window = Deadline::after(start, MINUTE, DeadlineClock::Total);
        for event in &events {
            let before = clock.now().mono;
            apply(&clock, event);
            let after = clock.now().mono;
            prop_assert!(after.awake_since(start) >= before.awake_since(start));
            prop_assert!(after.total_since(start) >= before.total_since(start));
            prop_assert!(after.total_since(start) >= after.awake_since(start));
            prop_assert!(run.remaining(after) <= run.remaining(before));
            prop_assert!(window.remaining(after) <= run.remaining(after));
            if matches!(event, ClockEvent::MoveWall(_) | ClockEvent::SetWall(_)) {
                prop_assert_eq!(before, after);
            }
            if matches!(event, ClockEvent::Suspend(_)) {
                prop_assert_eq!(run.remaining(after), run.remaining(before));
            }
        }
    }

    #[test]
    fn arithmetic_never_panics_and_never_goes_below_zero(first in instant(), second in instant(), length in any::<u64>()) {
        let length = Duration::from_micros(length);
        prop_assert!(first.suspended_since(second) <= first.total_since(second));
        prop_assert!(first.total_since(second).is_zero() || second.total_since(first).is_zero());
        let later = first.after(length).after_suspend(length);
        prop_assert!(later.total() >= first.total() && later.awake() >= first.awake());
        for counting in [DeadlineClock::Awake, DeadlineClock::Total] {
            let deadline = Deadline::after(first, length, counting);
            prop_assert_eq!(deadline.is_due(second), deadline.remaining(second).is_zero());
            prop_assert!(deadline.is_due(deadline.expected_at(second)));
            let other = Deadline::after(second, length, DeadlineClock::Total);
            prop_assert!(deadline.earlier(other, second).remaining(second) <= other.remaining(second));
        }
    }
}
