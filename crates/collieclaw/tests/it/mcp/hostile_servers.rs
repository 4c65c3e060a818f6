//! Servers that crash, hang, lie, flood or make requests: each results in a failed call with a receipt, and nothing else.

use super::server_fixture::echo_tool;
use crate::support::{
    TestAgent, is_sleep_running, unique_sleep_seconds, wait_for_end_of_sleep, wait_for_sleep,
};

/// Checks that a call fails with this text, and that the server leaves no `sleep` behind.
fn assert_failure(mode: &str, more: &str, expected: &str) {
    let test_agent = TestAgent::new().with_fake_server(mode, more).with_approved_server("fake");
    let seconds = unique_sleep_seconds();
    let done = test_agent.assert_call_fails("fake__echo", &words_argument(&seconds), expected);
    assert!(!done.err.contains("\u{1b}[2J"), "{}", done.err);
    assert!(!is_sleep_running(&seconds));
}

#[test]
fn one_that_crashes_has_failed_and_is_quoted() {
    assert_failure("crash", "", "the server has ended; its error output: out of luck");
}

#[test]
fn one_that_hangs_is_ended_with_all_it_started() {
    assert_failure("hang", "timeout = \"2s\"", "took longer than 2 s");
}

fn words_argument(words: &str) -> String {
    serde_json::json!({ "words": words }).to_string()
}

#[test]
fn one_that_talks_garbage_gives_no_answer() {
    assert_failure("garbage", "timeout = \"2s\"", "took longer than 2 s");
}

#[test]
fn one_that_sends_too_much_is_ended() {
    assert_failure("giant", "", "sent too much");
    assert_failure("unending", "", "sent too much");
    assert_failure("flood", "", "sent too much");
}

#[test]
fn a_server_with_an_endless_tool_list_is_not_approved() {
    let test_agent = TestAgent::new().with_fake_server("endless", "");
    let done = test_agent.run(&["mcp", "approve", "--yes", "fake"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("more than 32 pages"), "{}", done.err);
}

#[test]
fn a_missing_or_silent_server_is_reported() {
    for missing in ["no-such-program-anywhere", "/nowhere/server"] {
        let test_agent = TestAgent::new().with_server_settings("fake", &format!("command = \"{missing}\""));
        let done = test_agent.run(&["mcp", "approve", "--yes", "fake"]);
        let expected = format!(
            "error: the MCP server `fake` can't be used: no such program `{missing}`\n\
             help: install it, or correct `command` in `[mcp.servers.NAME]`\n"
        );
        assert_eq!((done.code, done.err), (1, expected));
    }

    let test_agent = TestAgent::new().with_server_settings("fake", "command = \"true\"");
    let done = test_agent.run(&["mcp", "approve", "--yes", "fake"]);
    assert!(done.code == 1 && done.err.contains("the server ended before it answered"), "{done:?}");

    // The usual mistakes: the program of the server, or its files, are outside of the sandbox.
    let hidden_file = "help: the server sees only the folders of your home that `programs`";
    let test_agent = TestAgent::new();
    let server = test_agent.path().join("server");
    std::fs::write(&server, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&server, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let test_agent = test_agent.with_server_settings("fake", &format!("command = \"{}\"", server.display()));
    let done = test_agent.run(&["mcp", "approve", "--yes", "fake"]);
    assert!(done.code == 1 && done.err.contains(hidden_file), "{done:?}");

    let test_agent = TestAgent::new().with_fake_server("plain", "");
    let folder = test_agent.path().join("server");
    let test_agent = test_agent.with_config_change(&format!("programs = [\"{}\"]", folder.display()), "");
    let done = test_agent.run(&["mcp", "approve", "--yes", "fake"]);
    assert!(done.code == 1 && done.err.contains(hidden_file), "{done:?}");

    // The server was approved once, and no longer answers.
    let test_agent =
        TestAgent::new().with_fake_server("plain", "timeout = \"2s\"").with_approved_server("fake");
    let script = test_agent.path().join("server/fake.py");
    let text = std::fs::read_to_string(&script).unwrap();
    let seconds = unique_sleep_seconds();
    let text = text.replace("mode == \"mute\"", "mode == \"plain\"").replace("MUTE", &seconds);
    std::fs::write(&script, text).unwrap();
    let done = test_agent.call_tool("fake__echo", "{}");
    assert!(done.code == 1 && done.err.contains("took longer than 2 s"), "{done:?}");
    assert!(!is_sleep_running(&seconds));
}

#[test]
fn requests_of_the_server_are_refused() {
    let test_agent = TestAgent::new().with_fake_server("asks", "").with_approved_server("fake");
    assert_eq!(test_agent.call_output("fake__echo", "{}"), "[true, true, true]");
}

#[test]
fn one_that_turns_in_the_middle_of_a_turn_is_refused() {
    let call = "[[round]]\n[[round.call]]\ntool = \"fake__echo\"\nargs = { words = \"x\" }\n\n";
    let test_agent = TestAgent::new()
        .with_fake_server("turns", "")
        .with_approved_server("fake")
        .with_config_change("tools_allow = [", "tools_allow = [\"fake__echo\", ")
        .with_mock_fixture(&format!("{call}{call}[[round]]\ntext = \"{{tool_result}}\"\n"));
    let done = test_agent.run(&["agent", "-m", "say it"]);
    assert!(done.out.contains("changed since they were approved: `echo` has changed"), "{done:?}");
    let statuses: Vec<String> =
        test_agent.receipt_summaries().into_iter().map(|[_, status, _]| status).collect();
    assert_eq!(statuses, ["allowed", "failed"]);
}

#[test]
fn the_emergency_stop_ends_a_server_and_its_tree_at_once() {
    let test_agent = TestAgent::new().with_fake_server("hang", "").with_approved_server("fake");
    let long = unique_sleep_seconds();
    let child =
        test_agent.command(&["tool", "run", "fake__echo", "--json", &words_argument(&long)]).spawn().unwrap();
    wait_for_sleep(&long);
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    let done = crate::support::agent_output(child.wait_with_output().unwrap());
    assert_eq!(done.code, 8, "{done:?}");
    assert!(!done.err.contains("collieclaw-mcp"), "{}", done.err);
    assert!(!is_sleep_running(&long));
    assert_eq!(test_agent.last_receipt()["reason_code"], "estop");
    test_agent.set_server_tools(&echo_tool());
    assert_eq!(test_agent.call_tool("fake__echo", "{}").code, 8);
}

#[test]
fn the_emergency_stop_also_ends_a_server_that_waits_for_the_next_call() {
    let long = unique_sleep_seconds();
    let test_agent = TestAgent::new()
        .with_fake_server("company", "")
        .with_approved_server("fake")
        .with_config_change("tools_allow = [", "tools_allow = [\"fake__echo\", ")
        .with_mock_fixture(&format!(
            "[[round]]\n[[round.call]]\ntool = \"fake__echo\"\nargs = {{ words = \"{long}\" }}\n\n[[round]]\ntext = \"said\"\n"
        ));
    let mut child = test_agent.command(&["agent"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"say it\n").unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("said")), "the turn is over");
    // The server and what it started stay for the next call.
    wait_for_sleep(&long);
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    wait_for_end_of_sleep(&long);
    drop(input);
    crate::support::wait_for_exit(&mut child);
}

#[test]
fn a_server_does_not_outlive_the_agent() {
    let test_agent = TestAgent::new().with_fake_server("hang", "").with_approved_server("fake");
    let long = unique_sleep_seconds();
    let mut child =
        test_agent.command(&["tool", "run", "fake__echo", "--json", &words_argument(&long)]).spawn().unwrap();
    wait_for_sleep(&long);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_end_of_sleep(&long);
    // The attempt has one receipt, written by the next process.
    assert_eq!(test_agent.call_tool("time", "{}").code, 0);
    let tools: Vec<String> = test_agent
        .receipt_summaries()
        .into_iter()
        .map(|[tool, status, _]| format!("{tool} {status}"))
        .collect();
    assert_eq!(tools, ["fake__echo failed", "time allowed"]);
}
