//! Finished runs keep their state until they are removed.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use serde_json::json;

use super::{SUNNY, TOOL, agent_with_sop, run_command_on_run, single_run};
use crate::support::TestAgent;

fn journal(test_agent: &TestAgent) -> PathBuf {
    let run = single_run(test_agent)["run"].as_str().unwrap().to_owned();
    test_agent.home().join("sop-runs").join(format!("{run}.jsonl"))
}

fn reading(path: &str) -> String {
    format!(
        "[[steps]]\nid = \"read\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = {{ path = \"{path}\" }}\n"
    )
}

#[test]
fn a_finished_run_cannot_be_cancelled_and_a_failed_one_not_resumed() {
    for (path, code, state) in [("there", 0, "finished"), ("gone", 1, "failed"), ("/etc/passwd", 4, "failed")]
    {
        let test_agent = agent_with_sop("read", &reading(path));
        fs::write(test_agent.workspace().join("there"), "text").unwrap();
        assert_eq!(test_agent.run(&["sop", "run", "read"]).code, code);
        let before = fs::read(journal(&test_agent)).unwrap();
        let cancelled = run_command_on_run(&test_agent, &["cancel"]);
        assert!(cancelled.code == 2 && cancelled.err.contains("has ended"), "{cancelled:?}");
        let resumed = run_command_on_run(&test_agent, &["resume"]);
        if state == "failed" {
            let said = "has ended: it failed at step `read`";
            assert!(resumed.code == 2 && resumed.err.contains(said), "{resumed:?}");
            assert!(!resumed.err.contains("denied"), "nothing was denied now: {resumed:?}");
        }
        assert_eq!(single_run(&test_agent)["state"], state);
        assert_eq!(fs::read(journal(&test_agent)).unwrap(), before);
    }
}

#[test]
fn a_run_whose_tool_is_gone_can_be_cancelled_and_removed() {
    let steps = "[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"?\"\n\
                 [[steps]]\nid = \"ask\"\nkind = \"tool\"\ntool = \"weather_now\"\n";
    let test_agent = TestAgent::new().with_full_autonomy().with_plugin("weather", TOOL, SUNNY);
    super::write(&test_agent, "ask", &format!("name = \"ask\"\ndescription = \"for a test\"\n{steps}"));
    assert_eq!(test_agent.run(&["sop", "run", "ask"]).code, 5);
    assert_eq!(test_agent.run(&["plugin", "remove", "weather"]).code, 0);
    for (command, code) in [("remove", 2), ("cancel", 0), ("cancel", 2), ("remove", 0)] {
        let done = run_command_on_run(&test_agent, &[command]);
        assert_eq!(done.code, code, "{command}: {done:?}");
    }
    assert_eq!(test_agent.run(&["sop", "status", "--output", "json"]).json(), json!([]));
}

#[test]
fn only_finished_runs_are_removed_and_only_their_receipts_stay() {
    let test_agent = agent_with_sop(
        "read",
        &format!("{}[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"?\"\n", reading("there")),
    );
    fs::write(test_agent.workspace().join("there"), "the secret word is Aardvark").unwrap();
    assert_eq!(test_agent.run(&["sop", "run", "read"]).code, 5);
    let open = run_command_on_run(&test_agent, &["remove"]);
    assert!(open.code == 2 && open.err.contains("is still unfinished"), "{open:?}");
    assert_eq!(run_command_on_run(&test_agent, &["approve"]).code, 0);
    assert!(fs::read_to_string(journal(&test_agent)).unwrap().contains("Aardvark"));
    let removed = run_command_on_run(&test_agent, &["remove", "--output", "json"]);
    assert_eq!((removed.code, &removed.json()["removed"]), (0, &json!(true)), "{removed:?}");
    assert_eq!(fs::read_dir(test_agent.home().join("sop-runs")).unwrap().count(), 0);
    assert_eq!(test_agent.run(&["sop", "remove", "run-0123"]).code, 2);
    let tools: Vec<String> = test_agent.receipt_summaries().into_iter().map(|[tool, ..]| tool).collect();
    assert_eq!(tools, ["file_read", "step:approved"]);
}

#[test]
fn a_journal_that_is_too_long_is_not_read_in_part_and_not_cut() {
    let test_agent = agent_with_sop("ok", "[[steps]]\nid = \"ok\"\nkind = \"approval\"\nprompt = \"?\"\n");
    assert_eq!(test_agent.run(&["sop", "run", "ok"]).code, 5);
    let journal = journal(&test_agent);
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let long = (1 << 30) + 1;
    // A sparse file: it takes no space on disk.
    OpenOptions::new().write(true).open(&journal).unwrap().set_len(long).unwrap();
    for command in ["resume", "approve", "cancel", "remove", "status"] {
        let refused = test_agent.run(&["sop", command, &run]);
        assert!(refused.code == 1 && refused.err.contains("more than the limit"), "{command}: {refused:?}");
        assert_eq!(fs::metadata(&journal).unwrap().len(), long, "{command}");
    }
}
