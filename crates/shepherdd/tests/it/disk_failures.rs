//! A data folder that is full, can't be written, is slow, or holds a damaged database: what runs ends on time, and
//! nothing is granted until it can be recorded (S8.4, S8.4b, S13.3b).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shepherd_api::{AuditKind, Command, CommandReply, EndReason, ErrorCode, EventKind, StopMode};
use shepherd_ipc::CallError;
use shepherd_util::SessionId;

use crate::harness::{EventSubscriber, ShepherddFixture, in_mount_namespace, is_alive, wait_until};

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "3s"
warnings = [{ before = "1s" }]

# It takes its time to end, and that counts: nothing is left afterwards.
[[entries]]
id = "brief"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
always = true
daily_quota = "500ms"
stop_grace = "300ms"

[modes]
names = ["school", "holiday"]
default = "school"
"#;

/// A household whose data folder is a small file system of its own, in a namespace of its own, which an ordinary user
/// may have, too.
pub(crate) fn fixture_on_small_disk() -> ShepherddFixture {
    let household = ShepherddFixture::new(POLICY);
    fs::create_dir(household.data()).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=1m,mode=0700 none {} && exec \"$0\" \"$@\"",
        household.data().display()
    );
    let mut household = household.with_wrapper(&in_mount_namespace(&["sh", "-c", &mount]));
    household.start();
    household
}

/// The data folder as the daemon sees it.
fn data_in_namespace(household: &ShepherddFixture) -> PathBuf {
    let pid = household.daemon_pid().as_raw_nonzero();
    PathBuf::from(format!("/proc/{pid}/root{}", household.data().display()))
}

pub(crate) fn fill_disk(household: &ShepherddFixture) {
    let mut ballast = fs::File::create(data_in_namespace(household).join("ballast")).unwrap();
    for size in [4_096, 1] {
        while ballast.write_all(&vec![0; size]).is_ok() {}
    }
}

/// A nap of three seconds is warned of once and ends when it should. How long it took.
fn assert_expires_on_time(
    listener: &mut EventSubscriber,
    napping: &SessionId,
    launched: Instant,
) -> Duration {
    let mut warned = 0;
    let end = listener.wait_for(|event| match event {
        EventKind::WarningIssued { .. } => {
            warned += 1;
            None
        }
        EventKind::SessionEnded { session_id, end } if session_id == napping => Some(end.clone()),
        _ => None,
    });
    let took = launched.elapsed();
    assert_eq!((end, warned), (EndReason::Expired, 1));
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(8), "{took:?}");
    took
}

/// The session that runs while there is no room is warned of and ended on time; nothing else is started meanwhile; and
/// afterwards everything is on record.
#[test]
fn a_session_ends_on_time_on_a_full_disk() {
    let household = fixture_on_small_disk();
    let mut listener = household.subscriber();
    let launched = Instant::now();
    let session = household.launch("nap");
    household.wait_for_program();
    fill_disk(&household);
    // Every refusal is to be recorded, and so the trouble is found before long.
    wait_until("the trouble is noticed", || {
        household.refusal("nap");
        household.failed_check("store").is_some()
    });
    let complaint = household.failed_check("store").unwrap();
    assert!(complaint.starts_with("every launch is denied until usage can be recorded: "), "{complaint}");
    let took = assert_expires_on_time(&mut listener, &session.session_id, launched);
    assert_eq!(household.program_pids(), Vec::<i32>::new());
    let refused = household.refusal("nap");
    assert_eq!(refused.code, ErrorCode::Denied);
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    assert!(refused.sentence.contains("no room"), "{refused:?}");
    fs::remove_file(data_in_namespace(&household).join("ballast")).unwrap();
    wait_until("it works again", || household.failed_check("store").is_none());
    household.launch("nap");
    household.wait_for_program();
    household.stop(StopMode::Force).unwrap();
    household.wait_until_idle();
    assert_usage_recorded(&household, took);
}

pub(crate) fn free_disk_space(household: &ShepherddFixture) {
    fs::remove_file(data_in_namespace(household).join("ballast")).unwrap();
    wait_until("it works again", || household.failed_check("store").is_none());
}

pub(crate) fn assert_not_recorded(outcome: Result<CommandReply, CallError>) {
    let error = outcome.expect_err("nothing can be recorded");
    assert_eq!(error.api_error().expect("an answer").code, ErrorCode::StoreUnavailable, "{error:?}");
}

fn assert_usage_recorded(household: &ShepherddFixture, took: Duration) {
    for (what, expected) in [
        (household.count_audit_records(|what| matches!(what, AuditKind::WarningGiven { .. })), 1),
        (household.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. })), 2),
        (household.count_audit_records(|what| matches!(what, AuditKind::SessionEnded { .. })), 2),
        (household.count_audit_records(|what| matches!(what, AuditKind::StopRequested { .. })), 2),
    ] {
        assert_eq!(what, expected);
    }
    let used = household.recorded_usage("nap");
    assert!(used + Duration::from_millis(500) >= took, "{used:?} of {took:?} are on record");
    // The log goes with the namespace; what it is now is looked at from outside.
    let copy = tempfile::tempdir().unwrap();
    for name in ["audit.log", "audit.log.head"] {
        fs::copy(data_in_namespace(household).join(name), copy.path().join(name)).unwrap();
    }
    let log = shepherd_store::audit_log_path(copy.path());
    let report = ward_ledger::verify(&log, &shepherd_store::audit_format(), None).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn a_data_folder_that_became_read_only_locks_the_daemon_and_ends_what_ran() {
    let mut household = ShepherddFixture::running(POLICY);
    household.launch("nap");
    household.wait_for_program();
    household.kill();
    let data = household.data().display().to_string();
    let script =
        format!("mount --bind {data} {data} && mount -o remount,bind,ro {data} && exec \"$0\" \"$@\"");
    let mut household = household.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    household.start();
    wait_until("it is ended", || household.program_pids().is_empty());
    let complaint = household.failed_check("store").unwrap();
    assert!(complaint.contains(&data), "{complaint}");
    let refused = household.refusal("nap");
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    // As soon as it can be written again, what was used is there, and nothing was won.
    household.kill();
    let mut household = household.with_wrapper(&[]);
    household.start();
    assert_eq!(household.failed_check("store"), None);
    assert_eq!(household.state().session, None);
    assert!(household.recorded_usage("nap") > Duration::ZERO);
    assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::SessionEnded { .. })), 1);
}

/// A household on a file system of its own that can turn read-only while it is written: see [`remount_read_only`].
fn fixture_on_failing_disk() -> ShepherddFixture {
    let household = ShepherddFixture::new(POLICY);
    let (data, aside) = (household.data(), moved_data_folder(&household));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&aside).unwrap();
    let files = ["audit.log", "audit.log.head", "shepherd.db", "shepherd.db-wal"];
    let traced: String = files.iter().map(|name| format!("-P {} ", aside.join(name).display())).collect();
    let script = format!(
        "mount -t tmpfs -o mode=0700 none {} && exec strace -D -f -qq -o /dev/null {traced}\
         -e trace=write,pwrite64,ftruncate,fsync,fdatasync \
         -e inject=write,pwrite64,ftruncate,fsync,fdatasync:error=EROFS \"$0\" \"$@\"",
        data.display()
    );
    let mut household = household.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    household.start();
    household
}

fn moved_data_folder(household: &ShepherddFixture) -> PathBuf {
    household.folder().join("aside")
}

/// Runs a script where the daemon is. `-n` there: the table of mounts is not an ordinary user's to write.
fn run_in_mount_namespace(household: &ShepherddFixture, script: &str) {
    let pid = household.daemon_pid().as_raw_nonzero().to_string();
    let mut enter = std::process::Command::new("nsenter");
    if !rustix::process::geteuid().is_root() {
        enter.args(["--user", "--preserve-credentials"]);
    }
    let done = enter.args(["--mount", "--target", &pid, "sh", "-c", script]).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// As when the kernel has found a fault in a file system. Nobody can do that by hand to what is being written, so the
/// folder is moved aside with what is open, where whoever traces the daemon fails its writes; what is opened anew is
/// read-only by itself.
fn remount_read_only(household: &ShepherddFixture) {
    let (data, aside) =
        (household.data().display().to_string(), moved_data_folder(household).display().to_string());
    run_in_mount_namespace(
        household,
        &format!(
            "mount -n --move {data} {aside} && mount -n --bind {aside} {data} && mount -n -o remount,bind,ro {data}"
        ),
    );
}

fn remount_writable(household: &ShepherddFixture) {
    let (data, aside) =
        (household.data().display().to_string(), moved_data_folder(household).display().to_string());
    run_in_mount_namespace(household, &format!("umount -n -l {data} && mount -n --move {aside} {data}"));
}

#[test]
fn a_session_ends_on_time_when_its_disk_turns_read_only() {
    let household = fixture_on_failing_disk();
    let mut listener = household.subscriber();
    let launched = Instant::now();
    household.launch("nap");
    household.wait_for_program();
    remount_read_only(&household);
    wait_until("the trouble is noticed", || {
        household.refusal("nap");
        household.failed_check("store").is_some()
    });
    let mut warned = 0;
    let end = listener.wait_for(|event| match event {
        EventKind::WarningIssued { .. } => {
            warned += 1;
            None
        }
        EventKind::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    let took = launched.elapsed();
    assert_eq!((end, warned), (EndReason::Expired, 1));
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(8), "{took:?}");
    assert_eq!(household.program_pids(), Vec::<i32>::new());
    assert_eq!(household.refusal("nap").reasons[0].code(), "store-unavailable");
    remount_writable(&household);
    wait_until("it works again", || household.call(Command::SwitchMode { mode: None }).is_ok());
    assert_eq!(household.failed_check("store"), None);
    let used = household.recorded_usage("nap");
    assert!(used + Duration::from_millis(500) >= took, "{used:?} of {took:?} are on record");
    assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::SessionEnded { .. })), 1);
}

#[test]
fn a_slow_disk_delays_nobody() {
    let mut household = ShepherddFixture::running(POLICY);
    assert!(household.end().success());
    let mut household = household.on_a_slow_disk(Duration::from_millis(40));
    household.start();
    let mut listener = household.subscriber();
    let launched = Instant::now();
    let session = household.launch("nap");
    household.wait_for_program();
    let mut client = household.client();
    let mut slowest = Duration::ZERO;
    while is_alive(household.program_pids().first().copied().unwrap_or_default()) {
        let asked = Instant::now();
        client.call(Command::GetState {}).unwrap();
        slowest = slowest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(8), "{took:?}");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let ended = listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, .. } => Some(session_id.clone()),
        _ => None,
    });
    assert_eq!(ended, session.session_id);
}

const SWITCH_MODE: &str =
    "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"switch_mode\",\"mode\":\"holiday\"}}\n";

fn greet(household: &ShepherddFixture) -> UnixStream {
    let mut stream = UnixStream::connect(household.socket()).unwrap();
    stream.write_all(b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"crowd\"}\n").unwrap();
    stream
}

/// Has things recorded one by one, until one is not.
fn wait_until_disk_hangs(household: &ShepherddFixture) {
    let mut stream = greet(household);
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    lines.next().unwrap().expect("a welcome");
    wait_until("the disk hangs", || {
        stream.write_all(SWITCH_MODE.as_bytes()).unwrap();
        lines.next().unwrap().is_err()
    });
}

/// Many who want something recorded and wait for it, until the daemon says what is wrong.
fn flood_until_overloaded(household: &ShepherddFixture) -> Vec<UnixStream> {
    let mut crowd = Vec::new();
    wait_until("the hanging disk is noticed", || {
        for _ in 0..16 {
            let mut stream = greet(household);
            stream.write_all(SWITCH_MODE.repeat(4).as_bytes()).unwrap();
            crowd.push(stream);
        }
        household.failed_check("store").is_some()
    });
    crowd
}

/// Whoever slows down the daemon's disk does so no more.
fn unblock_disk(household: &ShepherddFixture) {
    let pid = household.daemon_pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap();
    let tracer = Pid::from_raw(tracer.trim().parse().unwrap()).expect("a tracer");
    kill_process(tracer, Signal::KILL).unwrap();
}

/// A disk that hangs holds up what would be given, and nothing else: what runs ends on time, what waits is bounded, and
/// afterwards all of it is on record (S8.4b, S13.3b, S13.4).
#[test]
fn while_a_disk_hangs_nothing_is_granted_and_a_session_ends_on_time() {
    let length = Duration::from_secs(12);
    let mut household = ShepherddFixture::running(&POLICY.replace("max_run = \"3s\"", "max_run = \"12s\""));
    assert!(household.end().success());
    // After the first steps, which take a launch to the disk, each takes two minutes.
    let mut household = household.with_injected_fault("fsync,fdatasync", "delay_enter=120000000:when=40+");
    household.start();
    let mut listener = household.subscriber();
    let launched = Instant::now();
    let session = household.launch("nap");
    household.wait_for_program();
    wait_until_disk_hangs(&household);
    let crowd = flood_until_overloaded(&household);
    let complaint = household.failed_check("store").unwrap();
    assert!(complaint.contains("the disk does not answer"), "{complaint}");
    let refused = household.refusal("nap");
    assert_eq!(refused.code, ErrorCode::Denied);
    let given = household.call(Command::ExtendCurrent { by: Duration::from_secs(600).into() });
    assert!(given.is_err(), "{given:?}");
    let end = listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => Some(end.clone()),
        _ => None,
    });
    let took = launched.elapsed();
    assert_eq!(end, EndReason::Expired);
    assert!(took >= length && took < length + Duration::from_secs(5), "{took:?}");
    assert_eq!(household.program_pids(), Vec::<i32>::new());
    let refused = household.refusal("nap");
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    assert!(refused.sentence.contains("the disk does not answer"), "{refused:?}");
    drop(crowd);
    unblock_disk(&household);
    wait_until("it works again", || household.failed_check("store").is_none());
    assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::SessionEnded { .. })), 1);
    assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::WarningGiven { .. })), 1);
    let used = household.recorded_usage("nap");
    assert!(used + Duration::from_millis(500) >= took, "{used:?} of {took:?} are on record");
    household.launch("nap");
    household.wait_for_program();
}

/// S8.4b: what a store knows counts as soon as it can be read, and nobody has to restart anything.
#[test]
fn a_store_that_can_be_opened_later_is() {
    let mut household = ShepherddFixture::running(POLICY);
    household.launch("brief");
    household.wait_until_idle();
    household.launch("nap");
    household.wait_for_program();
    household.kill();
    let data = household.data();
    let set_mode = |mode| fs::set_permissions(&data, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o777);
    household.start();
    wait_until("nobody counts its time, so it is ended", || household.program_pids().is_empty());
    let complaint = household.failed_check("store").unwrap();
    assert!(complaint.contains("run `chmod go-w"), "{complaint}");
    assert_eq!(household.refusal("brief").reasons[0].code(), "store-unavailable");
    let refused = household.call(Command::SwitchMode { mode: Some("holiday".to_owned()) });
    assert_not_recorded(refused);
    set_mode(0o700);
    // Whoever asks makes it be tried again; else it is within a minute.
    wait_until("it works again", || {
        household.refusal("brief");
        household.failed_check("store").is_none()
    });
    assert_eq!(household.refusal("brief").reasons[0].code(), "quota-exhausted");
    assert_eq!((household.state().session, household.state().mode), (None, "school".to_owned()));
    let lost = |what: &AuditKind| matches!(what, AuditKind::SessionEnded { end: EndReason::Lost, .. });
    assert_eq!(household.count_audit_records(lost), 1);
    // What was asked meanwhile is on record, too.
    let denied = |what: &AuditKind| matches!(what, AuditKind::LaunchDenied { reasons, .. } if reasons[0].code() == "store-unavailable");
    assert!(household.count_audit_records(denied) >= 1);
    household.launch("nap");
    household.wait_for_program();
    household.kill();
    household.assert_chain_is_sound();
    household.start();
    assert!(household.state().session.is_some());
}

/// Signs of life can't be written: what runs is warned of and ends on time, and how far it is goes to the store.
#[test]
fn a_session_ends_on_time_without_signs_of_life() {
    let mut household = ShepherddFixture::running(POLICY);
    assert!(household.end().success());
    let mut household = household.without_heartbeat();
    household.start();
    assert_eq!(household.failed_check("pulse"), None, "nobody needs one yet");
    let mut listener = household.subscriber();
    let launched = Instant::now();
    let session = household.launch("nap");
    wait_until("the trouble is noticed", || household.failed_check("pulse").is_some());
    let complaint = household.failed_check("pulse").unwrap();
    assert!(complaint.contains("shepherd.pulse"), "{complaint}");
    assert_expires_on_time(&mut listener, &session.session_id, launched);
    assert_eq!(household.failed_check("store"), None);
    // It is no reason to refuse anything, either.
    household.launch("nap");
    household.wait_for_program();
}

#[test]
fn a_damaged_database_locks_the_daemon_and_ends_what_ran() {
    let mut household = ShepherddFixture::running(&POLICY.replace("max_run = \"3s\"", "max_run = \"1h\""));
    household.launch("nap");
    let player = household.wait_for_program();
    household.kill();
    assert!(is_alive(player), "nobody ends it");
    for name in ["shepherd.db", "shepherd.db-wal"] {
        fs::write(household.data().join(name), "not a database at all, by no means").unwrap();
    }
    household.start();
    wait_until("it is ended", || household.program_pids().is_empty());
    let complaint = household.failed_check("store").unwrap();
    assert!(complaint.contains("is damaged") && complaint.contains("kept in"), "{complaint}");
    let refused = household.refusal("nap");
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    household.assert_no_processes_left();
}

#[test]
fn what_a_full_disk_swallows_at_the_end_is_told() {
    let mut household = fixture_on_small_disk();
    fill_disk(&household);
    wait_until("the trouble is noticed", || {
        household.refusal("nothing");
        household.failed_check("store").is_some()
    });
    assert!(household.end().success());
    assert!(
        household.log().contains("writes are lost, because the store could not be written"),
        "{}",
        household.log()
    );
}
