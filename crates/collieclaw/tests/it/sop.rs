//! Procedures (C12): stored in the home, validated as a whole, run step by step through the tool gateway, resumable.

mod faults;
mod finished_runs;
mod interrupted_runs;
mod journal_receipts;
mod repeated_kills;
mod run_ownership;
mod specification_example;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{AgentOutput, TestAgent};

pub(crate) fn write(test_agent: &TestAgent, name: &str, text: &str) {
    let folder = test_agent.home().join("workspace/sops").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SOP.toml"), text).unwrap();
}

pub(crate) fn agent_with_sop(name: &str, steps: &str) -> TestAgent {
    let test_agent = TestAgent::new().with_full_autonomy();
    write(&test_agent, name, &format!("name = \"{name}\"\ndescription = \"for a test\"\n{steps}"));
    test_agent
}

/// Returns the only run.
pub(crate) fn single_run(test_agent: &TestAgent) -> Value {
    let runs = test_agent.run(&["sop", "status", "--output", "json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    runs[0].clone()
}

pub(crate) fn run_command_on_run(test_agent: &TestAgent, command: &[&str]) -> AgentOutput {
    let run = single_run(test_agent)["run"].as_str().unwrap().to_owned();
    let mut arguments = vec!["sop", command[0], &run];
    arguments.extend(&command[1..]);
    test_agent.run(&arguments)
}

/// The manifest of a plugin's tool, and the tool.
pub(crate) const TOOL: &str = "command = \"./run\"\nschema = { type = \"object\" }\n";
pub(crate) const SUNNY: &str = "#!/bin/sh\ncat > /dev/null\necho '{\"output\": \"sunny\"}'\n";

const WRITE_AND_READ: &str = r#"
[[steps]]
id = "make"
kind = "tool"
tool = "file_write"
args = { path = "a.txt", content = "hello" }

[[steps]]
id = "look"
kind = "tool"
tool = "file_read"
args = { path = "a.txt" }

[[steps]]
id = "copy"
kind = "tool"
tool = "file_write"
args = { path = "b.txt" }
content_from = "look"
"#;

#[test]
fn steps_run_in_order_and_pass_their_output_on() {
    let test_agent = agent_with_sop("copy", WRITE_AND_READ);
    let run = test_agent.run(&["sop", "run", "copy"]);
    assert_eq!(run.code, 0, "{run:?}");
    let read = |name: &str| fs::read_to_string(test_agent.workspace().join(name)).unwrap();
    assert_eq!((read("a.txt").as_str(), read("b.txt").as_str()), ("hello", "hello"));
    let run = single_run(&test_agent);
    assert_eq!((&run["state"], &run["changed_since"]), (&json!("finished"), &json!(false)));
    let receipts: Vec<[Value; 3]> = test_agent
        .receipts()
        .iter()
        .map(|receipt| ["conversation_id", "step_id", "tool"].map(|name| receipt[name].clone()))
        .collect();
    let expected = [("make", "file_write"), ("look", "file_read"), ("copy", "file_write")];
    assert_eq!(receipts, expected.map(|(step, tool)| [run["run"].clone(), json!(step), json!(tool)]));
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
    assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 0, "it is over already");
    assert_eq!(test_agent.receipts().len(), 3, "and nothing runs twice");
}

#[test]
fn a_dry_run_shows_the_verdicts_and_runs_nothing() {
    let test_agent = agent_with_sop("copy", WRITE_AND_READ)
        .with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"");
    let dry = test_agent.run(&["sop", "run", "copy", "--dry-run", "--output", "json"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    let said: Vec<Value> =
        dry.json().as_array().unwrap().iter().map(|step| step["verdict"]["decision"].clone()).collect();
    assert_eq!(said, [json!("ask"), json!("allow"), json!("ask")]);
    assert!(!test_agent.workspace().join("a.txt").exists());
    assert!(test_agent.receipts().is_empty());
    assert_eq!(test_agent.run(&["sop", "status", "--output", "json"]).json(), json!([]));
    write(
        &test_agent,
        "bad",
        "name = \"bad\"\ndescription = \"x\"\n[[steps]]\nid = \"no\"\nkind = \"tool\"\ntool = \"shell\"\nargs = { command = \"rm -rf /\" }\n",
    );
    assert_eq!(test_agent.run(&["sop", "run", "bad", "--dry-run"]).code, 4);
}

#[test]
fn an_approval_waits_across_restarts_and_is_given_once() {
    let test_agent = agent_with_sop(
        "careful",
        "[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"Really?\\u001b[2J\"\n\
         [[steps]]\nid = \"do\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n\
         [[steps]]\nid = \"again\"\nkind = \"approval\"\nprompt = \"And now?\"\n",
    );
    let run = test_agent.run(&["sop", "run", "careful"]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.err.contains("Really?\\u{1b}[2J") && run.err.contains("sop approve run-"), "{run:?}");
    assert_eq!(single_run(&test_agent)["state"], "waiting");
    assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 5, "resuming is not approving");
    assert!(!test_agent.workspace().join("x").exists());
    assert_eq!(
        run_command_on_run(&test_agent, &["approve", "--step", "again"]).code,
        2,
        "a yes is to what was seen"
    );
    assert_eq!(run_command_on_run(&test_agent, &["approve", "--step", "ok"]).code, 5, "the next one waits");
    assert!(test_agent.workspace().join("x").exists());
    assert_eq!(run_command_on_run(&test_agent, &["approve"]).code, 0);
    assert_eq!(run_command_on_run(&test_agent, &["approve"]).code, 2, "it does not wait any more");
    assert_eq!(single_run(&test_agent)["state"], "finished");
}

#[test]
fn a_failure_aborts_or_not_as_the_step_says_and_a_denial_is_one() {
    let step = |id: &str, path: &str, more: &str| {
        format!(
            "[[steps]]\nid = \"{id}\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = {{ path = \"{path}\" }}\n{more}\n"
        )
    };
    let after = step("after", "there", "");
    let check = |first: String, code: i32, state: &str, receipts: usize| {
        let test_agent = agent_with_sop("try", &format!("{first}{after}"));
        fs::write(test_agent.workspace().join("there"), "text").unwrap();
        let run = test_agent.run(&["sop", "run", "try"]);
        assert_eq!((run.code, single_run(&test_agent)["state"].as_str().unwrap()), (code, state), "{run:?}");
        assert_eq!(test_agent.receipts().len(), receipts);
        let expected = if state == "failed" { 2 } else { code };
        assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, expected, "what is over stays over");
        assert_eq!(test_agent.receipts().len(), receipts);
    };
    check(step("gone", "not there", ""), 1, "failed", 1);
    check(step("gone", "not there", "on_failure = \"continue\""), 0, "finished", 2);
    check(step("no", "/etc/passwd", ""), 4, "failed", 1);
    check(step("no", "/etc/passwd", "on_failure = \"continue\""), 4, "finished", 2);
}

#[test]
fn nothing_is_given_by_a_step_that_failed() {
    let test_agent = agent_with_sop(
        "give",
        "[[steps]]\nid = \"gone\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = { path = \"gone\" }\non_failure = \"continue\"\n\
         [[steps]]\nid = \"keep\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"kept\" }\ncontent_from = \"gone\"\n",
    );
    let run = test_agent.run(&["sop", "run", "give"]);
    assert!(run.code == 1 && run.err.contains("the step `gone` has no output"), "{run:?}");
    assert!(!test_agent.workspace().join("kept").exists());
    let last = &test_agent.receipt_summaries()[1];
    assert_eq!(last, &["file_write", "failed", "missing-input"]);
}

#[test]
fn the_model_sees_earlier_outputs_and_its_calls_pass_the_same_gateway() {
    let test_agent = agent_with_sop(
        "ask",
        "[[steps]]\nid = \"look\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = { path = \"a\" }\n\
         [[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"What is in it?\"\n\
         [[steps]]\nid = \"keep\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"b\" }\ncontent_from = \"think\"\n",
    )
    .with_mock_fixture(
        "[[round]]\nexpect = { last_message_contains = \"the secret word is Aardvark\" }\n[[round.call]]\ntool = \"time\"\n\
         [[round]]\ntext = \"an animal\"\n",
    );
    fs::write(test_agent.workspace().join("a"), "the secret word is Aardvark").unwrap();
    let run = test_agent.run(&["sop", "run", "ask", "--output", "json"]);
    assert_eq!((run.code, &run.json()["state"]), (0, &json!("finished")), "{run:?}");
    assert_eq!(fs::read_to_string(test_agent.workspace().join("b")).unwrap(), "an animal");
    let id = run.json()["run"].clone();
    assert!(test_agent.receipts().iter().all(|receipt| receipt["conversation_id"] == id));
}

#[test]
fn a_hint_of_the_procedure_chooses_the_provider() {
    let steps = "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n";
    let test_agent = agent_with_sop("ask", &format!("hint = \"thorough\"\n{steps}"));
    for (name, answer) in [("small", "quickly"), ("large", "after a while")] {
        fs::write(test_agent.home().join(name), format!("[[round]]\ntext = \"{answer}\"\n")).unwrap();
    }
    let test_agent = test_agent.with_config_change(
        "[channels.cli]",
        "[providers.models.choice]\nkind = \"router\"\ndefault = \"small\"\n\
         [[providers.models.choice.rules]]\nwhen = { hint = \"thorough\" }\nprovider = \"large\"\n\
         [providers.models.small]\nkind = \"mock\"\nfixture = \"small\"\n\
         [providers.models.large]\nkind = \"mock\"\nfixture = \"large\"\n[channels.cli]",
    );
    let test_agent = test_agent.with_config_change(
        "default_provider = \"local\"\ndefault_model = \"mock\"",
        "default_provider = \"choice\"",
    );
    let run = test_agent.run(&["sop", "run", "ask"]);
    assert_eq!((run.code, run.out.as_str()), (0, "after a while\n"), "{run:?}");
}

#[test]
fn a_call_that_is_denied_to_the_model_is_a_denied_step() {
    let test_agent = agent_with_sop("ask", "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n").with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_read\"\nargs = { path = \"/etc/passwd\" }\n[[round]]\ntext = \"done\"\n",
    );
    assert_eq!(test_agent.run(&["sop", "run", "ask"]).code, 4);
    assert_eq!(single_run(&test_agent)["state"], "failed");
}

#[test]
fn a_provider_that_fails_before_anything_happened_can_be_asked_again() {
    let test_agent =
        agent_with_sop("ask", "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n")
            .with_mock_fixture("[[round]]\nerror = \"network\"\n");
    assert_eq!(test_agent.run(&["sop", "run", "ask"]).code, 6);
    assert_eq!(single_run(&test_agent)["state"], "ready");
    let test_agent = test_agent.with_mock_fixture("[[round]]\ntext = \"now\"\n");
    let resumed = run_command_on_run(&test_agent, &["resume"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "now\n"), "{resumed:?}");
}

#[test]
fn the_emergency_stop_interrupts_a_run_which_can_be_resumed() {
    for steps in [WRITE_AND_READ, "[[steps]]\nid = \"a\"\nkind = \"agent\"\nprompt = \"Well?\"\n"] {
        let test_agent = agent_with_sop("copy", steps);
        test_agent.run(&["estop"]);
        assert_eq!(test_agent.run(&["sop", "run", "copy"]).code, 8);
        assert_eq!(single_run(&test_agent)["state"], "ready");
        assert!(!test_agent.workspace().join("a.txt").exists());
        test_agent.run(&["estop", "--clear"]);
        assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 0);
    }
}

#[test]
fn a_step_that_needs_approval_waits_for_a_terminal() {
    let test_agent = agent_with_sop("copy", WRITE_AND_READ)
        .with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"");
    assert_eq!(test_agent.run(&["sop", "run", "copy"]).code, 5);
    assert_eq!(single_run(&test_agent)["state"], "ready");
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let asks = "Approve? [y/N/a]";
    let resumed = test_agent.at_terminal(&["sop", "resume", &run[..12]], &[(asks, "y\n"), (asks, "y\n")]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(fs::read_to_string(test_agent.workspace().join("b.txt")).unwrap(), "hello");
}

#[test]
fn an_approved_step_does_not_approve_later_calls() {
    let steps = format!("[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"?\"\n{WRITE_AND_READ}");
    let test_agent =
        agent_with_sop("copy", &steps).with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"");
    assert_eq!(test_agent.run(&["sop", "run", "copy"]).code, 5);
    let approved = run_command_on_run(&test_agent, &["approve"]);
    assert!(approved.code == 5 && approved.err.contains("stopped at step make"), "{approved:?}");
    assert!(approved.err.contains("run `collieclaw sop resume RUN` at a terminal"), "{approved:?}");
    assert_eq!(single_run(&test_agent)["state"], "ready", "what was approved stays approved");
    assert!(!test_agent.workspace().join("a.txt").exists());
}

#[test]
fn a_run_continues_with_its_original_procedure() {
    let test_agent = agent_with_sop(
        "careful",
        "[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"?\"\n\
         [[steps]]\nid = \"do\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"old\", content = \"\" }\n",
    );
    assert_eq!(test_agent.run(&["sop", "run", "careful"]).code, 5);
    let path = test_agent.home().join("workspace/sops/careful/SOP.toml");
    let changed = fs::read_to_string(&path).unwrap().replace("old", "new");
    fs::write(path, changed).unwrap();
    assert_eq!(single_run(&test_agent)["changed_since"], true);
    assert_eq!(run_command_on_run(&test_agent, &["approve"]).code, 0);
    assert!(test_agent.workspace().join("old").exists() && !test_agent.workspace().join("new").exists());
}

#[test]
fn a_cancelled_run_is_over_and_a_damaged_journal_goes_nowhere() {
    let test_agent =
        agent_with_sop("careful", "[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"?\"\n");
    assert_eq!(test_agent.run(&["sop", "run", "careful"]).code, 5);
    assert_eq!(run_command_on_run(&test_agent, &["cancel"]).code, 0);
    assert_eq!(single_run(&test_agent)["state"], "cancelled");
    assert_eq!(
        (
            run_command_on_run(&test_agent, &["resume"]).code,
            run_command_on_run(&test_agent, &["approve"]).code
        ),
        (2, 2)
    );
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let journal = test_agent.home().join("sop-runs").join(format!("{run}.jsonl"));
    assert_eq!(fs::metadata(&journal).unwrap().permissions().mode() & 0o7777, 0o600);
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("for a test", "for a tost", 1)).unwrap();
    let damaged = test_agent.run(&["sop", "resume", &run]);
    assert!(damaged.code == 1 && damaged.err.contains("damaged in line 1"), "{damaged:?}");
    fs::write(&journal, text).unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).unwrap();
    let loose = test_agent.run(&["sop", "resume", &run]);
    assert!(loose.code == 3 && loose.err.contains("not trusted"), "{loose:?}");
    assert_eq!(test_agent.run(&["sop", "resume", "run-x"]).code, 2);
    assert_eq!(test_agent.run(&["sop", "resume", "../config"]).code, 2);
}

#[test]
fn a_procedure_that_others_can_write_or_that_lies_elsewhere_is_not_run() {
    let test_agent = agent_with_sop("copy", WRITE_AND_READ);
    let folder = test_agent.home().join("workspace/sops/copy");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(test_agent.run(&["sop", "run", "copy"]).code, 3);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let own = folder.join("SOP.toml");
    let planted = test_agent.workspace().join("SOP.toml");
    fs::rename(&own, &planted).unwrap();
    std::os::unix::fs::symlink(&planted, &own).unwrap();
    let linked = test_agent.run(&["sop", "run", "copy"]);
    assert!(linked.code == 3 && linked.err.contains("not trusted"), "{linked:?}");
    write(&test_agent, "other", &format!("name = \"other\"\ndescription = \"fine\"\n{WRITE_AND_READ}"));
    let listed = test_agent.run(&["sop", "list", "--output", "json"]).json();
    let valid: Vec<Value> = listed.as_array().unwrap().iter().map(|one| one["valid"].clone()).collect();
    assert_eq!(valid, [json!(false), json!(true)], "one that is not trusted hides no other: {listed}");
    assert_eq!(test_agent.run(&["sop", "validate"]).code, 3);
    assert!(test_agent.receipts().is_empty());
}

#[test]
fn the_model_can_not_write_a_procedure() {
    let test_agent = agent_with_sop("copy", WRITE_AND_READ);
    let path = test_agent.home().join("workspace/sops/copy/SOP.toml");
    let arguments = json!({ "path": path, "content": "" }).to_string();
    assert_eq!(test_agent.run(&["tool", "run", "file_write", "--json", &arguments]).code, 4);
}
