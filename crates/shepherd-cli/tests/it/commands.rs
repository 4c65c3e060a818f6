use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value, json};
use ward_ledger::{Format, Key, Ledger, Options};

fn shepherd(arguments: &[&str]) -> Output {
    let built = env!("CARGO_BIN_EXE_shepherd");
    let program = std::env::var_os("NEXTEST_BIN_EXE_shepherd").unwrap_or_else(|| built.into());
    Command::new(program).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn log_of_three(folder: &Path, options: Options) -> PathBuf {
    let path = folder.join("audit.log");
    let (mut ledger, _) = Ledger::open(&path, options).unwrap();
    for number in 1..=3 {
        ledger.append(Map::from_iter([("n".to_owned(), json!(number))])).unwrap();
    }
    path
}

fn plain() -> Options {
    Options::new(Format::new("event_hash").unwrap())
}

#[test]
fn the_tour_keeps_its_promises_and_leaves_nothing_behind() {
    let output = shepherd(&[]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(told.contains("none is left"), "{told}");
    assert!(told.contains("broken at record 2"), "{told}");
    assert!(!told.contains('\x1b'), "no colours but on a terminal");
}

#[test]
fn doctor_speaks_to_people_and_to_scripts() {
    let told = text(&shepherd(&["doctor"]).stdout);
    assert!(told.contains("process group:"), "{told}");
    assert!(told.contains("filesystem:"), "{told}");
    let json: Value = serde_json::from_slice(&shepherd(&["doctor", "--output", "json"]).stdout).unwrap();
    assert_eq!(json["containments"]["offers"].as_array().unwrap().len(), 4);
    assert!(json["sandbox"]["filesystem"]["state"].is_string());
}

#[test]
fn a_sound_log_is_0_and_a_tampered_one_is_1() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_of_three(folder.path(), plain());
    let output = shepherd(&["audit", "verify", log.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let edited = std::fs::read_to_string(&log).unwrap().replace("\"n\":2", "\"n\":7");
    std::fs::write(&log, edited).unwrap();
    let output = shepherd(&["audit", "verify", log.to_str().unwrap(), "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["broken"]["sequence"], 2);
    assert_eq!(json["broken"]["kind"], "edited");
}

#[test]
fn a_signed_log_needs_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    let log = log_of_three(folder.path(), plain().with_key(Key::load_or_create(&key_file).unwrap()));
    let log = log.to_str().unwrap();
    assert_eq!(shepherd(&["audit", "verify", log]).status.code(), Some(1));
    let output = shepherd(&["audit", "verify", log, "--key", key_file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn mistakes_are_2_and_what_is_not_there_is_3_and_says_so() {
    assert_eq!(shepherd(&["adit"]).status.code(), Some(2));
    let output = shepherd(&["audit", "verify", "/nonexistent/audit.log"]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stderr);
    assert!(told.starts_with("error: could not check /nonexistent/audit.log: "), "{told}");
}

#[test]
fn help_has_examples() {
    let help = text(&shepherd(&["--help"]).stdout);
    assert!(help.contains("Examples:\n  shepherd "), "{help}");
}
