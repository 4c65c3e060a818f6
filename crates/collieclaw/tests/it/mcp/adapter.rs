//! The adapter program `collieclaw-mcp`: missing, broken, outdated or killed; and the files that it can see.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{
    AgentOutput, ChildGuard, TEST_TIMEOUT, TestAgent, agent_output, is_sleep_running, program,
    unique_sleep_seconds, wait_for_exit, wait_for_sleep, wait_for_value,
};

fn adapter_program() -> PathBuf {
    program().with_file_name("collieclaw-mcp")
}

fn words_argument(words: &str) -> String {
    json!({ "words": words }).to_string()
}

impl TestAgent {
    /// Runs a copy of our program, with this script in place of the adapter, or without an adapter.
    fn run_with_adapter(&self, script: Option<&str>, arguments: &[&str]) -> AgentOutput {
        let folder = self.path().join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        let ours = folder.join("collieclaw");
        if !ours.exists() {
            std::fs::copy(program(), &ours).unwrap();
        }
        if let Some(script) = script {
            let beside = folder.join("collieclaw-mcp");
            std::fs::write(&beside, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&beside, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let asked = self.command(arguments);
        let variables = asked.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut command = Command::new(ours);
        command.args(arguments).env_clear().envs(variables).stdin(Stdio::null());
        agent_output(command.output().unwrap())
    }
}

#[test]
fn without_the_adapter_nothing_is_called_and_the_cure_is_shown() {
    let test_agent = TestAgent::new().with_fake_server("plain", "").with_approved_server("fake");
    let cure = "help: build both programs with `cargo build --release --package collieclaw`, and keep them in one folder";
    for arguments in [&["mcp", "approve", "--yes", "fake"][..], &["mcp", "serve"]] {
        let done = test_agent.run_with_adapter(None, arguments);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains("collieclaw-mcp is missing") && done.err.contains(cure), "{}", done.err);
    }
    let doctor = test_agent.run_with_adapter(None, &["doctor"]);
    assert!(doctor.out.contains("✗ MCP: ") && doctor.out.contains("build both programs"), "{}", doctor.out);
    assert!(test_agent.run(&["doctor"]).out.contains("✓ MCP: adapter "));
    let older = test_agent.run_with_adapter(Some("echo collieclaw-mcp 0.0.0"), &["doctor"]);
    assert!(older.out.contains("has the version `collieclaw-mcp 0.0.0` instead of"), "{}", older.out);
    assert!(older.out.contains("build both programs"), "{}", older.out);
    let beside = test_agent.path().join("bin/collieclaw-mcp");
    std::fs::set_permissions(&beside, PermissionsExt::from_mode(0o644)).unwrap();
    let doctor = test_agent.run_with_adapter(None, &["doctor"]);
    assert!(doctor.out.contains("the file at this path is not a program"), "{}", doctor.out);
    std::fs::remove_file(beside).unwrap();
    let called = test_agent.run_with_adapter(None, &["tool", "run", "fake__echo", "--json", "{}"]);
    assert!(called.code == 1 && called.err.contains("collieclaw-mcp is missing"), "{called:?}");
    assert_eq!(test_agent.receipt_summaries(), [["fake__echo", "failed", "tool-failed"]]);
}

/// Calls a tool with this script as the adapter.
fn assert_call_fails_with(test_agent: &TestAgent, script: &str, expected: &str) {
    let called = test_agent.run_with_adapter(Some(script), &["tool", "run", "fake__echo", "--json", "{}"]);
    assert!(called.code == 1 && called.err.contains(expected), "{script}: {called:?}");
    assert_eq!(test_agent.last_receipt()["status"], "failed");
}

#[test]
fn one_that_is_broken_fails_the_call_and_nothing_else() {
    let test_agent =
        TestAgent::new().with_fake_server("plain", "timeout = \"30s\"").with_approved_server("fake");
    let answers =
        |answer: &str| format!("read greeting <&2; read question <&2; echo '{answer}' >&2; sleep 1");
    let panic = "printf '\\nthread main (1) panicked at x.rs:1:1:\\nboom\\n' >&2";
    let actual = "{\"told\": {\"text\": \"x\", \"worked\": true}}";
    assert_call_fails_with(
        &test_agent,
        panic,
        "collieclaw-mcp failed: thread main (1) panicked at x.rs:1:1: boom",
    );
    assert_call_fails_with(&test_agent, &format!("read greeting <&2; {panic}"), "panicked at x.rs:1:1: boom");
    assert_call_fails_with(&test_agent, &answers("[]"), "collieclaw-mcp failed: []");
    assert_call_fails_with(&test_agent, &answers(actual), "the server sent a reply of the wrong kind");
    assert_call_fails_with(&test_agent, &answers("{\"failed\": \"no luck\"}"), "no luck");
    assert_call_fails_with(&test_agent, "head -c 20000000 /dev/zero >&2; sleep 100", "collieclaw-mcp failed");
    let ended = "collieclaw-mcp";
    assert_call_fails_with(&test_agent, "exit 0", ended);
    assert_call_fails_with(&test_agent, "read greeting <&2; exec 0<&- 1>&- 2>&-; sleep 100", ended);
    assert_call_fails_with(&test_agent, &answers("{\"gone\": 1}"), "collieclaw-mcp failed");
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn one_that_says_nothing_is_left_in_time() {
    let test_agent =
        TestAgent::new().with_fake_server("plain", "timeout = \"2s\"").with_approved_server("fake");
    assert_call_fails_with(&test_agent, "sleep 100", "took longer than 2 s");
}

#[test]
fn an_unreadably_long_tool_list_is_refused() {
    let test_agent = TestAgent::new().with_fake_server("plain", "").with_approved_server("fake");
    let mut tools = super::server_fixture::echo_tool();
    tools[0]["inputSchema"]["examples"] = json!(vec![json!({ "": 0 }); 200_000]);
    test_agent.set_server_tools(&tools);
    test_agent.assert_call_fails("fake__echo", "{}", "its list of tools is longer than 1024 kB");
}

#[test]
fn calls_under_one_number_are_not_served() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let long = unique_sleep_seconds();
    let arguments = json!({ "command": format!("sleep {long}") }).to_string();
    let call = json!({ "call": { "number": 1, "tool": "shell", "arguments": arguments } });
    let script = format!("read greeting <&2; echo '{call}' >&2; echo '{call}' >&2; sleep 100");
    let served = test_agent.run_with_adapter(Some(&script), &["mcp", "serve"]);
    assert!(served.code == 1 && served.err.contains("two calls have the same number"), "{served:?}");
    assert!(!is_sleep_running(&long));
    assert!(test_agent.receipt_summaries().iter().all(|[_, _, reason]| reason == "cancelled"));
}

/// Starts the adapter by hand, with our end of its connection.
fn start_adapter() -> (ChildGuard, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut command = Command::new(adapter_program());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(OwnedFd::from(theirs));
    (ChildGuard(command.spawn().unwrap()), ours)
}

#[test]
fn an_adapter_refuses_every_request_of_another_version() {
    let (mut child, mut line) = start_adapter();
    writeln!(line, "{}", json!({ "version": "0.0.0", "task": "ask_program" })).unwrap();
    let mut lines = BufReader::new(line.try_clone().unwrap()).lines();
    for _ in 0..2 {
        writeln!(line, "{}", json!("list")).unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let why = answer["wrong_version"].as_str().unwrap();
        assert!(
            why.starts_with("`collieclaw` has the version 0.0.0, but `collieclaw-mcp` has the version "),
            "{why}"
        );
    }
    drop((line, lines));
    assert_eq!(wait_for_exit(&mut child.0), 0);

    let (mut child, mut line) = start_adapter();
    writeln!(line, "{}", json!({ "version": "0.0.0", "task": { "offer_to_one": { "tools": [] } } })).unwrap();
    let over: Value = serde_json::from_str(&BufReader::new(line).lines().next().unwrap().unwrap()).unwrap();
    assert!(over["over"]["wrong_version"].as_str().unwrap().contains("the version 0.0.0"), "{over}");
    assert_eq!(wait_for_exit(&mut child.0), 0);
}

#[test]
fn the_adapter_ends_when_its_input_closes() {
    let said = agent_output(Command::new(adapter_program()).arg("--version").output().unwrap()).out;
    let version = said.trim().strip_prefix("collieclaw-mcp ").unwrap();
    let tasks = [json!("ask_program"), json!({ "offer_to_one": { "tools": [] } }), json!("no such task")];
    for task in tasks {
        let (mut child, mut line) = start_adapter();
        writeln!(line, "{}", json!({ "version": version, "task": task })).unwrap();
        drop(line);
        wait_for_exit(&mut child.0);
    }
    let (mut child, line) = start_adapter();
    drop(line);
    assert_eq!(wait_for_exit(&mut child.0), 2);
}

#[test]
fn the_adapter_explains_itself_when_a_person_starts_it() {
    let by_hand = agent_output(Command::new(adapter_program()).output().unwrap());
    assert_eq!(by_hand.code, 2);
    assert!(by_hand.err.starts_with("collieclaw-mcp must be started by collieclaw"), "{}", by_hand.err);
    let version = agent_output(Command::new(adapter_program()).arg("--version").output().unwrap());
    let ours = format!("collieclaw-mcp {}-", env!("CARGO_PKG_VERSION"));
    assert!(version.code == 0 && version.out.starts_with(&ours), "{version:?}");
}

/// Returns the adapter process of one of our processes.
fn adapter_under(ours: u32) -> PathBuf {
    let parent = |process: &PathBuf| {
        let status = std::fs::read_to_string(process.join("status")).ok()?;
        Some(PathBuf::from("/proc").join(status.lines().find_map(|line| line.strip_prefix("PPid:\t"))?))
    };
    let ours = PathBuf::from(format!("/proc/{ours}"));
    let is_adapter = |process: &PathBuf| {
        std::fs::read(process.join("cmdline")).is_ok_and(|line| line == b"collieclaw-mcp\0")
    };
    let is_under = |process: &PathBuf| {
        std::iter::successors(Some(process.clone()), parent).any(|ancestor| ancestor == ours)
    };
    wait_for_value("the adapter runs", || {
        let mut processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes.find(|process| is_adapter(process) && is_under(process))
    })
}

fn kill(process: &std::path::Path) {
    let id: i32 = process.file_name().unwrap().to_str().unwrap().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
}

#[test]
fn killed_while_it_asks_it_fails_the_call_and_the_server_ends() {
    let test_agent = TestAgent::new().with_fake_server("hang", "").with_approved_server("fake");
    let long = unique_sleep_seconds();
    let child =
        test_agent.command(&["tool", "run", "fake__echo", "--json", &words_argument(&long)]).spawn().unwrap();
    wait_for_sleep(&long);
    kill(&adapter_under(child.id()));
    let called = agent_output(child.wait_with_output().unwrap());
    assert!(called.code == 1 && called.err.contains("collieclaw-mcp has ended"), "{called:?}");
    assert!(!is_sleep_running(&long));
    assert_eq!(test_agent.receipt_summaries(), [["fake__echo", "failed", "tool-failed"]]);
}

#[test]
fn killed_while_it_serves_it_ends_the_call_and_us() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let long = unique_sleep_seconds();
    let mut child = test_agent.command(&["mcp", "serve"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let call = json!({ "name": "shell", "arguments": { "command": format!("sleep {long}") } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    wait_for_sleep(&long);
    kill(&adapter_under(child.id()));
    let served = agent_output(child.wait_with_output().unwrap());
    assert!(served.code == 1 && served.err.contains("collieclaw-mcp has ended"), "{served:?}");
    assert!(!is_sleep_running(&long));
    assert_eq!(test_agent.receipt_summaries(), [["shell", "failed", "cancelled"]]);
}

#[test]
fn the_adapter_gets_no_secrets_and_is_sandboxed() {
    let test_agent = TestAgent::new().with_fake_server("hang", "").with_approved_server("fake");
    let long = unique_sleep_seconds();
    let mut command = test_agent.command(&["tool", "run", "fake__echo", "--json", &words_argument(&long)]);
    let child = ChildGuard(command.env("CANARY_KEY", "canary-1234").spawn().unwrap());
    wait_for_sleep(&long);
    let process = adapter_under(child.0.id());
    let status = std::fs::read_to_string(process.join("status")).unwrap();
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{line} is not in {status}");
    }
    let environment = String::from_utf8(std::fs::read(process.join("environ")).unwrap()).unwrap();
    assert!(environment.contains("PATH=") && !environment.contains("canary"), "{environment}");
    assert_ne!(
        std::fs::read_link(process.join("ns/pid")).unwrap(),
        std::fs::read_link("/proc/self/ns/pid").unwrap()
    );
}
