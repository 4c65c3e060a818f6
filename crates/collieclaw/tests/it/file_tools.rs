//! The tools for work on files (C19.1): editing, searching, finding, moving and deleting, through the real program.

mod deleting;
mod editing;
mod moving;
mod repositories;
mod result_size;
mod searching;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::TestAgent;

/// Creates an agent that needs no approvals, with these files in its workspace.
fn agent_with_files(files: &[(&str, &str)]) -> TestAgent {
    let test_agent = TestAgent::new().with_full_autonomy();
    write_files(&test_agent.workspace(), files);
    test_agent
}

fn write_files(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let place = folder.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
}

/// Returns exit code and the code of the reason of a call that is denied or fails.
fn refused(test_agent: &TestAgent, tool: &str, arguments: &Value) -> (i32, String) {
    let done = test_agent.call_tool(tool, &arguments.to_string());
    assert_ne!(done.code, 0, "{done:?}");
    (done.code, test_agent.last_receipt()["reason_code"].as_str().unwrap().to_owned())
}

/// Returns the lines of a successful call, without the line of facts.
fn lines(test_agent: &TestAgent, tool: &str, arguments: &Value) -> Vec<String> {
    let output = test_agent.call_output(tool, &arguments.to_string());
    output.lines().filter(|line| !line.starts_with('[')).map(str::to_owned).collect()
}

#[test]
fn every_new_tool_leaves_a_receipt_and_obeys_readonly() {
    let test_agent = agent_with_files(&[("a.txt", "one\n")]);
    let calls = [
        ("file_search", json!({ "pattern": "one" })),
        ("file_glob", json!({ "pattern": "*.txt" })),
        ("file_edit", json!({ "path": "a.txt", "edits": [{ "old_text": "one", "new_text": "two" }] })),
        ("file_move", json!({ "from": "a.txt", "to": "b.txt" })),
        ("file_delete", json!({ "path": "b.txt" })),
    ];
    for (tool, arguments) in &calls {
        test_agent.call_output(tool, &arguments.to_string());
    }
    let names = calls.each_ref().map(|(tool, _)| *tool);
    let summaries = test_agent.receipt_summaries();
    let allowed: Vec<(&str, &str)> =
        summaries.iter().map(|[tool, status, _]| (tool.as_str(), status.as_str())).collect();
    assert_eq!(allowed, names.map(|tool| (tool, "allowed")));
    fs::write(test_agent.workspace().join("a.txt"), "one\n").unwrap();
    let test_agent = test_agent.with_config_change("autonomy = \"full\"", "autonomy = \"readonly\"");
    for (tool, arguments) in &calls {
        let expected = if matches!(*tool, "file_search" | "file_glob") { 0 } else { 4 };
        assert_eq!(test_agent.call_tool(tool, &arguments.to_string()).code, expected, "{tool}");
    }
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}
