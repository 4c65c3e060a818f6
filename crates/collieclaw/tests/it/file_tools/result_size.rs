//! Results are bounded by what a model's window bears, with a way to get the rest (C19.2).

use std::fs;

use serde_json::{Value, json};

use super::agent_with_files;

/// The default of `limits.max_tool_output_bytes`, and some space for the facts about a result.
const MAX_RESULT: usize = 32 * 1024 + 1024;

fn call(test_agent: &crate::support::TestAgent, tool: &str, arguments: &Value) -> (String, Value) {
    let arguments = arguments.to_string();
    let done = test_agent.run(&["tool", "run", tool, "--json", &arguments, "--output", "json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let value = done.json();
    (value["output"].as_str().unwrap().to_owned(), value["metadata"].clone())
}

#[test]
fn a_long_file_is_read_in_parts_that_end_with_a_line() {
    let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let test_agent = agent_with_files(&[("long.txt", &text)]);
    let mut offset = 0;
    let mut parts = String::new();
    loop {
        let (output, facts) =
            call(&test_agent, "file_read", &json!({ "path": "long.txt", "offset": offset }));
        assert!(output.len() <= MAX_RESULT, "{}", output.len());
        let part = output.rsplit_once('[').unwrap().0;
        assert!(part.ends_with('\n'), "a part ends with a line");
        parts.push_str(part);
        match facts["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
        assert!(facts["rest"].as_str().unwrap().contains(&format!("`offset` set to {offset}")));
    }
    assert_eq!(parts, text);
}

#[test]
fn the_beginning_and_the_end_of_a_commands_output_are_kept() {
    let test_agent = agent_with_files(&[]);
    let (output, _) = call(&test_agent, "shell", &json!({ "command": "seq 1 100000" }));
    assert!(output.len() <= MAX_RESULT, "{}", output.len());
    assert!(output.starts_with("1\n2\n") && output.contains("\n99999\n100000\n"), "{output}");
    assert!(output.contains("bytes are left out here; for the rest,"), "{output}");
}

#[test]
fn other_tools_are_bounded_as_well_and_the_limit_can_be_set() {
    let test_agent = agent_with_files(&[("a.txt", &"needle\n".repeat(50_000))])
        .with_config_change("max_tool_output_bytes = 32768", "max_tool_output_bytes = 4096");
    for number in 0..1000 {
        fs::write(test_agent.workspace().join(format!("file-{number}")), "").unwrap();
    }
    for (tool, arguments) in [
        ("file_search", json!({ "pattern": "needle", "limit": 5000 })),
        ("file_glob", json!({ "pattern": "*", "limit": 5000 })),
        ("file_list", json!({})),
        ("file_read", json!({ "path": "a.txt" })),
        ("shell", json!({ "command": "cat a.txt" })),
    ] {
        let (output, facts) = call(&test_agent, tool, &arguments);
        assert!(output.len() <= 4096 + 1024, "{tool}: {}", output.len());
        assert_eq!(facts["truncated"] == true, tool != "shell", "{tool}: {facts}");
    }
}

#[test]
fn a_step_of_a_procedure_passes_on_the_whole_output() {
    let text = "a line of the file\n".repeat(5000);
    let test_agent = crate::sop::agent_with_sop(
        "copy",
        "[[steps]]\nid = \"look\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = { path = \"a.txt\" }\n\
         [[steps]]\nid = \"copy\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"b.txt\", content_from = \"look\" }\n",
    );
    fs::write(test_agent.workspace().join("a.txt"), &text).unwrap();
    let run = test_agent.run(&["sop", "run", "copy"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(fs::read_to_string(test_agent.workspace().join("b.txt")).unwrap(), text);
}
