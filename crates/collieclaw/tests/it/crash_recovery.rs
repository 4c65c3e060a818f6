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

fn house() -> TestAgent {
    TestAgent::new()
        .with_config_change("autonomy = \"supervised\"", "autonomy = \"full\"")
        .with_mock_fixture(TURN)
}

/// Runs a turn with this message, and lets `strace` inject a fault into its main thread.
fn turn_with(house: &TestAgent, message: &str, inject: &[&str]) -> Command {
    let strace = [&["-qq", "-o", "/dev/null", "-e", "signal=none"], inject].concat();
    let mut command = house.command_through("strace", &strace, &["agent", "-m", message]);
    command.env("COLLIECLAW_LOG", "off");
    command
}

fn output(command: &mut Command) -> std::process::Output {
    command.output().expect("strace is missing: run `cargo xtask setup`")
}

/// Kills a turn at one of its system calls. Returns whether the turn got that far.
fn killed_at(house: &TestAgent, call: &str, count: usize) -> bool {
    age_intents(house);
    let inject = format!("inject={call}:signal=KILL:when={count}");
    let ended = output(&mut turn_with(house, &format!("{call}-{count}"), &["-e", &inject]));
    assert!(ended.status.signal() == Some(9) || ended.status.code() == Some(0), "{ended:?}");
    !ended.status.success()
}

/// Makes unfinished temporary files look older than an hour, the age at which the next process removes them.
fn age_intents(house: &TestAgent) {
    let long_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
    let intents = fs::read_dir(house.home().join("intents")).into_iter().flatten().flatten();
    for intent in intents.filter(|intent| intent.path().extension().is_some_and(|ending| ending == "new")) {
        fs::File::options().write(true).open(intent.path()).unwrap().set_modified(long_ago).unwrap();
    }
}

/// Counts how often each mark was left.
fn marks(house: &TestAgent) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(house.workspace().join("marks")).unwrap_or_default();
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
fn check_consistency(house: &TestAgent) -> Vec<Value> {
    // The next process recovers the state.
    assert_eq!(house.run(&["tool", "run", "time"]).code, 0);
    let verify = house.run(&["receipt", "verify"]);
    assert_eq!(verify.code, 0, "{verify:?}");
    let begun = fs::read_dir(house.home().join("intents")).unwrap().map(|entry| entry.unwrap().path());
    let open = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json" || ending == "asked");
    assert_eq!(begun.filter(open).count(), 0);
    let conversations = house.run(&["memory", "list", "--limit", "1000", "--output", "json"]).json();
    for conversation in conversations.as_array().unwrap() {
        let id = conversation["conversation_id"].as_str().unwrap();
        let turns = house.run(&["memory", "show", id, "--output", "json"]).json();
        let told: Vec<&str> =
            turns.as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
        assert_eq!(told, ["user", "assistant", "tool", "assistant"], "whole, or not at all");
    }
    match house.run(&["receipt", "list", "--limit", "1000", "--output", "json"]).json() {
        Value::Array(receipts) => receipts,
        other => panic!("{other}"),
    }
}

#[test]
fn a_kill_at_any_stage_leaves_no_half_turn_and_one_receipt_for_every_call() {
    let house = house();
    let mut killed = Vec::new();
    for call in STAGES {
        let kills = (1..).take_while(|count| killed_at(&house, call, *count)).count();
        assert!(kills > 0, "{call} was never reached");
        killed.extend((1..=kills).map(|count| format!("{call}-{count}")));
    }
    let receipts = check_consistency(&house);
    let marks = marks(&house);
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
fn killed_after_approval_at(house: &TestAgent, call: &str, count: usize) -> bool {
    age_intents(house);
    let inject = format!("inject={call}:signal=KILL:when={count}");
    let mut terminal = AgentTerminal::open();
    let mut command = turn_with(house, &format!("{call}-{count}"), &["-e", &inject]);
    command.stdin(terminal.slave()).stdout(Stdio::null()).stderr(terminal.slave());
    let mut turn = command.spawn().expect("strace is missing: run `cargo xtask setup`");
    drop(command);
    let ended = loop {
        if let Some(ended) = turn.try_wait().unwrap() {
            break ended;
        }
        // Input typed before the question is discarded, so the answer is typed until it counts.
        terminal.type_in("y\n");
        std::thread::sleep(Duration::from_millis(20));
    };
    terminal.close_slave();
    assert!(ended.signal() == Some(9) || ended.code() == Some(0), "{ended:?}: {}", terminal.read_to_end());
    !ended.success()
}

/// C8.1, C8.4: also for a call that needs an approval.
#[test]
fn a_kill_at_any_stage_of_a_call_with_a_question_leaves_one_receipt() {
    let house = TestAgent::new().with_mock_fixture(TURN);
    let mut killed = Vec::new();
    for call in ["write", "fsync", "flock", "rename", "unlink"] {
        let kills = (1..).take_while(|count| killed_after_approval_at(&house, call, *count)).count();
        assert!(kills > 0, "{call} was never reached");
        killed.extend((1..=kills).map(|count| format!("{call}-{count}")));
    }
    let receipts = check_consistency(&house);
    let marks = marks(&house);
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
fn killed_when_shown(house: &TestAgent, text: &str) {
    let mut terminal = AgentTerminal::open();
    let mut command = house.command(&["agent", "-m", "go"]);
    command.env("TERM", "xterm").stdin(terminal.slave()).stderr(terminal.slave());
    let mut agent = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for(text);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn a_kill_while_somebody_is_asked_or_the_model_thinks_leaves_nothing_but_that_it_was_attempted() {
    let write = "[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n";
    let asks = TestAgent::new().with_mock_fixture(&format!("[[round]]\n{write}"));
    killed_when_shown(&asks, "Approve? [y/N] ");
    let thinks = TestAgent::new().with_mock_fixture(&format!("[[round]]\ndelay = \"50s\"\n{write}"));
    killed_when_shown(&thinks, "thinking");
    let attempted = json!(["denied", "interrupted", "none"]);
    for (house, expected) in [(asks, vec![attempted]), (thinks, vec![])] {
        let receipts = check_consistency(&house);
        let of_it = receipts.iter().filter(|receipt| receipt["tool"] == "file_write");
        let told = of_it.map(|of| json!([of["status"], of["reason_code"], of["approver"]]));
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(!house.workspace().join("x").exists());
        assert_eq!(house.run(&["memory", "list", "--output", "json"]).json(), json!([]));
    }
}

/// C8.4: a result without a receipt is not passed on, even if the tool has run.
#[test]
fn a_receipt_that_finds_no_room_after_the_call_withholds_its_result() {
    let house = house();
    assert_eq!(house.run(&["agent", "-m", "before"]).code, 0);
    let log = house.home().join("tool_receipts.log");
    let inject = ["-P", log.to_str().unwrap(), "-e", "inject=write:error=ENOSPC"];
    let told: AgentOutput = agent_output(output(&mut turn_with(&house, "unwritten", &inject)));
    assert_eq!((told.code, told.out.as_str()), (9, ""), "{told:?}");
    assert!(told.err.contains("No space left"), "{told:?}");
    assert_eq!(marks(&house).get("unwritten"), Some(&1), "it ran before");
    let receipts = check_consistency(&house);
    assert_eq!(receipts_of(&receipts, "unwritten"), ["failed"], "and so it is on record");
    let kept = house.run(&["memory", "search", "receipt", "--output", "json"]).json();
    let told = kept.to_string();
    assert!(told.contains("The tool may have run") && !told.contains("exit_code"), "{told}");
}

/// A command fills the disk: nothing more runs, and everything works again once there is space.
#[test]
fn a_disk_that_a_command_has_filled_stops_everything_until_there_is_room() {
    let house = house();
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
    let told = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(crate::support::program())
        .arg(house.path())
        .arg(TURN)
        .output()
        .expect("unshare is missing: run `cargo xtask setup`");
    let told = agent_output(told);
    let codes: Vec<&str> = told.out.lines().filter(|line| line.starts_with("code ")).collect();
    let [first, second, third, verified] = codes.as_slice() else { panic!("{told:?}") };
    assert_eq!([first, third, verified], [&"code 0"; 3], "{told:?}");
    assert!(["code 1", "code 9"].contains(second), "{told:?}");
    assert!(told.err.contains("No space left"), "{told:?}");
    assert!(told.out.contains("\nfirst\n") && told.out.contains("\nthird\n"), "{told:?}");
    assert!(told.out.ends_with("\n2\n"), "both whole turns are remembered: {told:?}");
}
