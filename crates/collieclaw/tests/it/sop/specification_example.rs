//! C12: the example of the specification is valid exactly as it stands there.

use std::fs;

use super::{run_command_on_run, single_run, write};
use crate::support::TestAgent;

/// The example, character for character.
const EXAMPLE: &str = r#"name = "daily-check"
description = "Run a daily workspace check"

[[steps]]
id = "list"
kind = "tool"
tool = "file_list"
args = { path = "." }

[[steps]]
id = "summarize"
kind = "agent"
prompt = "Summarize the file list from the previous step."

[[steps]]
id = "approval"
kind = "approval"
prompt = "Continue to write report?"

[[steps]]
id = "write"
kind = "tool"
tool = "file_write"
args = { path = "daily-check.txt", content_from = "summarize" }
"#;

#[test]
fn the_example_of_the_specification_is_valid_and_runs() {
    let test_agent = TestAgent::new().with_full_autonomy().with_mock_fixture(
        "[[round]]\nexpect = { last_message_contains = \"notes.txt\" }\ntext = \"One file of notes.\"\n",
    );
    fs::write(test_agent.workspace().join("notes.txt"), "buy hay").unwrap();
    write(&test_agent, "daily-check", EXAMPLE);
    let valid = test_agent.run(&["sop", "validate"]);
    assert_eq!(valid.code, 0, "{valid:?}");
    assert_eq!(test_agent.run(&["sop", "run", "daily-check"]).code, 5, "it waits for the approval");
    assert_eq!(single_run(&test_agent)["state"], "waiting");
    let approved = run_command_on_run(&test_agent, &["approve"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    if single_run(&test_agent)["state"] != "finished" {
        assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 0);
    }
    let written = fs::read_to_string(test_agent.workspace().join("daily-check.txt")).unwrap();
    assert_eq!(written, "One file of notes.");
    assert_eq!(single_run(&test_agent)["state"], "finished");
}

#[test]
fn content_from_stands_in_one_place_only_and_names_an_earlier_step() {
    let check = |text: &str, expected: &str| {
        let test_agent = TestAgent::new();
        write(&test_agent, "daily-check", text);
        let invalid = test_agent.run(&["sop", "validate"]);
        assert!(invalid.code == 3 && invalid.err.contains(expected), "{expected}: {invalid:?}");
    };
    check(&format!("{EXAMPLE}content_from = \"summarize\"\n"), "is set twice");
    check(
        &EXAMPLE.replace("content_from = \"summarize\"", "content_from = \"sumarize\""),
        "did you mean `summarize`?",
    );
    check(&EXAMPLE.replace("content_from = \"summarize\"", "content_from = \"approval\""), "has no output");
    check(&EXAMPLE.replace("content_from = \"summarize\"", "content_from = 7"), "content_from");
    check(&EXAMPLE.replace("content_from =", "content = \"x\", content_from ="), "`content` is set twice");
}
