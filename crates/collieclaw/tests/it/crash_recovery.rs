//! `kill -9` at every stage of a turn: no half turn, a valid chain, one receipt for every call, no tool run twice (C8.4,
//! C10). Also receipts that can't be written on a full disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{AgentOutput, AgentTerminal, TestAgent, agent_output};

/// The system calls with which a turn changes, starts or waits for something. `strace` counts each call separately.
const STAGES: [&str; 9] =
    ["write", "pwrite64", "fsync", "fdatasync", "flock", "rename", "unlink", "clone3", "ppoll"];

/// A turn with one tool call, which leaves a mark containing the text of its message.
const TURN: &str = "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"echo {last_message} >> marks\" }\n\n\
                    [[round]]\ntext = \"done\"\n";

fn test_agent() -> TestAgent {
    TestAgent::new().with_full_autonomy().with_mock_fixture(TURN)
}

/// Runs a turn with this message, and lets `strace` inject a fault into its main thread.
fn turn_with(test_agent: &TestAgent, message: &str, inject: &[&str]) -> Command {
    let strace = [&["-qq", "-o", "/dev/null", "-e", "signal=none"], inject].concat();
    let mut command = test_agent.command_through("strace", &strace, &["agent", "-m", message]);
    command.env("COLLIECLAW_LOG", "off");
    command
}

fn output(command: &mut Command) -> std::process::Output {
    command.output().expect("strace is missing: run `cargo xtask setup`")
}

/// Kills a turn at one of its system calls. Returns whether the turn got that far.
fn killed_at(test_agent: &TestAgent, call: &str, count: usize) -> bool {
    age_intents(test_agent);
    let inject = format!("inject={call}:signal=KILL:when={count}");
    let ended = output(&mut turn_with(test_agent, &format!("{call}-{count}"), &["-e", &inject]));
    assert!(ended.status.signal() == Some(9) || ended.status.code() == Some(0), "{ended:?}");
    !ended.status.success()
}

/// Makes unfinished temporary files look older than an hour, the age at which the next process removes them.
fn age_intents(test_agent: &TestAgent) {
    let long_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
    let intents = fs::read_dir(test_agent.home().join("intents")).into_iter().flatten().flatten();
    for intent in intents.filter(|intent| intent.path().extension().is_some_and(|ending| ending == "new")) {
        fs::File::options().write(true).open(intent.path()).unwrap().set_modified(long_ago).unwrap();
    }
}

/// Counts how often each mark was left.
fn marks(test_agent: &TestAgent) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(test_agent.workspace().join("marks")).unwrap_or_default();
    text.lines().fold(BTreeMap::new(), |mut marks, line| {
        *marks.entry(line.to_owned()).or_default() += 1;
        marks
    })
}

/// Returns the texts of the receipts of the call that leaves this mark.
fn receipts_of<'r>(receipts: &'r [Value], mark: &str) -> Vec<&'r str> {
    let call = json!({ "command": format!("echo {mark} >> marks") });
    let hash = collieclaw_agent::receipts::hash_json(&call).unwrap();
    let of_it = receipts.iter().filter(|receipt| receipt["args_hash"] == hash);
    of_it.map(|receipt| receipt["status"].as_str().unwrap()).collect()
}

/// Checks the state after a crash: a valid chain, no open call, and complete conversations.
fn check_consistency(test_agent: &TestAgent) -> Vec<Value> {
    // The next process recovers the state.
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    let verify = test_agent.run(&["receipt", "verify"]);
    assert_eq!(verify.code, 0, "{verify:?}");
    let begun = fs::read_dir(test_agent.home().join("intents")).unwrap().map(|entry| entry.unwrap().path());
    let open = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json" || ending == "asked");
    assert_eq!(begun.filter(open).count(), 0);
    let conversations = test_agent.run(&["memory", "list", "--limit", "1000", "--output", "json"]).json();
    for conversation in conversations.as_array().unwrap() {
        let id = conversation["conversation_id"].as_str().unwrap();
        let turns = test_agent.run(&["memory", "show", id, "--output", "json"]).json();
        let actual: Vec<&str> =
            turns.as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
        assert_eq!(actual, ["user", "assistant", "tool", "assistant"], "whole, or not at all");
    }
    match test_agent.run(&["receipt", "list", "--limit", "1000", "--output", "json"]).json() {
        Value::Array(receipts) => receipts,
        other => panic!("{other}"),
    }
}

#[test]
fn a_kill_at_any_stage_leaves_no_half_turn_and_one_receipt_for_every_call() {
    let test_agent = test_agent();
    let mut killed = Vec::new();
    for call in STAGES {
        let kills = (1..).take_while(|count| killed_at(&test_agent, call, *count)).count();
        assert!(kills > 0, "{call} was never reached");
        killed.extend((1..=kills).map(|count| format!("{call}-{count}")));
    }
    let receipts = check_consistency(&test_agent);
    let marks = marks(&test_agent);
    let (mut failed, mut allowed, mut never_began) = (0, 0, 0);
    for message in killed {
        let left = marks.get(&message).copied().unwrap_or(0);
        assert!(left <= 1, "{message} ran twice");
        match (left, receipts_of(&receipts, &message).as_slice()) {
            (0, []) => never_began += 1,
            // The tool ran completely or in part; the crash came before the result was recorded.
            (_, ["failed"]) => failed += 1,
            (1, ["allowed"]) => allowed += 1,
            other => panic!("{message}: {other:?}"),
        }
    }
    assert!(failed > 0 && allowed > 0 && never_began > 0, "{failed} {allowed} {never_began}");
}

/// Kills a turn in the same way, after an operator has approved its call.
fn killed_after_approval_at(test_agent: &TestAgent, call: &str, count: usize) -> bool {
    age_intents(test_agent);
    let inject = format!("inject={call}:signal=KILL:when={count}");
    let mut terminal = AgentTerminal::open();
    let mut command = turn_with(test_agent, &format!("{call}-{count}"), &["-e", &inject]);
    command.stdin(terminal.slave()).stdout(Stdio::null()).stderr(terminal.slave());
    let mut turn = command.spawn().expect("strace is missing: run `cargo xtask setup`");
    drop(command);
    terminal.close_slave();
    let question = "Approve? ";
    // Some of the kills come before the question.
    if terminal
        .wait_until_or_closed(question, |seen| seen.find(question).map(|at| at + question.len()))
        .is_ok()
    {
        terminal.type_in("y\n");
    }
    let ended = turn.wait().unwrap();
    assert!(ended.signal() == Some(9) || ended.code() == Some(0), "{ended:?}: {}", terminal.read_to_end());
    !ended.success()
}

/// C8.1, C8.4: also for a call that needs an approval.
#[test]
fn a_kill_at_any_stage_of_a_call_with_a_question_leaves_one_receipt() {
    let test_agent = TestAgent::new().with_mock_fixture(TURN);
    let mut killed = Vec::new();
    for call in ["write", "fsync", "flock", "rename", "unlink"] {
        let kills = (1..).take_while(|count| killed_after_approval_at(&test_agent, call, *count)).count();
        assert!(kills > 0, "{call} was never reached");
        killed.extend((1..=kills).map(|count| format!("{call}-{count}")));
    }
    let receipts = check_consistency(&test_agent);
    let marks = marks(&test_agent);
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for message in killed {
        let left = marks.get(&message).copied().unwrap_or(0);
        let end = match (left, receipts_of(&receipts, &message).as_slice()) {
            (0, []) => "nobody was asked yet",
            (0, ["denied"]) => "denied",
            (0 | 1, ["failed"]) => "failed",
            (1, ["allowed"]) => "allowed",
            other => panic!("{message}: {other:?}"),
        };
        *ends.entry(end).or_default() += 1;
    }
    assert_eq!(ends.len(), 4, "{ends:?}");
}

/// Kills the agent once this text appears on its terminal.
fn killed_when_shown(test_agent: &TestAgent, text: &str) {
    let mut terminal = AgentTerminal::open();
    let mut command = test_agent.command(&["agent", "-m", "go"]);
    command.env("TERM", "xterm").stdin(terminal.slave()).stderr(terminal.slave());
    let mut agent = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for(text);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn a_kill_during_a_question_or_a_model_request_leaves_only_the_attempt() {
    let write = "[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n";
    let asks = TestAgent::new().with_mock_fixture(&format!("[[round]]\n{write}"));
    killed_when_shown(&asks, "Approve? [y/N] ");
    let thinks = TestAgent::new().with_mock_fixture(&format!("[[round]]\ndelay = \"50s\"\n{write}"));
    killed_when_shown(&thinks, "thinking");
    let attempted = json!(["denied", "interrupted", "none"]);
    for (test_agent, expected) in [(asks, vec![attempted]), (thinks, vec![])] {
        let receipts = check_consistency(&test_agent);
        let of_it = receipts.iter().filter(|receipt| receipt["tool"] == "file_write");
        let actual = of_it.map(|of| json!([of["status"], of["reason_code"], of["approver"]]));
        assert_eq!(actual.collect::<Vec<_>>(), expected);
        assert!(!test_agent.workspace().join("x").exists());
        assert_eq!(test_agent.run(&["memory", "list", "--output", "json"]).json(), json!([]));
    }
}

/// C8.4: a result without a receipt is not passed on, even if the tool has run.
#[test]
fn the_result_is_withheld_if_the_disk_is_too_full_for_the_receipt() {
    let test_agent = test_agent();
    assert_eq!(test_agent.run(&["agent", "-m", "before"]).code, 0);
    let log = test_agent.home().join("tool_receipts.log");
    let inject = ["-P", log.to_str().unwrap(), "-e", "inject=write:error=ENOSPC"];
    let actual: AgentOutput = agent_output(output(&mut turn_with(&test_agent, "unwritten", &inject)));
    assert_eq!((actual.code, actual.out.as_str()), (9, ""), "{actual:?}");
    assert!(actual.err.contains("No space left"), "{actual:?}");
    assert_eq!(marks(&test_agent).get("unwritten"), Some(&1), "it ran before");
    let receipts = check_consistency(&test_agent);
    assert_eq!(receipts_of(&receipts, "unwritten"), ["failed"], "and so it is on record");
    let kept = test_agent.run(&["memory", "search", "receipt", "--output", "json"]).json();
    let actual = kept.to_string();
    assert!(actual.contains("The tool may have run") && !actual.contains("exit_code"), "{actual}");
}

/// A command fills the disk: nothing more runs, and everything works again once there is space.
#[test]
fn a_full_disk_stops_all_calls_until_there_is_space() {
    let test_agent = test_agent();
    // Uses its own mount namespace, which an ordinary user may create within a user namespace.
    let script = r#"
        program=$1
        mount -t tmpfs -o size=6m,mode=0700 tmpfs "$2" && cd "$2" || exit 99
        export HOME="$2" COLLIECLAW_LOG=off COLLIECLAW_MOCK_FIXTURE="$2/fixture.toml"
        "$program" init > /dev/null && sed -i 's/"supervised"/"full"/' .collieclaw/config.toml
        printf '%s' "$3" > fixture.toml
        "$program" agent -m first; echo "code $?"
        "$program" tool run shell --json '{"command": "yes | head -c 20M > big"}' > /dev/null; echo "filled $?"
        "$program" agent -m second; echo "code $?"
        rm collieclaw-workspace/big
        "$program" agent -m third; echo "code $?"
        "$program" receipt verify; echo "code $?"
        cat collieclaw-workspace/marks
        "$program" memory list --output json | jq length
    "#;
    let actual = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(crate::support::program())
        .arg(test_agent.path())
        .arg(TURN)
        .output()
        .expect("unshare is missing: run `cargo xtask setup`");
    let actual = agent_output(actual);
    let codes: Vec<&str> = actual.out.lines().filter(|line| line.starts_with("code ")).collect();
    let [first, second, third, verified] = codes.as_slice() else { panic!("{actual:?}") };
    assert_eq!([first, third, verified], [&"code 0"; 3], "{actual:?}");
    assert!(["code 1", "code 9"].contains(second), "{actual:?}");
    assert!(actual.err.contains("No space left"), "{actual:?}");
    assert!(actual.out.contains("\nfirst\n") && actual.out.contains("\nthird\n"), "{actual:?}");
    assert!(actual.out.ends_with("\n2\n"), "both whole turns are remembered: {actual:?}");
}
