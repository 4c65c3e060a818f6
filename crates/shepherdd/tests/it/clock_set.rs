//! Somebody sets the clock while the daemon has nothing to do (S4.7): it is told by the kernel, and looks.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use shepherd_api::{AuditKind, EventKind};

use crate::clock::{POLICY, set_clock, with_clock_offset, with_fake_clock};
use crate::harness::{EventSubscriber, ShepherddFixture, wait_until};

/// What the kernel calls an alarm that is taken back when its clock is set: `TFD_TIMER_ABSTIME` and
/// `TFD_TIMER_CANCEL_ON_SET`.
const TELLS_WHEN_SET: &str = "settime flags: 03";

/// The right to set the clock, as a bit of what a process may do.
const CAP_SYS_TIME: u64 = 1 << 25;

/// Nobody asks the daemon anything meanwhile, and nothing is due.
///
/// Whoever may set the clock sets it by a nanosecond: the daemon, which is shown another clock, then sees the hours by
/// which that one has moved. Whoever may not can only see that the daemon has asked to be told.
#[test]
fn a_clock_that_is_set_is_looked_at_at_once_and_every_time() {
    let household = with_fake_clock(POLICY);
    assert_eq!(alarms(&household), 1);
    let may_set = effective_capabilities() & CAP_SYS_TIME != 0;
    let nudged = nudge_clock();
    if !may_set {
        assert_eq!(nudged.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        return;
    }
    nudged.unwrap();
    let mut listener = household.subscriber();
    for (offset, trusted) in [("-3h", false), ("+0", true), ("-2d", false)] {
        let before = recorded_clock_changes(&household);
        set_clock(household.folder(), offset);
        nudge_clock().unwrap();
        assert_eq!(next_trust(&mut listener), trusted, "{offset}");
        // What clients are told need not be on record yet, and a daemon that writes looks at the clock by itself.
        wait_until("it is on record", || recorded_clock_changes(&household) == before + 1);
    }
    assert_eq!(alarms(&household), 1);
}

/// The daemon sees a clock that was set when it hears from its disk, and nothing else makes it look.
#[test]
fn that_the_clock_was_set_is_on_record_as_soon_as_clients_hear_of_it() {
    let mut household = ShepherddFixture::running(POLICY);
    assert!(household.end().success());
    let household = with_clock_offset(household, "+0");
    let mut household = household.with_injected_fault("fsync,fdatasync", "delay_enter=300000");
    household.start();
    let mut listener = household.subscriber();
    let mut stream = UnixStream::connect(household.socket()).unwrap();
    let hello = "{\"type\":\"hello\",\"api_version\":1,\"client\":\"test\"}\n";
    let launch = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"launch\",\"entry_id\":\"none\"}}\n";
    stream.write_all([hello, launch].concat().as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let answered = |line: &io::Result<String>| line.as_ref().unwrap().contains("response");
    // Its refusal is told at once, and on its way to the disk.
    assert!(lines.any(|line| answered(&line)));
    set_clock(household.folder(), "-3h");
    assert!(!next_trust(&mut listener));
    wait_until("it is on record", || recorded_clock_changes(&household) == 1);
}

/// A clock that is set again in the moment in which the daemon takes note of it is no reason to end.
#[test]
fn a_clock_that_is_set_over_and_over_brings_nobody_down() {
    let mut household = ShepherddFixture::running(POLICY);
    for _ in 0..10_000 {
        // Whoever may not set it has not brought down anybody, either.
        if nudge_clock().is_err() {
            assert_eq!(effective_capabilities() & CAP_SYS_TIME, 0);
        }
    }
    assert!(household.state().clock_trusted);
    assert_eq!(alarms(&household), 1);
    assert!(household.end().success());
}

fn recorded_clock_changes(household: &ShepherddFixture) -> usize {
    let is_change =
        |what: &AuditKind| matches!(what, AuditKind::ClockUntrusted { .. } | AuditKind::ClockTrusted);
    household.count_audit_records(is_change)
}

fn next_trust(listener: &mut EventSubscriber) -> bool {
    listener.wait_for(|event| match event {
        EventKind::ClockTrustChanged { trusted } => Some(*trusted),
        _ => None,
    })
}

/// How many alarms the daemon has that tell when the clock on the wall is set.
fn alarms(household: &ShepherddFixture) -> usize {
    let folder = format!("/proc/{}/fdinfo", household.daemon_pid().as_raw_nonzero());
    let descriptors = std::fs::read_dir(folder).unwrap().flatten();
    let told = descriptors.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    told.filter(|text| text.contains("clockid: 0\n") && text.contains(TELLS_WHEN_SET)).count()
}

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// Sets the clock of this machine forward by a nanosecond, and back again.
#[expect(unsafe_code, reason = "no safe crate of ours sets the clock by a difference")]
fn nudge_clock() -> io::Result<()> {
    // A difference is never negative in its second half: a nanosecond back is a second back and all but one forward.
    for (seconds, nanoseconds) in [(0, 1), (-1, 999_999_999)] {
        // SAFETY: the structure is plain numbers, for which zero is a value.
        let mut order: libc::timex = unsafe { std::mem::zeroed() };
        order.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
        order.time = libc::timeval { tv_sec: seconds, tv_usec: nanoseconds };
        // SAFETY: the pointer is to a structure of ours, which outlives the call.
        if unsafe { libc::adjtimex(&raw mut order) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
