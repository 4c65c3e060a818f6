//! Commands without results or with invalid input: text for people, and JSON for scripts.

use serde_json::json;

use crate::support::TestAgent;
use crate::workspaces::{project, run_in, trust};

/// Empty lists are never silent: people read what is missing and how to add it, programs get an empty list.
#[test]
fn empty_lists_name_the_missing_items() {
    let test_agent = TestAgent::new();
    let lists: [(&[&str], &str); 7] = [
        (&["plugin", "list"], "no plugins: install one with `collieclaw plugin install FOLDER`"),
        (&["mcp", "list"], "no MCP servers: add one as `[mcp.servers.NAME]`"),
        (&["sop", "list"], "no procedures yet: write one to"),
        (&["sop", "status"], "no runs yet: start one with `collieclaw sop run NAME`"),
        (&["approval", "list"], "no permanent approvals"),
        (&["receipt", "list"], "no receipts yet"),
        (&["memory", "list"], "no conversations yet: start one with `collieclaw agent`"),
    ];
    for (command, expected) in lists {
        let text = test_agent.run(command);
        assert!(text.code == 0 && text.out.starts_with(expected), "{command:?}: {text:?}");
        let listed = test_agent.run(&[command, &["--output", "json"]].concat());
        assert_eq!((listed.code, listed.json()), (0, json!([])), "{command:?}");
    }
}

/// C5.2: the prompt is for people only.
#[test]
fn a_prompt_gives_no_json() {
    let actual = TestAgent::new().run(&["agent", "--output", "json"]);
    assert_eq!((actual.code, actual.json()["error"]["code"].as_str()), (2, Some("command-line")));
    assert!(actual.err.contains("`-m`"), "{actual:?}");
}

#[test]
fn an_unapproved_server_is_reported_instead_of_an_empty_list() {
    let test_agent = TestAgent::new().with_server_settings("sheep", "command = \"true\"");
    let tools = test_agent.run(&["mcp", "tools", "sheep"]);
    let expected = "no tools of sheep are approved: run `collieclaw mcp approve sheep` to review them\n";
    assert_eq!((tools.code, tools.out.as_str()), (0, expected));
    assert_eq!(test_agent.run(&["mcp", "tools", "sheep", "--output", "json"]).json(), json!([]));
}

/// C2: every name that doesn't exist has the same exit code.
#[test]
fn missing_items_are_reported_with_the_same_exit_code_and_a_cure() {
    let test_agent = TestAgent::new();
    let commands: [&[&str]; 12] = [
        &["agent", "-m", "x", "--provider", "nobody"],
        &["provider", "test", "nobody"],
        &["memory", "show", "nothing"],
        &["plugin", "remove", "nothing"],
        &["mcp", "tools", "nobody"],
        &["mcp", "approve", "nobody"],
        &["mcp", "remove", "nobody"],
        &["approval", "revoke", "approval-0123456789abcdef0123456789abcdef"],
        &["sop", "run", "nothing"],
        &["sop", "status", "run-0123"],
        &["sop", "cancel", "run-0123"],
        &["usage", "--conversation", "nothing"],
    ];
    for command in commands {
        let done = test_agent.run(command);
        assert_eq!(done.code, 2, "{command:?}: {done:?}");
        let (named, cured) =
            (done.err.contains("error: no such "), done.err.contains("help: run `collieclaw "));
        assert!(named && cured, "{done:?}");
        let actual = test_agent.run(&[command, &["--output", "json"]].concat()).json();
        assert_eq!(actual["error"]["code"], "command-line", "{actual}");
    }
}

#[test]
fn a_provider_that_fails_its_test_is_not_sent_to_the_test() {
    let test_agent = TestAgent::new()
        .with_config_change("http://localhost:1234/v1", "http://127.0.0.1:1/v1")
        .with_config_change("api_key_env = \"OPENAI_API_KEY\"", "api_key_env = \"\"");
    let failed = test_agent.run(&["provider", "test", "openai_compatible"]);
    assert_eq!(failed.code, 6, "{failed:?}");
    assert!(failed.err.contains("with `collieclaw provider list`"), "{failed:?}");
    assert!(!failed.err.contains("provider test"), "{failed:?}");
}

#[test]
fn procedures_are_looked_for_in_the_home_that_is_in_force() {
    let test_agent = TestAgent::empty();
    let home = test_agent.path().join("elsewhere");
    let run = |arguments: &[&str]| {
        crate::support::agent_output(
            test_agent.command(arguments).env("COLLIECLAW_HOME", &home).output().unwrap(),
        )
    };
    assert_eq!(run(&["init"]).code, 0);
    let expected = format!("write one to {}", home.join("workspace/sops/NAME/SOP.toml").display());
    let listed = run(&["sop", "list"]);
    assert!(listed.out.contains(&expected), "{listed:?}");
}

/// A program that asked for JSON always gets JSON.
#[test]
fn a_command_that_fails_answers_programs_too() {
    let fixture = "[[round]]\nerror = \"network\"\ndetail = \"connection refused\"\n";
    let failed = TestAgent::new().with_mock_fixture(fixture).run(&["agent", "-m", "hi", "--output", "json"]);
    assert_eq!(failed.code, 6, "{failed:?}");
    let actual = failed.json();
    assert_eq!(actual["error"]["code"], "provider");
    let message = actual["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with(": connection refused") && message.starts_with("the connection to provider "),
        "{message}"
    );
    assert!(actual["error"]["help"].as_str().unwrap().contains("provider test"), "{actual}");

    let misspelt = TestAgent::new().run(&["plugin", "lsit", "--output", "json"]);
    assert_eq!(
        (misspelt.code, &misspelt.json()["error"]["code"]),
        (2, &json!("command-line")),
        "{misspelt:?}"
    );
    assert!(misspelt.err.contains("unrecognized subcommand 'lsit'"), "{misspelt:?}");

    // Only one answer is written: no error follows it.
    let denied = TestAgent::new().run(&[
        "tool",
        "run",
        "file_read",
        "--json",
        r#"{"path":"/etc/passwd"}"#,
        "--output",
        "json",
    ]);
    assert_eq!((denied.code, &denied.json()["success"]), (4, &json!(false)));
}

/// C6.1: scripts get every field of a tool result by name.
#[test]
fn a_script_gets_the_facts_of_a_call_by_name() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let run = test_agent.run(&[
        "tool",
        "run",
        "shell",
        "--json",
        r#"{"command":"grep x /dev/null"}"#,
        "--output",
        "json",
    ]);
    let actual = run.json();
    assert_eq!((run.code, &actual["metadata"]["exit_code"]), (0, &json!(1)), "{run:?}");
    assert!(actual["receipt_id"].as_str().unwrap().starts_with("receipt-"), "{actual}");
}

/// C7.6, C8.3: the policy output says whether receipts are signed.
#[test]
fn doctor_and_the_prompt_say_whether_receipts_are_signed() {
    let signed = TestAgent::new();
    assert!(signed.run(&["doctor"]).out.contains("receipts: in "), "{}", signed.run(&["doctor"]).out);
    assert!(signed.run(&["doctor"]).out.contains(", signed with key "));
    let mut dialog = crate::prompt::start_prompt(&signed);
    dialog.type_and_wait("/policy", "receipts:  written and signed");
    assert_eq!(dialog.leave().0, 0);

    let unsigned = TestAgent::new().with_config_change("signed = true", "signed = false");
    std::fs::remove_file(unsigned.home().join("receipts.key")).unwrap();
    assert!(unsigned.run(&["doctor"]).out.contains(", not signed"));
    let mut dialog = crate::prompt::start_prompt(&unsigned);
    dialog.type_and_wait("/policy", "receipts:  written, not signed");
    assert_eq!(dialog.leave().0, 0);

    let damaged = TestAgent::new();
    std::fs::write(damaged.home().join("receipts.key"), "no key\n").unwrap();
    let doctor = damaged.run(&["doctor"]).out;
    assert!(doctor.contains("could not sign the receipts") && doctor.contains("restore the key"), "{doctor}");
}

/// C2: JSON output contains everything that the text output lists.
#[test]
fn every_listing_has_a_form_for_programs() {
    let test_agent = TestAgent::new();
    assert_eq!(test_agent.run(&["agent", "-m", "what time is it"]).code, 0);
    let lists: [(&[&str], &str); 8] = [
        (&["tool", "list"], "file_read"),
        (&["provider", "list"], "openai_compatible"),
        (&["doctor"], "emergency stop"),
        (&["usage"], "total"),
        (&["memory", "list"], "conversation-"),
        (&["memory", "search", "time"], "conversation-"),
        (&["receipt", "list"], "receipt-"),
        (&["config", "show"], "workspace_dir"),
    ];
    for (arguments, holds) in lists {
        let actual = test_agent.run(&[arguments, &["--output", "json"]].concat());
        assert_eq!(actual.code, 0, "{arguments:?}: {actual:?}");
        let value = actual.json();
        assert!(value.is_array() || value.is_object(), "{arguments:?}: {value}");
        assert!(value.to_string().contains(holds), "{arguments:?}: {value}");
    }
}

/// In a project folder that the operator trusts, the model gets more tools (C16).
#[test]
fn the_list_of_tools_shows_those_that_the_model_can_call_in_this_folder() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    let list = || run_in(&test_agent, &folder, &["tool", "list"]).out;
    assert!(list().contains("* file_read ") && list().contains("  file_edit "), "{}", list());
    trust(&test_agent, &folder);
    assert!(list().contains("* file_edit ") && list().contains("  http "), "{}", list());
    // The preset allows domains.
    let allowed = run_in(&test_agent, &folder, &["allow", "--preset", "rust"]);
    assert!(list().contains("* http "), "{allowed:?}");
}
