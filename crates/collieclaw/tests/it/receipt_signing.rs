//! Signed receipts (C8.3): on by default; a chain that started without a key continues; a missing, exposed, wrong or
//! replaced key is reported, and never a reason to continue unsigned.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{TestAgent, wait_for_exit};

fn key_file(test_agent: &TestAgent) -> PathBuf {
    test_agent.home().join("receipts.key")
}

fn log_file(test_agent: &TestAgent) -> PathBuf {
    test_agent.home().join("tool_receipts.log")
}

fn call(test_agent: &TestAgent) -> i32 {
    test_agent.run(&["tool", "run", "time"]).code
}

/// Creates a home as an older version left it: receipts, and no key.
fn agent_with_unsigned_receipts(receipts: usize) -> TestAgent {
    let test_agent = TestAgent::new().with_config_change("signed = true", "signed = false");
    fs::remove_file(key_file(&test_agent)).unwrap();
    for _ in 0..receipts {
        assert_eq!(call(&test_agent), 0);
    }
    assert!(!key_file(&test_agent).exists());
    test_agent.with_config_change("signed = false", "signed = true")
}

#[test]
fn a_new_home_has_a_key_and_signs_from_the_first_receipt_on() {
    let test_agent = TestAgent::new();
    let made = fs::metadata(key_file(&test_agent)).unwrap().permissions();
    assert_eq!(made.mode() & 0o7777, 0o600);
    let secret = fs::read_to_string(key_file(&test_agent)).unwrap();
    assert_eq!(secret.trim_end().len(), 64);
    assert_eq!(call(&test_agent), 0);
    let verify = test_agent.run(&["receipt", "verify"]);
    assert!(verify.code == 0 && verify.out.contains("signed:    all, with key"), "{verify:?}");
    assert_eq!(test_agent.run(&["init"]).code, 0);
    assert_eq!(fs::read_to_string(key_file(&test_agent)).unwrap(), secret, "`init` makes no second one");
    for shown in [
        verify.out,
        test_agent.run(&["receipt", "list"]).out,
        fs::read_to_string(log_file(&test_agent)).unwrap(),
    ] {
        assert!(!shown.contains(secret.trim_end()));
    }
}

#[test]
fn a_chain_begun_without_a_key_continues_and_shows_the_signed_part() {
    for first in [&["init"][..], &["tool", "run", "time"]] {
        let test_agent = agent_with_unsigned_receipts(3);
        let before = test_agent.run(&["receipt", "verify"]);
        assert!(before.code == 0 && before.out.contains("unsigned:"), "{before:?}");
        assert_eq!(test_agent.run(first).code, 0);
        assert_eq!(call(&test_agent), 0);
        let after = test_agent.run(&["receipt", "verify"]);
        assert!(after.code == 0 && after.out.contains("signed:    from receipt 4 on"), "{after:?}");
        let fourth = fs::read_to_string(log_file(&test_agent)).unwrap().lines().nth(3).unwrap().to_owned();
        assert!(
            fourth.contains(r#""ledger_recovery":{"head":"signed"}"#),
            "the switch is on record: {fourth}"
        );
    }
}

#[test]
fn processes_that_come_first_at_once_make_one_key_and_one_chain() {
    let test_agent = agent_with_unsigned_receipts(2);
    let mut agents: Vec<_> =
        (0..8).map(|_| test_agent.command(&["tool", "run", "time"]).spawn().unwrap()).collect();
    for agent in &mut agents {
        assert_eq!(wait_for_exit(agent), 0);
    }
    let verify = test_agent.run(&["receipt", "verify", "--output", "json"]);
    assert_eq!((verify.code, &verify.json()["records"]), (0, &11.into()), "{verify:?}");
    let left = fs::read_dir(test_agent.home()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("receipts.")).collect();
    left.sort();
    assert_eq!(left, ["receipts.key", "receipts.signed"]);
}

#[test]
fn a_kill_during_key_creation_leaves_a_usable_home() {
    for round in 0..12 {
        let test_agent = agent_with_unsigned_receipts(2);
        let mut agent = test_agent.command(&["tool", "run", "time"]).stdout(Stdio::null()).spawn().unwrap();
        // A kill at any moment.
        std::thread::sleep(std::time::Duration::from_millis(round));
        agent.kill().unwrap();
        agent.wait().unwrap();
        assert_eq!(call(&test_agent), 0);
        let verify = test_agent.run(&["receipt", "verify"]);
        assert!(verify.code == 0 && verify.out.contains("signed:    from receipt 3 on"), "{verify:?}");
    }
    // Exactly the moment between signing and recording the key.
    let test_agent = agent_with_unsigned_receipts(2);
    assert_eq!(call(&test_agent), 0);
    fs::rename(key_file(&test_agent), test_agent.home().join("receipts.new")).unwrap();
    assert_eq!(call(&test_agent), 0);
    assert!(key_file(&test_agent).exists());
}

/// Checks how `verify` and a call react to a changed key or chain.
fn errors_after(touch: impl FnOnce(&TestAgent)) -> [String; 2] {
    let test_agent = TestAgent::new();
    assert_eq!(call(&test_agent), 0);
    touch(&test_agent);
    let said = [&["receipt", "verify"][..], &["tool", "run", "file_list"]].map(|arguments| {
        let done = test_agent.run(arguments);
        assert_eq!(done.code, 9, "{done:?}");
        assert!(done.err.contains("help: ") || done.err.contains("; run `"), "a cure: {done:?}");
        done.err
    });
    let receipts = fs::read_to_string(log_file(&test_agent)).unwrap();
    assert!(!receipts.contains("file_list"), "nothing ran");
    said
}

#[test]
fn missing_exposed_wrong_and_replaced_keys_are_distinguished_and_nothing_runs() {
    let check = |expected: &str, said: [String; 2]| {
        for said in said {
            assert!(said.contains(expected), "no `{expected}` in {said}");
        }
    };
    check(
        "receipts.key is missing",
        errors_after(|test_agent| fs::remove_file(key_file(test_agent)).unwrap()),
    );
    let loose = |test_agent: &TestAgent| {
        fs::set_permissions(key_file(test_agent), fs::Permissions::from_mode(0o644)).unwrap();
    };
    check("has mode 0644", errors_after(loose));
    check(
        "is malformed: expected 64",
        errors_after(|test_agent| fs::write(key_file(test_agent), "not a key\n").unwrap()),
    );
    let replaced =
        |test_agent: &TestAgent| fs::write(key_file(test_agent), format!("{}\n", "ab".repeat(32))).unwrap();
    check("receipts.key holds key", errors_after(replaced));
    check(
        "not a regular file",
        errors_after(|test_agent| {
            fs::rename(key_file(test_agent), test_agent.path().join("elsewhere")).unwrap();
            std::os::unix::fs::symlink(test_agent.path().join("elsewhere"), key_file(test_agent)).unwrap();
        }),
    );
    check("are not signed", errors_after(strip_signatures));
    check(
        "no key was given",
        errors_after(|test_agent| {
            let config = test_agent.home().join("config.toml");
            let text = fs::read_to_string(&config).unwrap();
            fs::write(config, text.replace("signed = true", "signed = false")).unwrap();
        }),
    );
}

#[test]
fn a_missing_key_is_not_recreated_and_restoring_it_helps() {
    let test_agent = TestAgent::new();
    assert_eq!(call(&test_agent), 0);
    let kept = test_agent.path().join("kept.key");
    fs::rename(key_file(&test_agent), &kept).unwrap();
    assert_eq!((call(&test_agent), test_agent.run(&["init"]).code), (9, 9));
    assert_eq!(test_agent.run(&["receipt", "adopt", "--yes"]).code, 9, "nobody's word replaces a key");
    assert!(!key_file(&test_agent).exists() && !test_agent.home().join("receipts.new").exists());
    fs::rename(&kept, key_file(&test_agent)).unwrap();
    assert_eq!((call(&test_agent), test_agent.run(&["receipt", "verify"]).code), (0, 0));
}

/// Rewrites the log as an attacker without the key would: the same receipts, a new chain, no signature.
fn strip_signatures(test_agent: &TestAgent) {
    rewrite_log(test_agent, &[]);
}

/// Rewrites the log in the same way, without these members.
pub(crate) fn rewrite_log(test_agent: &TestAgent, without: &[&str]) {
    let text = fs::read_to_string(log_file(test_agent)).unwrap();
    for file in ["tool_receipts.log", "tool_receipts.log.head"] {
        fs::remove_file(test_agent.home().join(file)).unwrap();
    }
    let options = ward_ledger::LedgerOptions::new(collieclaw_agent::receipts::ledger_format());
    let (mut forged, _) = ward_ledger::Ledger::open(&log_file(test_agent), options).unwrap();
    for line in text.lines() {
        let mut record: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        for own in ["sequence", "previous_hash", "receipt_hash", "key_id", "mac"].iter().chain(without) {
            record.remove(*own);
        }
        forged.append(record).unwrap();
    }
}

#[test]
fn a_log_without_its_signatures_continues_only_after_confirmation() {
    let test_agent = TestAgent::new();
    assert_eq!(call(&test_agent), 0);
    strip_signatures(&test_agent);
    assert_eq!(call(&test_agent), 9);
    assert_eq!(test_agent.run(&["receipt", "adopt", "--yes"]).code, 0);
    assert_eq!(call(&test_agent), 0);
    let verify = test_agent.run(&["receipt", "verify"]);
    assert!(verify.code == 0 && verify.out.contains("signed:    from receipt 2 on"), "{verify:?}");
}

/// A forgery without a key: a new log without signatures replaces the old one.
#[test]
fn a_forged_log_is_not_taken_for_one_that_never_had_a_key() {
    let check = |expected: &str, touch: &dyn Fn(&TestAgent)| {
        for said in errors_after(touch) {
            assert!(said.contains(expected), "no `{expected}` in {said}");
        }
    };
    check("receipts.key is missing", &|test_agent| {
        strip_signatures(test_agent);
        fs::remove_file(key_file(test_agent)).unwrap();
    });
    // Signed again with the forger's own key.
    check("receipts.key holds key", &|test_agent| {
        strip_signatures(test_agent);
        fs::remove_file(key_file(test_agent)).unwrap();
        fs::remove_file(test_agent.home().join("receipts.signed")).unwrap();
        let text = fs::read(log_file(test_agent)).unwrap();
        assert_eq!(call(test_agent), 0);
        assert_ne!(fs::read(log_file(test_agent)).unwrap(), text);
        // The home remembers the key that it has signed with before.
        fs::write(test_agent.home().join("receipts.signed"), "0123456789abcdef\n").unwrap();
    });
    check("does not say which key", &|test_agent| {
        fs::write(test_agent.home().join("receipts.signed"), "garbage\n").unwrap();
    });
}

#[test]
fn a_forged_log_stops_init_and_the_gateway_until_confirmation() {
    let test_agent = TestAgent::new();
    assert_eq!(call(&test_agent), 0);
    strip_signatures(&test_agent);
    fs::remove_file(key_file(&test_agent)).unwrap();
    assert_eq!(test_agent.run(&["init"]).code, 9);
    assert!(!key_file(&test_agent).exists(), "no key is made in silence");
    assert_eq!(test_agent.run(&["gateway", "--port", "0"]).code, 9);
    // An operator who has checked the log may accept it; the log records from where on it is signed.
    assert_eq!(test_agent.run(&["receipt", "adopt", "--yes"]).code, 0);
    assert_eq!(call(&test_agent), 0);
    let verify = test_agent.run(&["receipt", "verify"]);
    assert!(verify.code == 0 && verify.out.contains("signed:    from receipt 2 on"), "{verify:?}");
}

#[test]
fn a_missing_signed_log_is_an_error_until_confirmation() {
    let test_agent = TestAgent::new();
    let verify = test_agent.run(&["receipt", "verify"]);
    assert!(verify.code == 0 && verify.out.contains("no receipts yet"), "none was begun: {verify:?}");
    assert_eq!(call(&test_agent), 0);
    for file in ["tool_receipts.log", "tool_receipts.log.head"] {
        fs::rename(test_agent.home().join(file), test_agent.path().join(file)).unwrap();
    }
    for arguments in [&["receipt", "verify"][..], &["tool", "run", "time"]] {
        let done = test_agent.run(arguments);
        assert!(done.code == 9 && done.err.contains("tool_receipts.log is missing"), "{done:?}");
        assert!(done.err.contains("receipt adopt --yes"), "a cure: {done:?}");
    }
    assert!(!log_file(&test_agent).exists());
    assert_eq!(test_agent.run(&["receipt", "adopt", "--yes"]).code, 0);
    assert_eq!((call(&test_agent), test_agent.run(&["receipt", "verify"]).code), (0, 0));
}

#[test]
fn an_edit_with_recomputed_hashes_is_detected_by_the_key() {
    let test_agent = TestAgent::new();
    for _ in 0..2 {
        assert_eq!(call(&test_agent), 0);
    }
    let text = fs::read_to_string(log_file(&test_agent)).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last_mut().unwrap().as_object_mut().unwrap();
    last.insert("tool".to_owned(), "file_read".into());
    last.remove("receipt_hash");
    let hash = collieclaw_agent::receipts::hash_json(&Value::Object(last.clone())).unwrap();
    last.insert("receipt_hash".to_owned(), hash.into());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(log_file(&test_agent), text).unwrap();
    let verify = test_agent.run(&["receipt", "verify"]);
    assert!(verify.code == 9 && verify.out.contains("receipt 2 (edited)"), "{verify:?}");
}

#[test]
fn the_documented_openssl_command_checks_every_signature() {
    let test_agent = TestAgent::new();
    for _ in 0..3 {
        assert_eq!(call(&test_agent), 0);
    }
    let document = crate::docs::document("docs/collieclaw-receipts.md");
    let script = test_agent.path().join("signed.sh");
    fs::write(&script, crate::docs::blocks(&document, "sh openssl").concat()).unwrap();
    let check = || {
        let mut shell = Command::new("sh");
        let done = crate::support::agent_output(
            shell.arg(&script).args([log_file(&test_agent), key_file(&test_agent)]).output().unwrap(),
        );
        (done.code, done.out.trim_end().to_owned())
    };
    assert_eq!(
        check(),
        (0, "all 3 and the head are signed with this key".to_owned()),
        "`cargo xtask setup` installs jq"
    );
    let text = fs::read_to_string(log_file(&test_agent)).unwrap();
    let sequence = text.replace(r#""tool":"time""#, r#""tool":"shell""#);
    fs::write(log_file(&test_agent), &sequence).unwrap();
    assert_eq!(check(), (1, "receipt 1 is not signed with this key".to_owned()));
    fs::write(log_file(&test_agent), text).unwrap();
    let head = test_agent.home().join("tool_receipts.log.head");
    let forged = fs::read_to_string(&head).unwrap().replace(r#""count":3"#, r#""count":2"#);
    fs::write(&head, forged).unwrap();
    assert_eq!(check(), (1, "the head is not signed with this key".to_owned()));
}
