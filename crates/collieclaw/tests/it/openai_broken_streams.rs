//! Streams that break off, stall, never end, or report an error (C4.3, beyond): a clear error soon, and no answer.

use std::time::{Duration, Instant};

use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::{DraftEvent, OpenAiProvider, OpenAiSettings, Provider, ProviderError};
use serde_json::json;

use crate::http_server::{ServerAction, TestServer};
use crate::openai::request;
use crate::openai_stream::{
    DONE, START, STOP, delta_event, final_text, stream_chat, stream_chat_of, stream_chat_with, streaming,
    text_event,
};

#[test]
fn an_error_inside_the_stream_is_one() {
    let part = text_event("Hel");
    for (body, what) in [
        (
            "data: {\"error\":{\"message\":\"out of memory\",\"code\":503}}\n\n",
            "is overloaded: HTTP 503: out of memory",
        ),
        ("data: {\"error\":\"no such thing\"}\n\n", "refused the request: no such thing"),
        ("event: error\ndata: {\"message\":\"too long\"}\n\n", "refused the request: too long"),
        ("data: {\"choices\":[\n\n", "unusable reply: a part of the stream is not JSON"),
        ("data: \u{1b}[2J\n\n", "unusable reply: a part of the stream is not JSON"),
        ("data: [1\u{1b}\n\n", "unusable reply: a part of the stream is not JSON"),
    ] {
        let streamed = stream_chat_of(&format!("{part}{body}"));
        let actual = streamed.answer.unwrap_err().to_string();
        assert!(actual.contains(what), "{actual}");
        assert_eq!(streamed.drafts, ["Hel"]);
    }
    let refusal =
        [&delta_event(&json!({"refusal": "I w"})), &delta_event(&json!({"refusal": "on't."})), STOP].concat();
    let actual = stream_chat_of(&refusal).answer.unwrap_err();
    assert_eq!(
        actual,
        ProviderError::Refused { provider: "remote".to_owned(), detail: "I won't.".to_owned() }
    );
}

#[test]
fn of_too_many_calls_only_so_many_are_kept_that_it_is_known() {
    let many: String = (0..1000)
        .map(|index| delta_event(&json!({"tool_calls": [{"index": index, "function": {"name": "time"}}]})))
        .collect();
    assert_eq!(stream_chat_of(&format!("{many}{STOP}")).answer.unwrap().tool_calls.len(), 65);
}

#[test]
fn a_stream_that_breaks_off_is_no_answer() {
    let part = format!("{START}{}", text_event("Hel"));
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
        text_event("Hel").len(),
        text_event("Hel")
    );
    for act in [
        ServerAction::Send(part.clone()),
        ServerAction::Reset(part.clone()),
        ServerAction::Send(format!("{part}data: {{\"choices\":")),
        ServerAction::Send(chunked.clone()),
        ServerAction::Pieces(vec![chunked.into_bytes(), b"zz\r\n".to_vec()], Duration::from_millis(100)),
    ] {
        let streamed = stream_chat_with(act.clone());
        let actual = streamed.answer.unwrap_err();
        let network = matches!(actual, ProviderError::Network { .. });
        let half_event = matches!(&actual, ProviderError::Invalid { .. })
            && matches!(&act, ServerAction::Send(sent) if sent.ends_with(':'));
        assert!(network || half_event, "{act:?}: {actual}");
        assert_eq!(streamed.drafts, ["Hel"]);
    }
    // Garbage after the end is ignored.
    let whole = format!("{part}{STOP}");
    assert_eq!(final_text(stream_chat_with(ServerAction::Reset(whole.clone()))), "Hel");
    assert_eq!(final_text(stream_chat_with(ServerAction::Hang(whole))), "Hel");
    // A server that sent the end marker need not close the connection.
    assert_eq!(final_text(stream_chat_with(ServerAction::Hang(format!("{part}{DONE}")))), "Hel");
}

#[test]
fn a_stream_that_stalls_or_never_ends_is_an_error() {
    let part = format!("{START}{}", text_event("Hel"));
    let server = TestServer::start(vec![ServerAction::Hang(part.clone())]);
    let begun = Instant::now();
    let stalled =
        stream_chat(OpenAiSettings { stall_timeout: Duration::from_millis(300), ..streaming(&server) });
    assert_eq!(
        stalled.answer.unwrap_err().to_string(),
        "the connection to provider `remote` failed: the server sent nothing for 1 s within its answer (`stall_timeout`)"
    );
    assert!(begun.elapsed() >= Duration::from_millis(300));

    // Before the first byte the whole timeout applies, but no more.
    let server = TestServer::start(vec![ServerAction::Hang(START.to_owned())]);
    let short = OpenAiSettings {
        stall_timeout: Duration::from_millis(50),
        timeout: Duration::from_millis(500),
        ..streaming(&server)
    };
    let begun = Instant::now();
    let late = stream_chat(short.clone()).answer.unwrap_err();
    assert_eq!(late, ProviderError::Timeout { provider: "remote".to_owned(), seconds: 1 });
    assert!(begun.elapsed() >= Duration::from_millis(500));

    // Keep-alive messages prevent a stall, until the timeout.
    let server = TestServer::start(vec![ServerAction::Drip(format!("{part}: "))]);
    let endless = stream_chat(OpenAiSettings {
        stall_timeout: Duration::from_secs(20),
        ..OpenAiSettings { base_url: streaming(&server).base_url, ..short }
    });
    assert_eq!(endless.answer.unwrap_err(), late);

    let too_large = ProviderError::TooLarge { provider: "remote".to_owned(), limit: 1_000_000 };
    let small = |act: ServerAction| {
        let server = TestServer::start(vec![act]);
        stream_chat(OpenAiSettings { max_response_bytes: 100_000, ..streaming(&server) }).answer.unwrap_err()
    };
    assert_eq!(
        stream_chat_with(ServerAction::Flood(START.to_owned(), text_event(&"x".repeat(1000))))
            .answer
            .unwrap_err(),
        too_large
    );
    let most = ProviderError::TooLarge { provider: "remote".to_owned(), limit: 100_000 };
    for more in [
        ": ping\n\n".to_owned(),
        delta_event(&json!({})).repeat(10),
        "x".repeat(1000),
        "data: x\n".repeat(100),
    ] {
        assert_eq!(small(ServerAction::Flood(START.to_owned(), more)), most);
    }
    let arguments = delta_event(
        &json!({"tool_calls": [{"index": 0, "function": {"name": "time", "arguments": "x".repeat(500)}}]}),
    );
    assert_eq!(small(ServerAction::Flood(START.to_owned(), arguments)), most);
}

#[test]
fn a_stream_ends_when_it_is_cancelled() {
    let server = TestServer::start(vec![ServerAction::Hang(format!("{START}{}", text_event("Hel")))]);
    let cancel = CancelFlag::new().unwrap();
    let provider = OpenAiProvider::new(streaming(&server));
    // The first piece arrives before the whole answer; otherwise this would hang until the timeout.
    let mut listen = |_: DraftEvent<'_>| cancel.raise(CancelReason::Operator);
    let ended = provider.chat(&request(), &mut listen, &cancel);
    assert_eq!(ended, Err(ProviderError::Cancelled { provider: "remote".to_owned() }));
}
