//! The provider for OpenAI-compatible servers (C4.3) against an independent server program, which was written for the
//! real services.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::secret::Secret;
use collieclaw_providers::{
    ChatMessage, ChatRequest, ChatResponse, DraftEvent, OpenAiProvider, OpenAiSettings, Provider,
    ProviderError, ToolSchema,
};
use serde_json::{Value, json};

use crate::support::{ChildGuard, TestAgent};

/// A scripted server on its own port; dropping it ends it.
struct PeerServer {
    _child: ChildGuard,
    port: u16,
    _script: tempfile::NamedTempFile,
}

impl PeerServer {
    fn start(script: &Value, flags: &[&str]) -> Self {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(file.path(), script.to_string()).unwrap();
        let installed = peer_program();
        let mut child = Command::new(installed.join("node"))
            .arg(installed.join("llmock"))
            .args(["--port", "0", "--strict", "--fixtures"])
            .arg(file.path())
            .args(flags)
            .env("AIMOCK_API_KEYS", "the-right-key")
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .find_map(|line| line.unwrap().rsplit_once("listening on http://127.0.0.1:")?.1.parse().ok());
        let port = port.expect("the server says where it listens");
        // Its later output is ignored, but must be read so that it doesn't block.
        std::thread::spawn(move || lines.for_each(drop));
        Self { _child: ChildGuard(child), port, _script: file }
    }

    fn provider(&self, key: &str) -> OpenAiProvider {
        OpenAiProvider::new(self.settings(key))
    }

    fn settings(&self, key: &str) -> OpenAiSettings {
        OpenAiSettings {
            name: "peer".to_owned(),
            base_url: format!("http://127.0.0.1:{}/v1", self.port),
            api_key: Some(Secret::new(key.to_owned())),
            api_key_env: Some("MY_KEY".to_owned()),
            timeout: Duration::from_secs(30),
            max_response_bytes: 1_000_000,
            stall_timeout: Duration::from_secs(30),
            stream: false,
        }
    }
}

/// Returns where `cargo xtask setup` installs it: for all users, or for one.
fn peer_program() -> PathBuf {
    let own = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let places = own.into_iter().chain([PathBuf::from("/usr/local")]);
    let mut folders = places.map(|place| place.join("lib/collieclaw-peers/node_modules/.bin"));
    folders
        .find(|folder| folder.join("llmock").exists() && folder.join("node").exists())
        .expect("the test needs a model server with a script: run `cargo xtask setup`")
}

fn request(messages: Vec<ChatMessage>) -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ChatRequest {
        system_prompt: "Be careful.".to_owned(),
        messages,
        tools: vec![ToolSchema {
            name: "file_list".to_owned(),
            description: "Lists.".to_owned(),
            parameters: schema,
        }],
        model: "gpt-4o-mini".to_owned(),
        temperature: Some(0.0),
        metadata: serde_json::Map::new(),
    }
}

fn script() -> Value {
    json!({ "fixtures": [
        { "match": { "userMessage": "hello" }, "response": { "content": "hi there" } },
        { "match": { "userMessage": "ok" }, "response": { "content": "ok" } },
        { "match": { "userMessage": "what is here", "hasToolResult": false }, "response": { "toolCalls": [
            { "name": "file_list", "arguments": { "path": "." } },
            { "name": "file_list", "arguments": "{\"path\": " },
        ] } },
        { "match": { "userMessage": "what is here", "toolResultContains": "notes.txt" },
          "response": { "content": "There is a file notes.txt." } },
    ] })
}

#[test]
fn text_tools_and_their_results_go_round_with_an_independent_server() {
    let peer = PeerServer::start(&script(), &[]);
    let provider = peer.provider("the-right-key");
    let cancel = CancelFlag::new().unwrap();

    let hello = provider.chat(&request(vec![ChatMessage::user("hello")]), &mut |_| {}, &cancel).unwrap();
    assert_eq!((hello.final_text.as_str(), hello.tool_calls.len()), ("hi there", 0));
    assert!(hello.usage.unwrap().completion_tokens > 0);

    let mut messages = vec![ChatMessage::user("what is here?")];
    let asked = provider.chat(&request(messages.clone()), &mut |_| {}, &cancel).unwrap();
    assert_eq!(asked.final_text, "");
    let arguments: Vec<&Value> = asked.tool_calls.iter().map(|call| &call.arguments).collect();
    assert_eq!(arguments, [&json!({"path": "."}), &json!("{\"path\": ")]);

    let results: Vec<ChatMessage> =
        asked.tool_calls.iter().map(|call| ChatMessage::tool(&call.id, "notes.txt")).collect();
    messages.push(ChatMessage::assistant(asked.final_text, asked.tool_calls));
    messages.extend(results);
    let answer = provider.chat(&request(messages), &mut |_| {}, &cancel).unwrap();
    assert_eq!(answer.final_text, "There is a file notes.txt.");

    let checked = provider.check("gpt-4o-mini", &cancel).unwrap();
    assert_eq!((checked.model.as_str(), checked.reply.as_str()), ("gpt-4o-mini", "ok"));

    let unknown = provider.chat(&request(vec![ChatMessage::user("something else")]), &mut |_| {}, &cancel);
    assert_eq!(
        unknown,
        Err(ProviderError::Overloaded {
            provider: "peer".to_owned(),
            detail: "HTTP 503: Strict mode: no fixture matched".to_owned(),
            retry_after: None,
        })
    );
    let stranger =
        peer.provider("a-wrong-key").chat(&request(vec![ChatMessage::user("hello")]), &mut |_| {}, &cancel);
    assert!(matches!(stranger, Err(ProviderError::Auth { .. })), "{stranger:?}");
}

/// Returns the pieces of a streamed answer, and the whole answer.
fn stream_from_peer(peer: &PeerServer, message: &str) -> (Vec<String>, Result<ChatResponse, ProviderError>) {
    let provider = OpenAiProvider::new(OpenAiSettings { stream: true, ..peer.settings("the-right-key") });
    let mut bits = Vec::new();
    let mut listen = |draft: DraftEvent<'_>| match draft {
        DraftEvent::Text(text) => bits.push(text.to_owned()),
        DraftEvent::Discard => panic!("a server takes nothing back"),
    };
    let messages = request(vec![ChatMessage::user(message)]);
    let answer = provider.chat(&messages, &mut listen, &CancelFlag::new().unwrap());
    (bits, answer)
}

#[test]
fn an_independent_server_streams_text_and_calls() {
    let peer = PeerServer::start(
        &json!({ "fixtures": [
            { "match": { "userMessage": "hello" }, "response": { "content": "a 🐑 or two" }, "chunkSize": 1 },
            { "match": { "userMessage": "what is here" }, "chunkSize": 2, "response": {
                "content": "I look.",
                "toolCalls": [
                    { "name": "file_list", "arguments": { "path": "🐑/\"x\"" } },
                    { "name": "file_list", "arguments": { "path": "." } },
                ],
            } },
            { "match": { "userMessage": "torn" }, "chunkSize": 3, "truncateAfterChunks": 4,
              "response": { "content": "one two three four" } },
        ] }),
        &[],
    );
    let (bits, answer) = stream_from_peer(&peer, "hello");
    let answer = answer.unwrap();
    assert_eq!(answer.final_text, "a 🐑 or two");
    assert_eq!(bits.concat(), answer.final_text);
    assert!(bits.len() > 5 && answer.usage.is_some(), "{bits:?}");

    let (bits, answer) = stream_from_peer(&peer, "what is here?");
    let answer = answer.unwrap();
    assert_eq!((bits.concat().as_str(), answer.final_text.as_str()), ("I look.", "I look."));
    let arguments: Vec<&Value> = answer.tool_calls.iter().map(|call| &call.arguments).collect();
    assert_eq!(arguments, [&json!({"path": "🐑/\"x\""}), &json!({"path": "."})]);

    let (_, torn) = stream_from_peer(&peer, "torn");
    assert!(matches!(torn, Err(ProviderError::Network { .. })), "{torn:?}");
}

#[test]
fn the_errors_of_an_independent_server_are_distinguished() {
    let fault = |flag: &str| {
        let peer = PeerServer::start(&script(), &[flag, "1"]);
        let cancel = CancelFlag::new().unwrap();
        peer.provider("the-right-key")
            .chat(&request(vec![ChatMessage::user("hello")]), &mut |_| {}, &cancel)
            .unwrap_err()
    };
    let dropped = fault("--chaos-drop");
    assert!(matches!(dropped, ProviderError::Overloaded { .. }), "{dropped}");
    let malformed = fault("--chaos-malformed");
    assert!(matches!(malformed, ProviderError::Invalid { .. }), "{malformed}");
    let disconnected = fault("--chaos-disconnect");
    assert!(matches!(disconnected, ProviderError::Network { .. }), "{disconnected}");
    let limited = fault("--chaos-ratelimit");
    assert!(matches!(limited, ProviderError::Overloaded { retry_after: Some(_), .. }), "{limited}");
}

/// The whole program with an independent server: lists, reads and writes files and runs a command.
#[test]
fn an_agent_works_with_an_independent_server() {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let work = [
        call("file_write", json!({ "path": "notes.txt", "content": "milk\n" })),
        call("file_read", json!({ "path": "notes.txt" })),
        call("file_list", json!({ "path": "." })),
        call("file_read", json!({ "path": "/etc/passwd" })),
        call("shell", json!({ "command": "tr a-z A-Z < notes.txt" })),
    ];
    let script = json!({ "fixtures": [
        { "match": { "userMessage": "work", "hasToolResult": false }, "response": { "toolCalls": work } },
        { "match": { "userMessage": "work", "toolResultContains": "MILK" }, "response": { "content": "All done." } },
    ] });
    for streamed in ["true", "false"] {
        let peer = PeerServer::start(&script, &[]);
        let address = format!("base_url = \"http://127.0.0.1:{}/v1\"", peer.port);
        let test_agent = TestAgent::new()
            .with_config_change("base_url = \"http://localhost:1234/v1\"", &address)
            .with_config_change("stream = true", &format!("stream = {streamed}"));
        let mut command = test_agent.command(&["agent", "--provider", "openai_compatible", "-m", "work"]);
        command.env("OPENAI_API_KEY", "the-right-key");
        let done = TestAgent::run_at_terminal(command, &[("Approve? [y/N", "y\n"), ("Approve? [y/N", "y\n")]);
        assert_eq!((done.code, done.out.as_str()), (4, "All done.\n"), "{done:?}");
        assert_eq!(std::fs::read_to_string(test_agent.workspace().join("notes.txt")).unwrap(), "milk\n");
        let words = test_agent.receipt_summaries();
        let actual: Vec<[&str; 2]> = words.iter().map(|[tool, status, _]| [&**tool, &**status]).collect();
        assert_eq!(
            actual,
            [
                ["file_write", "allowed"],
                ["file_read", "allowed"],
                ["file_list", "allowed"],
                ["file_read", "denied"],
                ["shell", "allowed"]
            ]
        );
    }
}
