//! Every step has its receipt, and a journal that disagrees with the receipts is refused (C12, C8).

use std::fs;
use std::path::PathBuf;

use collieclaw_agent::receipts::hash_text;
use serde_json::{Value, json};

use super::{agent_with_sop, run_command_on_run, single_run};
use crate::support::TestAgent;

fn journal(test_agent: &TestAgent) -> PathBuf {
    let run = single_run(test_agent)["run"].as_str().unwrap().to_owned();
    test_agent.home().join("sop-runs").join(format!("{run}.jsonl"))
}

/// Returns step, tool, status and reason of every receipt.
fn steps(test_agent: &TestAgent) -> Vec<[String; 4]> {
    let word = |receipt: &Value, name: &str| receipt[name].as_str().unwrap_or("-").to_owned();
    let of = |receipt: &Value| ["step_id", "tool", "status", "reason_code"].map(|name| word(receipt, name));
    test_agent.receipts().iter().map(of).collect()
}

#[test]
fn every_kind_of_step_has_exactly_one_receipt_of_its_run_and_its_procedure() {
    let test_agent = agent_with_sop(
        "all",
        "[[steps]]\nid = \"gone\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = { path = \"gone\" }\non_failure = \"continue\"\n\
         [[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n\
         [[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"Really?\"\n\
         [[steps]]\nid = \"keep\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"kept\" }\ncontent_from = \"think\"\n\
         [[steps]]\nid = \"none\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"none\" }\ncontent_from = \"gone\"\n",
    )
    .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"so\"\n");
    assert_eq!(test_agent.run(&["sop", "run", "all"]).code, 5);
    assert_eq!(run_command_on_run(&test_agent, &["approve"]).code, 1);
    assert_eq!(
        steps(&test_agent),
        [
            ["gone", "file_read", "failed", "tool-failed"],
            // Calls of the model have receipts of their own, as everywhere.
            ["-", "time", "allowed", "looks-only"],
            ["think", "step:agent", "allowed", "answered"],
            ["ok", "step:approved", "allowed", "decided"],
            ["keep", "file_write", "allowed", "writes-inside"],
            ["none", "file_write", "failed", "missing-input"],
        ]
    );
    let run = single_run(&test_agent);
    for receipt in test_agent.receipts() {
        assert_eq!(receipt["conversation_id"], run["run"]);
        if receipt["step_id"].is_string() {
            assert_eq!(receipt["sop_hash"], run["sop_hash"]);
        }
    }
    let think = test_agent.receipts()[2].clone();
    assert_eq!((&think["result_hash"], &think["approver"]), (&json!(hash_text("so")), &json!("rules")));
    assert_eq!(test_agent.receipts()[3]["approver"], "operator");
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn the_receipt_of_a_question_shows_a_stopped_failed_or_denied_call() {
    let agent = "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n";
    let check = |says: &str, stop: bool, code: i32, expected: [&str; 2]| {
        let test_agent = agent_with_sop("ask", agent).with_mock_fixture(says);
        if stop {
            test_agent.run(&["estop"]);
        }
        let run = test_agent.run(&["sop", "run", "ask"]);
        assert_eq!(run.code, code, "{run:?}");
        let last = steps(&test_agent).pop().unwrap();
        assert_eq!(last, ["think", "step:agent", expected[0], expected[1]]);
    };
    let reads = "[[round]]\n[[round.call]]\ntool = \"file_read\"\nargs = { path = \"/etc/passwd\" }\n";
    check("[[round]]\ntext = \"so\"\n", true, 8, ["denied", "estop"]);
    check("[[round]]\nerror = \"overloaded\"\n", false, 6, ["failed", "no-answer"]);
    check(&format!("{reads}[[round]]\ntext = \"so\"\n"), false, 4, ["failed", "call-denied"]);
    check(&format!("{reads}[[round]]\nerror = \"overloaded\"\n"), false, 1, ["failed", "step-failed"]);
}

const GIVES: &str = "[[steps]]\nid = \"read\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = { path = \"a\" }\non_failure = \"continue\"\n\
                     [[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"Really?\"\n\
                     [[steps]]\nid = \"keep\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"kept\" }\ncontent_from = \"read\"\n";

/// Creates a run that waits for an approval.
fn agent_with_waiting_run() -> TestAgent {
    let test_agent = agent_with_sop("give", GIVES);
    fs::write(test_agent.workspace().join("a"), "the true text").unwrap();
    assert_eq!(test_agent.run(&["sop", "run", "give"]).code, 5);
    test_agent
}

/// Changes the lines of a journal.
fn edit_journal(test_agent: &TestAgent, change: impl FnOnce(&mut Vec<String>)) {
    let path = journal(test_agent);
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_journal_that_does_not_agree_with_the_receipts_is_refused_with_place_fault_and_cure() {
    let check = |command: &str, step: &str, fault: &str, change: &dyn Fn(&mut Vec<String>)| {
        let test_agent = agent_with_waiting_run();
        edit_journal(&test_agent, change);
        let before = fs::read(journal(&test_agent)).unwrap();
        let refused = run_command_on_run(&test_agent, &[command]);
        assert_eq!(refused.code, 1, "{fault}: {refused:?}");
        let place =
            format!("{} does not match the receipts at the step `{step}`", journal(&test_agent).display());
        assert!(refused.err.contains(&place) && refused.err.contains(fault), "no `{fault}` in {refused:?}");
        assert!(refused.err.contains("sop cancel RUN"), "a cure: {refused:?}");
        assert!(!test_agent.workspace().join("kept").exists(), "{fault}");
        assert_eq!(fs::read(journal(&test_agent)).unwrap(), before, "it is left for whoever looks at it");
        assert_eq!(run_command_on_run(&test_agent, &["cancel"]).code, 0, "the cure works");
    };
    let at = "2026-01-01T00:00:00Z";
    let approved = json!({ "approved": { "step": "ok", "at": at } }).to_string();
    check(
        "resume",
        "ok",
        "the journal says that the step was approved, but no receipt confirms it",
        &|lines| {
            lines.push(approved.clone());
        },
    );
    check("approve", "read", "the output in the journal doesn't match the receipt", &|lines| {
        lines[2] = lines[2].replace("the true text", "another text");
    });
    check("approve", "read", "the receipt shows another outcome than the journal", &|lines| {
        lines[2] = lines[2].replace("\"done\"", "\"failed\"");
    });
    check("approve", "read", "the journal names another receipt than the last one of the step", &|lines| {
        lines[2] =
            json!({ "ended": { "step": "read", "end": "done", "output": "mine", "at": at } }).to_string();
    });
    check(
        "approve",
        "read",
        "the journal says that the step was skipped, but no receipt confirms it",
        &|lines| {
            lines.truncate(1);
            lines.push(json!({ "skipped": { "step": "read" } }).to_string());
        },
    );
    check("approve", "read", "the receipts name another procedure", &|lines| {
        let mut header: Value = serde_json::from_str(&lines[0]).unwrap();
        let text = header["text"].as_str().unwrap().replace("kept", "elsewhere");
        header["sop_hash"] = hash_text(&text).into();
        header["text"] = text.into();
        lines[0] = header.to_string();
    });
}

#[test]
fn a_line_that_frees_an_interrupted_step_decides_nothing_without_its_receipt() {
    let mark = "[[steps]]\nid = \"mark\"\nkind = \"tool\"\ntool = \"shell\"\nargs = { command = \"echo x >> marks\" }\n";
    for freed in [json!({ "rerun": { "step": "mark" } }), json!({ "void": { "step": "mark" } })] {
        let test_agent = agent_with_sop("mark", mark);
        assert_eq!(test_agent.run(&["sop", "run", "mark"]).code, 0);
        edit_journal(&test_agent, |lines| *lines.last_mut().unwrap() = freed.to_string());
        let asked = run_command_on_run(&test_agent, &["resume"]);
        assert!(asked.code == 1 && asked.err.contains("--rerun-interrupted"), "{freed}: {asked:?}");
        let marks = || fs::read_to_string(test_agent.workspace().join("marks")).unwrap();
        assert_eq!(marks(), "x\n");
        // The decision of the operator has its own receipt.
        assert_eq!(run_command_on_run(&test_agent, &["resume", "--rerun-interrupted"]).code, 0);
        assert_eq!(marks(), "x\nx\n");
        let tools: Vec<String> = steps(&test_agent).into_iter().map(|[_, tool, ..]| tool).collect();
        assert_eq!(tools, ["shell", "step:rerun", "shell"]);
        assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 0);
    }
}

#[test]
fn a_decision_whose_line_is_lost_is_known_by_its_receipt() {
    let test_agent = agent_with_waiting_run();
    assert_eq!(run_command_on_run(&test_agent, &["cancel"]).code, 0);
    edit_journal(&test_agent, |lines| drop(lines.pop()));
    assert_eq!(single_run(&test_agent)["state"], "waiting");
    let resumed = run_command_on_run(&test_agent, &["resume"]);
    assert!(resumed.code == 2 && resumed.err.contains("it was cancelled"), "{resumed:?}");
    assert_eq!(single_run(&test_agent)["state"], "cancelled");

    // Killed between the receipt of an approval and its journal line.
    let test_agent = agent_with_waiting_run();
    assert_eq!(run_command_on_run(&test_agent, &["approve"]).code, 0);
    edit_journal(&test_agent, |lines| lines.truncate(3));
    let resumed = run_command_on_run(&test_agent, &["resume"]);
    assert!(
        resumed.code == 1 && resumed.err.contains("but no lines in the journal"),
        "what followed is gone, too: {resumed:?}"
    );
}

#[test]
fn a_run_that_an_older_version_has_begun_does_not_go_on() {
    let test_agent = agent_with_waiting_run().with_config_change("signed = true", "signed = false");
    crate::receipt_signing::rewrite_log(&test_agent, &["sop_hash"]);
    let refused = run_command_on_run(&test_agent, &["approve"]);
    assert!(refused.code == 1 && refused.err.contains("don't name the procedure"), "{refused:?}");
    assert!(refused.err.contains("start again") && !refused.err.contains("somebody"), "{refused:?}");
    assert!(!test_agent.workspace().join("kept").exists());
}

#[test]
fn changed_receipts_prove_nothing() {
    let test_agent = agent_with_waiting_run();
    // A following record: processes that only append check the last record.
    assert_eq!(test_agent.run(&["tool", "run", "file_list"]).code, 0);
    let log = test_agent.home().join("tool_receipts.log");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"allowed\"", "\"failed\"", 1)).unwrap();
    let refused = run_command_on_run(&test_agent, &["approve"]);
    assert!(refused.code == 9 && refused.err.contains("receipt verify"), "{refused:?}");
    assert!(!test_agent.workspace().join("kept").exists());
}
