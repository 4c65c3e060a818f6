//! Clocks, zones and sleep.

use std::time::{Duration, Instant};

use jiff::ToSpan;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::clock::{POLICY, faketime, first_reason, set_clock, with_fake_clock};
use crate::harness::{ShepherddFixture, wait_until};

fn use_up(household: &ShepherddFixture) {
    household.launch("brief");
    household.wait_until_idle();
    assert_eq!(first_reason(household, "brief"), "quota-exhausted");
}

pub(super) fn clock_forward() {
    let household = with_fake_clock(POLICY);
    let launched = Instant::now();
    household.launch("nap");
    household.wait_for_program();
    set_clock(household.folder(), "+1d");
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(8), "{took:?}");
    // Tomorrow's time is played today, once; when tomorrow comes, nothing is left.
    use_up(&household);
    set_clock(household.folder(), "+0");
    assert_eq!(first_reason(&household, "brief"), "clock-untrusted");
    set_clock(household.folder(), "+1d");
    assert_eq!(first_reason(&household, "brief"), "quota-exhausted");
}

pub(super) fn clock_back() {
    let mut household = with_fake_clock(POLICY);
    use_up(&household);
    for back in ["-1h", "-1d", "-400d"] {
        set_clock(household.folder(), back);
        assert_eq!(first_reason(&household, "brief"), "clock-untrusted", "{back}");
        assert_eq!(first_reason(&household, "nap"), "clock-untrusted", "{back}");
    }
    // Nor does a daemon that knows nothing else believe it.
    household.kill();
    household.start();
    assert_eq!(first_reason(&household, "brief"), "clock-untrusted");
}

pub(super) fn time_zone() {
    // Between the two it is never the same day.
    let mut household = ShepherddFixture::new(POLICY).with_variable("TZ", "Pacific/Kiritimati");
    household.start();
    use_up(&household);
    household.kill();
    let mut household = household.with_variable("TZ", "Etc/GMT+12");
    household.start();
    // The day that was charged stays, and the clock is not to blame for the journey.
    assert_eq!(first_reason(&household, "brief"), "quota-exhausted");

    // A policy that names its zone has its own hours, wherever the machine says that it is.
    let (policy, _) = policy_open_now();
    let mut household = ShepherddFixture::new(&policy).with_variable("TZ", "Asia/Tokyo");
    household.start();
    assert_eq!(first_reason(&household, "night"), "outside-hours");
    household.launch("evening");
}

/// A policy with an entry whose hours are now, in UTC, and one whose hours are not; and how long until they end.
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

/// There is no real sleep in a test: the clocks that a sleep moves are moved.
pub(super) fn suspend() {
    let (policy, left) = policy_open_now();
    let mut household = ShepherddFixture::running(&policy);
    household.launch("evening");
    let player = household.wait_for_program();
    household.kill();
    kill_process(Pid::from_raw(player).unwrap(), Signal::KILL).unwrap();
    wait_until("it is gone", || household.program_pids().is_empty());
    let asleep = (left + Duration::from_secs(3600)).as_secs().to_string();
    let user: &[&str] = if geteuid().is_root() { &[] } else { &["--map-root-user"] };
    let mut household = household
        .with_wrapper(&[&["unshare"], user, &["--time", "--boottime", &asleep]].concat())
        .with_variable("LD_PRELOAD", faketime().to_str().unwrap())
        .with_variable("FAKETIME", &format!("+{asleep}s"))
        .with_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    household.start();
    assert_eq!(household.state().session, None);
    assert_eq!(first_reason(&household, "evening"), "outside-hours");
    let used = household.recorded_usage("evening");
    assert!(used > Duration::ZERO && used < Duration::from_secs(600), "{used:?}");
}
