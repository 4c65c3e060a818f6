//! The provider for OpenAI-compatible servers (C4.3): every response ends in a clear result or error, and the key never
//! appears in it.

use std::time::{Duration, Instant};

use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::secret::Secret;
use collieclaw_providers::{
    ChatMessage, ChatRequest, ChatResponse, OpenAiProvider, OpenAiSettings, Provider, ProviderError,
    TokenUsage, ToolCall, ToolSchema,
};
use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer, http_reply};

/// The key, which is searched for in all output.
const CANARY: &str = "sk-canary-7f3e9a";

pub(crate) fn request() -> ChatRequest {
    ChatRequest {
        system_prompt: "Be careful.".to_owned(),
        messages: vec![ChatMessage::user("hi")],
        tools: Vec::new(),
        model: "small".to_owned(),
        temperature: None,
        metadata: serde_json::Map::new(),
    }
}

pub(crate) fn settings(server: &TestServer) -> OpenAiSettings {
    OpenAiSettings {
        name: "remote".to_owned(),
        base_url: format!("http://127.0.0.1:{}/v1", server.port()),
        api_key: Some(Secret::new(CANARY.to_owned())),
        api_key_env: Some("MY_KEY".to_owned()),
        timeout: Duration::from_secs(30),
        max_response_bytes: 1_000_000,
        stall_timeout: Duration::from_secs(30),
        stream: false,
    }
}

/// Sends a request, and checks that the key is nowhere in the result.
pub(crate) fn chat_checking_key(settings: OpenAiSettings) -> Result<ChatResponse, ProviderError> {
    let provider = OpenAiProvider::new(settings);
    assert_hidden(&format!("{provider:?}"));
    let answer = provider.chat(&request(), &mut |_| {}, &CancelFlag::new().unwrap());
    assert_hidden(&format!("{answer:?}"));
    if let Err(error) = &answer {
        assert_hidden(&error.to_string());
    }
    answer
}

fn assert_hidden(text: &str) {
    assert!(!text.contains(CANARY), "the key is in: {text}");
}

pub(crate) fn chat_with(act: ServerAction) -> Result<ChatResponse, ProviderError> {
    chat_checking_key(settings(&TestServer::start(vec![act])))
}

fn chat_with_body(body: &Value) -> Result<ChatResponse, ProviderError> {
    chat_with(ServerAction::Send(http_reply("200 OK", "application/json", &body.to_string())))
}

pub(crate) fn chat_error(act: ServerAction) -> String {
    chat_with(act).unwrap_err().to_string()
}

fn completion_body(message: &Value) -> Value {
    json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })
}

#[test]
fn a_request_has_the_form_of_the_strictest_servers() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply(
        "200 OK",
        "application/json",
        &completion_body(&json!({"role": "assistant", "content": "hello"})).to_string(),
    ))]);
    let call = |arguments| ToolCall { id: "a".to_owned(), name: "time".to_owned(), arguments };
    let asked = ChatRequest {
        messages: vec![
            ChatMessage::user("hi"),
            ChatMessage::assistant("", vec![call(json!({"x": 1})), call(json!("not json"))]),
            ChatMessage::tool("a", "noon"),
        ],
        tools: vec![ToolSchema {
            name: "time".to_owned(),
            description: "Tells the time.".to_owned(),
            parameters: json!({"type": "object"}),
        }],
        temperature: Some(0.5),
        ..request()
    };
    let mut settings = settings(&server);
    settings.base_url.push('/');
    OpenAiProvider::new(settings).chat(&asked, &mut |_| {}, &CancelFlag::new().unwrap()).unwrap();

    let received = server.received().remove(0);
    assert_eq!(received.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(received.header("authorization"), Some("Bearer sk-canary-7f3e9a"));
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("accept-encoding"), Some("identity"));
    let function = |arguments: &str| json!({"id": "a", "type": "function", "function": {"name": "time", "arguments": arguments}});
    assert_eq!(
        serde_json::from_str::<Value>(&received.body).unwrap(),
        json!({
            "model": "small",
            "stream": false,
            "temperature": 0.5,
            "messages": [
                {"role": "system", "content": "Be careful."},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "",
                 "tool_calls": [function("{\"x\":1}"), function("{\"unreadable\":\"not json\"}")]},
                {"role": "tool", "content": "noon", "tool_call_id": "a"},
            ],
            "tools": [{"type": "function", "function":
                {"name": "time", "description": "Tells the time.", "parameters": {"type": "object"}}}],
        })
    );
}

#[test]
fn without_a_key_no_authorization_header_is_sent() {
    let body = completion_body(&json!({"content": "hello"})).to_string();
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "application/json", &body))]);
    chat_checking_key(OpenAiSettings { api_key: None, ..settings(&server) }).unwrap();
    chat_checking_key(OpenAiSettings { api_key: Some(Secret::new(" \n".to_owned())), ..settings(&server) })
        .unwrap();
    chat_checking_key(OpenAiSettings {
        api_key: Some(Secret::new(format!("{CANARY}\n"))),
        ..settings(&server)
    })
    .unwrap();
    let sent: Vec<_> = server
        .received()
        .iter()
        .map(|received| received.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(sent, [None, None, Some(format!("Bearer {CANARY}"))]);
}

#[test]
fn text_comes_in_many_forms() {
    for (message, text) in [
        (json!({"content": "hello"}), "hello"),
        (json!({"content": [{"type": "text", "text": "hel"}, {"type": "image"}, {"text": "lo"}]}), "hello"),
        (json!({"content": "hello", "tool_calls": null, "refusal": null}), "hello"),
        (json!({"content": "hello", "tool_calls": []}), "hello"),
    ] {
        assert_eq!(chat_with_body(&completion_body(&message)).unwrap().final_text, text, "{message}");
    }
}

#[test]
fn usage_may_be_there_or_not() {
    let mut body = completion_body(&json!({"content": "hello"}));
    assert_eq!(chat_with_body(&body).unwrap().usage, None);
    for (usage, read) in [
        (
            json!({"prompt_tokens": 3, "completion_tokens": 5}),
            TokenUsage { prompt_tokens: 3, completion_tokens: 5 },
        ),
        (
            json!({"prompt_tokens": 3, "completion_tokens": -1}),
            TokenUsage { prompt_tokens: 3, completion_tokens: 0 },
        ),
        (json!({"total": "many"}), TokenUsage::default()),
    ] {
        body["usage"] = usage;
        assert_eq!(chat_with_body(&body).unwrap().usage, Some(read));
    }
}

#[test]
fn tool_calls_come_in_many_forms() {
    let call =
        |id: &str, arguments: Value| ToolCall { id: id.to_owned(), name: "file_list".to_owned(), arguments };
    let function = |arguments: Value| json!({"function": {"name": "file_list", "arguments": arguments}});
    let named = |id: &str| json!({"id": id, "function": {"name": " file_list ", "arguments": "{}"}});
    for (calls, read) in [
        (json!([function(json!("{\"path\":\".\"}"))]), vec![call("call-1", json!({"path": "."}))]),
        (json!([function(json!({"path": "."}))]), vec![call("call-1", json!({"path": "."}))]),
        (json!([function(json!("\"{\\\"path\\\":1}\""))]), vec![call("call-1", json!({"path": 1}))]),
        (json!([function(json!(""))]), vec![call("call-1", json!({}))]),
        (json!([function(json!("null"))]), vec![call("call-1", json!({}))]),
        (json!([function(Value::Null)]), vec![call("call-1", json!({}))]),
        (json!([function(json!("{\"path\": "))]), vec![call("call-1", json!("{\"path\": "))]),
        (json!([function(json!("[1]"))]), vec![call("call-1", json!([1]))]),
        (json!([{"name": "file_list"}]), vec![call("call-1", json!({}))]),
        (
            json!([named("x"), named("x"), named(""), named("y")]),
            vec![
                call("x", json!({})),
                call("x+", json!({})),
                call("call-3", json!({})),
                call("y", json!({})),
            ],
        ),
    ] {
        let answer = chat_with_body(&completion_body(&json!({"content": null, "tool_calls": calls})));
        assert_eq!(answer.unwrap().tool_calls, read, "{calls}");
    }
    let old =
        completion_body(&json!({"content": "", "function_call": {"name": "file_list", "arguments": "{}"}}));
    assert_eq!(chat_with_body(&old).unwrap().tool_calls, [call("call-1", json!({}))]);
}

#[test]
fn replies_that_make_no_sense_are_named() {
    let nameless = json!({"tool_calls": [{"function": {"arguments": "{}"}}]});
    let start = "provider `remote` sent an unusable reply: ";
    for (body, what) in [
        (json!({}), "the reply has no `choices[0].message`"),
        (json!([1]), "the reply has no `choices[0].message`"),
        (json!({"choices": []}), "the reply has no `choices[0].message`"),
        (json!({"choices": "x"}), "the reply has no `choices[0].message`"),
        (
            completion_body(&json!({"content": ""})),
            "the model sent an empty answer (`finish_reason` is `stop`)",
        ),
        (
            completion_body(&json!({"content": 5})),
            "the model sent an empty answer (`finish_reason` is `stop`)",
        ),
        (json!({"choices": [{"message": {}}]}), "the model sent an empty answer (`finish_reason` is `none`)"),
        (completion_body(&nameless), "a tool call has no name"),
    ] {
        assert_eq!(chat_with_body(&body).unwrap_err().to_string(), format!("{start}{what}"));
    }
    for (content_type, body, what) in [
        (
            "text/html",
            "<!DOCTYPE html><p>",
            "a web page instead of JSON; is `base_url` right? It often ends in `/v1`",
        ),
        (
            "application/json",
            " <HTML>",
            "a web page instead of JSON; is `base_url` right? It often ends in `/v1`",
        ),
        ("application/json", "", "an empty reply"),
        ("application/json", "{\"choices\": [", "incomplete JSON"),
        ("text/plain", "oops\n\u{1b}[2J", "not JSON (expected value at line 1 column 1): oops [2J"),
    ] {
        let actual = chat_error(ServerAction::Send(http_reply("200 OK", content_type, body)));
        assert_eq!(actual, format!("{start}{what}"));
    }
    // A wrong type in an optional field is ignored.
    let body = completion_body(&json!({"content": "hello"})).to_string();
    assert_eq!(
        chat_with(ServerAction::Send(http_reply("200 OK", "text/html", &body))).unwrap().final_text,
        "hello"
    );
}

#[test]
fn a_refusal_is_one() {
    let refused = |detail: &str| {
        Err(ProviderError::Refused { provider: "remote".to_owned(), detail: detail.to_owned() })
    };
    let refusal = completion_body(&json!({"content": null, "refusal": "I won't."}));
    assert_eq!(chat_with_body(&refusal), refused("I won't."));
    let filtered = json!({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]});
    assert_eq!(chat_with_body(&filtered), refused("the content filter withheld the answer"));
    assert_eq!(chat_with_body(&json!({"error": {"message": "no such thing"}})), refused("no such thing"));
    assert_eq!(chat_with_body(&json!({"error": "no such thing"})), refused("no such thing"));
}

#[test]
fn the_status_code_decides_the_kind_of_error() {
    let provider = "remote".to_owned();
    let json = |text: &str| format!("{{\"error\": {{\"message\": \"{text}\"}}}}");
    let overloaded = |detail: &str| ProviderError::Overloaded {
        provider: provider.clone(),
        detail: detail.to_owned(),
        retry_after: None,
    };
    let refused =
        |detail: &str| ProviderError::Refused { provider: provider.clone(), detail: detail.to_owned() };
    let auth = |detail: &str| ProviderError::Auth { provider: provider.clone(), detail: detail.to_owned() };
    for (status, body, expected) in [
        ("401 No", json("bad key"), auth("HTTP 401: bad key; the key is in the environment variable MY_KEY")),
        ("403 No", String::new(), auth("HTTP 403; the key is in the environment variable MY_KEY")),
        ("400 No", "{\"message\": \"too long\"}".to_owned(), refused("HTTP 400: too long")),
        ("422 No", "{\"detail\": \"too\\n long\"}".to_owned(), refused("HTTP 422: too long")),
        (
            "404 No",
            "<html>lots of page</html>".to_owned(),
            refused(
                "HTTP 404; is `base_url` right (it often ends in `/v1`), and does the server have this model?",
            ),
        ),
        ("408 No", String::new(), overloaded("HTTP 408")),
        ("429 No", json("slow down"), overloaded("HTTP 429: slow down")),
        ("500 No", "boom".to_owned(), overloaded("HTTP 500: boom")),
        ("503 No", "{\"error\": \"loading model\"}".to_owned(), overloaded("HTTP 503: loading model")),
        ("500 No", "x".repeat(1000), overloaded(&format!("HTTP 500: {} …", "x".repeat(300)))),
    ] {
        assert_eq!(
            chat_with(ServerAction::Send(http_reply(status, "application/json", &body))),
            Err(expected),
            "{status}"
        );
    }
    let inside = json!({"error": {"code": 429, "message": "slow down"}});
    assert_eq!(chat_with_body(&inside), Err(overloaded("HTTP 429: slow down")));
    let server = TestServer::start(vec![ServerAction::Send(http_reply("401 No", "text/plain", ""))]);
    let keyless = chat_checking_key(OpenAiSettings { api_key: None, ..settings(&server) });
    assert_eq!(keyless, Err(auth("HTTP 401; set the environment variable MY_KEY to a key")));
    let nameless =
        chat_checking_key(OpenAiSettings { api_key: None, api_key_env: None, ..settings(&server) });
    assert_eq!(
        nameless,
        Err(auth("HTTP 401; the server needs a key: set `api_key_env` to the variable that holds it"))
    );
}

#[test]
fn a_short_wait_that_the_server_asks_for_is_waited_once() {
    let busy = |after: &str| {
        ServerAction::Send(format!(
            "HTTP/1.1 429 No\r\nretry-after: {after}\r\ncontent-length: 4\r\n\r\nbusy"
        ))
    };
    let body = completion_body(&json!({"content": "hello"})).to_string();
    let hello = ServerAction::Send(http_reply("200 OK", "application/json", &body));
    let begun = Instant::now();
    let server = TestServer::start(vec![busy("1"), hello.clone()]);
    assert_eq!(chat_checking_key(settings(&server)).unwrap().final_text, "hello");
    assert!(begun.elapsed() >= Duration::from_secs(1));

    let overloaded = |retry_after| {
        Err(ProviderError::Overloaded {
            provider: "remote".to_owned(),
            detail: "HTTP 429: busy".to_owned(),
            retry_after: Some(retry_after),
        })
    };
    let server = TestServer::start(vec![busy("0")]);
    assert_eq!(chat_checking_key(settings(&server)), overloaded(0));
    assert_eq!(server.received().len(), 2);
    let server = TestServer::start(vec![busy("3600")]);
    assert_eq!(chat_checking_key(settings(&server)), overloaded(3600));
    assert_eq!(server.received().len(), 1);
    let server = TestServer::start(vec![busy("4")]);
    let impatient = OpenAiSettings { timeout: Duration::from_secs(2), ..settings(&server) };
    assert_eq!(chat_checking_key(impatient), overloaded(4));
    assert_eq!(server.received().len(), 1);
    let server = TestServer::start(vec![busy("Wed, 21 Oct 2015 07:28:00 GMT"), hello]);
    assert_eq!(chat_checking_key(settings(&server)).unwrap().final_text, "hello");
}

#[test]
fn a_redirect_is_not_followed_and_the_key_stays_here() {
    let other = TestServer::start(vec![ServerAction::Send(String::new())]);
    for status in [301, 302, 303, 307, 308] {
        let location = format!("http://127.0.0.1:{}/steal", other.port());
        let actual = chat_error(ServerAction::Redirect(status, location.clone()));
        assert!(
            actual.contains(&format!("the server redirects to {location}, and redirects are not followed")),
            "{actual}"
        );
    }
    assert_eq!(other.received(), []);
}

#[test]
fn a_key_is_not_sent_in_the_clear() {
    let server = TestServer::start(vec![ServerAction::Send(String::new())]);
    // A documentation address: nobody answers there.
    let away = OpenAiSettings { base_url: "http://192.0.2.1/v1".to_owned(), ..settings(&server) };
    let actual = chat_checking_key(away.clone()).unwrap_err();
    assert!(matches!(actual, ProviderError::Insecure { .. }), "{actual}");
    assert!(actual.to_string().contains("the connection to http://192.0.2.1 is not encrypted"), "{actual}");
    let keyless = OpenAiSettings { api_key: None, timeout: Duration::from_millis(200), ..away };
    let actual = chat_checking_key(keyless).unwrap_err();
    assert!(matches!(actual, ProviderError::Timeout { .. } | ProviderError::Network { .. }), "{actual}");
}

#[test]
fn a_key_that_the_server_repeats_stays_hidden() {
    let escaped: String = CANARY.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    for body in [
        format!("{{\"error\": {{\"message\": \"bad key {CANARY}\"}}}}"),
        format!("{{\"error\": {{\"message\": \"bad key {escaped}\"}}}}"),
        format!("bad key {CANARY}"),
        format!("{}{CANARY}", "x".repeat(290)),
    ] {
        for status in ["401 No", "400 No", "429 No", "500 No", "200 OK"] {
            chat_checking_key(settings(&TestServer::start(vec![ServerAction::Send(http_reply(
                status,
                "text/plain",
                &body,
            ))])))
            .unwrap_err();
        }
    }
    let answer = chat_with_body(&json!({
        "choices": [{"message": {"content": format!("it is {CANARY}"), "tool_calls":
            [{"id": CANARY, "function": {"name": "shell", "arguments": format!("{{\"command\": \"echo {CANARY}\"}}")}}]}}],
        CANARY: 1,
    }));
    assert_eq!(answer.unwrap().final_text, "it is ***");
    chat_error(ServerAction::Redirect(302, format!("/{CANARY}")));
    chat_error(ServerAction::Send(format!("HTTP/1.1 {CANARY}\r\n\r\n")));
    chat_error(ServerAction::Send(format!("HTTP/1.1 200 OK\r\n{CANARY}\r\n\r\n")));
    let server = TestServer::start(vec![ServerAction::Send(String::new())]);
    let unsendable =
        OpenAiSettings { api_key: Some(Secret::new(format!("{CANARY}\nx"))), ..settings(&server) };
    let actual = chat_checking_key(unsendable).unwrap_err().to_string();
    assert!(actual.contains("characters that can't be sent"), "{actual}");
}

#[test]
fn a_provider_test_shows_the_model_and_its_answer() {
    let mut body = completion_body(&json!({"content": "ok"}));
    body["model"] = json!("small-v2");
    let server = TestServer::start(vec![ServerAction::Send(http_reply(
        "200 OK",
        "application/json",
        &body.to_string(),
    ))]);
    let checked = OpenAiProvider::new(settings(&server)).check("small", &CancelFlag::new().unwrap()).unwrap();
    assert_eq!((checked.model.as_str(), checked.reply.as_str()), ("small-v2", "ok"));
}
