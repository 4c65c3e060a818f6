//! A thousand clients at once: all are answered or told to retry, and memory use stays bounded (C5.3).

use std::io::{Read, Write};

use super::support::TestGateway;
use crate::support::TestAgent;

const CROWD: usize = 1_000;

/// There are more clients than connections: on a busy machine, a client that is too slow is disconnected and tries again.
const TRIES: usize = 20;

/// Sends the same request from every client at the same time, and returns the responses.
fn send_concurrently(gateway: &TestGateway, request: &str) -> Vec<String> {
    let asked = || {
        let mut stream = gateway.connect();
        let mut answer = String::new();
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        Some(answer).filter(|answer| !answer.is_empty())
    };
    let one = || (0..TRIES).find_map(|_| asked()).unwrap_or_default();
    std::thread::scope(|scope| {
        let builder = || std::thread::Builder::new().stack_size(128 << 10);
        let all: Vec<_> = (0..CROWD).map(|_| builder().spawn_scoped(scope, one).unwrap()).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn request_head(gateway: &TestGateway, line: &str) -> String {
    let (port, bearer) = (gateway.port, gateway.bearer());
    format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: {bearer}\r\n")
}

fn status_of(answer: &str) -> &str {
    answer.split_whitespace().nth(1).unwrap_or("nothing")
}

#[test]
fn a_thousand_at_once_are_all_answered() {
    let gateway = TestGateway::new();
    let answers = send_concurrently(&gateway, &format!("{}\r\n", request_head(&gateway, "GET /status")));
    let statuses: Vec<&str> = answers.iter().map(|answer| status_of(answer)).collect();
    assert!(statuses.iter().all(|status| *status == "200"), "{statuses:?}");
}

/// Returns the peak memory use in megabytes.
fn peak_resident_megabytes(gateway: &TestGateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() >> 10
}

/// Without optimisation and with all turns open. Memory that grows with the number of clients would exceed it by far.
const MEGABYTES: u64 = 256;

#[test]
fn a_thousand_chats_at_once_are_answered_or_put_off_and_the_chain_holds() {
    let test_agent = TestAgent::new()
        .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"so\"\n")
        .with_config_change("max_chats = 4", "max_chats = 16")
        .with_config_change("chats_per_minute = 60", "chats_per_minute = 600");
    let gateway = TestGateway::start_in(test_agent);
    let body = "{\"message\":\"what time is it?\"}";
    let head = format!("{}Content-Type: application/json\r\n", request_head(&gateway, "POST /chat"));
    let answers = send_concurrently(&gateway, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
    let answered = answers.iter().filter(|answer| status_of(answer) == "200").count();
    for answer in &answers {
        match status_of(answer) {
            "200" => assert!(answer.contains("\"answer\":\"so\""), "{answer}"),
            "429" | "503" => assert!(answer.to_lowercase().contains("\r\nretry-after: "), "{answer}"),
            _ => panic!("neither an answer nor a word when to come again: {answer:?}"),
        }
    }
    assert!(answered >= 16, "{answered}");
    let held = peak_resident_megabytes(&gateway);
    assert!(held < MEGABYTES, "{held} MB");

    gateway.wait_for_end_of_turns();
    let verify = gateway.test_agent.run(&["receipt", "verify", "--output", "json"]);
    assert_eq!((verify.code, verify.json()["records"].as_u64()), (0, Some(answered as u64)), "{verify:?}");
    assert_eq!(gateway.get("/receipts").json()["chain"]["valid"], true);
}
