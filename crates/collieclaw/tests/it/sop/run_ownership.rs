//! Only the operator decides about a run, and only one process runs it (C12, C8).

use std::fs;
use std::process::Stdio;

use serde_json::json;

use super::{agent_with_sop, run_command_on_run, single_run};
use crate::support::{AgentTerminal, ChildGuard, TestAgent, wait_until};

/// A model that was tricked into calling the names that receipts use for decisions.
const CALLS_A_DECISION: &str = "[[round]]\n[[round.call]]\ntool = \"run:cancelled\"\n[[round.call]]\ntool = \"step:approved\"\n\
                                [[round]]\ntext = \"All fine.\"\n";

#[test]
fn a_model_that_calls_a_decision_decides_nothing() {
    let test_agent = agent_with_sop(
        "ask",
        "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\non_failure = \"continue\"\n\
         [[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"Really?\"\n\
         [[steps]]\nid = \"keep\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"kept\", content = \"\" }\n",
    )
    .with_mock_fixture(CALLS_A_DECISION);
    assert_eq!(test_agent.run(&["sop", "run", "ask"]).code, 5);
    let tools: Vec<String> = test_agent.receipt_summaries().into_iter().map(|[tool, ..]| tool).collect();
    let expected = ["(not a tool name: run:cancelled)", "(not a tool name: step:approved)", "step:agent"];
    assert_eq!(tools, expected);
    // A call of its model was denied, so the run fails; but it does end, and was not cancelled.
    let approved = run_command_on_run(&test_agent, &["approve"]);
    assert_eq!(approved.code, 4, "{approved:?}");
    assert_eq!(single_run(&test_agent)["state"], "finished");
    assert!(test_agent.workspace().join("kept").exists());
}

#[test]
fn no_conversation_can_use_the_name_of_a_run() {
    let test_agent =
        agent_with_sop("ask", "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n")
            .with_mock_fixture("[[round]]\ntext = \"so\"\n");
    assert_eq!(test_agent.run(&["agent", "-m", "hi", "--conversation", "mine"]).code, 0);
    assert_eq!(test_agent.run(&["sop", "run", "ask"]).code, 0);
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let refused = test_agent.run(&["agent", "-m", "hi", "--conversation", &run]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
    assert!(refused.err.contains("start with `run-`"), "{refused:?}");
    let gone_on = test_agent.run(&["agent", "-c", "-m", "hi", "--output", "json"]).json();
    assert_eq!(gone_on["conversation_id"], "mine", "the last one is a run");
}

/// Starts a run in the middle of a long step, and returns its journal.
fn start_running_run(test_agent: &TestAgent) -> (ChildGuard, String) {
    let mut command = test_agent.command(&["sop", "run", "slow"]);
    let child = ChildGuard(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("the step has begun", || !marks(test_agent).is_empty());
    (child, single_run(test_agent)["run"].as_str().unwrap().to_owned())
}

fn marks(test_agent: &TestAgent) -> String {
    fs::read_to_string(test_agent.workspace().join("marks")).unwrap_or_default()
}

#[test]
fn a_copy_of_a_journal_runs_nothing_beside_the_process_that_carries_the_run_out() {
    let test_agent = agent_with_sop(
        "slow",
        "[[steps]]\nid = \"slow\"\nkind = \"tool\"\ntool = \"shell\"\nargs = { command = \"echo x >> marks; sleep 14\" }\n",
    );
    let (_child, run) = start_running_run(&test_agent);
    let journal = |name: &str| test_agent.home().join("sop-runs").join(format!("{name}.jsonl"));
    let copy = "run-00000000000000000000000000000000";
    fs::copy(journal(&run), journal(copy)).unwrap();
    let refused = test_agent.run(&["sop", "resume", copy, "--rerun-interrupted"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains(&format!("is the journal of {run}")), "{refused:?}");
    assert!(refused.err.contains("rename the file to its run"), "{refused:?}");
    assert_eq!(marks(&test_agent), "x\n");

    // Renamed, the journal is another file without a lock.
    fs::rename(journal(copy), journal(&run)).unwrap();
    let busy = test_agent.run(&["sop", "resume", &run, "--rerun-interrupted"]);
    assert!(busy.code == 1 && busy.err.contains("is already running in another process"), "{busy:?}");
    assert_eq!(marks(&test_agent), "x\n");
}

/// Starts a procedure with one step that waits for an approval.
fn start_waiting_run(test_agent: &TestAgent) -> (ChildGuard, AgentTerminal) {
    super::write(
        test_agent,
        "keep",
        "name = \"keep\"\ndescription = \"for a test\"\n[[steps]]\nid = \"keep\"\nkind = \"tool\"\n\
         tool = \"shell\"\nargs = { command = \"echo x >> marks\" }\n",
    );
    let mut terminal = AgentTerminal::open();
    let mut command = test_agent.command(&["sop", "run", "keep"]);
    command.stdin(terminal.slave()).stderr(terminal.slave());
    let child = ChildGuard(command.spawn().unwrap());
    drop(command);
    terminal.close_slave();
    terminal.wait_for("Approve? ");
    (child, terminal)
}

#[test]
fn a_copy_of_a_journal_asks_nothing_beside_the_process_that_asks() {
    let test_agent = TestAgent::new();
    let (mut child, mut terminal) = start_waiting_run(&test_agent);
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let journal = test_agent.home().join("sop-runs").join(format!("{run}.jsonl"));
    let copy = journal.with_extension("copy");
    fs::copy(&journal, &copy).unwrap();
    fs::rename(&copy, &journal).unwrap();
    let busy = test_agent.run(&["sop", "resume", &run, "--rerun-interrupted"]);
    assert!(busy.code == 1 && busy.err.contains("is already running in another process"), "{busy:?}");
    terminal.type_in("y\n");
    assert_eq!(crate::support::wait_for_exit(&mut child.0), 0);
    assert_eq!(marks(&test_agent), "x\n");
}

/// The receipt of a step that died during its question says that it never ran, so nobody has to check.
#[test]
fn a_step_that_was_killed_during_its_question_is_asked_again() {
    let test_agent = TestAgent::new();
    let (mut child, _terminal) = start_waiting_run(&test_agent);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let resumed = test_agent.at_terminal(&["sop", "resume", &run], &[("Approve? ", "y\n")]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(marks(&test_agent), "x\n");
    let words: Vec<String> =
        test_agent.receipt_summaries().into_iter().map(|words| words[..2].join(" ")).collect();
    assert_eq!(words, ["shell denied", "shell allowed"]);
    assert_eq!(test_agent.run(&["sop", "status", &run]).code, 0);
}

/// Unless the step started once more without receipts: then its effects are unknown.
#[test]
fn a_receipt_proves_nothing_about_an_attempt_without_one() {
    let test_agent = TestAgent::new();
    let (mut child, _terminal) = start_waiting_run(&test_agent);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let journal = test_agent.home().join("sop-runs").join(format!("{run}.jsonl"));
    let text = fs::read_to_string(&journal).unwrap();
    let began = text.lines().last().unwrap();
    assert!(began.contains("began"), "{began}");
    fs::write(&journal, format!("{text}{{\"void\":{{\"step\":\"keep\"}}}}\n{began}\n")).unwrap();
    let resumed = test_agent.run(&["sop", "resume", &run]);
    assert!(resumed.code == 1 && resumed.err.contains("--rerun-interrupted"), "{resumed:?}");
}

#[test]
fn a_run_that_continued_without_receipts_is_explained_and_not_called_tampered() {
    let test_agent = agent_with_sop(
        "look",
        "[[steps]]\nid = \"look\"\nkind = \"tool\"\ntool = \"time\"\n\
         [[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"Really?\"\n",
    );
    let config = test_agent.home().join("config.toml");
    let with = fs::read_to_string(&config).unwrap();
    assert!(with.contains("[receipts]\nenabled = true"), "{with}");
    fs::write(&config, with.replace("[receipts]\nenabled = true", "[receipts]\nenabled = false")).unwrap();
    assert_eq!(test_agent.run(&["sop", "run", "look"]).code, 5);
    fs::write(&config, with).unwrap();
    let refused = run_command_on_run(&test_agent, &["approve", "--output", "json"]);
    let error = &refused.json()["error"];
    assert_eq!((refused.code, &error["code"]), (1, &json!("failed")), "{refused:?}");
    let help = error["help"].as_str().unwrap();
    assert!(help.contains("`receipts.enabled`") && help.contains("sop cancel RUN"), "{help}");
    assert_eq!(run_command_on_run(&test_agent, &["cancel"]).code, 0, "the cure works");
}
