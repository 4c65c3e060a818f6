//! Approvals over HTTP are bound to exactly the call that was shown; everything else is a denial (C5.3, C7.7, C11).

use serde_json::{Value, json};

use super::support::TestGateway;
use crate::support::{TestAgent, unique_sleep_seconds, wait_for_sleep, wait_until};

const WRITES: &str = "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x.txt\", content = \"hello\" }\n\
                      [[round]]\ntext = \"over\"\n";

fn writing_agent() -> TestAgent {
    TestAgent::new().with_mock_fixture(WRITES)
}

/// Starts a turn that needs an approval, answers it, and returns the result.
fn chat_and_answer(gateway: &TestGateway, answer: impl FnOnce(&Value)) -> Value {
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| gateway.post("/chat", &json!({ "message": "write" })));
        answer(&gateway.wait_for_question());
        turn.join().unwrap().json()["tool_calls"][0].clone()
    })
}

fn approval_path(asked: &Value) -> String {
    format!("/approvals/{}", asked["id"].as_str().unwrap())
}

#[test]
fn an_approval_runs_exactly_the_shown_call_once() {
    let gateway = TestGateway::start_in(writing_agent());
    let call = chat_and_answer(&gateway, |asked| {
        assert_eq!((&asked["tool"], &asked["risk"]), (&json!("file_write"), &json!("medium")));
        assert_eq!(asked["arguments"], json!({ "path": "x.txt", "content": "hello" }));
        assert!(!asked["reasons"][0]["detail"].as_str().unwrap().is_empty());
        assert_eq!(gateway.get("/status").json()["approvals"], 1);
        // An approval of other arguments, or without a hash, doesn't count.
        let other = json!({ "approve": true, "args_hash": "0".repeat(64) });
        for nothing in [json!({ "approve": true }), other] {
            assert_eq!(
                gateway.post(&approval_path(asked), &nothing).error_code(),
                (409, "other-arguments".to_owned())
            );
        }
        assert_eq!(gateway.post(&approval_path(asked), &json!({ "approve": "yes" })).status, 400);
        let yes = json!({ "approve": true, "args_hash": asked["args_hash"] });
        assert_eq!(gateway.post(&approval_path(asked), &yes).status, 200);
        assert_eq!(gateway.post(&approval_path(asked), &yes).error_code(), (404, "not-asked".to_owned()));
    });
    assert_eq!(call["outcome"], "done");
    assert_eq!(std::fs::read_to_string(gateway.test_agent.workspace().join("x.txt")).unwrap(), "hello");
    let receipt = &gateway.test_agent.receipts()[0];
    assert_eq!((&receipt["approver"], &receipt["status"]), (&json!("operator"), &json!("allowed")));
    assert_eq!(gateway.get("/approvals").json(), json!([]));
}

#[test]
fn a_yes_for_good_asks_once() {
    let gateway =
        TestGateway::start_in(writing_agent().with_config_change(
            "port = 8477\ntools_allow = [",
            "port = 8477\ntools_allow = [\"file_write\", ",
        ));
    let call = chat_and_answer(&gateway, |asked| {
        assert_eq!(asked["lasting"], true, "{asked}");
        let always = json!({ "approve": true, "args_hash": asked["args_hash"], "always": true });
        assert_eq!(gateway.post(&approval_path(asked), &always).status, 200);
    });
    assert_eq!(call["outcome"], "done");
    let again = gateway.post("/chat", &json!({ "message": "write" })).json();
    assert_eq!(again["tool_calls"][0]["outcome"], "done", "{again}");
    assert_eq!(gateway.test_agent.receipts()[1]["approver"], "remembered");

    // A tool that is not on the list can't be approved permanently.
    let gateway = TestGateway::start_in(writing_agent());
    chat_and_answer(&gateway, |asked| {
        let always = json!({ "approve": true, "args_hash": asked["args_hash"], "always": true });
        assert_eq!(
            gateway.post(&approval_path(asked), &always).error_code(),
            (409, "other-arguments".to_owned())
        );
        assert_eq!(gateway.post(&approval_path(asked), &json!({ "approve": false })).status, 200);
    });
}

#[test]
fn a_question_of_the_model_can_be_answered_with_text() {
    let fixture = "[[round]]\n[[round.call]]\ntool = \"ask_user\"\nargs = { question = \"Which?\", choices = [\"red\", \"blue\"] }\n\
                   [[round]]\ntext = \"so\"\n";
    let test_agent = TestAgent::new()
        .with_config_change("port = 8477\ntools_allow = [", "port = 8477\ntools_allow = [\"ask_user\", ")
        .with_mock_fixture(fixture);
    let gateway = TestGateway::start_in(test_agent);
    let call = chat_and_answer(&gateway, |asked| {
        assert_eq!((&asked["kind"], &asked["question"]), (&json!("question"), &json!("Which?")));
        assert_eq!(asked["choices"], json!(["red", "blue"]));
        assert_eq!(gateway.post(&approval_path(asked), &json!({ "approve": true })).status, 400);
        assert_eq!(gateway.post(&approval_path(asked), &json!({ "answer": "blue" })).status, 200);
    });
    assert_eq!((&call["outcome"], &call["output"]), (&json!("done"), &json!("blue")));
    let call = chat_and_answer(&gateway, |asked| {
        assert_eq!(gateway.post(&approval_path(asked), &json!({ "approve": false })).status, 200);
    });
    assert_eq!(call["outcome"], "failed", "{call}");
}

#[test]
fn a_no_and_silence_deny() {
    let gateway = TestGateway::start_in(writing_agent());
    let call = chat_and_answer(&gateway, |asked| {
        assert_eq!(gateway.post(&approval_path(asked), &json!({ "approve": false })).status, 200);
    });
    assert_eq!(call["outcome"], "denied");

    let gateway = TestGateway::start_in(
        writing_agent().with_config_change("approval_timeout = \"120s\"", "approval_timeout = \"300ms\""),
    );
    let reply = gateway.post("/chat", &json!({ "message": "write" }));
    assert_eq!(reply.json()["tool_calls"][0]["outcome"], "no-operator", "{reply:?}");
    assert_eq!(gateway.test_agent.receipt_summaries(), [["file_write", "denied", "no-operator"]]);
    assert!(!gateway.test_agent.workspace().join("x.txt").exists());
}

#[test]
fn a_client_that_goes_away_takes_its_question_with_it() {
    let gateway = TestGateway::start_in(writing_agent());
    // One client reads events, the other waits for the whole answer.
    let mut events = gateway.stream_chat(&json!({ "message": "write", "conversation_id": "first" }));
    let shown = events.wait_for("approval");
    assert_eq!(shown, gateway.wait_for_question());
    drop(events);
    wait_until("no question is open", || gateway.get("/approvals").json() == json!([]));
    let late = json!({ "approve": true, "args_hash": shown["args_hash"] });
    assert_eq!(gateway.post(&approval_path(&shown), &late).status, 404);

    let body = json!({ "message": "write", "conversation_id": "second" }).to_string();
    let mut waiting = gateway.connect();
    let head = format!(
        "POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        gateway.port,
        gateway.bearer(),
        body.len()
    );
    std::io::Write::write_all(&mut waiting, head.as_bytes()).unwrap();
    gateway.wait_for_question();
    drop(waiting);
    gateway.wait_for_end_of_turns();

    assert_eq!(gateway.test_agent.receipt_summaries(), [["file_write", "denied", "cancelled"]; 2]);
    assert!(!gateway.test_agent.workspace().join("x.txt").exists());
    let turns = gateway.test_agent.run(&["memory", "show", "first", "--output", "json"]).json();
    let last = turns.as_array().unwrap().last().unwrap();
    assert!(last["content"].as_str().unwrap().contains("cancelled"), "{turns}");
}

#[test]
fn the_emergency_stop_ends_questions_and_calls_and_can_be_cleared() {
    let gateway = TestGateway::start_in(writing_agent());
    let call = chat_and_answer(&gateway, |_| {
        assert_eq!(gateway.post("/estop", &json!({})).json(), json!({ "active": true, "was_active": false }));
    });
    assert_eq!(call["outcome"], "stopped");
    assert_eq!(gateway.get("/status").json()["estop"], true);
    assert!(gateway.test_agent.home().join("ESTOP").exists());
    // Every process of the home obeys the emergency stop.
    assert_eq!(gateway.test_agent.run(&["tool", "run", "time"]).code, 8);
    assert_eq!(gateway.delete("/estop").json(), json!({ "active": false, "was_active": true }));
    assert_eq!(gateway.test_agent.run(&["tool", "run", "time"]).code, 0);

    // Only the stop ends the command before the test fails; the benchmark `estop` measures the time.
    let seconds = unique_sleep_seconds();
    let gateway = TestGateway::start_in(TestAgent::new().with_sleeping_model(&seconds));
    let mut events = gateway.stream_chat(&json!({ "message": "wait" }));
    assert_eq!(events.wait_for("tool")["phase"], "begins");
    wait_for_sleep(&seconds);
    gateway.post("/estop", &json!({}));
    assert_eq!(events.wait_for("tool")["outcome"], "stopped");
    assert_eq!(events.wait_for("answer")["answer"], "Tools are stopped.");
    assert_eq!(gateway.test_agent.receipt_summaries(), [["shell", "failed", "estop"]]);
}
