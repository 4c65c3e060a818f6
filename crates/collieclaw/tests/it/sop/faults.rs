//! All errors of a procedure are reported at once, with their place and help.

use crate::support::TestAgent;

#[test]
fn all_faults_are_reported_at_once() {
    let test_agent = TestAgent::new();
    super::write(
        &test_agent,
        "faulty",
        r#"name = "other"
description = ""
colour = "red"

[[steps]]
id = "one"
kind = "tool"
tool = "file_raed"

[[steps]]
id = "one"
kind = "approval"
prompt = "Well?"

[[steps]]
id = "two"
kind = "tool"
tool = "file_write"
args = { pth = "x" }
content_from = "three"

[[steps]]
id = "Three!"
kind = "agent"
promt = "Think."

[[steps]]
id = "four"
kind = "shell"

[[steps]]
id = "five"
kind = "tool"
tool = "file_read"
args = { path = "x" }
content_from = "one"
on_failure = "retry"

[[steps]]
id = "six"
kind = "tool"
tool = "file_write"
args = { path = "x", content = "y" }
content_from = "two"
"#,
    );
    let validate = test_agent.run(&["sop", "validate", "faulty"]);
    assert_eq!(validate.code, 3, "{validate:?}");
    let home = test_agent.home().canonicalize().unwrap();
    insta::assert_snapshot!(validate.err.replace(home.to_str().unwrap(), "HOME"));
    let all = test_agent.run(&["sop", "validate", "--output", "json"]);
    assert_eq!((all.code, &all.json()[0]["valid"]), (3, &false.into()), "{all:?}");
    assert_eq!(test_agent.run(&["sop", "run", "faulty"]).code, 3);
    assert!(test_agent.run(&["sop", "list"]).out.contains("NOT VALID"));
}

#[test]
fn an_invalid_procedure_is_reported() {
    let test_agent = TestAgent::new();
    assert_eq!(test_agent.run(&["sop", "list", "--output", "json"]).json(), serde_json::json!([]));
    assert_eq!(test_agent.run(&["sop", "validate"]).code, 0);
    for name in ["missing", "../../config", "", "A"] {
        assert_eq!(test_agent.run(&["sop", "run", name]).code, 2, "{name}");
    }
    super::write(&test_agent, "empty", "name = \"empty\"\ndescription = \"nothing\"\n");
    let empty = test_agent.run(&["sop", "validate", "empty"]);
    assert!(empty.code == 3 && empty.err.contains("at least one step"), "{empty:?}");
    super::write(&test_agent, "torn", "name = \"torn\"\n[[steps]\n");
    assert_eq!(test_agent.run(&["sop", "validate", "torn"]).code, 3);
}
