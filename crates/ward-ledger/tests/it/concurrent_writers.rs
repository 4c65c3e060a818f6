//! Several processes that append to the same log.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{TestLog, options, writer_command};

/// Runs several writers at the same time, and returns the acknowledgements that each of them printed.
fn run_writers(log: &TestLog, writers: u64, each: u64, extra: &[&str]) -> Vec<String> {
    let children: Vec<Child> = (0..writers)
        .map(|number| {
            let mut command = writer_command(&log.path, &format!("writer-{number}"), each);
            command.args(extra).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        })
        .collect()
}

#[test]
fn eight_processes_append_without_loss_or_damage() {
    let log = TestLog::new(options());
    let outputs = run_writers(&log, 8, 25, &[]);
    let report = log.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!(report.records, 200);
    let mut acknowledged: Vec<u64> = outputs
        .iter()
        .flat_map(|output| output.lines().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()))
        .collect();
    acknowledged.sort_unstable();
    assert_eq!(acknowledged, (1..=200).collect::<Vec<u64>>());

    let mut next: BTreeMap<String, u64> = BTreeMap::new();
    for line in log.lines() {
        let record: Value = serde_json::from_slice(&line).unwrap();
        let expected = next.entry(record["tag"].as_str().unwrap().to_owned()).or_default();
        assert_eq!(record["number"], *expected, "each writer's records keep their order");
        *expected += 1;
    }
    assert_eq!(next.len(), 8);
}

#[test]
fn eight_processes_rotate_signed_segments_together() {
    let mut log = TestLog::new(options());
    let key = log.folder.path().join("key");
    run_writers(&log, 8, 10, &[&format!("key={}", key.display()), "segment=4000", "batch=3"]);
    log.key = Some(ward_ledger::LedgerKey::load(&key).unwrap());
    let report = log.verify();
    assert!(report.is_sound(), "{report}");
    assert_eq!(report.records, 240);
    assert!(report.segments > 10, "{report}");
}
