//! `allow` and `disallow`, and the offer to allow a program when a call was refused for want of it (C16).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::prompt::start_prompt;
use crate::support::TestAgent;
use crate::workspaces::{project, run_in, trust};

fn explain(test_agent: &TestAgent, folder: &Path, line: &str) -> Value {
    let call = json!({ "command": line }).to_string();
    run_in(test_agent, folder, &["policy", "explain", "shell", "--json", &call, "--output", "json"]).json()
}

fn reason_codes(verdict: &Value) -> Vec<&str> {
    verdict["reasons"].as_array().unwrap().iter().filter_map(|reason| reason["code"].as_str()).collect()
}

const UNAME: [&str; 5] = ["tool", "run", "shell", "--json", r#"{"command":"uname"}"#];

/// C16: programs are allowed per workspace by one command.
#[test]
fn a_program_is_allowed_in_one_workspace_only() {
    let test_agent = TestAgent::new();
    let (one, two) = (project(&test_agent, "one"), project(&test_agent, "two"));
    trust(&test_agent, &one);
    trust(&test_agent, &two);
    let before = run_in(&test_agent, &one, &["tool", "run", "time"]);
    assert_eq!(before.code, 0, "{before:?}");
    let hash = test_agent.last_receipt()["policy_hash"].clone();
    let allowed = run_in(&test_agent, &one, &["allow", "uname"]);
    assert!(allowed.code == 0 && allowed.out.contains("  uname: /usr/bin/uname"), "{allowed:?}");
    assert_eq!(explain(&test_agent, &one, "uname")["decision"], "ask");
    assert_eq!(explain(&test_agent, &two, "uname")["decision"], "deny");
    assert_eq!(explain(&test_agent, test_agent.path(), "uname")["decision"], "deny");
    run_in(&test_agent, &one, &["tool", "run", "time"]);
    assert_ne!(test_agent.last_receipt()["policy_hash"], hash, "receipts tell that the rules have changed");
    let taken_back = test_agent.run(&["disallow", "uname", "-w", one.to_str().unwrap()]);
    assert_eq!(taken_back.code, 0, "{taken_back:?}");
    assert_eq!(explain(&test_agent, &one, "uname")["decision"], "deny");
    let again = test_agent.run(&["disallow", "uname", "ls", "-w", one.to_str().unwrap()]);
    assert!(again.out.contains("Nothing was changed"), "{again:?}");
    assert!(again.err.contains("`ls` stays allowed"), "{again:?}");
}

#[test]
fn forbidden_commands_can_not_be_allowed() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.workspace().join("dd"), "#!/bin/sh\n").unwrap();
    fs::write(test_agent.workspace().join("ok.sh"), "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink("dd", test_agent.workspace().join("harmless")).unwrap();
    for (name, code, reason) in [
        ("rm", 2, "`rm` is on the list of forbidden commands, so no workspace can allow it"),
        ("mkfs.ext4", 2, "forbidden commands"),
        ("/usr/bin/rm", 2, "forbidden commands"),
        ("./dd", 2, "forbidden commands"),
        ("./harmless", 2, "forbidden commands"),
        ("/usr/bin/uname", 2, "is outside of the workspace"),
        ("../.collieclaw/config.toml", 2, "is outside of the workspace"),
        ("./missing", 1, "could not read the script"),
        ("a b", 2, "is not the name of a command"),
        ("", 2, "is not the name of a command"),
        ("..", 2, "is not the name of a command"),
    ] {
        let refused = run_in(&test_agent, &test_agent.workspace(), &["allow", "ok-tool", name]);
        assert_eq!(refused.code, code, "{name}: {refused:?}");
        assert!(refused.err.contains(reason), "{name}: {refused:?}");
    }
    // Nothing of a refused command is done.
    let shown = test_agent.run(&["workspace", "show", "--output", "json"]).json();
    assert_eq!(shown["allowed_commands"], json!([]));
}

#[test]
fn a_preset_allows_what_one_kind_of_work_needs() {
    let test_agent = TestAgent::new();
    fs::create_dir_all(test_agent.path().join(".cargo/bin")).unwrap();
    let allowed = test_agent.run(&["allow", "--preset", "rust", "--output", "json"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    let allowed = allowed.json();
    let names: Vec<&str> = allowed["programs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|program| program["name"].as_str())
        .collect();
    assert!(names.contains(&"cargo") && names.contains(&"git") && !names.contains(&"rm"), "{names:?}");
    assert!(allowed["domains"].as_array().unwrap().contains(&json!("crates.io")), "{allowed}");
    assert_eq!(
        allowed["toolchain_folders"],
        json!([test_agent.path().canonicalize().unwrap().join(".cargo/bin")])
    );
    let unknown = test_agent.run(&["allow", "--preset", "sheep"]);
    assert!(unknown.code == 2 && unknown.err.contains("developer"), "{unknown:?}");
    let shown = test_agent.run(&["config", "show"]);
    assert!(shown.out.contains("# presets:     rust"), "{shown:?}");
    let again = test_agent.run(&["allow", "--preset", "rust"]);
    assert!(again.out.contains("0 programs (rust)"), "{again:?}");
}

#[test]
fn a_program_that_is_not_installed_is_warned_about() {
    let test_agent = TestAgent::new();
    let allowed = test_agent.run(&["allow", "no-such-program"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(allowed.err.contains("warning: no installed program is called `no-such-program`"), "{allowed:?}");
    let verdict = explain(&test_agent, test_agent.path(), "no-such-program");
    assert_eq!(reason_codes(&verdict)[0], "not-installed", "{verdict}");
}

#[test]
fn a_denial_names_the_command_that_helps() {
    let test_agent = TestAgent::new();
    let denied = test_agent.run(&UNAME);
    assert_eq!(denied.code, 4, "{denied:?}");
    let cure = "`uname` isn't on the list of allowed commands. To allow it in this workspace: `collieclaw allow uname`";
    assert!(denied.err.contains(cure), "{denied:?}");
    let odd = test_agent.run(&["tool", "run", "shell", "--json", r#"{"command":"'a$(b)'"}"#]);
    assert!(odd.code == 4 && !odd.err.contains("collieclaw allow"), "{odd:?}");
}

/// C16: the operator can allow the program at the refusal, and is then asked about the call as about any other.
#[test]
fn the_operator_is_offered_to_allow_the_program() {
    let test_agent = TestAgent::new();
    let question = "allow `uname` in this workspace? [y/N] ";
    let refused = test_agent.at_terminal(&UNAME, &[(question, "\n")]);
    assert_eq!(refused.code, 4, "{refused:?}");
    let not_approved = test_agent.at_terminal(&UNAME, &[(question, "y\n"), ("Approve? [y/N/a]", "n\n")]);
    assert_eq!(not_approved.code, 4, "{not_approved:?}");
    // The permission stays, so only the approval is asked for.
    let approved = test_agent.at_terminal(&UNAME, &[("Approve? [y/N/a]", "y\n")]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert!(approved.out.contains("Linux") && !approved.err.contains(question), "{approved:?}");
    let decisions: Vec<[String; 3]> = test_agent.receipt_summaries();
    assert_eq!(decisions[0], ["shell", "denied", "unlisted-program"]);
    assert_eq!(decisions[1], ["shell", "denied", "operator-refused"]);
    assert_eq!(decisions[2], ["shell", "allowed", "listed-program"]);
    let hashes: Vec<Value> =
        test_agent.receipts().iter().map(|receipt| receipt["policy_hash"].clone()).collect();
    assert_ne!(hashes[0], hashes[1]);
    assert_eq!(hashes[1], hashes[2], "the second receipt names the rules after the answer");
}

/// C16: a script that was refused only because it isn't allowed is offered with its content.
#[test]
fn the_operator_is_offered_to_allow_a_script() {
    let test_agent = TestAgent::new();
    let script = test_agent.workspace().join("count.sh");
    fs::write(&script, "#!/bin/sh\necho 12 sheep\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let call = ["tool", "run", "shell", "--json", r#"{"command":"./count.sh"}"#];
    let question = "allow `./count.sh` in this workspace? [y/N] ";
    assert_eq!(test_agent.at_terminal(&call, &[(question, "\n")]).code, 4);
    let ran = test_agent.at_terminal(&call, &[(question, "y\n"), ("Approve? [y/N/a]", "y\n")]);
    assert!(ran.code == 0 && ran.out.contains("12 sheep"), "{ran:?}");
    // Only this content was allowed.
    fs::write(&script, "#!/bin/sh\necho 13 sheep\n").unwrap();
    assert_eq!(test_agent.at_terminal(&call, &[(question, "n\n")]).code, 4);
}

/// C16: the programs of a project are allowed as a whole, by a preset or by name.
#[test]
fn programs_of_the_project_are_allowed_as_a_whole() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    trust(&test_agent, &folder);
    let decision = |line: &str| explain(&test_agent, &folder, line)["decision"].clone();
    for (arguments, expected) in [
        (&["allow", "make"][..], "deny"),
        (&["allow", "--preset", "writing"], "deny"),
        (&["allow", "--project-programs"], "ask"),
        (&["disallow", "--project-programs"], "deny"),
        (&["allow", "--preset", "rust"], "ask"),
        (&["disallow", "cargo"], "ask"),
    ] {
        let changed = run_in(&test_agent, &folder, arguments);
        assert_eq!(changed.code, 0, "{changed:?}");
        assert_eq!(decision("./target/debug/app --all"), expected, "{arguments:?}");
        assert_eq!(decision("./target/debug/rm x"), "deny", "{arguments:?}");
        assert_eq!(decision("../elsewhere/app"), "deny", "{arguments:?}");
    }
    let shown = run_in(&test_agent, &folder, &["workspace", "show", "--output", "json"]).json();
    assert_eq!(shown["project_programs"], json!(true));
    let text = run_in(&test_agent, &folder, &["workspace", "show"]).out;
    assert!(text.contains("programs:    programs of the project, by their path"), "{text}");
    // Another workspace isn't affected.
    assert_eq!(explain(&test_agent, test_agent.path(), "./target/debug/app")["decision"], "deny");
}

#[test]
fn nothing_is_offered_if_anything_else_speaks_against_the_call() {
    let test_agent = TestAgent::new();
    for line in ["uname; cat /etc/passwd", "uname; rm x", "no-such-program", "uname; sudo id", "./uname"] {
        let call = json!({ "command": line }).to_string();
        let denied = test_agent.at_terminal(&["tool", "run", "shell", "--json", &call], &[]);
        assert_eq!(denied.code, 4, "{line}: {denied:?}");
        assert!(!denied.err.contains("in this workspace? [y/N]"), "{line}: {denied:?}");
    }
    let test_agent = test_agent.with_config_change("autonomy = \"supervised\"", "autonomy = \"readonly\"");
    let denied = test_agent.at_terminal(&UNAME, &[]);
    assert!(denied.code == 4 && !denied.err.contains("in this workspace? [y/N]"), "{denied:?}");
}

#[test]
fn a_program_is_allowed_within_a_turn_at_the_prompt() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"uname\" }\n\
         [[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"uname -s\" }\n\
         [[round]]\ntext = \"so it is {tool_result}\"\n",
    );
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("go", "allow `uname` in this workspace? [y/N] ");
    dialog.terminal.type_in("y\n");
    dialog.terminal.wait_for("Approve? [y/N/a]");
    dialog.terminal.type_in("y\n");
    // The second call of the turn knows the new rules.
    dialog.terminal.wait_for("Approve? [y/N/a]");
    dialog.terminal.type_in("y\n");
    dialog.terminal.wait_for("so it is Linux");
    assert_eq!(dialog.leave().0, 0);
}

#[test]
fn the_prompt_takes_changed_rules_at_once() {
    let test_agent = TestAgent::new();
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("/policy", "network:   none");
    dialog.terminal.wait_for("collieclaw> ");
    let workspace = test_agent.workspace();
    let changed = test_agent.run(&["workspace", "trust", workspace.to_str().unwrap(), "--network", "listed"]);
    assert_eq!(changed.code, 0, "{changed:?}");
    dialog.type_and_wait("/policy", "network:   only the allowed domains");
    dialog.terminal.wait_for("collieclaw> ");
    let config = test_agent.home().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("autonomy = \"supervised\"", "autonomy = \"readonly\"")).unwrap();
    dialog.type_and_wait("/policy", "autonomy:  readonly");
    dialog.terminal.wait_for("collieclaw> ");
    // A configuration that can't be used changes nothing.
    fs::write(&config, text.replace("autonomy = \"supervised\"", "autonomy = \"godmode\"")).unwrap();
    dialog.type_and_wait("/policy", "so the old ones stay in force");
    dialog.terminal.wait_for("autonomy:  readonly");
    assert_eq!(dialog.leave().0, 0);
}

/// C16: a script of the workspace is allowed by its path and content.
#[test]
fn a_script_is_allowed_with_its_content() {
    let test_agent = TestAgent::new();
    let workspace = test_agent.workspace();
    fs::create_dir(workspace.join("bin")).unwrap();
    let script = workspace.join("bin/count");
    fs::write(&script, "#!/bin/sh\necho one\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(reason_codes(&explain(&test_agent, &workspace, "bin/count"))[0], "program-by-path");
    let allowed = run_in(&test_agent, &workspace, &["allow", "bin/count"]);
    assert!(allowed.code == 0 && allowed.out.contains("with its current content"), "{allowed:?}");
    for line in ["bin/count", "./bin/count", "bin/../bin/count one", "cd bin && ./count"] {
        let verdict = explain(&test_agent, &workspace, line);
        assert_eq!(
            (&verdict["decision"], &verdict["risk"]),
            (&json!("ask"), &json!("medium")),
            "{line}: {verdict}"
        );
    }
    let outside = explain(&test_agent, &workspace, "bin/count /etc/passwd");
    assert_eq!(outside["decision"], "deny", "{outside}");
    // Another file doesn't become the script, and the name alone isn't it.
    fs::copy(&script, workspace.join("count")).unwrap();
    assert_eq!(explain(&test_agent, &workspace, "./count")["decision"], "deny");
    assert_eq!(explain(&test_agent, &workspace, "count")["decision"], "deny");
    fs::write(&script, "#!/bin/sh\necho two\n").unwrap();
    let changed = explain(&test_agent, &workspace, "bin/count");
    assert_eq!(changed["decision"], "deny", "{changed}");
    let text = changed["reasons"][0]["detail"].as_str().unwrap();
    assert!(text.contains("the script `bin/count` has changed since it was allowed"), "{text}");
    assert!(test_agent.run(&["doctor"]).out.contains("✗ script bin/count: changed since it was allowed"));
    run_in(&test_agent, &workspace, &["allow", "bin/count"]);
    assert_eq!(explain(&test_agent, &workspace, "bin/count")["decision"], "ask");
    run_in(&test_agent, &workspace, &["disallow", "bin/count"]);
    assert_eq!(explain(&test_agent, &workspace, "bin/count")["decision"], "deny");
}
