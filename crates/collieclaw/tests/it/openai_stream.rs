//! Answers that come bit by bit (C4.3, beyond): the same answer as in one piece, whatever the pieces are; and nothing of
//! it when it is torn.

use std::time::{Duration, Instant};

use collieclaw::cancel::{Cancel, Why};
use collieclaw::providers::{
    ChatResponse, Draft, OpenAi, OpenAiSettings, Provider, ProviderError, ToolCall, Usage,
};
use collieclaw::secret::Secret;
use serde_json::{Value, json};

use crate::http_server::{Act, Server, reply};
use crate::openai::{request, settings};

const START: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// What was heard, and how it ended.
struct Heard {
    bits: Vec<String>,
    answer: Result<ChatResponse, ProviderError>,
}

fn streaming(server: &Server) -> OpenAiSettings {
    OpenAiSettings { stream: true, ..settings(server) }
}

fn hear(settings: OpenAiSettings) -> Heard {
    let mut bits = Vec::new();
    let mut listen = |draft: Draft<'_>| match draft {
        Draft::Text(text) => bits.push(text.to_owned()),
        Draft::Void => panic!("a server takes nothing back"),
    };
    let answer = OpenAi::new(settings).chat(&request(), &mut listen, &Cancel::new().unwrap());
    Heard { bits, answer }
}

fn heard(act: Act) -> Heard {
    hear(streaming(&Server::start(vec![act])))
}

fn sent(body: &str) -> Heard {
    heard(Act::Send(format!("{START}{body}")))
}

fn delta(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn says(text: &str) -> String {
    delta(&json!({"content": text}))
}

const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn text(heard: Heard) -> String {
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
fn an_error_inside_the_stream_is_one() {
    let part = says("Hel");
    for (body, what) in [
        (
            "data: {\"error\":{\"message\":\"out of memory\",\"code\":503}}\n\n",
            "is overloaded: HTTP 503: out of memory",
        ),
        ("data: {\"error\":\"no such thing\"}\n\n", "refused the request: no such thing"),
        ("event: error\ndata: {\"message\":\"too long\"}\n\n", "refused the request: too long"),
        ("data: {\"choices\":[\n\n", "can't be used: a part of the stream is no JSON"),
        ("data: \u{1b}[2J\n\n", "can't be used: a part of the stream is no JSON"),
        ("data: [1\u{1b}\n\n", "can't be used: a part of the stream is no JSON"),
    ] {
        let heard = sent(&format!("{part}{body}"));
        let told = heard.answer.unwrap_err().to_string();
        assert!(told.contains(what), "{told}");
        assert_eq!(heard.bits, ["Hel"]);
    }
    let refusal = [&delta(&json!({"refusal": "I w"})), &delta(&json!({"refusal": "on't."})), STOP].concat();
    let told = sent(&refusal).answer.unwrap_err();
    assert_eq!(told, ProviderError::Refused { provider: "remote".to_owned(), detail: "I won't.".to_owned() });
    let many: String = (0..65)
        .map(|index| delta(&json!({"tool_calls": [{"index": index, "function": {"name": "time"}}]})))
        .collect();
    assert!(sent(&many).answer.unwrap_err().to_string().contains("more than 64 tools"));
}

#[test]
fn a_stream_that_breaks_off_is_no_answer() {
    let part = format!("{START}{}", says("Hel"));
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
        says("Hel").len(),
        says("Hel")
    );
    for act in [
        Act::Send(part.clone()),
        Act::Reset(part.clone()),
        Act::Send(format!("{part}data: {{\"choices\":")),
        Act::Send(chunked.clone()),
        Act::Pieces(vec![chunked.into_bytes(), b"zz\r\n".to_vec()], Duration::from_millis(100)),
    ] {
        let heard = heard(act.clone());
        let told = heard.answer.unwrap_err();
        let network = matches!(told, ProviderError::Network { .. });
        let half_event = matches!(&told, ProviderError::Invalid { .. })
            && matches!(&act, Act::Send(sent) if sent.ends_with(':'));
        assert!(network || half_event, "{act:?}: {told}");
        assert_eq!(heard.bits, ["Hel"]);
    }
    // What breaks after the end breaks nothing.
    let whole = format!("{part}{STOP}");
    assert_eq!(text(heard(Act::Reset(whole.clone()))), "Hel");
    assert_eq!(text(heard(Act::Hang(whole))), "Hel");
    // Whoever says that this is all need not hang up.
    assert_eq!(text(heard(Act::Hang(format!("{part}{DONE}")))), "Hel");
}

#[test]
fn a_stream_that_stalls_or_never_ends_is_an_error() {
    let part = format!("{START}{}", says("Hel"));
    let server = Server::start(vec![Act::Hang(part.clone())]);
    let begun = Instant::now();
    let stalled = hear(OpenAiSettings { stall_timeout: Duration::from_millis(300), ..streaming(&server) });
    assert_eq!(
        stalled.answer.unwrap_err().to_string(),
        "provider `remote` can't be reached: the answer stopped coming, and nothing more came within 1 s (`stall_timeout`)"
    );
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(20));

    // Before it has begun, it may take its time, but not more than all of it.
    let server = Server::start(vec![Act::Hang(START.to_owned())]);
    let short = OpenAiSettings {
        stall_timeout: Duration::from_millis(50),
        timeout: Duration::from_millis(500),
        ..streaming(&server)
    };
    let begun = Instant::now();
    let late = hear(short.clone()).answer.unwrap_err();
    assert_eq!(late, ProviderError::Timeout { provider: "remote".to_owned(), seconds: 1 });
    assert!(begun.elapsed() >= Duration::from_millis(500));

    // Signs of life keep it going, until the time is over.
    let server = Server::start(vec![Act::Drip(format!("{part}: "))]);
    let endless = hear(OpenAiSettings {
        stall_timeout: Duration::from_secs(20),
        ..OpenAiSettings { base_url: streaming(&server).base_url, ..short }
    });
    assert_eq!(endless.answer.unwrap_err(), late);

    let too_large = ProviderError::TooLarge { provider: "remote".to_owned(), limit: 1_000_000 };
    let small = |act: Act| {
        let server = Server::start(vec![act]);
        hear(OpenAiSettings { max_response_bytes: 100_000, ..streaming(&server) }).answer.unwrap_err()
    };
    assert_eq!(heard(Act::Flood(START.to_owned(), says(&"x".repeat(1000)))).answer.unwrap_err(), too_large);
    let most = ProviderError::TooLarge { provider: "remote".to_owned(), limit: 100_000 };
    for more in
        [": ping\n\n".to_owned(), delta(&json!({})).repeat(10), "x".repeat(1000), "data: x\n".repeat(100)]
    {
        assert_eq!(small(Act::Flood(START.to_owned(), more)), most);
    }
    let arguments = delta(
        &json!({"tool_calls": [{"index": 0, "function": {"name": "time", "arguments": "x".repeat(500)}}]}),
    );
    assert_eq!(small(Act::Flood(START.to_owned(), arguments)), most);
}

#[test]
fn a_stream_ends_when_somebody_says_stop() {
    let server = Server::start(vec![Act::Hang(format!("{START}{}", says("Hel")))]);
    let cancel = Cancel::new().unwrap();
    let provider = OpenAi::new(streaming(&server));
    // The first bit is there before the answer is: else this would hang for its time.
    let mut listen = |_: Draft<'_>| cancel.raise(Why::Operator);
    let ended = provider.chat(&request(), &mut listen, &cancel);
    assert_eq!(ended, Err(ProviderError::Cancelled { provider: "remote".to_owned() }));
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
