//! Attempts with clocks, time zones and suspend.

use std::time::{Duration, Instant};

use jiff::ToSpan;

use crate::clock::{POLICY, faketime, first_reason, set_clock, with_fake_clock};
use crate::harness::ShepherddFixture;

fn use_up(fixture: &ShepherddFixture) {
    fixture.launch("brief");
    fixture.wait_until_idle();
    assert_eq!(first_reason(fixture, "brief"), "quota-exhausted");
}

pub(super) fn clock_forward() {
    let fixture = with_fake_clock(POLICY);
    let launched = Instant::now();
    fixture.launch("nap");
    fixture.wait_for_program();
    set_clock(fixture.folder(), "+1d");
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(2), "ended after {:?}", launched.elapsed());
    // Tomorrow's quota can be used today, and is used up tomorrow.
    use_up(&fixture);
    set_clock(fixture.folder(), "+0");
    assert_eq!(first_reason(&fixture, "brief"), "clock-untrusted");
    set_clock(fixture.folder(), "+1d");
    assert_eq!(first_reason(&fixture, "brief"), "quota-exhausted");
}

pub(super) fn clock_back() {
    let mut fixture = with_fake_clock(POLICY);
    use_up(&fixture);
    for back in ["-1h", "-1d", "-400d"] {
        set_clock(fixture.folder(), back);
        assert_eq!(first_reason(&fixture, "brief"), "clock-untrusted", "{back}");
        assert_eq!(first_reason(&fixture, "nap"), "clock-untrusted", "{back}");
    }
    // A restarted daemon doesn't trust the clock either.
    fixture.kill();
    fixture.start();
    assert_eq!(first_reason(&fixture, "brief"), "clock-untrusted");
}

pub(super) fn time_zone() {
    // These two zones never have the same date.
    let mut fixture = ShepherddFixture::new(POLICY).with_variable("TZ", "Pacific/Kiritimati");
    fixture.start();
    use_up(&fixture);
    fixture.kill();
    let mut fixture = fixture.with_variable("TZ", "Etc/GMT+12");
    fixture.start();
    // The day that was charged stays, and the clock is not to blame for the journey.
    assert_eq!(first_reason(&fixture, "brief"), "quota-exhausted");

    // The windows of a policy with a time zone don't depend on the machine's zone.
    let (policy, _) = policy_open_now();
    let mut fixture = ShepherddFixture::new(&policy).with_variable("TZ", "Asia/Tokyo");
    fixture.start();
    assert_eq!(first_reason(&fixture, "night"), "outside-hours");
    fixture.launch("evening");
}

/// Returns a policy with an entry that is available now and one that isn't, and the time until the first one closes.
fn policy_open_now() -> (String, Duration) {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let time = |hours: i64| now.saturating_add(hours.hours()).strftime("%H:%M").to_string();
    let entry = |id: &str, from: i64, to: i64| {
        let (from, to) = (time(from), time(to));
        format!(
            "[[entries]]\nid = \"{id}\"\nargv = [\"sleep\", \"TOKEN\"]\nwindows = [{{ from = \"{from}\", to = \"{to}\" }}]\n"
        )
    };
    let policy = format!(
        "config_version = 1\ntimezone = \"UTC\"\n{}{}",
        entry("evening", -1, 1),
        entry("night", 5, 7)
    );
    (policy, Duration::from_secs(3600))
}

/// The machine isn't really suspended; the clocks are set as after a suspend.
pub(super) fn suspend() {
    let (policy, left) = policy_open_now();
    let mut fixture = ShepherddFixture::running(&policy);
    fixture.launch("evening");
    let player = fixture.wait_for_program();
    fixture.kill();
    fixture.kill_program(player);
    let asleep = left + Duration::from_secs(3600);
    let mut fixture = fixture
        .after_suspend(asleep)
        .with_variable("LD_PRELOAD", faketime().to_str().unwrap())
        .with_variable("FAKETIME", &format!("+{}s", asleep.as_secs()))
        .with_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    fixture.start();
    assert_eq!(fixture.state().session, None);
    assert_eq!(first_reason(&fixture, "evening"), "outside-hours");
    let used = fixture.recorded_usage("evening");
    assert!(used > Duration::ZERO && used < Duration::from_secs(600), "{used:?}");
}
