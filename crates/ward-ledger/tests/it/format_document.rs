//! `docs/ledger-format.md` is correct: its example is a valid log, and its programs verify our logs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use ward_ledger::verify::verify;
use ward_ledger::{Ledger, LedgerKey, LedgerOptions, Sha256Hash, seal};

use crate::support::{TestLog, format, object, options, receipt};

fn format_document_text() -> String {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    fs::read_to_string(package.join("../../docs/ledger-format.md")).unwrap()
}

/// Returns the only code block of the document in this language.
fn code_block(language: &str) -> String {
    let document = format_document_text();
    let (_, after) = document.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

/// Creates a log of several segments that is signed with a key from a file.
fn sample_log() -> (TestLog, PathBuf) {
    let mut log = TestLog::new(options());
    let key = log.folder.path().join("key");
    log.key = Some(LedgerKey::load_or_create(&key).unwrap());
    log.options = LedgerOptions::new(format()).with_segment_bytes(2000).with_key(log.key.clone().unwrap());
    let (mut ledger, _) = Ledger::open(&log.path, log.options.clone()).unwrap();
    for number in 1..=9 {
        ledger.append(receipt(number)).unwrap();
    }
    let largest = (1_i64 << 53) - 1;
    ledger.append(object(json!({"large": largest, "small": -largest, "é": "\u{2028}/</\t\u{8}"}))).unwrap();
    assert!(log.sibling_path(".000002").exists());
    (log, key)
}

fn run_command(command: &mut Command, what: &str) -> (bool, String) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{what} is missing ({error}): run `cargo xtask setup`"));
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn check_with_jq(log: &TestLog) -> (bool, String) {
    let (has_jq, _) = run_command(Command::new("jq").arg("--version"), "jq");
    assert!(has_jq);
    run_command(
        Command::new("sh").args(["-c", &code_block("sh"), "verify.sh"]).arg(&log.path).arg("receipt_hash"),
        "sh",
    )
}

fn check_with_python(log: &TestLog, key: &Path) -> (bool, String) {
    let mut command = Command::new("python3");
    command.args(["-c", &code_block("python"), "receipt_hash"]).arg(key).arg(log.sibling_path(".head"));
    for name in log.file_names().into_iter().filter(|name| name.contains(".jsonl.0")) {
        command.arg(log.folder.path().join(name));
    }
    run_command(command.arg(&log.path), "python3")
}

#[test]
fn other_programs_find_our_log_sound() {
    let (log, key) = sample_log();
    assert!(log.verify().is_sound());
    assert_eq!(check_with_jq(&log), (true, "all 10 links hold\n".to_owned()));
    assert_eq!(check_with_python(&log, &key), (true, String::new()));
    assert_eq!(check_with_python(&log, Path::new("-")), (true, String::new()));
}

#[test]
fn other_programs_find_the_same_breaks() {
    let (log, key) = sample_log();
    let first = log.sibling_path(".000001");
    let good = fs::read_to_string(&first).unwrap();
    fs::write(&first, good.replacen("receipt-2", "receipt-3", 1)).unwrap();
    assert_eq!(log.verify().broken.unwrap().sequence, 2);
    assert_eq!(check_with_jq(&log), (false, "broken at record 2\n".to_owned()));
    assert_eq!(check_with_python(&log, &key), (false, "broken at record 2\n".to_owned()));
    fs::write(&first, &good).unwrap();

    for (from, to) in [(",", ", "), ("allowed", "\\u0061llowed")] {
        let second = good.split_inclusive('\n').nth(1).unwrap();
        fs::write(&first, good.replacen(second, &second.replacen(from, to, 1), 1)).unwrap();
        assert_eq!(log.verify().broken.unwrap().sequence, 2);
        assert_eq!(check_with_jq(&log), (false, "broken at record 2\n".to_owned()));
        assert_eq!(check_with_python(&log, &key), (false, "broken at record 2\n".to_owned()));
    }
    fs::write(&first, &good).unwrap();

    let newest = fs::read_to_string(&log.path).unwrap();
    let kept: Vec<&str> = newest.split_inclusive('\n').collect();
    fs::write(&log.path, kept[..kept.len() - 1].concat()).unwrap();
    assert!(!log.verify().is_sound());
    assert_eq!(check_with_jq(&log), (false, "does not fit its head\n".to_owned()));
    assert_eq!(check_with_python(&log, &key), (false, "does not fit its head\n".to_owned()));
    fs::write(&log.path, &newest).unwrap();

    let other = log.folder.path().join("other");
    fs::write(&other, "0".repeat(64) + "\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(check_with_python(&log, &other), (false, "broken at record 1\n".to_owned()));
}

#[test]
fn the_example_in_the_document_is_a_log() {
    let example = code_block("json");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("receipts.jsonl");
    fs::write(&path, &example).unwrap();
    let report = verify(&path, &format(), None).unwrap();
    assert!(report.is_sound() && report.records == 2, "{report}");
    let one =
        seal(&format(), None, (1, Sha256Hash::GENESIS), example_receipt("receipt-1", "allowed")).unwrap();
    let two = seal(&format(), None, (2, one.hash), example_receipt("receipt-2", "denied")).unwrap();
    assert_eq!(example, String::from_utf8([one.line, two.line].concat()).unwrap());
}

fn example_receipt(id: &str, status: &str) -> serde_json::Map<String, serde_json::Value> {
    object(json!({"id": id, "tool": "file_read", "status": status}))
}
