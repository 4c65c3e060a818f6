//! Answers that come bit by bit (C4.3, beyond): the same answer as in one piece, whatever the pieces are; and nothing of
//! it when it is torn.

use std::time::Duration;

use collieclaw::cancel::Cancel;
use collieclaw::providers::{
    ChatResponse, Draft, OpenAi, OpenAiSettings, Provider, ProviderError, ToolCall, Usage,
};
use collieclaw::secret::Secret;
use serde_json::{Value, json};

use crate::http_server::{Act, Server, reply};
use crate::openai::{request, settings};

pub(crate) const START: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// What was heard, and how it ended.
pub(crate) struct Heard {
    pub(crate) bits: Vec<String>,
    pub(crate) answer: Result<ChatResponse, ProviderError>,
}

pub(crate) fn streaming(server: &Server) -> OpenAiSettings {
    OpenAiSettings { stream: true, ..settings(server) }
}

pub(crate) fn hear(settings: OpenAiSettings) -> Heard {
    let mut bits = Vec::new();
    let mut listen = |draft: Draft<'_>| match draft {
        Draft::Text(text) => bits.push(text.to_owned()),
        Draft::Void => panic!("a server takes nothing back"),
    };
    let answer = OpenAi::new(settings).chat(&request(), &mut listen, &Cancel::new().unwrap());
    Heard { bits, answer }
}

pub(crate) fn heard(act: Act) -> Heard {
    hear(streaming(&Server::start(vec![act])))
}

pub(crate) fn sent(body: &str) -> Heard {
    heard(Act::Send(format!("{START}{body}")))
}

pub(crate) fn delta(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

pub(crate) fn says(text: &str) -> String {
    delta(&json!({"content": text}))
}

pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

pub(crate) fn text(heard: Heard) -> String {
    heard.answer.unwrap().final_text
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

#[test]
fn a_stream_is_asked_for_and_told_as_it_comes() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    let body = [": hello\n\n", &says("Hel"), &says("lo"), STOP, usage, DONE].concat();
    let server = Server::start(vec![Act::Send(format!("{START}{body}"))]);
    let heard = hear(streaming(&server));
    let answer = heard.answer.unwrap();
    assert_eq!((answer.final_text.as_str(), heard.bits), ("Hello", vec!["Hel".to_owned(), "lo".to_owned()]));
    assert_eq!(answer.usage, Some(Usage { prompt_tokens: 3, completion_tokens: 2 }));
    let asked: Value = serde_json::from_str(&server.received().remove(0).body).unwrap();
    assert_eq!((&asked["stream"], &asked["stream_options"]), (&json!(true), &json!({"include_usage": true})));
}

#[test]
fn the_same_stream_in_all_the_spellings_of_servers() {
    let plain = [&says("Hä"), &says("🐑lo"), STOP, DONE].concat();
    for body in [
        plain.clone(),
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        format!("\u{feff}{plain}"),
        plain.replace("data: ", "data:"),
        plain.replace("data: ", "id: 7\nretry: 5\nevent: message\n: ping\ndata: "),
        // One event on several lines, where JSON allows a blank.
        plain.replace(":[{", ":\ndata: [{"),
        // Without its end, and without the empty line behind the last event.
        [&says("Hä"), &says("🐑lo"), STOP].concat(),
        [&says("Hä"), &says("🐑lo"), STOP.trim_end()].concat(),
        [&says("Hä"), &says("🐑lo"), "data: [DONE]"].concat(),
        // As numbers, and one letter in two halves.
        plain.replace("ä", "\\u00e4"),
        [
            &says("Hä\u{1}").replace("\\u0001", "\\ud83d"),
            &says("\u{1}lo").replace("\\u0001", "\\udc11"),
            STOP,
        ]
        .concat(),
        // Content in parts, a message instead of a delta, and what nobody asked for.
        [&delta(&json!({"content": [{"type": "text", "text": "Hä🐑"}]})), &says("lo"), STOP].concat(),
        format!(
            "data: {}\n\n",
            json!({"choices": [{"message": {"content": "Hä🐑lo"}, "finish_reason": "stop"}]})
        ),
        [&says("Hä🐑lo"), "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}}]}\n\n", STOP]
            .concat(),
        [&delta(&json!({"reasoning_content": "hm", "content": null})), "data:\n\n", &says("Hä🐑lo"), DONE]
            .concat(),
    ] {
        assert_eq!(text(sent(&body)), "Hä🐑lo", "{body}");
    }
}

#[test]
fn the_pieces_may_be_cut_anywhere() {
    let body = [
        &says("Hä🐑"),
        "\r\n",
        &delta(&json!({"tool_calls": [{"index": 0, "function": {"name": "time"}}]})),
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
        let answer = heard(Act::Pieces(pieces(size), Duration::ZERO)).answer.unwrap();
        assert_eq!((answer.final_text.as_str(), answer.tool_calls.len()), ("Hä🐑", 1), "{size}");
    }
}

#[test]
fn calls_are_put_together_from_their_pieces() {
    let piece = |call: Value| delta(&json!({"tool_calls": [call]}));
    let calls = |pieces: &[String]| sent(&[&pieces.concat(), STOP, DONE].concat()).answer.unwrap().tool_calls;
    // Interleaved, the second one first, without ids later on.
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
    // The name and the id again in every piece.
    let repeated = ["{\"pa", "th\":", "\"x\"}"].map(|arguments| {
        piece(json!({"index": 0, "id": "a", "function": {"name": "file_read", "arguments": arguments}}))
    });
    assert_eq!(calls(&repeated), [expected[0].clone()]);
    // No ids at all, the arguments missing, null or an object.
    let bare = [
        piece(json!({"index": 0, "function": {"name": "time"}})),
        piece(json!({"index": 1, "function": {"name": "time", "arguments": null}})),
        piece(json!({"index": 2, "function": {"name": "file_read", "arguments": {"path": "x"}}})),
    ];
    let numbered = ["call-1", "call-2", "call-3"];
    let found = calls(&bare);
    assert_eq!(found.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), numbered);
    assert_eq!(found[2].arguments, json!({"path": "x"}));
    // Whole calls that all have the same number, or none.
    let same = ["a", "b"]
        .map(|id| piece(json!({"index": 0, "id": id, "function": {"name": "time", "arguments": "{}"}})));
    assert_eq!(calls(&same), [call("a", "time", json!({})), call("b", "time", json!({}))]);
    let none = ["a", "b"].map(|id| piece(json!({"id": id, "function": {"name": "time", "arguments": "{}"}})));
    assert_eq!(calls(&none), [call("a", "time", json!({})), call("b", "time", json!({}))]);
    let nameless =
        ["{", "}"].map(|arguments| piece(json!({"function": {"name": "time", "arguments": arguments}})));
    assert_eq!(calls(&nameless).len(), 2);
    // The older form.
    let older = ["{\"path\":", "\"x\"}"]
        .map(|arguments| delta(&json!({"function_call": {"name": "file_read", "arguments": arguments}})));
    assert_eq!(calls(&older), [call("call-1", "file_read", json!({"path": "x"}))]);
    // What the model got wrong stays visible.
    let broken =
        [piece(json!({"index": 0, "id": "a", "function": {"name": "time", "arguments": "{\"x\": "}}))];
    assert_eq!(calls(&broken), [call("a", "time", json!("{\"x\": "))]);
}

#[test]
fn a_server_that_does_not_stream_still_answers() {
    let whole = json!({"choices": [{"message": {"content": "hello"}}]}).to_string();
    for content_type in ["application/json", "text/event-stream", "text/plain"] {
        let heard = heard(Act::Send(reply("200 OK", content_type, &whole)));
        assert_eq!((heard.bits.len(), text(heard)), (0, "hello".to_owned()), "{content_type}");
    }
    // One that refuses the question is asked in the old way, and from then on only so.
    let no =
        reply("400 No", "application/json", "{\"error\":{\"message\":\"unknown field: stream_options\"}}");
    let yes = reply("200 OK", "application/json", &whole);
    let server = Server::start(vec![Act::Send(no), Act::Send(yes)]);
    let provider = OpenAi::new(streaming(&server));
    for _ in 0..2 {
        let answer = provider.chat(&request(), &mut |_| {}, &Cancel::new().unwrap()).unwrap();
        assert_eq!(answer.final_text, "hello");
    }
    let asked = server.received();
    let streams =
        |number: usize| serde_json::from_str::<Value>(&asked[number].body).unwrap()["stream"].clone();
    assert_eq!([streams(0), streams(1), streams(2)], [json!(true), json!(false), json!(false)]);
}

#[test]
fn a_stream_that_nobody_asked_for_is_read_as_well() {
    let server = Server::start(vec![Act::Send(format!("HTTP/1.1 200 OK\r\n\r\n{}{STOP}", says("hello")))]);
    assert_eq!(text(hear(settings(&server))), "hello");
}

#[test]
fn a_key_that_comes_back_in_pieces_is_not_told() {
    let key = "sk-canary-7f3e9a";
    let body: String = key.chars().map(|letter| says(&letter.to_string())).collect();
    let body = [&says("your key is "), &body, &says(", isn't it? sk-"), STOP].concat();
    let server = Server::start(vec![Act::Send(format!("{START}{body}"))]);
    let heard = hear(OpenAiSettings { api_key: Some(Secret::new(key.to_owned())), ..streaming(&server) });
    assert!(!heard.bits.concat().contains("canary"), "{:?}", heard.bits);
    let answer = heard.answer.unwrap();
    assert_eq!(answer.final_text, "your key is ***, isn't it? sk-");
    assert_eq!(heard.bits.concat(), answer.final_text);
    assert!(!format!("{answer:?}").contains("canary"));
}
