//! Clocks that are moved, other boots, sleep and other zones (S4, S9.2): nobody wins a second by them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::ToSpan;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use shepherd_api::{AuditKind, Command, CommandReply, EndReason, EventKind, SessionPhase};
use shepherd_util::SessionId;

use crate::harness::{ShepherddFixture, in_mount_namespace, wait_until};

pub(crate) const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "2s"
daily_quota = "1h"

# It takes its time to end, and that counts: nothing is left afterwards.
[[entries]]
id = "brief"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
always = true
daily_quota = "500ms"
stop_grace = "300ms"

[[entries]]
id = "long"
argv = ["sleep", "TOKEN"]
always = true
max_run = "1h"
"#;

/// The library that shows a program another wall clock.
pub(crate) fn faketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path());
    let mut found =
        folders.map(|folder| folder.join("faketime/libfaketime.so.1")).filter(|path| path.exists());
    found.next().expect("libfaketime is missing: run `cargo xtask setup`")
}

/// A household whose daemon sees the wall clock of a file; the clocks that count are the kernel's.
pub(crate) fn with_fake_clock(policy: &str) -> ShepherddFixture {
    let mut household = with_clock_offset(ShepherddFixture::new(policy), "+0");
    household.start();
    household
}

/// The same for a daemon that is still to be started.
pub(crate) fn with_clock_offset(household: ShepherddFixture, offset: &str) -> ShepherddFixture {
    set_clock(household.folder(), offset);
    let file = household.folder().join("clock").display().to_string();
    // The kernel of the test machine vouches for its own clock, not for the one that the daemon is shown.
    with_shown_clock(household.with_options(&["--ignore-time-sync"]), &file)
}

fn with_shown_clock(household: ShepherddFixture, file: &str) -> ShepherddFixture {
    household
        .with_variable("LD_PRELOAD", faketime().to_str().unwrap())
        .with_variable("FAKETIME_TIMESTAMP_FILE", file)
        .with_variable("FAKETIME_NO_CACHE", "1")
        .with_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

pub(crate) fn set_clock(folder: &Path, offset: &str) {
    // Renamed into place: half a line would be another time.
    fs::write(folder.join("clock.new"), format!("{offset}\n")).unwrap();
    fs::rename(folder.join("clock.new"), folder.join("clock")).unwrap();
}

fn confirm_clock(household: &ShepherddFixture) {
    let outcome = household.call(Command::ConfirmClock {});
    assert!(matches!(outcome, Ok(CommandReply::ClockConfirmed { .. })), "{outcome:?}");
}

pub(crate) fn first_reason(household: &ShepherddFixture, entry: &str) -> &'static str {
    household.refusal(entry).reasons[0].code()
}

/// A session keeps its real length, whatever the wall shows.
fn check_session_length(offset: &str) -> ShepherddFixture {
    let household = with_fake_clock(POLICY);
    let launched = Instant::now();
    household.launch("nap");
    household.wait_for_program();
    set_clock(household.folder(), offset);
    // Somebody looks, and so the daemon does.
    household.state();
    household.refusal("nap");
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{offset}: {took:?}");
    let used = household.recorded_usage("nap");
    assert!(used <= took && used + Duration::from_millis(500) >= took, "{offset}: {used:?} of {took:?}");
    household
}

#[test]
fn a_clock_moved_forward_during_a_session_wins_nothing() {
    let household = check_session_length("+1d");
    // Tomorrow's time may be used today, but then the day is over: back again it is not believed.
    assert_eq!(household.failed_check("clock"), None);
    set_clock(household.folder(), "+0");
    assert_eq!(first_reason(&household, "nap"), "clock-untrusted");
    assert!(household.failed_check("clock").is_some());
    confirm_clock(&household);
    assert_eq!(household.failed_check("clock"), None);
    household.launch("nap");
}

#[test]
fn a_clock_moved_back_during_a_session_wins_nothing() {
    let mut household = check_session_length("-3h");
    assert_eq!(first_reason(&household, "nap"), "clock-untrusted");
    // Another daemon believes it no more than this one.
    household.kill();
    household.start();
    assert_eq!(first_reason(&household, "nap"), "clock-untrusted");
    assert!(!household.state().clock_trusted);
    // When the clock catches up, all is well.
    let mut listener = household.subscriber();
    set_clock(household.folder(), "+0");
    household.launch("nap");
    let trusted = listener.wait_for(|event| match event {
        EventKind::ClockTrustChanged { trusted } => Some(*trusted),
        _ => None,
    });
    assert!(trusted);
}

#[test]
fn what_was_used_stays_used_however_often_the_clock_is_moved() {
    let household = with_fake_clock(POLICY);
    household.launch("brief");
    household.wait_until_idle();
    assert_eq!(first_reason(&household, "brief"), "quota-exhausted");
    // What is borrowed from tomorrow …
    set_clock(household.folder(), "+1d");
    household.launch("brief");
    household.wait_until_idle();
    assert_eq!(first_reason(&household, "brief"), "quota-exhausted");
    for back in ["+0", "-1d", "-30d"] {
        set_clock(household.folder(), back);
        assert_eq!(first_reason(&household, "brief"), "clock-untrusted", "{back}");
    }
    // … is gone tomorrow, and today's is gone today.
    set_clock(household.folder(), "+0");
    confirm_clock(&household);
    assert_eq!(first_reason(&household, "brief"), "quota-exhausted");
    set_clock(household.folder(), "+1d");
    assert_eq!(first_reason(&household, "brief"), "quota-exhausted");
    assert!(household.count_audit_records(|what| matches!(what, AuditKind::ClockUntrusted { .. })) >= 1);
    assert!(household.count_audit_records(|what| matches!(what, AuditKind::ClockTrusted)) >= 1);
}

/// Launches the long one, and stops daemon and program as a power cut would, when it is on record that it runs.
fn start_and_interrupt(policy: &str) -> (ShepherddFixture, SessionId) {
    let mut household = ShepherddFixture::running(policy);
    let session = household.launch("long");
    let player = household.wait_for_program();
    wait_until("it is on record", || {
        household.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. })) == 1
    });
    wait_until("there is a sign of life", || {
        fs::read(heartbeat_path(&household)).is_ok_and(|text| text.contains(&b'{'))
    });
    household.kill();
    kill_process(Pid::from_raw(player).unwrap(), Signal::KILL).unwrap();
    wait_until("it is gone", || household.program_pids().is_empty());
    (household, session.session_id)
}

/// The file of the last sign of life.
fn heartbeat_path(household: &ShepherddFixture) -> PathBuf {
    household.data().join("shepherd.pulse")
}

/// A reboot leaves no control group, either.
fn remove_group(session_id: &SessionId) {
    let name = format!("ward-{session_id}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    if let Some(mount) = mount.and_then(|line| line.split(' ').nth(1)) {
        let own = own.strip_suffix("/supervisor").unwrap_or(own).trim_matches('/');
        let group = Path::new(mount).join(own).join(name);
        wait_until("its group is gone", || !group.exists() || fs::remove_dir(&group).is_ok());
    }
}

fn assert_lost(household: &ShepherddFixture) {
    assert_eq!(household.state().session, None);
    household.assert_no_processes_left();
    let ends = household
        .count_audit_records(|what| matches!(what, AuditKind::SessionEnded { end: EndReason::Lost, .. }));
    assert_eq!(ends, 1);
    household.launch("long");
}

/// What was used when the daemon is there again, in another boot.
fn used_after_reboot(household: ShepherddFixture, session_id: &SessionId) -> Duration {
    remove_group(session_id);
    let boot = household.folder().join("boot");
    fs::write(&boot, "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e\n").unwrap();
    let mount =
        format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"", boot.display());
    let mut household = household.with_wrapper(&in_mount_namespace(&["sh", "-c", &mount]));
    household.start();
    let used = household.recorded_usage("long");
    assert_lost(&household);
    used
}

#[test]
fn after_a_reboot_nothing_runs_and_what_was_used_is_charged() {
    let (household, session_id) = start_and_interrupt(POLICY);
    // How long it ran after the last sign of life nobody knows; it is the child's loss.
    let used = used_after_reboot(household, &session_id);
    assert!(used >= Duration::from_secs(30) && used <= Duration::from_secs(60), "{used:?}");
}

#[test]
fn whoever_removes_or_spoils_the_last_sign_of_life_pays_for_all_that_may_have_been_played() {
    for spoil in [|path: &Path| fs::remove_file(path).unwrap(), |path: &Path| fs::write(path, "{}").unwrap()]
    {
        let (household, session_id) = start_and_interrupt(POLICY);
        spoil(&heartbeat_path(&household));
        // The clock on the wall tells that it was not an hour, but it may be ten minutes behind.
        let used = used_after_reboot(household, &session_id);
        assert!(used >= Duration::from_secs(600) && used <= Duration::from_secs(700), "{used:?}");
    }
}

#[test]
fn whoever_asks_while_it_runs_is_told_what_was_used_until_now() {
    // Nothing is due for an hour, and nobody has counted since.
    let household = ShepherddFixture::running(POLICY);
    household.launch("long");
    household.wait_for_program();
    wait_until("it is counted", || household.recorded_usage("long") > Duration::from_millis(300));
}

/// A machine that slept for two hours: the clocks of the boot and on the wall have gone on, the one that counts work
/// has not.
#[test]
fn a_night_of_sleep_costs_nothing_unless_the_policy_says_so() {
    for (suspended, least, most) in [("free", 0, 600), ("counts", 3_500, 3_700)] {
        let policy = POLICY.replacen(
            "config_version = 1",
            &format!("config_version = 1\nsuspended_time = \"{suspended}\""),
            1,
        );
        let (household, _) = start_and_interrupt(&policy);
        let user: &[&str] = if geteuid().is_root() { &[] } else { &["--map-root-user"] };
        let wrapper = [&["unshare"], user, &["--time", "--boottime", "7200"]].concat();
        let mut household = with_clock_offset(household.with_wrapper(&wrapper), "+2h");
        household.start();
        let used = household.recorded_usage("long").as_secs();
        assert!((least..=most).contains(&used), "{suspended}: {used}");
        assert_lost(&household);
    }
}

#[test]
fn another_time_zone_is_noticed_and_moves_no_end() {
    let household = ShepherddFixture::new(POLICY);
    let etc = household.folder().join("etc");
    let (own, shown) = (etc.display(), "/usr/share/zoneinfo");
    // What the daemon needs of the configuration, to be changed without touching anybody's.
    let script = format!(
        "mkdir {own} && cp /etc/passwd /etc/group {own} && ln -sfn {shown}/Europe/London {own}/localtime && mount --bind {own} /etc && unset TZ && exec \"$0\" \"$@\""
    );
    let mut household = household.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    household.start();
    let launched = Instant::now();
    household.launch("nap");
    household.wait_for_program();
    for zone in ["Asia/Tokyo", "America/New_York"] {
        std::os::unix::fs::symlink(format!("{shown}/{zone}"), etc.join("new")).unwrap();
        fs::rename(etc.join("new"), etc.join("localtime")).unwrap();
        wait_until("it is noticed", || {
            household.count_audit_records(
                |what| matches!(what, AuditKind::ZoneChanged { zone: told } if told == zone),
            ) == 1
        });
    }
    assert_eq!(household.state().session.map(|session| session.phase), Some(SessionPhase::Running));
    household.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
    // The clock was right all the time, so the next launch is as good as the first.
    assert!(household.state().clock_trusted);
    household.launch("nap");
    assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::ClockUntrusted { .. })), 0);
}

/// S4.5: the kernel says that time synchronisation keeps the clock right, and nobody has to confirm it.
#[test]
fn a_synchronised_clock_that_was_ahead_is_trusted_by_itself() {
    // A time service of the test machine vouches for the clock, too.
    let has_timesyncd = Path::new("/run/systemd/timesync/synchronized").exists();
    let cases = [("retval=0", true), ("retval=5", has_timesyncd), ("error=EPERM", has_timesyncd)];
    for (answer, trusted) in cases {
        let household = ShepherddFixture::new(POLICY);
        set_clock(household.folder(), "+400d");
        let file = household.folder().join("clock").display().to_string();
        let mut household = with_shown_clock(household, &file).with_options(&["--ignore-time-sync"]);
        household.start();
        household.launch("nap");
        household.wait_until_idle();
        assert!(household.end().success());
        // The clock is set right, and the next daemon may ask the kernel.
        set_clock(household.folder(), "+0");
        let mut household = household
            .without_option("--ignore-time-sync")
            .with_injected_fault("adjtimex,clock_adjtime", answer);
        household.start();
        if trusted {
            household.launch("nap");
            assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::ClockTrusted)), 1);
        } else {
            let refused = household.refusal("nap");
            assert_eq!(refused.reasons[0].code(), "clock-untrusted", "{answer}");
            assert!(refused.sentence.contains("shepherd clock confirm"), "{answer}: {}", refused.sentence);
            confirm_clock(&household);
            household.launch("nap");
        }
    }
}

/// S4.3: hours are those of the zone that the daemon was started in.
#[test]
fn hours_are_those_of_the_variable() {
    for zone in ["Pacific/Kiritimati", "Etc/GMT+12"] {
        let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::get(zone).unwrap());
        let entry = |id: &str, hours: i64| {
            let time = |more: i64| now.saturating_add((hours + more).hours()).strftime("%H:%M").to_string();
            let (from, to) = (time(-1), time(1));
            format!(
                "[[entries]]\nid = \"{id}\"\nargv = [\"sleep\", \"TOKEN\"]\nwindows = [{{ from = \"{from}\", to = \"{to}\" }}]\n"
            )
        };
        let policy = format!("config_version = 1\n{}{}", entry("now", 0), entry("later", 6));
        let mut household = ShepherddFixture::new(&policy).with_variable("TZ", zone);
        household.start();
        assert_eq!(first_reason(&household, "later"), "outside-hours", "{zone}");
        household.launch("now");
    }
}
