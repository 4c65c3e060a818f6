//! A client that disconnects cancels its turn, however it disconnects (C5.3, C11).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::support::TestGateway;
use crate::support::{TestAgent, is_sleep_running, unique_sleep_seconds, wait_for_sleep};

/// Starts a gateway whose model runs a command of this length.
fn start_sleeping_gateway(seconds: &str) -> TestGateway {
    TestGateway::start_in(TestAgent::new().with_sleeping_model(seconds))
}

/// Requests a turn, sends extra bytes, and returns once the command runs.
fn start_turn(gateway: &TestGateway, accept: &str, more: &str, seconds: &str) -> TcpStream {
    let mut stream = gateway.connect();
    let body = "{\"message\":\"wait\"}";
    let head = format!(
        "POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: {}\r\nAccept: {accept}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        gateway.port,
        gateway.bearer(),
        body.len()
    );
    stream.write_all(format!("{head}{body}{more}").as_bytes()).unwrap();
    wait_for_sleep(seconds);
    stream
}

fn assert_cancelled(gateway: &TestGateway, seconds: &str) {
    gateway.wait_for_end_of_turns();
    assert!(!is_sleep_running(seconds));
    assert_eq!(gateway.test_agent.receipt_summaries(), [["shell", "failed", "cancelled"]]);
}

#[test]
fn a_client_that_has_sent_more_than_its_request_and_leaves_cancels_its_turn() {
    let accepts = ["application/json", "text/event-stream"];
    let more = ["", "x", "GET /status HTTP/1.1\r\n\r\n"];
    for (accept, more) in accepts.iter().flat_map(|accept| more.map(|more| (accept, more))) {
        let seconds = unique_sleep_seconds();
        let gateway = start_sleeping_gateway(&seconds);
        let stream = start_turn(&gateway, accept, more, &seconds);
        drop(stream);
        assert_cancelled(&gateway, &seconds);
    }
}

/// A client that closes only its sending side still gets the answer.
#[test]
fn a_client_that_shuts_down_its_side_counts_as_disconnected() {
    let seconds = unique_sleep_seconds();
    let gateway = start_sleeping_gateway(&seconds);
    let mut stream = start_turn(&gateway, "application/json", "x", &seconds);
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("\"cancelled\""), "{answer}");
    assert_cancelled(&gateway, &seconds);

    // Requests that are answered at once are answered.
    let mut stream = gateway.connect();
    let head = format!("GET /status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gateway.port);
    stream.write_all(format!("{head}Authorization: {}\r\n\r\n", gateway.bearer()).as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
