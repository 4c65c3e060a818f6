//! The tool `http` and a real provider, through the real program: gate, receipts, emergency stop, and hidden keys.

use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::{ChildGuard, TestAgent, agent_output, wait_for_exit, wait_until};

const CANARY: &str = "sk-canary-1138-do-not-show";

fn test_agent(server: &TestServer) -> TestAgent {
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
    let test_agent = test_agent(&server);
    let actual = test_agent.run(&["tool", "run", "http", "--json", &arguments(&server, "GET")]);
    assert_eq!(actual.code, 0, "{actual:?}");
    assert!(actual.out.contains("what the page says") && actual.out.contains("status: 200"), "{actual:?}");
    assert_eq!(test_agent.receipt_summaries(), [["http", "allowed", "allowed-domain"]]);
}

/// C19.2: a page is returned as text for readers, unless the call asks for the HTML.
#[test]
fn a_web_page_is_returned_as_readable_text() {
    let html = "<html><head><title>Sheep</title><script>evil()</script></head><body><h1>Wool</h1><p>A &amp; B \
                <a href='/more'>more</a></p></body></html>";
    let reply = || ServerAction::Send(http_reply("200 OK", "text/html; charset=utf-8", html));
    let json = ServerAction::Send(http_reply("200 OK", "application/json", "{\"a\": \"<b>\"}"));
    let long = format!("<p>{}</p>", "words and more words<br>".repeat(4000));
    let long = || ServerAction::Send(http_reply("200 OK", "text/html", &long));
    let server = TestServer::start(vec![reply(), reply(), json, long(), long()]);
    let test_agent = test_agent(&server);
    let get = |more: Value| {
        let mut arguments = json!({ "url": format!("http://127.0.0.1:{}/page", server.port()) });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        test_agent.call_output("http", &arguments.to_string())
    };
    assert!(get(json!({})).starts_with("Sheep\n\n# Wool\n\nA & B more (/more)\n["));
    assert!(get(json!({ "raw": true })).starts_with("<html><head><title>Sheep</title><script>"));
    assert!(get(json!({})).starts_with("{\"a\": \"<b>\"}"));
    let first = get(json!({}));
    let next =
        first.split("next_offset: ").nth(1).unwrap().split(',').next().unwrap().parse::<u64>().unwrap();
    assert!(first.len() < 34_000 && next > 20_000, "{}", first.len());
    assert!(get(json!({ "offset": next })).starts_with("words and more words\n"));
}

#[test]
fn an_unlisted_domain_is_refused_before_anything_is_sent() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "secret"))]);
    let test_agent = TestAgent::new();
    let denied = test_agent.run(&["tool", "run", "http", "--json", &arguments(&server, "GET")]);
    assert_eq!(denied.code, 4, "{denied:?}");
    let listed = test_agent.with_config_change(
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
            ["http", "denied", "no-operator"],
            ["http", "failed", "bad-arguments"]
        ]
    );
    assert_eq!(server.received(), []);
}

#[test]
fn a_page_that_never_ends_is_a_failed_call() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    let server = TestServer::start(vec![ServerAction::Drip(start)]);
    let test_agent =
        test_agent(&server).with_config_change("http_timeout = \"20s\"", "http_timeout = \"1s\"");
    let actual = test_agent.run(&["tool", "run", "http", "--json", &arguments(&server, "GET")]);
    assert_eq!(actual.code, 1);
    assert!(format!("{actual:?}").contains("no reply within 1 s (`limits.http_timeout`)"), "{actual:?}");
    assert_eq!(test_agent.receipt_summaries(), [["http", "failed", "tool-failed"]]);
}

/// C11: running HTTP requests are cancelled at once.
#[test]
fn the_emergency_stop_ends_a_request() {
    let server = TestServer::start(vec![ServerAction::Hang(String::new())]);
    let test_agent =
        test_agent(&server).with_config_change("tool_timeout = \"30s\"", "tool_timeout = \"10m\"");
    let test_agent = test_agent.with_config_change("http_timeout = \"20s\"", "http_timeout = \"10m\"");
    let mut child =
        test_agent.command(&["tool", "run", "http", "--json", &arguments(&server, "GET")]).spawn().unwrap();
    wait_until("the server has the request", || !server.received().is_empty());
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    assert_eq!(wait_for_exit(&mut child), 8);
    assert_eq!(test_agent.receipt_summaries(), [["http", "failed", "estop"]]);
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
    let test_agent = remote(&server);
    std::fs::write(test_agent.workspace().join("notes.txt"), "milk").unwrap();
    let mut command =
        test_agent.command(&["agent", "--provider", "openai_compatible", "-m", "what is here?"]);
    let actual = agent_output(command.env("OPENAI_API_KEY", CANARY).output().unwrap());
    assert_eq!(
        (actual.code, actual.out.as_str()),
        (0, "There is notes.txt. Your key is ***.\n"),
        "{actual:?}"
    );
    assert!(!actual.err.contains(CANARY), "{actual:?}");

    let received = server.received();
    let bodies: Vec<Value> = received.iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect();
    assert_eq!(bodies.len(), 2);
    let last = bodies[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool");
    assert!(last["content"].as_str().unwrap().contains("notes.txt"), "{last}");
    assert_eq!(received[1].header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    for file in ["memory.sqlite", "memory.sqlite-wal", "tool_receipts.log", "audit.log"] {
        let bytes = std::fs::read(test_agent.home().join(file)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains(CANARY), "{file}");
    }
    assert_eq!(test_agent.receipt_summaries(), [["file_list", "allowed", "reads-inside"]]);
}

#[test]
fn a_truncated_response_is_an_error_and_retry_after_is_reported() {
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
    let test_agent = remote(&server);
    let ask = || test_agent.run(&["agent", "--provider", "openai_compatible", "-m", "hello"]);
    let half = ask();
    let actual = "half of a \u{fffd} letter\n[the server cut the answer off here: length]\n";
    assert_eq!((half.code, half.out.as_str()), (0, actual), "{half:?}");
    let rests = ask();
    assert!(rests.code == 6 && rests.err.contains("slow down; the server asks to wait 30 s"), "{rests:?}");
}

/// C8.4: when the model gets a result, its receipt is on disk.
#[test]
fn the_receipt_is_there_before_the_result_is_sent() {
    let call = json!({ "function": { "name": "file_list", "arguments": "{\"path\": \".\"}" } });
    let asks = completion(&json!({ "content": "", "tool_calls": [call] }));
    let server = TestServer::start(vec![asks, ServerAction::Hang(String::new())]);
    let test_agent = remote(&server);
    let mut command =
        test_agent.command(&["agent", "--provider", "openai_compatible", "-m", "what is here?"]);
    let _agent = ChildGuard(command.spawn().unwrap());
    wait_until("the result of the call is sent", || server.received().len() == 2);
    let log = std::fs::read_to_string(test_agent.home().join("tool_receipts.log")).unwrap();
    let receipts: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(receipts.len(), 1);
    let sent: Value = serde_json::from_str(&server.received()[1].body).unwrap();
    let actual = sent["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert_eq!(receipts[0]["result_hash"], collieclaw_agent::receipts::hash_text(actual));
}

#[test]
fn provider_test_shows_the_answer_or_the_error() {
    let server = TestServer::start(vec![
        completion(&json!({ "content": "ok" })),
        ServerAction::Send(http_reply("401 No", "text/plain", "")),
    ]);
    let test_agent = remote(&server);
    let test = || test_agent.run(&["provider", "test", "openai_compatible"]);
    let works = test();
    assert_eq!(works.code, 0, "{works:?}");
    assert!(works.out.contains("model small") && works.out.contains("ok"), "{works:?}");
    let keyless = test();
    assert_eq!(keyless.code, 6);
    assert!(keyless.err.contains("set the environment variable OPENAI_API_KEY to a key"), "{keyless:?}");
}
