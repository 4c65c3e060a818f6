//! Models over HTTP: streaming, routing by hints, fallback and limits (C4.3, C4.4).

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::TestGateway;
use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::TestAgent;

fn start_with_config(config: &str) -> TestGateway {
    let test_agent = TestAgent::new();
    fs::write(test_agent.home().join("small.toml"), "[[round]]\ntext = \"I am small.\"\n").unwrap();
    let small = "[providers.models.small]\nkind = \"mock\"\nfixture = \"small.toml\"\n";
    fs::write(test_agent.home().join("config.toml"), format!("{config}\n{small}")).unwrap();
    TestGateway::start_in(test_agent)
}

fn server_table(server: &TestServer) -> String {
    let url = format!("http://127.0.0.1:{}/v1", server.port());
    format!("[providers.models.remote]\nkind = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"{url}\"\n")
}

fn delta_bytes(text: &str) -> Vec<u8> {
    format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]})).into_bytes()
}

const START: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[test]
fn a_stream_is_forwarded_in_pieces_and_discarded_when_it_breaks() {
    let torn = vec![START.to_vec(), delta_bytes("I am the"), delta_bytes(" first")];
    let server = TestServer::start(vec![ServerAction::Pieces(torn, Duration::from_millis(50))]);
    let gateway = start_with_config(&format!(
        "default_provider = \"safe\"\n{}[providers.models.safe]\nkind = \"reliable\"\nproviders = [\"remote\", \"small\"]\n",
        server_table(&server)
    ));
    let mut events = gateway.stream_chat(&json!({ "message": "who are you?" }));
    let mut drafts = Vec::new();
    let answer = loop {
        match events.next().unwrap() {
            (name, value) if name == "draft" => drafts.push(value),
            (name, value) if name == "answer" => break value["answer"].clone(),
            _ => {}
        }
    };
    let actual = |text: &str| json!({ "text": text });
    assert_eq!(drafts, [actual("I am the"), actual(" first"), json!({ "discarded": true })]);
    assert_eq!(answer, "I am small.");
}

#[test]
fn a_failing_provider_is_skipped_by_all_turns_of_a_gateway() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply("503 No", "application/json", "{}"))]);
    let gateway = start_with_config(&format!(
        "default_provider = \"safe\"\n{}[providers.models.safe]\nkind = \"reliable\"\nproviders = [\"remote\", \"small\"]\n\
         failures = 2\ncool_down = \"10m\"\n",
        server_table(&server)
    ));
    for asked in [1, 2, 2, 2] {
        let answer = gateway.post("/chat", &json!({ "message": "hi" })).json();
        assert_eq!((&answer["answer"], server.received().len()), (&json!("I am small."), asked), "{answer}");
    }
}

#[test]
fn a_hint_chooses_the_model_and_a_reached_limit_is_reported() {
    let gateway = start_with_config(
        "default_provider = \"choice\"\n[limits]\ncalls_per_day = 2\n[providers.models.choice]\nkind = \"router\"\n\
         default = \"local\"\n[[providers.models.choice.rules]]\nwhen = { hint = \"fast\" }\nprovider = \"small\"\n",
    );
    let ask = |body: Value| gateway.post("/chat", &body);
    assert_eq!(ask(json!({ "message": "hi", "hint": "fast" })).json()["answer"], "I am small.");
    let other = ask(json!({ "message": "hi" })).json();
    assert!(other["answer"].as_str().unwrap().starts_with("You said: hi"), "{other}");
    let refused = ask(json!({ "message": "hi" }));
    assert_eq!(refused.error_code(), (429, "used-up".to_owned()));
    assert!(refused.body.contains("limits.calls_per_day"), "{}", refused.body);
    // The seconds until the end of the day.
    let json = [("Content-Type", "application/json")];
    let raw = gateway.send_with_headers("POST", "/chat", &json, r#"{"message": "hi"}"#).to_lowercase();
    let after = raw.split_once("retry-after: ").expect(&raw).1.split_once("\r\n").unwrap().0.parse::<u64>();
    assert!((1..=25 * 3600 + 1).contains(&after.unwrap()), "{raw}");
    let metrics = gateway.get("/metrics").body;
    assert!(metrics.contains("collieclaw_provider_errors_total 0"), "{metrics}");
}
