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

use crate::harness::{
    EventSubscriber, ShepherddFixture, call_at_allowed_rate, in_mount_namespace, is_alive, policy,
    sleep_entry, stubborn_entry, wait_until,
};

const POLICY: &str = policy!(
    sleep_entry!(
        "nap",
        r#"max_run = "3s"
warnings = [{ before = "1s" }]"#
    ),
    // Its grace counts, so nothing is left of its quota afterwards, even if its launch takes a second or two.
    stubborn_entry!(
        "brief",
        r#"daily_quota = "2s"
stop_grace = "2s""#
    ),
    r#"
[modes]
names = ["school", "holiday"]
default = "school"
"#
);

/// Starts a daemon whose data folder is a small file system, mounted in its own namespace.
pub(crate) fn fixture_on_small_disk() -> ShepherddFixture {
    let fixture = ShepherddFixture::new(POLICY);
    fs::create_dir(fixture.data()).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=1m,mode=0700 none {} && exec \"$0\" \"$@\"",
        fixture.data().display()
    );
    let mut fixture = fixture.with_wrapper(&in_mount_namespace(&["sh", "-c", &mount]));
    fixture.start();
    fixture
}

/// Returns the path of the data folder in the daemon's namespace.
fn data_in_namespace(fixture: &ShepherddFixture) -> PathBuf {
    let pid = fixture.daemon_pid().as_raw_nonzero();
    PathBuf::from(format!("/proc/{pid}/root{}", fixture.data().display()))
}

pub(crate) fn fill_disk(fixture: &ShepherddFixture) {
    let mut ballast = fs::File::create(data_in_namespace(fixture).join("ballast")).unwrap();
    for size in [4_096, 1] {
        while ballast.write_all(&vec![0; size]).is_ok() {}
    }
}

/// Checks that a session of three seconds is warned of once and ends on time, and returns how long it took.
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

/// While the disk is full, the running session is warned of and ends on time, and no other starts. Afterwards all of it
/// is recorded.
#[test]
fn heavy_a_session_ends_on_time_on_a_full_disk() {
    let fixture = fixture_on_small_disk();
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch("nap");
    fixture.wait_for_program();
    fill_disk(&fixture);
    // Each refusal is recorded, so the daemon soon notices the full disk.
    wait_until("the trouble is noticed", || {
        fixture.refusal("nap");
        fixture.failed_check("store").is_some()
    });
    let complaint = fixture.failed_check("store").unwrap();
    assert!(complaint.starts_with("every launch is denied until usage can be recorded: "), "{complaint}");
    let took = assert_expires_on_time(&mut listener, &session.session_id, launched);
    assert_eq!(fixture.program_pids(), Vec::<i32>::new());
    let refused = fixture.refusal("nap");
    assert_eq!(refused.code, ErrorCode::Denied);
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    assert!(refused.sentence.contains("the disk is full"), "{refused:?}");
    fs::remove_file(data_in_namespace(&fixture).join("ballast")).unwrap();
    wait_until("the store works again", || fixture.failed_check("store").is_none());
    fixture.launch("nap");
    fixture.wait_for_program();
    fixture.stop(StopMode::Force).unwrap();
    fixture.wait_until_idle();
    assert_usage_recorded(&fixture, took);
}

pub(crate) fn free_disk_space(fixture: &ShepherddFixture) {
    fs::remove_file(data_in_namespace(fixture).join("ballast")).unwrap();
    wait_until("the store works again", || fixture.failed_check("store").is_none());
}

pub(crate) fn assert_not_recorded(outcome: Result<CommandReply, CallError>) {
    let error = outcome.expect_err("nothing can be recorded");
    assert_eq!(error.api_error().expect("an answer").code, ErrorCode::StoreUnavailable, "{error:?}");
}

fn assert_usage_recorded(fixture: &ShepherddFixture, took: Duration) {
    for (what, expected) in [
        (fixture.count_audit_records(|what| matches!(what, AuditKind::WarningGiven { .. })), 1),
        (fixture.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. })), 2),
        (fixture.recorded_ends().len(), 2),
        (fixture.count_audit_records(|what| matches!(what, AuditKind::StopRequested { .. })), 2),
    ] {
        assert_eq!(what, expected);
    }
    let used = fixture.recorded_usage("nap");
    assert!(used + Duration::from_millis(500) >= took, "{used:?} of {took:?} are on record");
    // The audit log is in the daemon's namespace, so a copy is verified.
    let copy = tempfile::tempdir().unwrap();
    for name in ["audit.log", "audit.log.head"] {
        fs::copy(data_in_namespace(fixture).join(name), copy.path().join(name)).unwrap();
    }
    let log = shepherd_store::audit_log_path(copy.path());
    let report = ward_ledger::verify(&log, &shepherd_store::audit_format(), None).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn a_read_only_data_folder_locks_the_daemon_and_ends_the_session() {
    let mut fixture = ShepherddFixture::running(POLICY);
    fixture.launch("nap");
    fixture.wait_for_program();
    fixture.kill();
    let data = fixture.data().display().to_string();
    let script =
        format!("mount --bind {data} {data} && mount -o remount,bind,ro {data} && exec \"$0\" \"$@\"");
    let mut fixture = fixture.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    fixture.start();
    wait_until("the program has ended", || fixture.program_pids().is_empty());
    let complaint = fixture.failed_check("store").unwrap();
    assert!(complaint.contains(&data), "{complaint}");
    let refused = fixture.refusal("nap");
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    // Once the disk can be written, the usage is recorded.
    fixture.kill();
    let mut fixture = fixture.with_wrapper(&[]);
    fixture.start();
    assert_eq!(fixture.failed_check("store"), None);
    assert_eq!(fixture.state().session, None);
    assert!(fixture.recorded_usage("nap") > Duration::ZERO);
    assert_eq!(fixture.recorded_ends().len(), 1);
}

/// Starts a daemon on a file system that can turn read-only while files are open: see [`remount_read_only`].
fn fixture_on_failing_disk() -> ShepherddFixture {
    let fixture = ShepherddFixture::new(POLICY);
    let (data, aside) = (fixture.data(), moved_data_folder(&fixture));
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
    let mut fixture = fixture.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    fixture.start();
    fixture
}

fn moved_data_folder(fixture: &ShepherddFixture) -> PathBuf {
    fixture.folder().join("aside")
}

/// Runs a script in the daemon's mount namespace. Mounts need `-n`, because an ordinary user can't write the mount table.
fn run_in_mount_namespace(fixture: &ShepherddFixture, script: &str) {
    let pid = fixture.daemon_pid().as_raw_nonzero().to_string();
    let mut enter = std::process::Command::new("nsenter");
    if !rustix::process::geteuid().is_root() {
        enter.args(["--user", "--preserve-credentials"]);
    }
    let done = enter.args(["--mount", "--target", &pid, "sh", "-c", script]).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Makes the data folder read-only, as the kernel does after a fault in the file system. A file system with open files
/// can't be remounted, so it is moved aside, where the tracer makes writes to open files fail. Files that are opened
/// later are on a read-only mount.
fn remount_read_only(fixture: &ShepherddFixture) {
    let (data, aside) =
        (fixture.data().display().to_string(), moved_data_folder(fixture).display().to_string());
    run_in_mount_namespace(
        fixture,
        &format!(
            "mount -n --move {data} {aside} && mount -n --bind {aside} {data} && mount -n -o remount,bind,ro {data}"
        ),
    );
}

fn remount_writable(fixture: &ShepherddFixture) {
    let (data, aside) =
        (fixture.data().display().to_string(), moved_data_folder(fixture).display().to_string());
    run_in_mount_namespace(fixture, &format!("umount -n -l {data} && mount -n --move {aside} {data}"));
}

#[test]
fn heavy_a_session_ends_on_time_when_its_disk_turns_read_only() {
    let fixture = fixture_on_failing_disk();
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch("nap");
    fixture.wait_for_program();
    remount_read_only(&fixture);
    wait_until("the trouble is noticed", || {
        fixture.refusal("nap");
        fixture.failed_check("store").is_some()
    });
    let took = assert_expires_on_time(&mut listener, &session.session_id, launched);
    assert_eq!(fixture.program_pids(), Vec::<i32>::new());
    assert_eq!(fixture.refusal("nap").reasons[0].code(), "store-unavailable");
    remount_writable(&fixture);
    wait_until("the store works again", || fixture.call(Command::SwitchMode { mode: None }).is_ok());
    assert_eq!(fixture.failed_check("store"), None);
    let used = fixture.recorded_usage("nap");
    assert!(used + Duration::from_millis(500) >= took, "{used:?} of {took:?} are on record");
    assert_eq!(fixture.recorded_ends().len(), 1);
}

#[test]
fn heavy_a_slow_disk_delays_nobody() {
    let mut fixture = ShepherddFixture::running(POLICY);
    assert!(fixture.end().success());
    let mut fixture = fixture.on_a_slow_disk(Duration::from_millis(40));
    fixture.start();
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch("nap");
    fixture.wait_for_program();
    let mut client = fixture.client();
    let mut slowest = Duration::ZERO;
    wait_until("the end of the program", || {
        let asked = Instant::now();
        call_at_allowed_rate(&mut client, &Command::GetState {}).unwrap();
        slowest = slowest.max(asked.elapsed());
        !is_alive(fixture.program_pids().first().copied().unwrap_or_default())
    });
    let took = launched.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(8), "{took:?}");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert_eq!(listener.wait_for_end(&session.session_id), EndReason::Expired);
}

const SWITCH_MODE: &str =
    "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"switch_mode\",\"mode\":\"holiday\"}}\n";

fn greet(fixture: &ShepherddFixture) -> UnixStream {
    let mut stream = UnixStream::connect(fixture.socket()).unwrap();
    stream.write_all(b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"crowd\"}\n").unwrap();
    stream
}

/// Sends commands that are recorded, one at a time, until one gets no reply.
fn wait_until_disk_hangs(fixture: &ShepherddFixture) {
    let mut stream = greet(fixture);
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    lines.next().unwrap().expect("a welcome");
    wait_until("the disk hangs", || {
        stream.write_all(SWITCH_MODE.as_bytes()).unwrap();
        lines.next().unwrap().is_err()
    });
}

/// Opens many connections with commands that are recorded, until the daemon reports that the disk hangs.
fn flood_until_overloaded(fixture: &ShepherddFixture) -> Vec<UnixStream> {
    let mut crowd = Vec::new();
    wait_until("the hanging disk is noticed", || {
        for _ in 0..16 {
            let mut stream = greet(fixture);
            stream.write_all(SWITCH_MODE.repeat(4).as_bytes()).unwrap();
            crowd.push(stream);
        }
        fixture.failed_check("store").is_some()
    });
    crowd
}

/// Kills the tracer that delays the daemon's writes.
fn unblock_disk(fixture: &ShepherddFixture) {
    let pid = fixture.daemon_pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap();
    let tracer = Pid::from_raw(tracer.trim().parse().unwrap()).expect("a tracer");
    kill_process(tracer, Signal::KILL).unwrap();
}

/// While the disk hangs, the session still ends on time, the number of waiting commands is bounded, and afterwards all
/// of it is recorded (S8.4b, S13.3b, S13.4).
#[test]
fn heavy_while_a_disk_hangs_nothing_is_granted_and_a_session_ends_on_time() {
    let length = Duration::from_secs(12);
    let mut fixture = ShepherddFixture::running(&POLICY.replace("max_run = \"3s\"", "max_run = \"12s\""));
    assert!(fixture.end().success());
    // The first 40 syncs, which include those of the launch, are fast; each later one takes two minutes.
    let mut fixture = fixture.with_injected_fault("fsync,fdatasync", "delay_enter=120000000:when=40+");
    fixture.start();
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch("nap");
    fixture.wait_for_program();
    // On a busy machine the launch itself takes a while. Its time belongs to the deadline, but isn't charged.
    let seen_running = Instant::now();
    wait_until_disk_hangs(&fixture);
    let crowd = flood_until_overloaded(&fixture);
    let complaint = fixture.failed_check("store").unwrap();
    assert!(complaint.contains("the disk does not answer"), "{complaint}");
    let refused = fixture.refusal("nap");
    assert_eq!(refused.code, ErrorCode::Denied);
    let given =
        fixture.call(Command::ExtendCurrent { by: Duration::from_secs(600).into(), session_id: None });
    assert!(given.is_err(), "{given:?}");
    let end = listener.wait_for_end(&session.session_id);
    let (took, ran) = (launched.elapsed(), seen_running.elapsed());
    assert_eq!(end, EndReason::Expired);
    assert!(took >= length && took < length + Duration::from_secs(5), "{took:?}");
    assert_eq!(fixture.program_pids(), Vec::<i32>::new());
    let refused = fixture.refusal("nap");
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    assert!(refused.sentence.contains("the disk does not answer"), "{refused:?}");
    drop(crowd);
    unblock_disk(&fixture);
    wait_until("the store works again", || fixture.failed_check("store").is_none());
    assert_eq!(fixture.recorded_ends().len(), 1);
    assert_eq!(fixture.count_audit_records(|what| matches!(what, AuditKind::WarningGiven { .. })), 1);
    let used = fixture.recorded_usage("nap");
    assert!(used + Duration::from_millis(500) >= ran, "{used:?} of {ran:?} are on record");
    fixture.launch("nap");
    fixture.wait_for_program();
}

/// S8.4b: the daemon uses the store as soon as it can be opened, without a restart.
#[test]
fn a_store_that_can_be_opened_later_is() {
    let mut fixture = ShepherddFixture::running(POLICY);
    fixture.launch("brief");
    fixture.wait_until_idle();
    fixture.launch("nap");
    fixture.wait_for_program();
    fixture.kill();
    let data = fixture.data();
    let set_mode = |mode| fs::set_permissions(&data, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o777);
    fixture.start();
    wait_until("the program is ended, because its time is not counted", || fixture.program_pids().is_empty());
    let complaint = fixture.failed_check("store").unwrap();
    assert!(complaint.contains("run `chmod go-w"), "{complaint}");
    assert_eq!(fixture.refusal("brief").reasons[0].code(), "store-unavailable");
    let refused = fixture.call(Command::SwitchMode { mode: Some("holiday".to_owned()) });
    assert_not_recorded(refused);
    set_mode(0o700);
    // A request makes the daemon try again; without one, it tries within a minute.
    wait_until("the store works again", || {
        fixture.refusal("brief");
        fixture.failed_check("store").is_none()
    });
    assert_eq!(fixture.refusal("brief").reasons[0].code(), "quota-exhausted");
    assert_eq!((fixture.state().session, fixture.state().mode), (None, "school".to_owned()));
    let lost = fixture.recorded_ends().into_iter().filter(|end| *end == EndReason::Lost);
    assert_eq!(lost.count(), 1);
    // The refusals meanwhile are recorded too.
    let denied = |what: &AuditKind| matches!(what, AuditKind::LaunchDenied { reasons, .. } if reasons[0].code() == "store-unavailable");
    assert!(fixture.count_audit_records(denied) >= 1);
    fixture.launch("nap");
    fixture.wait_for_program();
    fixture.kill();
    fixture.assert_chain_is_sound();
    fixture.start();
    assert!(fixture.state().session.is_some());
}

/// Without heartbeats, the session is warned of and ends on time, and its progress is written to the store.
#[test]
fn heavy_a_session_ends_on_time_without_heartbeats() {
    let mut fixture = ShepherddFixture::running(POLICY);
    assert!(fixture.end().success());
    let mut fixture = fixture.without_heartbeat();
    fixture.start();
    assert_eq!(fixture.failed_check("heartbeat"), None, "nobody needs one yet");
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch("nap");
    wait_until("the trouble is noticed", || fixture.failed_check("heartbeat").is_some());
    let complaint = fixture.failed_check("heartbeat").unwrap();
    assert!(complaint.contains("shepherd.pulse"), "{complaint}");
    assert_expires_on_time(&mut listener, &session.session_id, launched);
    assert_eq!(fixture.failed_check("store"), None);
    // Launches are still allowed.
    fixture.launch("nap");
    fixture.wait_for_program();
}

#[test]
fn a_damaged_database_locks_the_daemon_and_ends_the_session() {
    let mut fixture = ShepherddFixture::running(&POLICY.replace("max_run = \"3s\"", "max_run = \"1h\""));
    fixture.launch("nap");
    let player = fixture.wait_for_program();
    fixture.kill();
    assert!(is_alive(player), "nobody ends it");
    for name in ["shepherd.db", "shepherd.db-wal"] {
        fs::write(fixture.data().join(name), "not a database at all, by no means").unwrap();
    }
    fixture.start();
    wait_until("the program has ended", || fixture.program_pids().is_empty());
    let complaint = fixture.failed_check("store").unwrap();
    assert!(complaint.contains("is damaged") && complaint.contains("kept in"), "{complaint}");
    let refused = fixture.refusal("nap");
    assert_eq!(refused.reasons[0].code(), "store-unavailable", "{refused:?}");
    fixture.assert_no_processes_left();
}

#[test]
fn records_lost_on_a_full_disk_are_logged_at_shutdown() {
    let mut fixture = fixture_on_small_disk();
    fill_disk(&fixture);
    wait_until("the trouble is noticed", || {
        fixture.refusal("nothing");
        fixture.failed_check("store").is_some()
    });
    assert!(fixture.end().success());
    assert!(
        fixture.log().contains("writes are lost, because the store could not be written"),
        "{}",
        fixture.log()
    );
}
