//! The kernel wakes an idle daemon when the clock is set (S4.7).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use shepherd_api::{AuditKind, EventKind};

use crate::clock::{POLICY, set_clock, with_clock_offset, with_fake_clock};
use crate::harness::{EventSubscriber, ShepherddFixture, wait_until};

/// The flags in `fdinfo` of a timer that is cancelled when the clock is set: `TFD_TIMER_ABSTIME` and
/// `TFD_TIMER_CANCEL_ON_SET`.
const CANCELLED_WHEN_SET: &str = "settime flags: 03";

/// The bit of the capability to set the clock in `CapEff`.
const CAP_SYS_TIME: u64 = 1 << 25;

/// The daemon gets no request meanwhile, and no event is due, so only the timer can wake it.
///
/// If the test may set the clock, it moves the real clock by a nanosecond. That wakes the daemon, which then reads its
/// faked clock. Otherwise the test can only check that the daemon has such a timer.
#[test]
fn a_changed_clock_is_read_at_once_and_every_time() {
    let fixture = with_fake_clock(POLICY);
    assert_eq!(clock_timers(&fixture), 1);
    let may_set = effective_capabilities() & CAP_SYS_TIME != 0;
    let nudged = nudge_clock();
    if !may_set {
        assert_eq!(nudged.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        return;
    }
    nudged.unwrap();
    let mut listener = fixture.subscriber();
    for (offset, trusted) in [("-3h", false), ("+0", true), ("-2d", false)] {
        let before = recorded_clock_changes(&fixture);
        set_clock(fixture.folder(), offset);
        nudge_clock().unwrap();
        assert_eq!(next_clock_trust(&mut listener), trusted, "{offset}");
        // The event may come before the record, and the daemon reads the clock again when it writes.
        wait_until("the change is recorded", || recorded_clock_changes(&fixture) == before + 1);
    }
    assert_eq!(clock_timers(&fixture), 1);
}

/// In this test, only the reply of the store makes the daemon read the clock.
#[test]
fn a_changed_clock_is_recorded_as_soon_as_clients_get_the_event() {
    let mut fixture = ShepherddFixture::running(POLICY);
    assert!(fixture.end().success());
    let fixture = with_clock_offset(fixture, "+0");
    let mut fixture = fixture.with_injected_fault("fsync,fdatasync", "delay_enter=300000");
    fixture.start();
    let mut listener = fixture.subscriber();
    let mut stream = UnixStream::connect(fixture.socket()).unwrap();
    let hello = "{\"type\":\"hello\",\"api_version\":1,\"client\":\"test\"}\n";
    let launch = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"launch\",\"entry_id\":\"none\"}}\n";
    stream.write_all([hello, launch].concat().as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let answered = |line: &io::Result<String>| line.as_ref().unwrap().contains("response");
    // The refusal is sent at once, while its record is being written.
    assert!(lines.any(|line| answered(&line)));
    set_clock(fixture.folder(), "-3h");
    assert!(!next_clock_trust(&mut listener));
    wait_until("the change is recorded", || recorded_clock_changes(&fixture) == 1);
}

/// The clock may be set again while the daemon handles the previous change.
#[test]
fn setting_the_clock_repeatedly_does_not_stop_the_daemon() {
    let mut fixture = ShepherddFixture::running(POLICY);
    for _ in 0..10_000 {
        // Without the capability, every attempt must fail.
        if nudge_clock().is_err() {
            assert_eq!(effective_capabilities() & CAP_SYS_TIME, 0);
        }
    }
    assert!(fixture.state().clock_trusted);
    assert_eq!(clock_timers(&fixture), 1);
    assert!(fixture.end().success());
}

fn recorded_clock_changes(fixture: &ShepherddFixture) -> usize {
    let is_change =
        |what: &AuditKind| matches!(what, AuditKind::ClockUntrusted { .. } | AuditKind::ClockTrusted);
    fixture.count_audit_records(is_change)
}

fn next_clock_trust(listener: &mut EventSubscriber) -> bool {
    listener.wait_for(|event| match event {
        EventKind::ClockTrustChanged { trusted } => Some(*trusted),
        _ => None,
    })
}

/// Returns the number of the daemon's timers that are cancelled when the clock is set.
fn clock_timers(fixture: &ShepherddFixture) -> usize {
    let folder = format!("/proc/{}/fdinfo", fixture.daemon_pid().as_raw_nonzero());
    let descriptors = std::fs::read_dir(folder).unwrap().flatten();
    let timers = descriptors.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    timers.filter(|text| text.contains("clockid: 0\n") && text.contains(CANCELLED_WHEN_SET)).count()
}

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// Sets the clock of this machine forward by a nanosecond, and back again.
#[expect(unsafe_code, reason = "no safe crate of ours sets the clock by a difference")]
fn nudge_clock() -> io::Result<()> {
    // The nanoseconds can't be negative: a nanosecond back is a second back and 999,999,999 nanoseconds forward.
    for (seconds, nanoseconds) in [(0, 1), (-1, 999_999_999)] {
        // SAFETY: all fields are plain numbers, for which zero is valid.
        let mut adjustment: libc::timex = unsafe { std::mem::zeroed() };
        adjustment.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
        adjustment.time = libc::timeval { tv_sec: seconds, tv_usec: nanoseconds };
        // SAFETY: the pointer is to a local structure, which outlives the call.
        if unsafe { libc::adjtimex(&raw mut adjustment) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
