//! The tool `web_search` (C6.2), through the real program with honest and broken services.

use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::{AgentOutput, TestAgent, agent_output};

const CANARY: &str = "sk-canary-1138-do-not-show";

fn test_agent(server: &TestServer, more: &str) -> TestAgent {
    let section = format!(
        "[web_search]\nurl = \"http://127.0.0.1:{}/search?q={{query}}&format=json\"\n{more}\n[memory]\n",
        server.port()
    );
    TestAgent::new().with_config_change("[memory]\n", &section)
}

fn search(test_agent: &TestAgent, arguments: &Value) -> AgentOutput {
    let mut command = test_agent.command(&["tool", "run", "web_search", "--json", &arguments.to_string()]);
    agent_output(command.env("SEARCH_KEY", CANARY).output().unwrap())
}

fn answer(body: &Value) -> ServerAction {
    ServerAction::Send(http_reply("200 OK", "application/json", &body.to_string()))
}

#[test]
fn the_results_of_the_configured_service_reach_the_model_and_leave_a_receipt() {
    let results: Vec<Value> = (0..30)
        .map(|n| json!({ "title": format!("Sheep {n}"), "url": "https://sheep.example", "content": "baa" }))
        .collect();
    let server = TestServer::start(vec![answer(&json!({ "results": results }))]);
    let test_agent = test_agent(&server, "");
    let actual = search(&test_agent, &json!({ "query": "how many sheep & goats?" }));
    assert_eq!(actual.code, 0, "{actual:?}");
    assert!(actual.out.contains("Sheep 4") && !actual.out.contains("Sheep 5"), "{actual:?}");
    let asked = &server.received()[0];
    assert_eq!(asked.line, "GET /search?q=how%20many%20sheep%20%26%20goats%3F&format=json HTTP/1.1");
    assert_eq!(asked.header("authorization"), None);
    assert_eq!(test_agent.receipt_summaries(), [["web_search", "allowed", "configured-service"]]);
}

#[test]
fn any_json_search_service_works_and_its_key_stays_hidden() {
    let body = json!({ "web": { "hits": [
        { "name": format!("your key is {CANARY}"), "href": "https://a.example", "snippet": "\u{1b}[31mred" },
        { "odd": 1 },
    ] } });
    let server = TestServer::start(vec![answer(&body)]);
    let more = "results = \"/web/hits\"\ntitle = \"name\"\nlink = \"href\"\ntext = \"snippet\"\n\
                api_key_env = \"SEARCH_KEY\"\napi_key_header = \"X-Subscription-Token\"\n";
    let test_agent = test_agent(&server, more);
    let actual = search(&test_agent, &json!({ "query": "x", "limit": 2 }));
    assert_eq!(actual.code, 0, "{actual:?}");
    assert!(actual.out.contains("your key is ***") && actual.out.contains("found: 2"), "{actual:?}");
    assert!(!actual.out.contains('\u{1b}') && !format!("{actual:?}").contains(CANARY), "{actual:?}");
    assert_eq!(server.received()[0].header("x-subscription-token"), Some(CANARY));
}

#[test]
fn an_error_of_the_search_service_is_a_failed_call() {
    let long = json!({ "results": [{ "content": "x".repeat(5000) }] });
    let elsewhere = ServerAction::Redirect(302, "http://127.0.0.1:{port}/other".to_owned());
    let cases = [
        (answer(&json!({ "hits": [] })), "the answer has no list at `/results`"),
        (ServerAction::Send(http_reply("200 OK", "text/html", "<html>")), "the answer is not JSON"),
        (ServerAction::Send(http_reply("429 Slow", "text/plain", "too many")), "HTTP 429: too many"),
        (answer(&long), "the answer is longer than 4096 bytes"),
        (elsewhere, "HTTP 302"),
        (ServerAction::Reset(String::new()), "could not reach the search service"),
        (ServerAction::Hang(String::new()), "no reply within 1 s (`limits.http_timeout`)"),
    ];
    for (act, said) in cases {
        let server = TestServer::start(vec![act]);
        let test_agent = test_agent(&server, "")
            .with_config_change("http_timeout = \"20s\"", "http_timeout = \"1s\"")
            .with_config_change("max_response_bytes = 1048576", "max_response_bytes = 4096");
        let actual = search(&test_agent, &json!({ "query": "x" }));
        assert_eq!(actual.code, 1, "{said}: {actual:?}");
        assert!(format!("{}{}", actual.out, actual.err).contains(said), "{said}: {actual:?}");
        assert_eq!(test_agent.receipt_summaries(), [["web_search", "failed", "tool-failed"]]);
        assert_eq!(server.received().len(), 1, "no redirect is followed, nothing is tried again");
    }
}

#[test]
fn without_a_search_service_the_error_names_the_setting() {
    let test_agent = TestAgent::new();
    let actual = search(&test_agent, &json!({ "query": "x" }));
    assert_eq!(actual.code, 1);
    assert!(format!("{actual:?}").contains("add `[web_search]` to the configuration"), "{actual:?}");
    let server = TestServer::start(vec![answer(&json!({}))]);
    let empty = search(&self::test_agent(&server, ""), &json!({ "query": "  " }));
    assert_eq!((empty.code, server.received().len()), (1, 0), "{empty:?}");
}

#[test]
fn the_model_never_chooses_the_search_service() {
    for (url, said) in [
        ("https://{query}/search", "`{query}` must come after the host"),
        ("https://a.example{query}/search", "`{query}` must come after the host"),
        ("https://a.example/search", "must contain `{query}` once"),
        ("https://a.example/{query}/{query}", "must contain `{query}` once"),
        ("https://name:word@a.example/{query}", "this is not the URL of a search service"),
        ("ftp://a.example/{query}", "this is not the URL of a search service"),
    ] {
        let section = format!("[web_search]\nurl = \"{url}\"\n\n[memory]\n");
        let actual = TestAgent::new().with_config_change("[memory]\n", &section).run(&["config", "validate"]);
        assert_ne!(actual.code, 0, "{url}");
        assert!(actual.err.contains(said), "{url}: {}", actual.err);
        assert!(!actual.err.contains("name:word"), "{}", actual.err);
    }
}
