//! Writers that are killed at any point, and system calls that fail.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::{TestLog, options, writer, writer_command};

const KILLS: u64 = 200;

#[test]
fn acknowledged_records_survive_hundreds_of_kills() {
    let log = TestLog::new(options());
    let mut acknowledged: Vec<(usize, String)> = Vec::new();
    for round in 0..KILLS {
        let mut child = writer_command(&log.path, &format!("round-{round}"), 10_000)
            .args(["segment=3000", "batch=2"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Some writers are killed during startup and others only after a few records, so that even on a busy
        // machine some of them get to write.
        let mut output: Vec<String> = lines.by_ref().take((round % 4 * 2).try_into().unwrap()).collect();
        // The moment of the kill.
        thread::sleep(Duration::from_micros(round * 7919 % 4000));
        child.kill().unwrap();
        child.wait().unwrap();
        output.extend(lines);
        for line in output {
            // The kill may have cut off the last line of the output.
            if let Some((sequence, hash)) = line.split_once(' ').filter(|(_, hash)| hash.len() == 64) {
                acknowledged.push((sequence.parse().unwrap(), hash.to_owned()));
            }
        }
    }
    let mut found = Vec::new();
    let mut segments: Vec<String> =
        log.file_names().into_iter().filter(|name| name.len() == "receipts.jsonl.000001".len()).collect();
    segments.push("receipts.jsonl".to_owned());
    drop(log.open());
    for segment in segments {
        for line in std::fs::read_to_string(log.folder.path().join(segment)).unwrap().lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            found.push(record["receipt_hash"].as_str().unwrap().to_owned());
        }
    }
    let report = log.verify();
    assert!(report.is_sound() && report.segments > 3, "{report}");
    assert_eq!(report.records, found.len() as u64);
    assert!(acknowledged.len() > 100, "the writers had no time to write");
    for (sequence, hash) in acknowledged {
        assert_eq!(found[sequence - 1], hash);
    }
}

/// Runs a writer of four records under `strace`, which makes a system call fail or kills the writer.
fn run_with_fault_injection(log: &TestLog, injection: &str) -> (bool, String) {
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={injection}")])
        .arg("-P")
        .arg(&log.path)
        .arg(writer())
        .arg(&log.path)
        .args(["injected", "4"])
        .output()
        .expect("strace is missing: run `cargo xtask setup`");
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn failing_system_calls_leave_a_valid_log() {
    for injection in [
        "write:error=ENOSPC:when=2",
        "write:error=EIO:when=1",
        "fdatasync:error=EIO:when=2",
        "fdatasync:signal=KILL:when=2",
        "write:signal=KILL:when=3",
    ] {
        let log = TestLog::new(options());
        let (success, output) = run_with_fault_injection(&log, injection);
        assert!(!success, "{injection} had no effect");
        let acknowledged = output.lines().count() as u64;
        let before = log.verify();
        assert!(before.broken.is_none(), "{injection}: {before}");
        log.append(1);
        let report = log.verify();
        assert!(report.is_sound(), "{injection}: {report}");
        assert!(report.records > acknowledged, "{injection}: {report}");
    }
}

/// The system calls with which a writer changes files or locks. `strace` counts each of them separately.
const CHANGING_CALLS: [&str; 8] =
    ["openat", "flock", "write", "pwrite64", "fdatasync", "fsync", "rename", "ftruncate"];

/// Runs a writer on a log with a torn end, and lets `strace` kill it at the given call. Returns true if the
/// writer reached that call.
fn kill_at_syscall(call: &str, count: u64) -> bool {
    let log = TestLog::new(options());
    log.append(2);
    let mut bytes = std::fs::read(&log.path).unwrap();
    bytes.extend_from_slice(b"{\"torn\":");
    std::fs::write(&log.path, &bytes).unwrap();
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("inject={call}:signal=KILL:when={count}")])
        .arg(writer())
        .arg(&log.path)
        .args(["killed", "4", "segment=1000"])
        // The test runner's value makes the loader try to open dozens of files that don't exist.
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .expect("strace is missing: run `cargo xtask setup`");
    let acknowledged = 2 + String::from_utf8(output.stdout).unwrap().lines().count() as u64;
    let before = log.verify();
    assert!(before.is_sound() && before.records >= acknowledged, "{call} {count}: {before}");
    log.append(1);
    let report = log.verify();
    assert!(report.is_sound() && report.torn.is_none(), "{call} {count}: {report}");
    assert!(log.sibling_path(".torn-3-1").exists(), "{call} {count}: the torn line is kept");
    let reported = json!(log.recovery_records()).to_string();
    assert!(reported.contains("receipts.jsonl.torn-3-1"), "{call} {count}: {reported}");
    !output.status.success()
}

#[test]
fn a_kill_after_any_system_call_loses_nothing_acknowledged_and_no_report() {
    for call in CHANGING_CALLS {
        let kills = (1..).take_while(|count| kill_at_syscall(call, *count)).count();
        assert!(kills > 0, "{call} was never reached");
    }
}

/// Runs a writer whose first write to the head fails, and returns its error message.
fn run_with_failing_head_write(log: &TestLog) -> String {
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=pwrite64:error=EIO:when=1", "-P"])
        .arg(log.sibling_path(".head"))
        .arg(writer())
        .arg(&log.path)
        .args(["injected", "1"])
        .output()
        .expect("strace is missing: run `cargo xtask setup`");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_torn_line_is_reported_even_if_the_head_can_not_be_written() {
    let log = TestLog::new(options());
    log.append(2);
    let mut bytes = std::fs::read(&log.path).unwrap();
    bytes.extend_from_slice(b"{\"torn\":");
    std::fs::write(&log.path, &bytes).unwrap();
    let message = run_with_failing_head_write(&log);
    assert!(message.contains("could not write the head of"), "{message}");
    drop(log.open());
    let reported = json!(log.recovery_records()).to_string();
    assert!(reported.contains("receipts.jsonl.torn-3-1"), "{reported}");
    assert!(log.verify().is_sound());
}

#[test]
fn a_record_is_rolled_back_if_the_head_can_not_be_written() {
    let log = TestLog::new(options());
    log.append(2);
    let message = run_with_failing_head_write(&log);
    assert!(message.contains("could not write the head of"), "{message}");
    assert_eq!(log.verify().records, 2);
    assert!(log.verify().is_sound());
}

#[test]
fn the_log_is_synced_before_its_head_and_the_head_before_the_acknowledgement() {
    let log = TestLog::new(options());
    log.append(1);
    let trace = log.folder.path().join("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-y", "-e", "trace=write,pwrite64,fdatasync", "-o"])
        .arg(&trace)
        .arg(writer())
        .arg(&log.path)
        .args(["traced", "1"])
        .stdout(Stdio::null())
        .status()
        .expect("strace is missing: run `cargo xtask setup`");
    assert!(status.success());
    let trace = std::fs::read_to_string(trace).unwrap();
    let steps: Vec<(&str, &str)> = trace
        .lines()
        .filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('))
        .map(|(call, rest)| (call, rest.split(['<', '>']).nth(1).unwrap_or_default()))
        .map(|(call, path)| (call, path.rsplit('/').next().unwrap_or_default()))
        .collect();
    assert_eq!(
        steps,
        [
            ("write", "receipts.jsonl"),
            ("fdatasync", "receipts.jsonl"),
            ("pwrite64", "receipts.jsonl.head"),
            ("fdatasync", "receipts.jsonl.head"),
            ("write", "null"),
        ]
    );
}
