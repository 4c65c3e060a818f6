//! Turns over HTTP leave the same receipts and memory as turns at a terminal (C5.3, C8, C9, C10).

use serde_json::{Value, json};

use super::support::TestGateway;
use crate::support::{TestAgent, wait_until};

const LISTS: &str = "[[round]]\ntext = \"I look.\"\n[[round.call]]\ntool = \"file_list\"\nargs = { path = \".\" }\n\
                     [[round]]\ntext = \"One file.\"\n";

#[test]
fn a_turn_has_its_answer_its_calls_and_their_receipts() {
    let gateway = TestGateway::start_in(TestAgent::new().with_mock_fixture(LISTS));
    std::fs::write(gateway.test_agent.workspace().join("notes.txt"), "").unwrap();
    let reply = gateway.post("/chat", &json!({ "message": "what is there?" }));
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    assert_eq!(answer["answer"], "One file.");
    let call = &answer["tool_calls"][0];
    assert_eq!((&call["tool"], &call["outcome"]), (&json!("file_list"), &json!("done")));
    assert_eq!(call["arguments"], json!({ "path": "." }));
    assert!(call["output"].as_str().unwrap().contains("notes.txt"));

    // The receipt and the memory are the same as those of `agent`.
    assert_eq!(gateway.test_agent.receipts()[0]["id"], call["receipt_id"]);
    let conversation = answer["conversation_id"].as_str().unwrap();
    let turns = gateway.test_agent.run(&["memory", "show", conversation, "--output", "json"]).json();
    let roles: Vec<&str> =
        turns.as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(gateway.test_agent.run(&["receipt", "verify"]).code, 0);
    let found = gateway.get("/memory/search?q=what+is").json();
    assert_eq!(found[0]["conversation_id"], *conversation, "{found}");

    let receipts = gateway.get("/receipts").json();
    assert_eq!((&receipts["chain"]["valid"], &receipts["next_before"]), (&json!(true), &Value::Null));
    assert_eq!(receipts["receipts"][0]["id"], call["receipt_id"]);
    let metrics = gateway.get("/metrics").body;
    for figure in [
        "collieclaw_conversations_total 1",
        "collieclaw_tool_calls_total 1",
        "collieclaw_tool_denials_total 0",
        "collieclaw_provider_errors_total 0",
        "collieclaw_receipt_chain_valid 1",
    ] {
        assert!(metrics.lines().any(|line| line == figure), "{figure} in {metrics}");
    }
}

#[test]
fn a_turn_is_streamed_as_events() {
    let gateway = TestGateway::start_in(TestAgent::new().with_mock_fixture(LISTS));
    let mut events = gateway.stream_chat(&json!({ "message": "look", "conversation_id": "mine" }));
    let mut names = Vec::new();
    let mut said = String::new();
    while let Some((name, value)) = events.next() {
        match name.as_str() {
            "draft" => said.push_str(value["text"].as_str().unwrap()),
            "answer" => assert_eq!(
                (&value["answer"], &value["conversation_id"]),
                (&json!("One file."), &json!("mine"))
            ),
            _ => {}
        }
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names.retain(|name| name != "draft");
    assert_eq!(names, ["tool", "answer", "done"]);
    assert!(said.starts_with("I look."), "{said}");
}

#[test]
fn a_conversation_continues_and_receipts_come_in_pages() {
    let fixture = "[[round]]\n[[round.call]]\ntool = \"time\"\n[[round.call]]\ntool = \"time\"\n\
                   [[round.call]]\ntool = \"file_read\"\nargs = { path = \"/etc/passwd\" }\n[[round]]\ntext = \"so\"\n";
    let gateway = TestGateway::start_in(TestAgent::new().with_mock_fixture(fixture));
    let first = gateway.post("/chat", &json!({ "message": "one" })).json();
    // C7: the gate denies calls over HTTP as everywhere else.
    assert_eq!(first["tool_calls"][2]["outcome"], "denied", "{first}");
    let conversation = first["conversation_id"].as_str().unwrap();
    gateway.post("/chat", &json!({ "message": "two", "conversation_id": conversation }));
    let turns = gateway.test_agent.run(&["memory", "show", conversation, "--output", "json"]).json();
    assert_eq!(turns.as_array().unwrap().iter().filter(|turn| turn["role"] == "user").count(), 2);

    let mut seen = Vec::new();
    let mut page = gateway.get("/receipts?limit=4").json();
    loop {
        assert_eq!(page["chain"]["records"], 6);
        seen.extend(page["receipts"].as_array().unwrap().iter().map(|one| one["sequence"].as_u64().unwrap()));
        let Some(before) = page["next_before"].as_u64() else { break };
        page = gateway.get(&format!("/receipts?limit=4&before={before}")).json();
    }
    assert_eq!(seen.len(), 6);
    assert!(seen.is_sorted_by(|one, next| one > next), "newest first, each once: {seen:?}");
    assert!(gateway.get("/metrics").body.contains("collieclaw_tool_denials_total 2\n"));
}

#[test]
fn a_broken_chain_is_seen_at_once_without_a_restart() {
    let gateway = TestGateway::start_in(
        TestAgent::new()
            .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"so\"\n"),
    );
    gateway.post("/chat", &json!({ "message": "one" }));
    assert_eq!(gateway.get("/receipts").json()["chain"]["valid"], true);
    let log = gateway.test_agent.home().join("tool_receipts.log");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("\"allowed\"", "\"denied\"", 1)).unwrap();
    wait_until("the break is reported", || {
        let chain = gateway.get("/receipts").json()["chain"].clone();
        chain["valid"] == false && chain["broken_at"].is_u64()
    });
    assert!(gateway.get("/metrics").body.contains("collieclaw_receipt_chain_valid 0\n"));
}

#[test]
fn a_provider_that_fails_is_named_and_counted_and_the_turn_is_kept() {
    let gateway =
        TestGateway::start_in(TestAgent::new().with_mock_fixture("[[round]]\nerror = \"overloaded\"\n"));
    let reply = gateway.post("/chat", &json!({ "message": "hello" }));
    assert_eq!(reply.error_code(), (502, "provider".to_owned()));
    let conversation = reply.json()["conversation_id"].as_str().unwrap().to_owned();
    let turns = gateway.test_agent.run(&["memory", "show", &conversation, "--output", "json"]).json();
    assert!(turns[1]["content"].as_str().unwrap().starts_with("[no answer"), "{turns}");
    assert!(gateway.get("/metrics").body.contains("collieclaw_provider_errors_total 1\n"));
}

#[test]
fn tools_and_status_show_the_rules_in_force() {
    let test_agent = TestAgent::new()
        .with_config_change("port = 8477\ntools_allow = [\"file_read\", ", "port = 8477\ntools_allow = [");
    let gateway = TestGateway::start_in(test_agent);
    let offered: Vec<Value> = gateway
        .get("/tools")
        .json()
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["offered"] == true)
        .cloned()
        .collect();
    let names: Vec<&str> = offered.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"file_list") && !names.contains(&"file_read"), "{names:?}");
    let status = gateway.get("/status").json();
    assert_eq!((&status["autonomy"], &status["estop"]), (&json!("supervised"), &json!(false)));
    assert_eq!(gateway.get("/openapi.json").body, collieclaw_gateway::OPENAPI);
}

/// Names that start with `run-` would be taken for part of a run.
#[test]
fn a_chat_does_not_go_on_under_the_name_of_a_run() {
    let gateway = TestGateway::start_in(TestAgent::new());
    let body = json!({ "message": "hi", "conversation_id": "run-0123" });
    let refused = gateway.post("/chat", &body);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("bad-body")), "{refused:?}");
}
