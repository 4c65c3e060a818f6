//! Calls to honest plugins.

use super::plugin_fixture::PLAIN;
use crate::support::TestAgent;

/// A plugin that prints its input and its environment.
const ECHO: &str = r#"#!/usr/bin/env python3
import json, os, sys
asked = json.load(sys.stdin)
asked["cwd"] = os.getcwd()
asked["env"] = sorted(os.environ)
print(json.dumps({"output": asked}))
"#;

#[test]
fn a_python_plugin_gets_its_arguments_and_answers() {
    let test_agent = TestAgent::new().with_full_autonomy().with_plugin("weather", PLAIN, ECHO);
    let actual: serde_json::Value =
        serde_json::from_str(&test_agent.call_output("weather_now", r#"{"city": "Ulm"}"#)).unwrap();
    assert_eq!(actual["tool"], "weather_now");
    assert_eq!(actual["arguments"], serde_json::json!({ "city": "Ulm" }));
    assert_eq!(actual["workspace"], serde_json::Value::Null);
    assert_eq!(
        actual["cwd"],
        test_agent.home().join("plugins/weather").canonicalize().unwrap().to_str().unwrap()
    );
    let env: Vec<&str> =
        actual["env"].as_array().unwrap().iter().filter_map(serde_json::Value::as_str).collect();
    for secret in ["COLLIECLAW_MOCK_FIXTURE", "OPENAI_API_KEY"] {
        assert!(!env.contains(&secret), "{env:?}");
    }
    let receipt = test_agent.last_receipt();
    assert_eq!(
        (receipt["tool"].as_str(), receipt["status"].as_str()),
        (Some("weather_now"), Some("allowed"))
    );
    assert_ne!(receipt["sandbox"], "none");
}

#[test]
fn a_plugin_may_be_a_program_of_the_system_with_a_script_of_its_own() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let text = super::plugin_fixture::manifest(
        "sum",
        "command = [\"python3\", \"sum.py\", \"--plus\", \"1\"]\nschema = \"schema.json\"\nrisk = \"low\"",
    );
    let script = "import json, sys\nnumbers = json.load(sys.stdin)['arguments']['numbers']\n\
                  print(json.dumps({'output': sum(numbers) + int(sys.argv[2])}))\n";
    let schema = r#"{"type": "object", "required": ["numbers"],
        "properties": {"numbers": {"type": "array", "items": {"type": "number"}}}}"#;
    let folder = test_agent
        .write_plugin_folder("sum", &[("manifest.toml", &text), ("sum.py", script), ("schema.json", schema)]);
    assert_eq!(test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]).code, 0);
    assert_eq!(test_agent.call_output("sum_now", r#"{"numbers": [1, 2, 3]}"#), "7");

    // The schema is checked first, with a receipt.
    let bad = test_agent.call_tool("sum_now", r#"{"numbers": ["1"]}"#);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(bad.err.contains("/numbers/0"), "{}", bad.err);
    assert_eq!(test_agent.last_receipt()["reason_code"], "bad-arguments");
}

#[test]
fn its_error_is_the_models_to_deal_with() {
    let run = "#!/bin/sh\nread asked\necho '{\"error\": \"no such city\"}'\necho 'looked everywhere' >&2\n";
    let test_agent = TestAgent::new().with_full_autonomy().with_plugin("weather", PLAIN, run);
    let done = test_agent.call_tool("weather_now", "{}");
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("no such city") && done.err.contains("looked everywhere"), "{}", done.err);
    assert_eq!(test_agent.last_receipt()["reason_code"], "tool-failed");
}

#[test]
fn the_risk_decides_about_a_question_and_can_be_configured() {
    let run = "#!/bin/sh\necho '{\"output\": \"sunny\"}'\n";
    let test_agent = TestAgent::new().with_plugin("weather", PLAIN, run);
    // The default risk is medium, and there is no operator.
    assert_eq!(test_agent.call_tool("weather_now", "{}").code, 5);
    let dialog = [("is a tool of the plugin `weather`", ""), ("Approve? [y/N", "y\n")];
    let yes = test_agent.at_terminal(&["tool", "run", "weather_now"], &dialog);
    assert_eq!((yes.code, yes.out.trim()), (0, "sunny"), "{yes:?}");

    let config = test_agent.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let settled = |risk: &str| format!("{text}\n[plugins.weather]\nrisks = {{ weather_now = \"{risk}\" }}\n");
    std::fs::write(&config, settled("low")).unwrap();
    assert_eq!(test_agent.call_output("weather_now", "{}"), "sunny");
    std::fs::write(&config, settled("high")).unwrap();
    assert_eq!(test_agent.call_tool("weather_now", "{}").code, 4);
    std::fs::write(&config, settled("extreme")).unwrap();
    assert_eq!(test_agent.call_tool("weather_now", "{}").code, 3);
}

#[test]
fn the_model_calls_a_plugin_that_the_channel_lists() {
    let test_agent = TestAgent::new()
        .with_plugin(
            "weather",
            &format!("{PLAIN}\nrisk = \"low\""),
            "#!/bin/sh\necho '{\"output\": \"sunny\"}'\n",
        )
        .with_config_change("tools_allow = [", "tools_allow = [\"weather_now\", ")
        .with_mock_fixture(
            r#"
[[round]]
[[round.call]]
tool = "weather_now"
args = { city = "Ulm" }

[[round]]
text = "It is {tool_result}."
"#,
        );
    let done = test_agent.run(&["agent", "-m", "weather?"]);
    assert_eq!((done.code, done.out.as_str()), (0, "It is sunny.\n"), "{done:?}");
    assert_eq!(
        test_agent.receipt_summaries(),
        [["weather_now", "allowed", "foreign-tool"].map(str::to_owned)]
    );
}

#[test]
fn the_workspace_is_as_far_open_as_the_manifest_says() {
    let run = r#"#!/usr/bin/env python3
import json, os, sys
asked = json.load(sys.stdin)
place = asked["workspace"] or asked["arguments"]["place"]
seen = []
try:
    seen.append(open(place + "/note.txt").read())
except OSError:
    seen.append("unread")
try:
    open(place + "/made.txt", "w").write("made")
    seen.append("written")
except OSError:
    seen.append("unwritten")
print(json.dumps({"output": " ".join(seen)}))
"#;
    for (used, expected) in
        [("none", "unread unwritten"), ("read", "a note unwritten"), ("write", "a note written")]
    {
        let tool = format!("command = \"./run\"\nschema = {{ type = \"object\" }}\nworkspace = \"{used}\"");
        let test_agent = TestAgent::new().with_full_autonomy().with_plugin("notes", &tool, run);
        std::fs::write(test_agent.workspace().join("note.txt"), "a note").unwrap();
        let place = serde_json::json!({ "place": test_agent.workspace() }).to_string();
        assert_eq!(test_agent.call_output("notes_now", &place), expected, "{used}");
        assert_eq!(test_agent.workspace().join("made.txt").exists(), used == "write");
    }
}
