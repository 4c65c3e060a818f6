//! Daemons that are killed at random times (S8.2, S9.2b).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use shepherd_store::Store;
use shepherd_store::conformance::sample::{note_event, snapshot};

use crate::support::{TestStore, XorshiftRng, batch, fake_daemon, fake_daemon_command, key};

/// `process_kills.rs` kills the engine more often; this test checks numbered batches.
const KILLS: u64 = 100;

/// Checks that the store holds the batches 1 to `batches`, each complete and once.
fn check_content(place: &TestStore, batches: u64) {
    let store = place.open();
    assert_eq!(store.pending_event_count(), 0);
    let state = store.load().unwrap();
    assert_eq!(state.usage[&key()], Duration::from_secs(batches));
    assert_eq!(state.snapshot, snapshot(batches));
    drop(store);
    let mut expected = Vec::new();
    for number in 1..=batches {
        if number % 5 != 0 {
            expected.push(note_event(number));
        }
        if number % 5 == 1 {
            expected.push(note_event(number + 1_000_000));
        }
    }
    let found = place.events();
    assert_eq!(found.len(), expected.len());
    assert_eq!(found, expected);
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
}

#[test]
fn every_acknowledged_batch_survives_a_kill() {
    let place = TestStore::in_memory();
    let mut dice = XorshiftRng::new(1);
    let mut acknowledged = 0;
    let mut found_more = 0;
    for round in 0..KILLS {
        let mut child = fake_daemon_command(&place.folder, "100000").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Some daemons are killed while they open the store, others after some batches, so that some of them write even
        // on a busy machine.
        let awaited = dice.below(5).saturating_sub(1);
        let mut output: Vec<String> = lines.by_ref().take(awaited.try_into().unwrap()).collect();
        // The random time of the kill.
        thread::sleep(Duration::from_micros(dice.below(12_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        output.extend(lines);
        for line in output {
            match line.split_once(' ') {
                Some(("opened", number)) => {
                    let number: u64 = number.parse().unwrap();
                    let more = number.checked_sub(acknowledged).expect("what was acknowledged is there");
                    assert!(more <= 1, "round {round}: {number} batches, {acknowledged} acknowledged");
                    found_more += more;
                    acknowledged = number;
                }
                Some(("ack", number)) => {
                    acknowledged += 1;
                    assert_eq!(number, acknowledged.to_string());
                }
                _ => panic!("{line}"),
            }
        }
        if round % 50 == 49 {
            let in_flight = place.load().usage[&key()].as_secs() - acknowledged;
            assert!(in_flight <= 1);
            acknowledged += in_flight;
            check_content(&place, acknowledged);
        }
    }
    assert!(acknowledged > KILLS / 2, "the daemons had no time to write: {acknowledged}");
    assert!(found_more > 0, "no kill hit the moment between commit and answer");
}

/// Every system call that changes a file.
const CHANGING_CALLS: &str = "pwrite64,write,fdatasync,fsync,ftruncate,rename,unlink";

#[test]
fn a_kill_after_any_system_call_loses_nothing_acknowledged() {
    let mut reached = 0;
    for call in 1.. {
        let place = TestStore::killed_after(2);
        let output = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null"])
            .args(["-e", &format!("inject={CHANGING_CALLS}:signal=KILL:when={call}")])
            .arg(fake_daemon())
            .arg(&place.folder)
            .arg("3")
            .output()
            .expect("strace is missing: run `cargo xtask setup`");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let acknowledged = 2 + stdout.lines().filter(|line| line.starts_with("ack")).count() as u64;
        let found = place.load().usage[&key()].as_secs();
        assert!(found == acknowledged || found == acknowledged + 1, "call {call}: {found}, {acknowledged}");
        place.open().apply(&batch(found + 1)).unwrap();
        let report = place.verify();
        assert!(report.is_sound(), "call {call}: {report}");
        reached = call;
        if output.status.success() {
            break;
        }
    }
    assert!(reached > 30, "only {reached} calls were reached");
}

#[test]
fn a_crash_between_commit_and_log_writes_each_event_once() {
    let place = TestStore::new();
    // The log can't be written for a while. The events are acknowledged, and wait in the database.
    let mut store = place.open();
    store.apply(&batch(1)).unwrap();
    let log = place.file_path("audit.log");
    let moved = place.file_path("audit.log.elsewhere");
    std::fs::rename(&log, &moved).unwrap();
    std::fs::create_dir(&log).unwrap();
    store.apply(&batch(2)).unwrap();
    assert_eq!(store.pending_event_count(), 1);
    let refused = store.apply(&batch(3)).unwrap_err().to_string();
    assert!(refused.contains("could not continue the audit log "), "{refused}");
    drop(store);
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&moved, &log).unwrap();
    let mut store = place.open();
    assert_eq!(store.pending_event_count(), 0);
    assert_eq!(place.events(), [note_event(1), note_event(2)]);
    store.apply(&batch(3)).unwrap();
    assert_eq!(place.events(), [note_event(1), note_event(2), note_event(3)]);
    assert_eq!(store.load().unwrap().usage[&key()], Duration::from_secs(3));
    assert!(place.verify().is_sound());
}

/// S8.2: also after a power cut. The database is synced before the log, and both before the acknowledgement.
#[test]
fn a_batch_is_on_disk_before_it_is_acknowledged() {
    let place = TestStore::new();
    place.open().apply(&batch(1)).unwrap();
    let trace = place.file_path("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-y", "-e", "trace=write,pwrite64,fdatasync,fsync", "-o"])
        .arg(&trace)
        .arg(fake_daemon())
        .arg(&place.folder)
        .arg("1")
        .stdout(Stdio::null())
        .status()
        .expect("strace is missing: run `cargo xtask setup`");
    assert!(status.success());
    let trace = std::fs::read_to_string(trace).unwrap();
    let mut steps: Vec<(&str, &str)> = trace
        .lines()
        .filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('))
        .map(|(call, rest)| (call, rest.split(['<', '>']).nth(1).unwrap_or_default()))
        .map(|(call, path)| (call, path.rsplit('/').next().unwrap_or_default()))
        .collect();
    // From the first page of the batch to the acknowledgement.
    let answer = steps.iter().rposition(|step| *step == ("write", "null")).unwrap();
    steps.truncate(answer + 1);
    let opened = steps.iter().position(|step| *step == ("write", "null")).unwrap();
    steps.drain(..=opened);
    steps.dedup();
    assert_eq!(
        steps,
        [
            ("pwrite64", "shepherd.db-wal"),
            ("fsync", "shepherd.db-wal"),
            ("fsync", "data"),
            ("pwrite64", "shepherd.db-wal"),
            ("fsync", "shepherd.db-wal"),
            ("write", "audit.log"),
            ("fdatasync", "audit.log"),
            ("pwrite64", "audit.log.head"),
            ("fdatasync", "audit.log.head"),
            ("pwrite64", "shepherd.db.head"),
            ("write", "null"),
        ]
    );
}
