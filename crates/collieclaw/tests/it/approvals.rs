//! Approvals that hold (C7.7): exactly one call, in one workspace, under one set of rules; listed and revocable.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{AgentTerminal, TestAgent, agent_output, wait_for_exit};

const ASKS: &str = "Approve? [y/N/a]";

fn write(test_agent: &TestAgent, path: &str, content: &str) -> i32 {
    let arguments = json!({ "path": path, "content": content }).to_string();
    test_agent.run(&["tool", "run", "file_write", "--json", &arguments]).code
}

fn shell(test_agent: &TestAgent, line: &str) -> i32 {
    test_agent.run(&["tool", "run", "shell", "--json", &json!({ "command": line }).to_string()]).code
}

fn approve_always(test_agent: &TestAgent, tool: &str, arguments: &Value) {
    let run = ["tool", "run", tool, "--json", &arguments.to_string()];
    assert_eq!(test_agent.at_terminal(&run, &[(ASKS, "a\n")]).code, 0);
}

/// Creates an agent with exactly one permanently approved write.
fn agent_with_approval() -> TestAgent {
    let test_agent = TestAgent::new();
    approve_always(&test_agent, "file_write", &json!({ "path": "a", "content": "hello" }));
    test_agent
}

fn listed_approvals(test_agent: &TestAgent) -> Vec<Value> {
    match test_agent.run(&["approval", "list", "--output", "json"]).json() {
        Value::Array(approvals) => approvals,
        other => panic!("{other}"),
    }
}

fn approval_file(test_agent: &TestAgent) -> PathBuf {
    let id = listed_approvals(test_agent)[0]["id"].as_str().unwrap().to_owned();
    test_agent.home().join("approvals").join(format!("{id}.json"))
}

/// C7.7: the call that was shown is the call that runs, whatever happens between the question and the answer.
#[test]
fn an_approval_is_for_the_call_that_was_shown_and_not_for_a_later_one() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.workspace().join("a.txt"), "shown\n").unwrap();
    fs::create_dir(test_agent.workspace().join("folder")).unwrap();
    let yes_after = |tool: &str, arguments: &Value, between: &dyn Fn()| {
        let mut terminal = AgentTerminal::open();
        let mut command = test_agent.command(&["tool", "run", tool, "--json", &arguments.to_string()]);
        command.stdin(terminal.slave()).stderr(terminal.slave());
        let agent = command.spawn().unwrap();
        drop(command);
        terminal.close_slave();
        terminal.wait_for("Approve? [y/N");
        between();
        terminal.type_in("y\n");
        let done = agent_output(agent.wait_with_output().unwrap());
        (done.code, done.out)
    };
    let came_later = || fs::write(test_agent.workspace().join("b.txt"), "came later\n").unwrap();
    let (code, out) = yes_after("shell", &json!({ "command": "cat *.txt" }), &came_later);
    assert!(code == 0 && out.starts_with("shown\n") && !out.contains("came later"), "{out}");
    let swapped = || {
        fs::remove_dir(test_agent.workspace().join("folder")).unwrap();
        std::os::unix::fs::symlink(test_agent.path(), test_agent.workspace().join("folder")).unwrap();
    };
    let write = json!({ "path": "folder/x", "content": "" });
    assert_ne!(yes_after("file_write", &write, &swapped).0, 0);
    assert!(!test_agent.path().join("x").exists());
}

#[test]
fn an_always_holds_for_exactly_this_call_and_receipts_name_it() {
    let test_agent = agent_with_approval();
    assert_eq!(write(&test_agent, "a", "hello"), 0, "nobody is there, and nobody is needed");
    assert_eq!(write(&test_agent, "a", "hello "), 5, "one byte more");
    assert_eq!(write(&test_agent, "b", "hello"), 5);
    let id = listed_approvals(&test_agent)[0]["id"].clone();
    let approvers: Vec<(Value, Value)> = test_agent
        .receipts()
        .iter()
        .map(|receipt| (receipt["approver"].clone(), receipt["approval_id"].clone()))
        .collect();
    let nobody = || (json!("none"), Value::Null);
    assert_eq!(approvers, [(json!("operator"), id.clone()), (json!("remembered"), id), nobody(), nobody()]);
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
    assert_eq!(fs::metadata(approval_file(&test_agent)).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn the_order_of_arguments_is_no_difference_and_a_plain_yes_is_not_remembered() {
    let test_agent = agent_with_approval();
    let turned = r#"{ "content": "hello", "path": "a" }"#;
    assert_eq!(test_agent.run(&["tool", "run", "file_write", "--json", turned]).code, 0);
    let once = ["tool", "run", "file_write", "--json", r#"{"path":"b","content":""}"#];
    assert_eq!(test_agent.at_terminal(&once, &[(ASKS, "y\n")]).code, 0);
    assert_eq!(test_agent.run(&once).code, 5);
    assert_eq!(listed_approvals(&test_agent).len(), 1);
}

#[test]
fn another_workspace_and_other_rules_ask_again() {
    let test_agent = agent_with_approval();
    fs::create_dir(test_agent.path().join("other")).unwrap();
    let test_agent = test_agent.with_config_change("~/collieclaw-workspace", "~/other");
    assert_eq!(write(&test_agent, "a", "hello"), 5);
    assert_eq!(listed_approvals(&test_agent)[0]["state"], "another workspace");
    let test_agent = test_agent.with_config_change("~/other", "~/collieclaw-workspace");
    assert_eq!(write(&test_agent, "a", "hello"), 0);
    let test_agent =
        test_agent.with_config_change("allowed_domains = []", "allowed_domains = [\"example.org\"]");
    assert_eq!(write(&test_agent, "a", "hello"), 5);
    assert_eq!(listed_approvals(&test_agent)[0]["state"], "no effect: the rules have changed");
}

#[test]
fn denied_calls_stay_denied_after_other_approvals() {
    let test_agent = agent_with_approval();
    let test_agent = test_agent.with_config_change("autonomy = \"supervised\"", "autonomy = \"readonly\"");
    assert_eq!(write(&test_agent, "a", "hello"), 4);
    let test_agent = test_agent.with_config_change("autonomy = \"readonly\"", "autonomy = \"supervised\"");
    test_agent.run(&["estop"]);
    assert_eq!(write(&test_agent, "a", "hello"), 8, "the stop comes first");
    test_agent.run(&["estop", "--clear"]);
    assert_eq!(write(&test_agent, "a", "hello"), 0);
    // The same call now leads out of the workspace.
    fs::remove_file(test_agent.workspace().join("a")).unwrap();
    std::os::unix::fs::symlink("/etc/motd", test_agent.workspace().join("a")).unwrap();
    assert_eq!(write(&test_agent, "a", "hello"), 4);
}

#[test]
fn a_line_whose_patterns_match_other_files_asks_again_and_changed_content_does_not() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.workspace().join("one.txt"), "1").unwrap();
    approve_always(&test_agent, "shell", &json!({ "command": "cat *.txt" }));
    assert_eq!(shell(&test_agent, "cat *.txt"), 0);
    fs::write(test_agent.workspace().join("one.txt"), "another").unwrap();
    assert_eq!(shell(&test_agent, "cat *.txt"), 0, "the same line with the same words");
    fs::write(test_agent.workspace().join("two.txt"), "2").unwrap();
    assert_eq!(shell(&test_agent, "cat *.txt"), 5, "other words");
    assert_eq!(shell(&test_agent, "cat  *.txt"), 5);
}

#[test]
fn a_revoked_or_cleared_approval_asks_again() {
    let test_agent = agent_with_approval();
    let id = listed_approvals(&test_agent)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(test_agent.run(&["approval", "revoke", "approval-0"]).code, 2);
    assert_eq!(test_agent.run(&["approval", "revoke", "../config"]).code, 2);
    assert_eq!(test_agent.run(&["approval", "revoke", &id]).code, 0);
    assert_eq!(write(&test_agent, "a", "hello"), 5);
    assert!(listed_approvals(&test_agent).is_empty());
    approve_always(&test_agent, "file_write", &json!({ "path": "a", "content": "hello" }));
    let cleared = test_agent.run(&["approval", "clear", "--output", "json"]);
    assert_eq!(cleared.json(), json!({ "revoked": [id] }), "the same call has the same name");
    assert_eq!(write(&test_agent, "a", "hello"), 5);
}

#[test]
fn a_file_that_was_changed_copied_or_loosened_approves_nothing() {
    let check = |touch: &dyn Fn(&PathBuf)| {
        let test_agent = agent_with_approval();
        let file = approval_file(&test_agent);
        touch(&file);
        assert_eq!(write(&test_agent, "a", "hello"), 5);
        assert_eq!(write(&test_agent, "b", "hello"), 5);
        assert!(
            listed_approvals(&test_agent).iter().any(|one| one["state"] == "not trusted"),
            "{:?}",
            listed_approvals(&test_agent)
        );
    };
    let replace = |from: &'static str, to: &'static str| {
        move |file: &PathBuf| {
            let text = fs::read_to_string(file).unwrap();
            assert!(text.contains(from));
            fs::write(file, text.replacen(from, to, 1)).unwrap();
        }
    };
    check(&replace("\"path\": \"a\"", "\"path\": \"b\""));
    check(&replace("medium", "low"));
    check(&|file| fs::write(file, "{").unwrap());
    check(&|file| fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap());
    check(&|file| fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap());
    check(&|file| {
        let elsewhere = file.with_extension("kept");
        fs::rename(file, &elsewhere).unwrap();
        std::os::unix::fs::symlink(elsewhere, file).unwrap();
    });
}

/// A stored approval includes texts that an update may change. Then the operator is asked again, and nothing fails.
#[test]
fn an_approval_of_another_version_asks_again_and_gives_the_reason() {
    let test_agent = agent_with_approval();
    let kept = fs::read_to_string(approval_file(&test_agent)).unwrap();
    let version = "    \"version\": 2,\n";
    assert!(kept.contains(version), "{kept}");
    for other in ["", "    \"version\": 3,\n"] {
        fs::write(approval_file(&test_agent), kept.replacen(version, other, 1)).unwrap();
        assert_eq!(write(&test_agent, "a", "hello"), 5);
        let listed = listed_approvals(&test_agent);
        assert_eq!(listed[0]["state"], "no effect: made by another version");
        assert!(listed[0]["fault"].as_str().unwrap().contains("you will be asked again"), "{listed:?}");
    }
    approve_always(&test_agent, "file_write", &json!({ "path": "a", "content": "hello" }));
    assert_eq!(write(&test_agent, "a", "hello"), 0);
    assert!(fs::read_to_string(approval_file(&test_agent)).unwrap().contains(version));
}

#[test]
fn processes_that_use_and_revoke_it_at_once_each_get_a_clear_answer() {
    let test_agent = agent_with_approval();
    let id = listed_approvals(&test_agent)[0]["id"].as_str().unwrap().to_owned();
    let arguments = json!({ "path": "a", "content": "hello" }).to_string();
    let spawn = |arguments: &[&str]| test_agent.command(arguments).spawn().unwrap();
    let mut agents: Vec<_> =
        (0..6).map(|_| spawn(&["tool", "run", "file_write", "--json", &arguments])).collect();
    let mut revokers: Vec<_> = (0..2).map(|_| spawn(&["approval", "revoke", &id])).collect();
    let codes: Vec<i32> = agents.iter_mut().map(wait_for_exit).collect();
    assert!(codes.iter().all(|code| [0, 5].contains(code)), "{codes:?}");
    let mut revoked: Vec<i32> = revokers.iter_mut().map(wait_for_exit).collect();
    revoked.sort_unstable();
    assert_eq!(revoked, [0, 2], "one of them was first");
    assert_eq!(write(&test_agent, "a", "hello"), 5);
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn a_tool_that_is_not_on_the_list_is_asked_about_each_time() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n[[round]]\ntext = \"over\"\n",
    );
    let agent = test_agent.at_terminal(&["agent", "-m", "go"], &[("Approve? [y/N] ", "a\n")]);
    assert_eq!(agent.code, 4, "`a` is no yes where it was not offered: {agent:?}");
    assert!(listed_approvals(&test_agent).is_empty());
}

#[test]
fn no_tool_of_the_model_can_write_approvals() {
    let test_agent = agent_with_approval().with_full_autonomy();
    let id = approval_file(&test_agent);
    let id = id.to_str().unwrap();
    assert_eq!(write(&test_agent, id, "{}"), 4);
    assert_eq!(shell(&test_agent, &format!("cp {id} copy")), 4);
    assert_eq!(shell(&test_agent, &format!("for x in 1; do cat {id}; done")), 4);
    assert!(fs::read_to_string(id).unwrap().contains("subject"));
}
