//! Secrets are used and never shown: every command runs with a canary as the key, and all output is searched for it
//! (C3.2).

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::{TestAgent, agent_output};

const CANARY: &str = "sk-canary-4711-do-not-show";

fn search(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, found);
        } else if fs::read(&path).unwrap().windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
}

/// Starts a server that repeats the key wherever it can.
fn echo_server() -> TestServer {
    let call = |arguments: &str| json!({ "function": { "name": "file_list", "arguments": arguments } });
    // The second copy is escaped twice: a text within a text.
    let escaped = format!("{{\"path\": \"\\u0073{}\"}}", CANARY.strip_prefix('s').unwrap());
    let calls = [call("{\"path\": \".\"}"), call(&escaped)];
    let said = |message: Value| {
        let body = json!({ "model": CANARY, CANARY: CANARY, "choices": [{ "message": message }] });
        ServerAction::Send(http_reply("200 OK", "application/json", &body.to_string()))
    };
    let asks = said(json!({ "content": format!("key {CANARY}"), "tool_calls": calls }));
    let answers = said(json!({ "content": format!("it is {CANARY}") }));
    let refuses = ServerAction::Send(http_reply(
        "400 Bad",
        "application/json",
        &json!({ "error": CANARY }).to_string(),
    ));
    let turns = [asks, answers.clone(), answers, refuses];
    TestServer::start(turns.iter().cycle().take(64).cloned().collect())
}

#[test]
fn the_canary_is_in_no_output_no_log_no_database_and_no_receipt() {
    let server = echo_server();
    let address = format!("base_url = \"http://127.0.0.1:{}/v1\"", server.port());
    let test_agent = TestAgent::new()
        .with_full_autonomy()
        .with_config_change("base_url = \"http://localhost:1234/v1\"", &address);
    // The expected exit code, and a text that must be in the output: a run that fails early would hide everything.
    let commands: &[(&[&str], i32, &str)] = &[
        (&["config", "show"], 0, "OPENAI_API_KEY"),
        (&["config", "validate"], 0, "is valid"),
        (&["provider", "list"], 0, "openai_compatible"),
        (&["doctor"], 0, "sandbox"),
        (&["agent", "-m", "run env"], 0, "PATH="),
        (&["agent", "-m", "run cat /proc/self/environ"], 4, "environ"),
        (&["agent", "-m", "run sh -c 'cat /proc/$PPID/environ'"], 0, "shell"),
        (&["agent", "-m", "read /proc/self/environ"], 4, "environ"),
        (&["agent", "--provider", "openai_compatible", "-m", "hello"], 0, "it is ***"),
        (&["provider", "test", "openai_compatible"], 0, "it is ***"),
        (&["provider", "test", "openai_compatible"], 6, "***"),
        (&["tool", "run", "shell", "--json", r#"{"command":"printenv"}"#], 0, "PATH="),
        (&["tool", "list"], 0, "shell"),
        (&["policy", "explain", "shell", "--json", r#"{"command":"echo $OPENAI_API_KEY"}"#], 0, "column"),
        (&["memory", "list"], 0, "hello"),
        (&["memory", "search", "key"], 0, "***"),
        (&["receipt", "list"], 0, "file_list"),
        (&["receipt", "verify"], 0, "every link holds"),
        (&["approval", "list"], 0, ""),
        (&["usage"], 0, "CALLS"),
        (&["mcp", "list"], 0, ""),
        (&["plugin", "list"], 0, ""),
        (&["sop", "list"], 0, ""),
        (&["estop"], 0, "stopped"),
        (&["estop", "--clear"], 0, "again"),
        (&["onboard", "--replace", "--base-url", "http://127.0.0.1:1/v1"], 0, "provider test"),
    ];
    for log in ["json", "info"] {
        for (arguments, code, word) in commands {
            let mut command = test_agent.command(arguments);
            let actual = agent_output(
                command.env("OPENAI_API_KEY", CANARY).env("COLLIECLAW_LOG", log).output().unwrap(),
            );
            assert!(
                !actual.out.contains(CANARY) && !actual.err.contains(CANARY),
                "{arguments:?}: {actual:?}"
            );
            assert_eq!(actual.code, *code, "{arguments:?}: {actual:?}");
            assert!(format!("{}{}", actual.out, actual.err).contains(word), "{arguments:?}: {actual:?}");
        }
        let old = fs::read_to_string(test_agent.home().join("config.toml.old")).unwrap();
        fs::write(test_agent.home().join("config.toml"), old).unwrap();
    }
    let sent = server.received();
    assert!(sent.iter().all(|request| request.header("authorization") == Some(&format!("Bearer {CANARY}"))));
    assert_eq!(sent.len(), 8, "the key was really sent");
    let mut found = Vec::new();
    search(test_agent.path(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

/// A common word used as the key of a local server is not treated as a secret, and tool arguments with it stay intact.
#[test]
fn a_placeholder_for_a_key_changes_no_call_and_no_answer() {
    let arguments = json!({ "path": "style.css", "content": "display: none" }).to_string();
    let call = json!({ "function": { "name": "file_write", "arguments": arguments } });
    let said = |message: Value| {
        let body = json!({ "choices": [{ "message": message }] });
        ServerAction::Send(http_reply("200 OK", "application/json", &body.to_string()))
    };
    let server = TestServer::start(vec![
        said(json!({ "content": "", "tool_calls": [call] })),
        said(json!({ "content": "none is left" })),
    ]);
    let address = format!("base_url = \"http://127.0.0.1:{}/v1\"", server.port());
    let test_agent = TestAgent::new()
        .with_full_autonomy()
        .with_config_change("\"shell\"]", "\"shell\", \"file_write\"]")
        .with_config_change("base_url = \"http://localhost:1234/v1\"", &address);
    let mut command = test_agent.command(&["agent", "--provider", "openai_compatible", "-m", "hide it"]);
    let actual = agent_output(command.env("OPENAI_API_KEY", "none").output().unwrap());
    assert_eq!((actual.code, actual.out.as_str()), (0, "none is left\n"), "{actual:?}");
    assert_eq!(fs::read_to_string(test_agent.workspace().join("style.css")).unwrap(), "display: none");
}
