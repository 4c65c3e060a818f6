//! Clients that leave while their turn goes on take it with them, however they leave (C5.3, C11).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::support::Gateway;
use crate::support::{House, own_sleep, sleeps, until_sleeps};

/// A gateway whose model has a command run for so long.
fn sleeping(seconds: &str) -> Gateway {
    let fixture = format!(
        "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = {{ command = \"sleep {seconds}\" }}\n[[round]]\ntext = \"so\"\n"
    );
    Gateway::of(House::new().with("autonomy = \"supervised\"", "autonomy = \"full\"").says(&fixture))
}

/// Asks for a turn, sends more than that, and returns when the command runs.
fn asks(gateway: &Gateway, accept: &str, more: &str, seconds: &str) -> TcpStream {
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
    until_sleeps(seconds);
    stream
}

fn is_cancelled(gateway: &Gateway, seconds: &str) {
    gateway.until("the turn is over", |gateway| gateway.get("/status").json()["turns"]["open"] == 0);
    assert!(!sleeps(seconds));
    assert_eq!(gateway.house.receipt_words(), [["shell", "failed", "cancelled"]]);
}

#[test]
fn a_client_that_has_sent_more_than_its_request_and_leaves_cancels_its_turn() {
    let accepts = ["application/json", "text/event-stream"];
    let more = ["", "x", "GET /status HTTP/1.1\r\n\r\n"];
    for (number, (accept, more)) in
        (1..).zip(accepts.iter().flat_map(|accept| more.map(|more| (accept, more))))
    {
        let seconds = own_sleep(number);
        let gateway = sleeping(&seconds);
        let stream = asks(&gateway, accept, more, &seconds);
        drop(stream);
        is_cancelled(&gateway, &seconds);
    }
}

/// Nobody shuts down its own side while it still waits; who does is told.
#[test]
fn a_client_that_shuts_down_its_side_is_taken_as_gone_and_told_so() {
    let seconds = own_sleep(7);
    let gateway = sleeping(&seconds);
    let mut stream = asks(&gateway, "application/json", "x", &seconds);
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("\"cancelled\""), "{answer}");
    is_cancelled(&gateway, &seconds);

    // What is answered at once is answered.
    let mut stream = gateway.connect();
    let head = format!("GET /status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gateway.port);
    stream.write_all(format!("{head}Authorization: {}\r\n\r\n", gateway.bearer()).as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
