//! A changed clock, a reboot, a suspend or another time zone gains no time (S4, S9.2).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::ToSpan;
use shepherd_api::{AuditKind, Command, CommandReply, EndReason, EventKind, SessionPhase};
use shepherd_util::SessionId;

use crate::harness::{ShepherddFixture, in_mount_namespace, policy, sleep_entry, stubborn_entry, wait_until};

pub(crate) const POLICY: &str = policy!(
    sleep_entry!(
        "nap",
        r#"max_run = "2s"
daily_quota = "1h""#
    ),
    // Its grace counts, so nothing is left of its quota afterwards, even if its launch takes a second or two.
    stubborn_entry!(
        "brief",
        r#"daily_quota = "2s"
stop_grace = "2s""#
    ),
    sleep_entry!("long", r#"max_run = "1h""#)
);

/// Returns the path of the library that shows a program another wall clock.
pub(crate) fn faketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path());
    let mut found =
        folders.map(|folder| folder.join("faketime/libfaketime.so.1")).filter(|path| path.exists());
    found.next().expect("libfaketime is missing: run `cargo xtask setup`")
}

/// Starts a daemon whose wall clock is set by a file. Its monotonic clocks are the kernel's.
pub(crate) fn with_fake_clock(policy: &str) -> ShepherddFixture {
    let mut fixture = with_clock_offset(ShepherddFixture::new(policy), "+0");
    fixture.start();
    fixture
}

/// The same for a daemon that is still to be started.
pub(crate) fn with_clock_offset(fixture: ShepherddFixture, offset: &str) -> ShepherddFixture {
    set_clock(fixture.folder(), offset);
    let file = fixture.folder().join("clock").display().to_string();
    // The kernel of the test machine vouches for its own clock, not for the one that the daemon is shown.
    with_shown_clock(fixture.with_options(&["--ignore-time-sync"]), &file)
}

fn with_shown_clock(fixture: ShepherddFixture, file: &str) -> ShepherddFixture {
    fixture
        .with_variable("LD_PRELOAD", faketime().to_str().unwrap())
        .with_variable("FAKETIME_TIMESTAMP_FILE", file)
        .with_variable("FAKETIME_NO_CACHE", "1")
        .with_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

pub(crate) fn set_clock(folder: &Path, offset: &str) {
    // The file is renamed into place, because half a line would be another time.
    fs::write(folder.join("clock.new"), format!("{offset}\n")).unwrap();
    fs::rename(folder.join("clock.new"), folder.join("clock")).unwrap();
}

fn confirm_clock(fixture: &ShepherddFixture) {
    let outcome = fixture.call(Command::ConfirmClock {});
    assert!(matches!(outcome, Ok(CommandReply::ClockConfirmed { .. })), "{outcome:?}");
}

pub(crate) fn first_reason(fixture: &ShepherddFixture, entry: &str) -> &'static str {
    fixture.refusal(entry).reasons[0].code()
}

/// Changes the wall clock during a session, and checks that the session keeps its real length.
fn check_session_length(offset: &str) -> ShepherddFixture {
    let fixture = with_fake_clock(POLICY);
    let launched = Instant::now();
    fixture.launch("nap");
    fixture.wait_for_program();
    set_clock(fixture.folder(), offset);
    // The daemon reads the clock at each request.
    fixture.state();
    fixture.refusal("nap");
    fixture.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{offset}: {took:?}");
    let used = fixture.recorded_usage("nap");
    assert!(used <= took && used + Duration::from_millis(500) >= took, "{offset}: {used:?} of {took:?}");
    fixture
}

#[test]
fn heavy_setting_the_clock_forward_during_a_session_gains_no_time() {
    let fixture = check_session_length("+1d");
    // A clock that goes back from a day that was charged is not trusted.
    assert_eq!(fixture.failed_check("clock"), None);
    set_clock(fixture.folder(), "+0");
    assert_eq!(first_reason(&fixture, "nap"), "clock-untrusted");
    assert!(fixture.failed_check("clock").is_some());
    confirm_clock(&fixture);
    assert_eq!(fixture.failed_check("clock"), None);
    fixture.launch("nap");
}

#[test]
fn heavy_setting_the_clock_back_during_a_session_gains_no_time() {
    let mut fixture = check_session_length("-3h");
    assert_eq!(first_reason(&fixture, "nap"), "clock-untrusted");
    // A restarted daemon doesn't trust the clock either.
    fixture.kill();
    fixture.start();
    assert_eq!(first_reason(&fixture, "nap"), "clock-untrusted");
    assert!(!fixture.state().clock_trusted);
    // The clock is trusted again when it has caught up.
    let mut listener = fixture.subscriber();
    set_clock(fixture.folder(), "+0");
    fixture.launch("nap");
    let trusted = listener.wait_for(|event| match event {
        EventKind::ClockTrustChanged { trusted } => Some(*trusted),
        _ => None,
    });
    assert!(trusted);
}

#[test]
fn used_time_stays_used_however_often_the_clock_is_changed() {
    let fixture = with_fake_clock(POLICY);
    fixture.launch("brief");
    fixture.wait_until_idle();
    assert_eq!(first_reason(&fixture, "brief"), "quota-exhausted");
    // Tomorrow's quota can be used today,
    set_clock(fixture.folder(), "+1d");
    fixture.launch("brief");
    fixture.wait_until_idle();
    assert_eq!(first_reason(&fixture, "brief"), "quota-exhausted");
    for back in ["+0", "-1d", "-30d"] {
        set_clock(fixture.folder(), back);
        assert_eq!(first_reason(&fixture, "brief"), "clock-untrusted", "{back}");
    }
    // but then it is used up tomorrow, and today's quota stays used up.
    set_clock(fixture.folder(), "+0");
    confirm_clock(&fixture);
    assert_eq!(first_reason(&fixture, "brief"), "quota-exhausted");
    set_clock(fixture.folder(), "+1d");
    assert_eq!(first_reason(&fixture, "brief"), "quota-exhausted");
    assert!(fixture.count_audit_records(|what| matches!(what, AuditKind::ClockUntrusted { .. })) >= 1);
    assert!(fixture.count_audit_records(|what| matches!(what, AuditKind::ClockTrusted)) >= 1);
}

/// Launches the entry `long`, and kills the daemon and the program once the start is recorded, as a power cut would.
fn start_and_interrupt(policy: &str) -> (ShepherddFixture, SessionId) {
    let mut fixture = ShepherddFixture::running(policy);
    let session = fixture.launch("long");
    let player = fixture.wait_for_program();
    fixture.wait_until_start_is_recorded();
    wait_until("there is a sign of life", || {
        fs::read(heartbeat_path(&fixture)).is_ok_and(|text| text.contains(&b'{'))
    });
    fixture.kill();
    fixture.kill_program(player);
    (fixture, session.session_id)
}

/// Returns the path of the heartbeat file.
fn heartbeat_path(fixture: &ShepherddFixture) -> PathBuf {
    fixture.data().join("shepherd.pulse")
}

/// Removes the cgroup of a session, because a reboot leaves none.
fn remove_group(session_id: &SessionId) {
    let name = format!("ward-{session_id}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    if let Some(mount) = mount.and_then(|line| line.split(' ').nth(1)) {
        let own = own.strip_suffix("/supervisor").unwrap_or(own).trim_matches('/');
        let group = Path::new(mount).join(own).join(name);
        wait_until("the cgroup is gone", || !group.exists() || fs::remove_dir(&group).is_ok());
    }
}

fn assert_lost(fixture: &ShepherddFixture) {
    assert_eq!(fixture.state().session, None);
    fixture.assert_no_processes_left();
    assert_eq!(fixture.recorded_ends(), [EndReason::Lost]);
    fixture.launch("long");
}

/// Starts the daemon in another boot, and returns the usage that it has charged.
fn used_after_reboot(fixture: ShepherddFixture, session_id: &SessionId) -> Duration {
    remove_group(session_id);
    let mut fixture = fixture.after_reboot();
    fixture.start();
    let used = fixture.recorded_usage("long");
    assert_lost(&fixture);
    used
}

#[test]
fn after_a_reboot_nothing_runs_and_used_time_is_charged() {
    let (fixture, session_id) = start_and_interrupt(POLICY);
    // The time after the last heartbeat is unknown, so a whole interval is charged.
    let used = used_after_reboot(fixture, &session_id);
    assert!(used >= Duration::from_secs(30) && used <= Duration::from_secs(60), "{used:?}");
}

#[test]
fn removing_or_damaging_the_heartbeat_charges_all_possible_play() {
    for spoil in [|path: &Path| fs::remove_file(path).unwrap(), |path: &Path| fs::write(path, "{}").unwrap()]
    {
        let (fixture, session_id) = start_and_interrupt(POLICY);
        spoil(&heartbeat_path(&fixture));
        // By the wall clock it was less than an hour, but that clock may be ten minutes behind.
        let used = used_after_reboot(fixture, &session_id);
        assert!(used >= Duration::from_secs(600) && used <= Duration::from_secs(700), "{used:?}");
    }
}

#[test]
fn usage_includes_the_running_session() {
    // No event is due for an hour, so the usage is not charged meanwhile.
    let fixture = ShepherddFixture::running(POLICY);
    fixture.launch("long");
    fixture.wait_for_program();
    wait_until("the time is counted", || fixture.recorded_usage("long") > Duration::from_millis(300));
}

/// After two hours of suspend, the boot clock and the wall clock have gone on, and the monotonic clock has not.
#[test]
fn a_night_of_sleep_costs_nothing_unless_the_policy_says_so() {
    for (suspended, least, most) in [("free", 0, 600), ("counts", 3_500, 3_700)] {
        let policy = POLICY.replacen(
            "config_version = 1",
            &format!("config_version = 1\nsuspended_time = \"{suspended}\""),
            1,
        );
        let (fixture, _) = start_and_interrupt(&policy);
        let mut fixture = with_clock_offset(fixture.after_suspend(Duration::from_secs(7_200)), "+2h");
        fixture.start();
        let used = fixture.recorded_usage("long").as_secs();
        assert!((least..=most).contains(&used), "{suspended}: {used}");
        assert_lost(&fixture);
    }
}

#[test]
fn heavy_a_new_time_zone_is_applied_and_moves_no_end() {
    let fixture = ShepherddFixture::new(POLICY);
    let etc = fixture.folder().join("etc");
    let (own, shown) = (etc.display(), "/usr/share/zoneinfo");
    // The daemon sees a copy of `/etc` with only the files that it needs, so the test can change the time zone.
    let script = format!(
        "mkdir {own} && cp /etc/passwd /etc/group {own} && ln -sfn {shown}/Europe/London {own}/localtime && mount --bind {own} /etc && unset TZ && exec \"$0\" \"$@\""
    );
    let mut fixture = fixture.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    fixture.start();
    let launched = Instant::now();
    fixture.launch("nap");
    fixture.wait_for_program();
    for zone in ["Asia/Tokyo", "America/New_York"] {
        std::os::unix::fs::symlink(format!("{shown}/{zone}"), etc.join("new")).unwrap();
        fs::rename(etc.join("new"), etc.join("localtime")).unwrap();
        wait_until("the daemon notices the change", || {
            fixture.count_audit_records(
                |what| matches!(what, AuditKind::ZoneChanged { zone: recorded } if recorded == zone),
            ) == 1
        });
    }
    assert_eq!(fixture.state().session.map(|session| session.phase), Some(SessionPhase::Running));
    fixture.wait_until_idle();
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
    // The clock was right all the time, so the next launch is as good as the first.
    assert!(fixture.state().clock_trusted);
    fixture.launch("nap");
    assert_eq!(fixture.count_audit_records(|what| matches!(what, AuditKind::ClockUntrusted { .. })), 0);
}

/// Returns true if systemd's time service has set the clock of this machine in the last half hour.
fn was_synchronised_lately() -> bool {
    let mark = fs::metadata("/run/systemd/timesync/synchronized").and_then(|mark| mark.modified());
    mark.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < Duration::from_secs(1_800)))
}

/// S4.5: the kernel says that time synchronisation keeps the clock right, and nobody has to confirm it.
#[test]
fn a_synchronised_clock_that_was_ahead_is_trusted_by_itself() {
    // A time service of the test machine may keep the clock right, too.
    let has_timesyncd = was_synchronised_lately();
    let cases = [("retval=0", true), ("retval=5", has_timesyncd), ("error=EPERM", has_timesyncd)];
    for (answer, trusted) in cases {
        let fixture = ShepherddFixture::new(POLICY);
        set_clock(fixture.folder(), "+400d");
        let file = fixture.folder().join("clock").display().to_string();
        let mut fixture = with_shown_clock(fixture, &file).with_options(&["--ignore-time-sync"]);
        fixture.start();
        fixture.launch("nap");
        fixture.wait_until_idle();
        assert!(fixture.end().success());
        // The clock is set right, and the next daemon may ask the kernel.
        set_clock(fixture.folder(), "+0");
        let mut fixture = fixture
            .without_option("--ignore-time-sync")
            .with_injected_fault("adjtimex,clock_adjtime", answer);
        fixture.start();
        if trusted {
            fixture.launch("nap");
            assert_eq!(fixture.count_audit_records(|what| matches!(what, AuditKind::ClockTrusted)), 1);
        } else {
            let refused = fixture.refusal("nap");
            assert_eq!(refused.reasons[0].code(), "clock-untrusted", "{answer}");
            assert!(refused.sentence.contains("shepherd clock confirm"), "{answer}: {}", refused.sentence);
            confirm_clock(&fixture);
            fixture.launch("nap");
        }
    }
}

/// S4.3: windows follow the time zone of the daemon's environment.
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
        let mut fixture = ShepherddFixture::new(&policy).with_variable("TZ", zone);
        fixture.start();
        assert_eq!(first_reason(&fixture, "later"), "outside-hours", "{zone}");
        fixture.launch("now");
    }
}
