//! The tool `http` and a real provider, through the real program: gate, receipts, emergency stop, and hidden keys.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::{ChildGuard, TEST_TIMEOUT, TestAgent, agent_output, wait_for_exit};

const CANARY: &str = "sk-canary-1138-do-not-show";

fn house(server: &TestServer) -> TestAgent {
    let listed = format!("allowed_domains = [\"127.0.0.1:{}\"]", server.port());
    TestAgent::new().with_config_change("allowed_domains = []", &listed)
}

fn arguments(server: &TestServer, method: &str) -> String {
    json!({ "url": format!("http://127.0.0.1:{}/page", server.port()), "method": method }).to_string()
}

#[test]
fn a_listed_page_is_fetched_and_has_a_receipt() {
    let server =
        TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "what the page says"))]);
    let house = house(&server);
    let told = house.run(&["tool", "run", "http", "--json", &arguments(&server, "GET")]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.out.contains("what the page says") && told.out.contains("status: 200"), "{told:?}");
    assert_eq!(house.receipt_summaries(), [["http", "allowed", "allowed-domain"]]);
}

#[test]
fn what_is_not_listed_is_refused_before_anything_is_sent() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "secret"))]);
    let house = TestAgent::new();
    let denied = house.run(&["tool", "run", "http", "--json", &arguments(&server, "GET")]);
    assert_eq!(denied.code, 4, "{denied:?}");
    let listed = house.with_config_change(
        "allowed_domains = []",
        &format!("allowed_domains = [\"127.0.0.1:{}\"]", server.port()),
    );
    // Sending needs an approval, and there is no operator.
    let unasked = listed.run(&["tool", "run", "http", "--json", &arguments(&server, "POST")]);
    assert_eq!(unasked.code, 5, "{unasked:?}");
    let unfit = json!({ "url": "https://example.org/", "body": "x" }).to_string();
    assert_eq!(listed.run(&["tool", "run", "http", "--json", &unfit]).code, 1);
    assert_eq!(
        listed.receipt_summaries(),
        [
            ["http", "denied", "private-address"],
            ["http", "denied", "nobody-to-ask"],
            ["http", "failed", "bad-arguments"]
        ]
    );
    assert_eq!(server.received(), []);
}

#[test]
fn a_page_that_never_ends_is_a_failed_call() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    let server = TestServer::start(vec![ServerAction::Drip(start)]);
    let house = house(&server).with_config_change("http_timeout = \"20s\"", "http_timeout = \"1s\"");
    let told = house.run(&["tool", "run", "http", "--json", &arguments(&server, "GET")]);
    assert_eq!(told.code, 1);
    assert!(format!("{told:?}").contains("no reply within 1 s (`limits.http_timeout`)"), "{told:?}");
    assert_eq!(house.receipt_summaries(), [["http", "failed", "tool-failed"]]);
}

/// C11: running HTTP requests are cancelled at once.
#[test]
fn the_emergency_stop_ends_a_request() {
    let server = TestServer::start(vec![ServerAction::Hang(String::new())]);
    let house = house(&server).with_config_change("tool_timeout = \"30s\"", "tool_timeout = \"10m\"");
    let house = house.with_config_change("http_timeout = \"20s\"", "http_timeout = \"10m\"");
    let mut child =
        house.command(&["tool", "run", "http", "--json", &arguments(&server, "GET")]).spawn().unwrap();
    let patience = Instant::now() + TEST_TIMEOUT;
    while server.received().is_empty() {
        assert!(Instant::now() < patience, "it never asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(house.run(&["estop"]).code, 0);
    assert_eq!(wait_for_exit(&mut child), 8);
    assert_eq!(house.receipt_summaries(), [["http", "failed", "estop"]]);
}

fn remote(server: &TestServer) -> TestAgent {
    let base_url = format!("base_url = \"http://127.0.0.1:{}/v1\"", server.port());
    TestAgent::new().with_config_change("base_url = \"http://localhost:1234/v1\"", &base_url)
}

fn completion(message: &Value) -> ServerAction {
    let body = json!({ "model": "small", "choices": [{ "message": message }] });
    ServerAction::Send(http_reply("200 OK", "application/json", &body.to_string()))
}

#[test]
fn a_turn_with_a_real_server_runs_the_tool_and_keeps_the_key_out_of_everything() {
    let call = json!({ "function": { "name": "file_list", "arguments": "{\"path\": \".\"}" } });
    let server = TestServer::start(vec![
        completion(&json!({ "content": format!("Your key is {CANARY}."), "tool_calls": [call] })),
        completion(&json!({ "content": format!("There is notes.txt. Your key is {CANARY}.") })),
    ]);
    let house = remote(&server);
    std::fs::write(house.workspace().join("notes.txt"), "milk").unwrap();
    let mut command = house.command(&["agent", "--provider", "openai_compatible", "-m", "what is here?"]);
    let told = agent_output(command.env("OPENAI_API_KEY", CANARY).output().unwrap());
    assert_eq!((told.code, told.out.as_str()), (0, "There is notes.txt. Your key is ***.\n"), "{told:?}");
    assert!(!told.err.contains(CANARY), "{told:?}");

    let received = server.received();
    let bodies: Vec<Value> = received.iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect();
    assert_eq!(bodies.len(), 2);
    let last = bodies[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool");
    assert!(last["content"].as_str().unwrap().contains("notes.txt"), "{last}");
    assert_eq!(received[1].header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    for file in ["memory.db", "memory.db-wal", "tool_receipts.log", "audit.log"] {
        let bytes = std::fs::read(house.home().join(file)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains(CANARY), "{file}");
    }
    assert_eq!(house.receipt_summaries(), [["file_list", "allowed", "reads-inside"]]);
}

#[test]
fn what_a_server_cut_off_is_no_whole_answer_and_how_long_it_wants_to_rest_is_told() {
    let cut =
        json!({ "choices": [{ "message": { "content": "half of \\ud83d" }, "finish_reason": "length" }] });
    // Half of a character, which is invalid JSON.
    let cut = cut.to_string().replace("\\\\ud83d", "a \\ud83d letter");
    let busy =
        http_reply("429 Slow", "text/plain", "slow down").replacen("\r\n", "\r\nretry-after: 30\r\n", 1);
    let server = TestServer::start(vec![
        ServerAction::Send(http_reply("200 OK", "application/json", &cut)),
        ServerAction::Send(busy),
    ]);
    let house = remote(&server);
    let ask = || house.run(&["agent", "--provider", "openai_compatible", "-m", "hello"]);
    let half = ask();
    let told = "half of a \u{fffd} letter\n[the server cut the answer off here: length]\n";
    assert_eq!((half.code, half.out.as_str()), (0, told), "{half:?}");
    let rests = ask();
    assert!(rests.code == 6 && rests.err.contains("slow down; the server asks to wait 30 s"), "{rests:?}");
}

/// C8.4: when the model gets a result, its receipt is on disk.
#[test]
fn the_receipt_is_there_before_the_result_is_sent() {
    let call = json!({ "function": { "name": "file_list", "arguments": "{\"path\": \".\"}" } });
    let asks = completion(&json!({ "content": "", "tool_calls": [call] }));
    let server = TestServer::start(vec![asks, ServerAction::Hang(String::new())]);
    let house = remote(&server);
    let mut command = house.command(&["agent", "--provider", "openai_compatible", "-m", "what is here?"]);
    let _agent = ChildGuard(command.spawn().unwrap());
    let patience = Instant::now() + TEST_TIMEOUT;
    while server.received().len() < 2 {
        assert!(Instant::now() < patience, "the result was never sent");
        std::thread::sleep(Duration::from_millis(5));
    }
    let log = std::fs::read_to_string(house.home().join("tool_receipts.log")).unwrap();
    let receipts: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(receipts.len(), 1);
    let sent: Value = serde_json::from_str(&server.received()[1].body).unwrap();
    let told = sent["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert_eq!(receipts[0]["result_hash"], collieclaw_agent::receipts::hash_text(told));
}

#[test]
fn provider_test_says_what_answers_or_what_is_wrong() {
    let server = TestServer::start(vec![
        completion(&json!({ "content": "ok" })),
        ServerAction::Send(http_reply("401 No", "text/plain", "")),
    ]);
    let house = remote(&server);
    let test = || house.run(&["provider", "test", "openai_compatible"]);
    let works = test();
    assert_eq!(works.code, 0, "{works:?}");
    assert!(works.out.contains("model small") && works.out.contains("ok"), "{works:?}");
    let keyless = test();
    assert_eq!(keyless.code, 6);
    assert!(keyless.err.contains("set the environment variable OPENAI_API_KEY to a key"), "{keyless:?}");
}
