//! Streamed answers (C4.3, beyond): the same answer as in one piece, however it is split; and no answer if the stream
//! breaks.

use std::time::Duration;

use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::secret::Secret;
use collieclaw_providers::{
    ChatResponse, DraftEvent, OpenAiProvider, OpenAiSettings, Provider, ProviderError, TokenUsage, ToolCall,
};
use serde_json::{Value, json};

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::openai::{request, settings};

pub(crate) const START: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// The received pieces, and the result.
pub(crate) struct StreamedChat {
    pub(crate) drafts: Vec<String>,
    pub(crate) answer: Result<ChatResponse, ProviderError>,
}

pub(crate) fn streaming(server: &TestServer) -> OpenAiSettings {
    OpenAiSettings { stream: true, ..settings(server) }
}

pub(crate) fn stream_chat(settings: OpenAiSettings) -> StreamedChat {
    let mut bits = Vec::new();
    let mut listen = |draft: DraftEvent<'_>| match draft {
        DraftEvent::Text(text) => bits.push(text.to_owned()),
        DraftEvent::Discard => panic!("a server takes nothing back"),
    };
    let answer = OpenAiProvider::new(settings).chat(&request(), &mut listen, &CancelFlag::new().unwrap());
    StreamedChat { drafts: bits, answer }
}

pub(crate) fn stream_chat_with(act: ServerAction) -> StreamedChat {
    stream_chat(streaming(&TestServer::start(vec![act])))
}

pub(crate) fn stream_chat_of(body: &str) -> StreamedChat {
    stream_chat_with(ServerAction::Send(format!("{START}{body}")))
}

pub(crate) fn delta_event(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

pub(crate) fn text_event(text: &str) -> String {
    delta_event(&json!({"content": text}))
}

pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

pub(crate) fn final_text(streamed: StreamedChat) -> String {
    streamed.answer.unwrap().final_text
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

#[test]
fn a_stream_is_requested_and_reported_as_it_arrives() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    let body = [": hello\n\n", &text_event("Hel"), &text_event("lo"), STOP, usage, DONE].concat();
    let server = TestServer::start(vec![ServerAction::Send(format!("{START}{body}"))]);
    let streamed = stream_chat(streaming(&server));
    let answer = streamed.answer.unwrap();
    assert_eq!(
        (answer.final_text.as_str(), streamed.drafts),
        ("Hello", vec!["Hel".to_owned(), "lo".to_owned()])
    );
    assert_eq!(answer.usage, Some(TokenUsage { prompt_tokens: 3, completion_tokens: 2 }));
    let asked: Value = serde_json::from_str(&server.received().remove(0).body).unwrap();
    assert_eq!((&asked["stream"], &asked["stream_options"]), (&json!(true), &json!({"include_usage": true})));
}

#[test]
fn the_same_stream_in_all_the_spellings_of_servers() {
    let plain = [&text_event("Hä"), &text_event("🐑lo"), STOP, DONE].concat();
    for body in [
        plain.clone(),
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        format!("\u{feff}{plain}"),
        plain.replace("data: ", "data:"),
        plain.replace("data: ", "id: 7\nretry: 5\nevent: message\n: ping\ndata: "),
        // An event on several lines, where JSON allows a space.
        plain.replace(":[{", ":\ndata: [{"),
        // Without an end marker, and without the empty line after the last event.
        [&text_event("Hä"), &text_event("🐑lo"), STOP].concat(),
        [&text_event("Hä"), &text_event("🐑lo"), STOP.trim_end()].concat(),
        [&text_event("Hä"), &text_event("🐑lo"), "data: [DONE]"].concat(),
        // As escapes, and a character in two surrogate halves.
        plain.replace("ä", "\\u00e4"),
        [
            &text_event("Hä\u{1}").replace("\\u0001", "\\ud83d"),
            &text_event("\u{1}lo").replace("\\u0001", "\\udc11"),
            STOP,
        ]
        .concat(),
        // Content in parts, a message instead of a delta, and unknown fields.
        [&delta_event(&json!({"content": [{"type": "text", "text": "Hä🐑"}]})), &text_event("lo"), STOP]
            .concat(),
        format!(
            "data: {}\n\n",
            json!({"choices": [{"message": {"content": "Hä🐑lo"}, "finish_reason": "stop"}]})
        ),
        [
            &text_event("Hä🐑lo"),
            "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\n\n",
            STOP,
        ]
        .concat(),
        [
            &delta_event(&json!({"reasoning_content": "hm", "content": null})),
            "data:\n\n",
            &text_event("Hä🐑lo"),
            DONE,
        ]
        .concat(),
    ] {
        assert_eq!(final_text(stream_chat_of(&body)), "Hä🐑lo", "{body}");
    }
}

#[test]
fn the_pieces_may_be_cut_anywhere() {
    let body = [
        &text_event("Hä🐑"),
        "\r\n",
        &delta_event(&json!({"tool_calls": [{"index": 0, "function": {"name": "time"}}]})),
        STOP,
    ]
    .concat();
    let pieces = |size: usize| {
        let bytes: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
        let chunks = bytes.iter().map(|piece| {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend(*piece);
            chunk.extend(b"\r\n");
            chunk
        });
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_vec();
        [head].into_iter().chain(chunks).chain([b"0\r\n\r\n".to_vec()]).collect()
    };
    for size in [1, 2, 3, 7, 50] {
        let answer = stream_chat_with(ServerAction::Pieces(pieces(size), Duration::ZERO)).answer.unwrap();
        assert_eq!((answer.final_text.as_str(), answer.tool_calls.len()), ("Hä🐑", 1), "{size}");
    }
}

#[test]
fn calls_are_put_together_from_their_pieces() {
    let piece = |call: Value| delta_event(&json!({"tool_calls": [call]}));
    let calls = |pieces: &[String]| {
        stream_chat_of(&[&pieces.concat(), STOP, DONE].concat()).answer.unwrap().tool_calls
    };
    // Interleaved, the second call first, without ids later on.
    let interleaved = [
        piece(
            json!({"index": 1, "id": "b", "type": "function", "function": {"name": "time", "arguments": ""}}),
        ),
        piece(json!({"index": 0, "id": "a", "function": {"name": "file_read", "arguments": "{\"pa"}})),
        piece(json!({"index": 1, "function": {"arguments": "{\"time_zone\":"}})),
        piece(json!({"index": 0, "function": {"arguments": "th\":\"x\"}"}})),
        piece(json!({"index": 1, "function": {"arguments": "\"UTC\"}"}})),
    ];
    let expected =
        [call("a", "file_read", json!({"path": "x"})), call("b", "time", json!({"time_zone": "UTC"}))];
    assert_eq!(calls(&interleaved), expected);
    // Name and id repeated in every piece.
    let repeated = ["{\"pa", "th\":", "\"x\"}"].map(|arguments| {
        piece(json!({"index": 0, "id": "a", "function": {"name": "file_read", "arguments": arguments}}))
    });
    assert_eq!(calls(&repeated), [expected[0].clone()]);
    // No ids at all, and arguments that are missing, null or an object.
    let bare = [
        piece(json!({"index": 0, "function": {"name": "time"}})),
        piece(json!({"index": 1, "function": {"name": "time", "arguments": null}})),
        piece(json!({"index": 2, "function": {"name": "file_read", "arguments": {"path": "x"}}})),
    ];
    let numbered = ["call-1", "call-2", "call-3"];
    let found = calls(&bare);
    assert_eq!(found.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), numbered);
    assert_eq!(found[2].arguments, json!({"path": "x"}));
    // Whole calls that all have the same index, or none.
    let same = ["a", "b"]
        .map(|id| piece(json!({"index": 0, "id": id, "function": {"name": "time", "arguments": "{}"}})));
    assert_eq!(calls(&same), [call("a", "time", json!({})), call("b", "time", json!({}))]);
    let none = ["a", "b"].map(|id| piece(json!({"id": id, "function": {"name": "time", "arguments": "{}"}})));
    assert_eq!(calls(&none), [call("a", "time", json!({})), call("b", "time", json!({}))]);
    let nameless =
        ["{", "}"].map(|arguments| piece(json!({"function": {"name": "time", "arguments": arguments}})));
    assert_eq!(calls(&nameless).len(), 2);
    // The older format.
    let older = ["{\"path\":", "\"x\"}"].map(|arguments| {
        delta_event(&json!({"function_call": {"name": "file_read", "arguments": arguments}}))
    });
    assert_eq!(calls(&older), [call("call-1", "file_read", json!({"path": "x"}))]);
    // Invalid arguments of the model stay visible.
    let broken =
        [piece(json!({"index": 0, "id": "a", "function": {"name": "time", "arguments": "{\"x\": "}}))];
    assert_eq!(calls(&broken), [call("a", "time", json!("{\"x\": "))]);
}

#[test]
fn a_server_that_does_not_stream_still_answers() {
    let whole = json!({"choices": [{"message": {"content": "hello"}}]}).to_string();
    for content_type in ["application/json", "text/event-stream", "text/plain"] {
        let streamed = stream_chat_with(ServerAction::Send(http_reply("200 OK", content_type, &whole)));
        assert_eq!((streamed.drafts.len(), final_text(streamed)), (0, "hello".to_owned()), "{content_type}");
    }
    // A server that rejects the stream option is asked without it, from then on always.
    let no = http_reply(
        "400 No",
        "application/json",
        "{\"error\":{\"message\":\"unknown field: stream_options\"}}",
    );
    let yes = http_reply("200 OK", "application/json", &whole);
    let server = TestServer::start(vec![ServerAction::Send(no), ServerAction::Send(yes)]);
    let provider = OpenAiProvider::new(streaming(&server));
    for _ in 0..2 {
        let answer = provider.chat(&request(), &mut |_| {}, &CancelFlag::new().unwrap()).unwrap();
        assert_eq!(answer.final_text, "hello");
    }
    let asked = server.received();
    let streams =
        |number: usize| serde_json::from_str::<Value>(&asked[number].body).unwrap()["stream"].clone();
    assert_eq!([streams(0), streams(1), streams(2)], [json!(true), json!(false), json!(false)]);
}

#[test]
fn an_unrequested_stream_is_read_as_well() {
    let server = TestServer::start(vec![ServerAction::Send(format!(
        "HTTP/1.1 200 OK\r\n\r\n{}{STOP}",
        text_event("hello")
    ))]);
    assert_eq!(final_text(stream_chat(settings(&server))), "hello");
}

#[test]
fn a_key_that_is_streamed_back_in_pieces_is_redacted() {
    let key = "sk-canary-7f3e9a";
    let body: String = key.chars().map(|letter| text_event(&letter.to_string())).collect();
    let body = [&text_event("your key is "), &body, &text_event(", isn't it? sk-"), STOP].concat();
    let server = TestServer::start(vec![ServerAction::Send(format!("{START}{body}"))]);
    let streamed =
        stream_chat(OpenAiSettings { api_key: Some(Secret::new(key.to_owned())), ..streaming(&server) });
    assert!(!streamed.drafts.concat().contains("canary"), "{:?}", streamed.drafts);
    let answer = streamed.answer.unwrap();
    assert_eq!(answer.final_text, "your key is ***, isn't it? sk-");
    assert_eq!(streamed.drafts.concat(), answer.final_text);
    assert!(!format!("{answer:?}").contains("canary"));
}
