//! Receipts (C8): every attempt has exactly one, and the chain stays valid with many processes. `crash_recovery` tests
//! `kill -9`.
//!
//! `receipt verify` finds every kind of change (C8.2).

use std::collections::BTreeSet;
use std::fs;

use crate::support::{AgentTerminal, TestAgent};

#[test]
fn a_receipt_has_every_member_and_its_hash_can_be_computed_by_anyone() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.workspace().join("a"), "text").unwrap();
    test_agent.run(&["tool", "run", "file_read", "--json", r#"{"path":"a"}"#]);
    let receipt = &test_agent.receipts()[0];
    for (member, expected) in [
        ("conversation_id", "by-hand"),
        ("tool", "file_read"),
        ("status", "allowed"),
        ("risk", "low"),
        ("decision", "allow"),
        ("reason_code", "reads-inside"),
        ("approver", "rules"),
    ] {
        assert_eq!(receipt[member], expected, "{member}");
    }
    assert!(receipt["id"].as_str().unwrap().starts_with("receipt-"));
    assert!(receipt["timestamp"].as_str().unwrap().ends_with('Z'));
    let hash = |text: &str| collieclaw_agent::receipts::hash_text(text);
    assert_eq!(receipt["args_hash"], hash(r#"{"path":"a"}"#));
    let mut without = receipt.clone();
    let own = without.as_object_mut().unwrap().remove("receipt_hash").unwrap();
    assert_eq!(own, collieclaw_agent::receipts::hash_json(&without).unwrap());
    assert_eq!(receipt["sequence"], 1);
    assert_eq!(receipt["policy_hash"].as_str().unwrap().len(), 64);
}

#[test]
fn every_kind_of_attempt_has_one() {
    let test_agent = TestAgent::new();
    let run = |tool: &str, json: &str| test_agent.run(&["tool", "run", tool, "--json", json]).code;
    assert_eq!(run("time", "{}"), 0);
    assert_eq!(run("file_read", r#"{"path":"/etc/passwd"}"#), 4);
    assert_eq!(run("file_read", r#"{"path":"not there"}"#), 1);
    assert_eq!(run("file_read", r#"{"pth":"x"}"#), 1);
    assert_eq!(run("file_read", r#"["/etc/passwd"]"#), 1, "a list is no object, and would not be shown");
    assert_eq!(run("format_disk", "{}"), 4);
    assert_eq!(run("file_write", r#"{"path":"x","content":"y"}"#), 5);
    test_agent.run(&["estop"]);
    assert_eq!(run("time", "{}"), 8);
    let words: Vec<String> =
        test_agent.receipt_summaries().iter().map(|words| words[1..].join(" ")).collect();
    assert_eq!(
        words,
        [
            "allowed looks-only",
            "denied forbidden-path",
            "failed tool-failed",
            "failed bad-arguments",
            "failed bad-arguments",
            "denied tool-not-offered",
            "denied no-operator",
            "denied estop",
        ]
    );
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn a_receipt_that_can_not_be_written_lets_nothing_run() {
    let test_agent = TestAgent::new().with_full_autonomy();
    fs::create_dir(test_agent.home().join("tool_receipts.log")).unwrap();
    let write = test_agent.run(&["tool", "run", "file_write", "--json", r#"{"path":"x","content":"y"}"#]);
    assert_eq!(write.code, 9, "{write:?}");
    assert!(!test_agent.workspace().join("x").exists());
}

#[test]
fn an_intent_that_can_not_be_written_lets_nothing_run() {
    let test_agent = TestAgent::new().with_full_autonomy();
    fs::write(test_agent.home().join("intents"), "a file where a folder should be").unwrap();
    let write = test_agent.run(&["tool", "run", "file_write", "--json", r#"{"path":"x","content":"y"}"#]);
    assert_eq!(write.code, 9, "{write:?}");
    assert!(!test_agent.workspace().join("x").exists());
}

#[test]
fn processes_that_write_at_once_make_one_chain() {
    let test_agent = TestAgent::new();
    let mut agents: Vec<_> =
        (0..8).map(|_| test_agent.command(&["tool", "run", "time"]).spawn().unwrap()).collect();
    for agent in &mut agents {
        assert_eq!(crate::support::wait_for_exit(agent), 0);
    }
    let receipts = test_agent.receipts();
    let ids: BTreeSet<&str> = receipts.iter().map(|receipt| receipt["id"].as_str().unwrap()).collect();
    assert_eq!((receipts.len(), ids.len()), (8, 8));
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn a_torn_last_line_is_called_that_and_the_next_call_goes_on() {
    let test_agent = TestAgent::new();
    test_agent.run(&["tool", "run", "time"]);
    let log = test_agent.home().join("tool_receipts.log");
    let mut text = fs::read_to_string(&log).unwrap();
    text.push_str("{\"approver\":\"ru");
    fs::write(&log, text).unwrap();
    let verify = test_agent.run(&["receipt", "verify"]);
    assert!(verify.out.contains("half-written"), "{verify:?}");
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn every_kind_of_tampering_is_noticed() {
    let tampered = |change: &dyn Fn(&mut Vec<String>)| {
        let test_agent = TestAgent::new();
        for _ in 0..4 {
            test_agent.run(&["tool", "run", "time"]);
        }
        let log = test_agent.home().join("tool_receipts.log");
        let mut lines: Vec<String> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
        change(&mut lines);
        fs::write(&log, lines.join("\n") + "\n").unwrap();
        let verify = test_agent.run(&["receipt", "verify"]);
        assert_eq!(verify.code, 9, "{verify:?}");
        verify.out
    };
    assert!(tampered(&|lines| drop(lines.remove(1))).contains("receipt 2"));
    assert!(tampered(&|lines| lines.swap(1, 2)).contains("receipt 2"));
    assert!(tampered(&|lines| lines.insert(1, lines[0].clone())).contains("receipt 2"));
    assert!(tampered(&|lines| lines[2] = "not json".to_owned()).contains("receipt 3"));
    assert!(tampered(&|lines| lines[1].truncate(40)).contains("receipt 2"));
    assert!(tampered(&|lines| lines.truncate(2)).contains("CUT"), "the head covers more");
}

#[test]
fn a_log_without_its_head_is_not_sound_and_goes_on_only_when_somebody_says_so() {
    let test_agent = TestAgent::new();
    test_agent.run(&["tool", "run", "time"]);
    fs::remove_file(test_agent.home().join("tool_receipts.log.head")).unwrap();
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 9);
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 9, "nothing runs");
    assert_eq!(test_agent.run(&["receipt", "adopt"]).code, 2);
    assert_eq!(test_agent.run(&["receipt", "adopt", "--yes"]).code, 0);
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
    let log = fs::read_to_string(test_agent.home().join("tool_receipts.log")).unwrap();
    assert!(log.contains("ledger_recovery"), "it is on record: {log}");
}

#[test]
fn an_intent_that_nobody_can_read_has_a_receipt_all_the_same() {
    let test_agent = TestAgent::new();
    let intents = test_agent.home().join("intents");
    fs::create_dir_all(&intents).unwrap();
    fs::write(intents.join("receipt-0123.json"), "torn").unwrap();
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    assert_eq!(test_agent.receipts()[0]["id"], "receipt-0123");
    assert_eq!(test_agent.receipt_summaries()[0], ["unknown", "failed", "interrupted"]);
    assert_eq!(fs::read_dir(intents).unwrap().count(), 0);
}

/// Processes that start at the same time recover an interrupted call only once, at any stage.
#[test]
fn many_who_come_at_once_give_each_call_that_was_left_one_receipt() {
    let test_agent = TestAgent::new();
    let intents = test_agent.home().join("intents");
    fs::create_dir_all(&intents).unwrap();
    for number in 0..40 {
        let ending = if number % 2 == 0 { "asked" } else { "json" };
        fs::write(intents.join(format!("receipt-{number:04}.{ending}")), "torn").unwrap();
    }
    let mut openers: Vec<_> =
        (0..8).map(|_| test_agent.command(&["tool", "run", "time"]).spawn().unwrap()).collect();
    for opener in &mut openers {
        assert_eq!(crate::support::wait_for_exit(opener), 0);
    }
    let words = test_agent.receipt_summaries();
    for (status, expected) in [("denied", 20), ("failed", 20), ("allowed", 8)] {
        assert_eq!(words.iter().filter(|words| words[1] == status).count(), expected, "{status}");
    }
    let ids: BTreeSet<String> =
        test_agent.receipts().iter().map(|receipt| receipt["id"].to_string()).collect();
    assert_eq!(ids.len(), 48);
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn what_is_no_intent_is_left_alone_and_makes_nobody_wait() {
    let test_agent = TestAgent::new();
    let intents = test_agent.home().join("intents");
    fs::create_dir_all(&intents).unwrap();
    for ending in ["asked", "json", "new"] {
        let named = |name: &str| intents.join(format!("{name}.{ending}"));
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, named("receipt-01"), fifo, 0o600.into(), 0).unwrap();
        fs::create_dir(named("receipt-02")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", named("receipt-03")).unwrap();
        std::os::unix::fs::symlink(named("receipt-04"), named("receipt-04")).unwrap();
        std::os::unix::net::UnixListener::bind(named("receipt-05")).unwrap();
        fs::write(named("receipt-\u{1b}[2J\n"), "{}").unwrap();
        fs::write(named("notes"), "{}").unwrap();
    }
    let here = || fs::read_dir(&intents).unwrap().count();
    let before = here();
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    assert_eq!((test_agent.receipts().len(), here()), (1, before));
}

/// C8.1: a call that waits for an approval has one receipt, written at its end, even while other processes run.
#[test]
fn a_call_that_is_asked_about_belongs_to_its_process_alone() {
    let test_agent = TestAgent::new();
    let mut terminal = AgentTerminal::open();
    let mut command =
        test_agent.command(&["tool", "run", "file_write", "--json", r#"{"path":"x","content":""}"#]);
    command.stdin(terminal.slave()).stderr(terminal.slave());
    let mut asking = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for("Approve? ");
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    assert_eq!(test_agent.receipts().len(), 1);
    terminal.type_in("y\n");
    assert_eq!(crate::support::wait_for_exit(&mut asking), 0);
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    let words: Vec<String> =
        test_agent.receipt_summaries().into_iter().map(|words| words[..2].join(" ")).collect();
    assert_eq!(words, ["time allowed", "file_write allowed", "time allowed"]);
    assert_eq!(fs::read_dir(test_agent.home().join("intents")).unwrap().count(), 0);
}

/// Without an operator nothing is asked, and no question is stored.
#[test]
fn nobody_who_could_be_asked_needs_no_intent() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.home().join("intents"), "a file where a folder should be").unwrap();
    let file_write = ["tool", "run", "file_write", "--json", r#"{"path":"x","content":""}"#];
    // A folder that can't be listed stops every call; a missing folder is created when it is needed.
    assert_eq!(test_agent.run(&file_write).code, 9);
    fs::remove_file(test_agent.home().join("intents")).unwrap();
    assert_eq!(test_agent.run(&file_write).code, 5);
    assert!(!test_agent.home().join("intents").exists());
}

#[test]
fn a_model_that_writes_pages_into_names_and_arguments_fills_no_log() {
    let test_agent = TestAgent::new().with_mock_fixture(&format!(
        "[[round]]\n[[round.call]]\ntool = \"{}\"\n[[round.call]]\ntool = \"time\"\nargs = {{ time_zone = [\"{}\"] }}\n[[round]]\ntext = \"\"\n",
        "x".repeat(100_000),
        "y".repeat(100_000)
    ));
    let agent = test_agent.run(&["agent", "-m", "go"]);
    assert!(agent.err.len() < 10_000, "{} bytes of log", agent.err.len());
    assert!(fs::metadata(test_agent.home().join("audit.log")).unwrap().len() < 10_000);
    assert!(test_agent.receipts().iter().all(|receipt| receipt["tool"].as_str().unwrap().len() < 100));
}

/// A list that silently omits unreadable receipts would look complete.
#[test]
fn a_damaged_log_is_not_listed_as_if_it_were_whole() {
    let damaged = |damage: &dyn Fn(&std::path::Path)| {
        let test_agent = TestAgent::new();
        assert_eq!(test_agent.run(&["receipt", "list"]).code, 0, "there are none yet");
        for _ in 0..3 {
            test_agent.run(&["tool", "run", "time"]);
        }
        let log = test_agent.home().join("tool_receipts.log");
        damage(&log);
        let list = test_agent.run(&["receipt", "list"]);
        assert_eq!(list.code, 9, "{list:?}");
        assert!(!list.out.contains("no receipts yet"), "{list:?}");
        assert!(
            ["receipt verify", "Is a directory"].iter().any(|actual| list.err.contains(actual)),
            "{list:?}"
        );
        (list.out, test_agent.run(&["receipt", "verify"]).out)
    };
    let (_, gone) = damaged(&|log| fs::remove_file(log).unwrap());
    assert!(gone.contains("tool_receipts.log: "), "{gone}");
    damaged(&|log| fs::write(log, "").unwrap());
    damaged(&|log| {
        fs::remove_file(log).unwrap();
        fs::create_dir(log).unwrap();
    });
    damaged(&|log| {
        fs::remove_file(log).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, log, 0o600.into()).unwrap();
    });
    let (list, edited) = damaged(&|log| {
        let text = fs::read_to_string(log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        fs::write(log, format!("{}\nnonsense\n{}\n", lines[0], lines[2])).unwrap();
    });
    assert_eq!(list.lines().count(), 2, "what could be read: {list}");
    assert!(edited.contains("signed:    receipts 1 to 1, with key"), "{edited}");
}

/// A line that the head covers is never set aside.
#[test]
fn a_torn_line_that_the_head_vouches_for_promises_nothing() {
    let test_agent = TestAgent::new();
    for _ in 0..2 {
        test_agent.run(&["tool", "run", "time"]);
    }
    let log = test_agent.home().join("tool_receipts.log");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, &text[..text.len() - 30]).unwrap();
    let verify = test_agent.run(&["receipt", "verify"]);
    assert_eq!(verify.code, 9, "{verify:?}");
    assert!(verify.out.contains("half-written") && !verify.out.contains("sets it aside"), "{verify:?}");
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 9);
}
