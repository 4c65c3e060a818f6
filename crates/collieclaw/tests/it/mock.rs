//! The mock provider (C4.2): scripts with several rounds, errors, delays and checks of its input; and no script.
//!
//! Every provider offers the interface of C4.1.

use std::time::{Duration, Instant};

use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::{
    ChatMessage, ChatRequest, FixtureError, MockFixture, MockProvider, Provider, ProviderError, ToolCall,
    ToolSchema,
};
use serde_json::{Value, json};
use ward_diag::SourceText;

use crate::support::wait_until_blocked;

fn request(messages: Vec<ChatMessage>) -> ChatRequest {
    let tool =
        |name: &str| ToolSchema { name: name.to_owned(), description: String::new(), parameters: json!({}) };
    ChatRequest {
        system_prompt: "Be careful.".to_owned(),
        messages,
        tools: ["time", "file_list", "file_read", "file_write", "shell", "memory_search", "http"]
            .map(tool)
            .to_vec(),
        model: "mock".to_owned(),
        temperature: None,
        metadata: serde_json::Map::new(),
    }
}

fn user_request(text: &str) -> ChatRequest {
    request(vec![ChatMessage::user(text)])
}

fn scripted_mock(script: &str) -> MockProvider {
    MockProvider::new("local", Some(MockFixture::from_toml(SourceText::new("mock.toml", script)).unwrap()))
}

fn chat(mock: &MockProvider, request: &ChatRequest) -> Result<(String, Vec<ToolCall>), ProviderError> {
    let cancel = CancelFlag::new().unwrap();
    mock.chat(request, &mut |_| {}, &cancel).map(|response| (response.final_text, response.tool_calls))
}

fn faults(script: &str) -> String {
    match MockFixture::from_toml(SourceText::new("mock.toml", script)) {
        Ok(fixture) => panic!("it should have faults: {fixture:?}"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn a_script_calls_tools_and_quotes_their_results() {
    let mock = scripted_mock(
        r#"
        [[round]]
        text = "Let me look."
        expect = { last_message_contains = "here?", tools_include = ["file_list"], messages = 1, model = "mock" }
        [[round.call]]
        tool = "file_list"
        args = { path = ".", deep = [1, 2.5, true] }
        [[round.call]]
        tool = "time"
        id = "mine"

        [[round]]
        expect = { tool_result_contains = "notes.txt" }
        text = "I see: {tool_result}; you asked: {last_message} ({model}, {other})"
        "#,
    );
    let asked = user_request("What is here?");
    let calls = vec![
        ToolCall {
            id: "mock-1-1".to_owned(),
            name: "file_list".to_owned(),
            arguments: json!({"path": ".", "deep": [1, 2.5, true]}),
        },
        ToolCall { id: "mine".to_owned(), name: "time".to_owned(), arguments: json!({}) },
    ];
    assert_eq!(chat(&mock, &asked), Ok(("Let me look.".to_owned(), calls.clone())));

    let mut messages = asked.messages;
    messages.push(ChatMessage::assistant("Let me look.", calls));
    messages.push(ChatMessage::tool("mock-1-1", "notes.txt"));
    messages.push(ChatMessage::tool("mine", "noon, {model}"));
    let text = "I see: notes.txt\nnoon, {model}; you asked: What is here? (mock, {other})";
    assert_eq!(chat(&mock, &request(messages)), Ok((text.to_owned(), Vec::new())));

    let after = chat(&mock, &user_request("and now?")).unwrap_err().to_string();
    assert_eq!(
        after,
        "provider `local` sent an unusable reply: the fixture has 2 rounds, but this is request 3; add a \
         `[[round]]`"
    );
}

#[test]
fn an_unexpected_request_shows_expected_and_actual_text() {
    let cases = [
        (
            "last_message_contains = \"x\"",
            "the last message of the user to contain \"x\", but the request has: \"hi\"",
        ),
        ("tool_result_contains = \"x\"", "a tool's result to contain \"x\", but the request has: \"\""),
        (
            "system_prompt_contains = \"x\"",
            "the system prompt to contain \"x\", but the request has: \"Be careful.\"",
        ),
        (
            "tools_include = [\"fly\"]",
            "the tool `fly` to be offered, but the request offers: time, file_list, file_read, file_write, shell, \
             memory_search, http",
        ),
        ("tools_exclude = [\"shell\"]", "the tool `shell` not to be offered, but it was"),
        ("messages = 2", "2 messages, but the request has 1"),
        ("model = \"big\"", "the model `big`, but `mock` was requested"),
    ];
    for (expect, said) in cases {
        let mock = scripted_mock(&format!("[[round]]\ntext = \"never\"\nexpect = {{ {expect} }}\n"));
        let detail = format!("round 1 of the fixture expected {said}");
        assert_eq!(
            chat(&mock, &user_request("hi")),
            Err(ProviderError::Invalid { provider: "local".to_owned(), detail }),
            "{expect}"
        );
    }
}

#[test]
fn a_script_can_fail_in_every_way() {
    let provider = || "local".to_owned();
    let detail = || "scripted by the fixture".to_owned();
    let cases = [
        ("error = \"timeout\"", ProviderError::Timeout { provider: provider(), seconds: 60 }),
        ("error = \"network\"", ProviderError::Network { provider: provider(), detail: detail() }),
        ("error = \"auth\"", ProviderError::Auth { provider: provider(), detail: detail() }),
        (
            "error = \"overloaded\"",
            ProviderError::Overloaded { provider: provider(), detail: detail(), retry_after: None },
        ),
        (
            "error = \"refused\"\ndetail = \"not that\"",
            ProviderError::Refused { provider: provider(), detail: "not that".to_owned() },
        ),
    ];
    for (script, error) in cases {
        assert_eq!(chat(&scripted_mock(&format!("[[round]]\n{script}\n")), &user_request("hi")), Err(error));
    }
}

#[test]
fn a_delay_ends_when_it_is_cancelled() {
    let mock = scripted_mock("[[round]]\ntext = \"late\"\ndelay = \"10m\"\n");
    let cancel = CancelFlag::new().unwrap();
    let (raised, chatting) = (cancel.clone(), rustix::thread::gettid());
    let stop = std::thread::spawn(move || {
        wait_until_blocked(chatting);
        raised.raise(CancelReason::Operator);
    });
    let ended = mock.chat(&user_request("hi"), &mut |_| {}, &cancel);
    stop.join().unwrap();
    assert_eq!(ended, Err(ProviderError::Cancelled { provider: "local".to_owned() }));
}

#[test]
fn a_delay_is_waited_for() {
    let mock = scripted_mock("[[round]]\ntext = \"late\"\ndelay = \"80ms\"\n");
    let begun = Instant::now();
    assert_eq!(chat(&mock, &user_request("hi")), Ok(("late".to_owned(), Vec::new())));
    assert!(begun.elapsed() >= Duration::from_millis(80));
}

#[test]
fn every_fault_of_a_script_has_its_place_and_its_cure() {
    let script = r#"
[[round]]
txt = "hello"

[[round]]
text = "I see {tool_reslt}"
delay = "soon"
expect = { last_mesage_contains = "x", messages = "2" }

[[round.call]]
tol = "file_list"

[[round]]
text = "both"
error = "timout"

[[round]]
text = "no error"
detail = "why"
"#;
    insta::assert_snapshot!(faults(script), @r#"
    mock.toml:3:1: unknown key `txt` in `round`
       3 | txt = "hello"
         | ^^^
    help: did you mean `text`?

    mock.toml:6:8: unknown placeholder `{tool_reslt}`
       6 | text = "I see {tool_reslt}"
         |        ^^^^^^^^^^^^^^^^^^^^
    help: did you mean `{tool_result}`?

    mock.toml:7:9: "soon" is not a duration
       7 | delay = "soon"
         |         ^^^^^^
    help: write it like "200ms"

    mock.toml:8:12: unknown key `last_mesage_contains` in `expect`
       8 | expect = { last_mesage_contains = "x", messages = "2" }
         |            ^^^^^^^^^^^^^^^^^^^^
    help: did you mean `last_message_contains`?

    mock.toml:8:51: `messages` must be a whole number, but this is text
       8 | expect = { last_mesage_contains = "x", messages = "2" }
         |                                                   ^^^
    help: remove the quotes

    mock.toml:11:1: unknown key `tol` in `call`
       11 | tol = "file_list"
          | ^^^
    help: did you mean `tool`?

    mock.toml:14:1: a round can't have both an answer and an `error`
       14 | text = "both"
          | ^^^^
       15 | error = "timout"
          | ----- the error is here
    help: remove `error` or the answer

    mock.toml:15:9: `error` can't be "timout"
       15 | error = "timout"
          |         ^^^^^^^^
    help: did you mean `timeout`? It can be `timeout`, `network`, `auth`, `overloaded` or `refused`

    mock.toml:19:1: `detail` needs an `error`, and this round has none
       19 | detail = "why"
          | ^^^^^^
    help: add `error = "refused"`, or move it to `text`
    "#);
    insta::assert_snapshot!(faults(""), @r#"
    mock.toml:1:1: `round` is missing
    help: add `[[round]]` with an answer: `text = "hello"`
    "#);
}

#[test]
fn a_script_in_json_is_the_same_and_its_faults_have_the_same_places() {
    let toml = "[[round]]\ntext = \"a: {x}, \\\"b\\\" 😀/\"\ncall = [{ tool = \"time\", args = { deep = { a = [1, 2] } } }]\n\n[[round]]\nerror = \"auth\"\n";
    let json = r#"{
  "round": [
    { "text": "a: {x}, \"b\" \ud83d\ude00\/", "call":
      [{ "tool": "time", "args": { "deep": { "a": [1, 2] } } }] },
    { "error":"auth" }
  ]
}"#;
    let from_json = |text: &str| MockFixture::from_json("mock.json", text.as_bytes());
    let expected = MockFixture::from_toml(SourceText::new("mock.toml", toml)).unwrap();
    assert_eq!(from_json(json).unwrap(), expected);

    let typo = from_json("{\n  \"round\": [\n    { \"txt\": \"hello\" }\n  ]\n}\n").unwrap_err().to_string();
    assert!(typo.starts_with("mock.json:3:7: "), "{typo}");
    assert!(typo.contains("did you mean `text`?"), "{typo}");
    let two = from_json("{ \"round\": [{\"text\": \"x\"}], \"rund\": 1 }").unwrap_err().to_string();
    assert!(two.contains("unknown key `rund`"), "{two}");
    let broken = from_json("{\n  \"round\": [,]\n}").unwrap_err().to_string();
    assert_eq!(broken, "mock.json:2:13: this is not JSON: expected value");
    let list = from_json("[]").unwrap_err().to_string();
    assert!(list.starts_with("mock.json:1:1: this is not JSON: a fixture is an object"), "{list}");
}

#[test]
fn a_script_comes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let toml = folder.path().join("hello.toml");
    std::fs::write(&toml, "[[round]]\ntext = \"hello\"\n").unwrap();
    let json = folder.path().join("hello.JSON");
    std::fs::write(&json, r#"{"round": [{"text": "hello"}]}"#).unwrap();
    assert_eq!(MockFixture::open(&toml).unwrap(), MockFixture::open(&json).unwrap());

    let missing = MockFixture::open(&folder.path().join("missing.toml")).unwrap_err();
    assert!(matches!(missing, FixtureError::File { .. }), "{missing}");
    std::fs::write(&toml, b"[[round]]\ntext = \"\xff\"\n").unwrap();
    assert!(MockFixture::open(&toml).unwrap_err().to_string().contains("not valid UTF-8"));
    std::fs::write(&json, b"{\"round\": [{\"text\": \"\xff\"}]}").unwrap();
    assert!(MockFixture::open(&json).unwrap_err().to_string().contains("not valid UTF-8"));
    std::fs::write(&json, vec![b' '; 2 * 1024 * 1024]).unwrap();
    assert!(MockFixture::open(&json).unwrap_err().to_string().contains("but the limit is"));
}

#[test]
fn without_a_script_sentences_become_calls() {
    let cases: &[(&str, &str, Value)] = &[
        ("list files", "file_list", json!({"path": "."})),
        ("List Files in src/bin?", "file_list", json!({"path": "src/bin"})),
        ("read notes.txt", "file_read", json!({"path": "notes.txt"})),
        ("write notes.txt  buy milk", "file_write", json!({"path": "notes.txt", "content": "buy milk"})),
        ("run ls -l | wc -l", "shell", json!({"command": "ls -l | wc -l"})),
        ("what time is it?", "time", json!({})),
        ("What time is it in Europe/London?", "time", json!({"time_zone": "Europe/London"})),
        ("search aardvark adapter", "memory_search", json!({"query": "aardvark adapter"})),
        ("fetch https://example.org/", "http", json!({"url": "https://example.org/"})),
    ];
    let mock = MockProvider::new("local", None);
    for (sentence, tool, arguments) in cases {
        let (text, calls) = chat(&mock, &user_request(sentence)).unwrap();
        assert_eq!(text, "", "{sentence}");
        let call =
            ToolCall { id: "mock-1".to_owned(), name: (*tool).to_owned(), arguments: arguments.clone() };
        assert_eq!(calls, [call], "{sentence}");
    }
}

#[test]
fn without_a_script_other_messages_are_echoed_with_help() {
    let mock = MockProvider::new("local", None);
    for sentence in
        ["hello", "runner", "run", "write notes.txt", "list filesystems", "list files from", "readonly"]
    {
        let (text, calls) = chat(&mock, &user_request(sentence)).unwrap();
        assert!(text.starts_with(&format!("You said: {sentence}\n")), "{text}");
        assert!(text.contains("I am the mock") && text.contains("provider test NAME"), "{text}");
        assert_eq!(calls, []);
    }
    assert_eq!(chat(&mock, &user_request("hello")), chat(&mock, &user_request("hello")));
}

#[test]
fn without_a_script_tool_results_are_repeated() {
    let mock = MockProvider::new("local", None);
    let asked = user_request("read notes.txt");
    let (_, calls) = chat(&mock, &asked).unwrap();
    let mut messages = asked.messages;
    messages.push(ChatMessage::assistant("", calls));
    messages.push(ChatMessage::tool("mock-1", "buy milk\n"));
    let (text, calls) = chat(&mock, &request(messages.clone())).unwrap();
    assert_eq!((text.as_str(), calls.len()), ("`file_read` returned:\nbuy milk", 0));

    messages.pop();
    messages.push(ChatMessage::tool("mock-1", ""));
    assert_eq!(chat(&mock, &request(messages.clone())).unwrap().0, "`file_read` returned nothing.");
    messages.pop();
    messages.push(ChatMessage::tool("mock-1", "é".repeat(10_000)));
    let long = chat(&mock, &request(messages)).unwrap().0;
    assert_eq!(
        long,
        format!("`file_read` returned more than 4000 characters, which begin with:\n{}", "é".repeat(4000))
    );
}

#[test]
fn a_look_at_the_mock_takes_no_round() {
    let mock = scripted_mock("[[round]]\ntext = \"hello\"\n");
    let cancel = CancelFlag::new().unwrap();
    assert_eq!(mock.check("mock", &cancel).unwrap().reply, "a fixture with 1 round");
    assert_eq!(chat(&mock, &user_request("hi")), Ok(("hello".to_owned(), Vec::new())));
}

/// Every fixture in the documentation can be parsed.
#[test]
fn the_fixtures_of_the_documentation_are_fixtures() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let page = std::path::Path::new(&root).join("../../docs/collieclaw-fixtures.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = |kind: &str| -> Vec<String> {
        let start = format!("```{kind} fixture\n");
        page.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
    };
    let (toml, json) = (blocks("toml"), blocks("json"));
    // `documented` runs another fixture as well.
    assert_eq!((toml.len(), json.len()), (2, 1));
    for block in toml {
        scripted_mock(&block);
    }
    for block in json {
        MockFixture::from_json("mock.json", block.as_bytes()).unwrap();
    }
}
