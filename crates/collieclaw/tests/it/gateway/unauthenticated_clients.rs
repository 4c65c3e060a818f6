//! Clients without a token can't block authorised clients, least of all the emergency stop (C5.3, C11).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::json;

use super::support::{TestGateway, read_reply};
use crate::support::wait_until;

const STRANGERS: usize = 600;

/// The number of rounds after which the attackers hold as many connections as they can get.
const SETTLING: usize = 2;

/// The time between two rounds of an attack.
const ROUND_INTERVAL: Duration = Duration::from_millis(200);

/// A generous limit, shorter than the attackers hold their connections.
const SOON: Duration = Duration::from_secs(30);

/// A client that holds a connection as long as possible: with requests that need no token, or with an incomplete request.
struct UnauthenticatedClient {
    port: u16,
    asks: &'static str,
    stream: Option<TcpStream>,
}

impl UnauthenticatedClient {
    fn keep_busy(&mut self) {
        let mut there = self.stream.take().or_else(|| {
            let stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
            stream.set_nonblocking(true).ok()?;
            Some(stream)
        });
        let asked = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}", self.port, self.asks);
        let mut buffer = [0; 4096];
        if let Some(stream) = &mut there {
            let lives = match stream.read(&mut buffer) {
                Ok(0) => false,
                Ok(_) => true,
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            };
            let lives = lives && stream.write_all(asked.as_bytes()).is_ok();
            self.stream = there.filter(|_| lives);
        }
    }
}

#[test]
fn the_stop_works_while_strangers_hold_connections() {
    for asks in [["\r\n", "\r\n"], ["\r\n", "X-Half: "]] {
        check_estop_among(asks);
    }
}

fn check_estop_among(asks: [&'static str; 2]) {
    let gateway = TestGateway::new();
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Dropping the sender ends the attack, also if this test fails.
        let (attack, end_of_attack) = channel::<()>();
        let (port, rounds) = (gateway.port, &rounds);
        scope.spawn(move || {
            let mut strangers: Vec<UnauthenticatedClient> = (0..STRANGERS)
                .map(|number| UnauthenticatedClient { port, asks: asks[number % 2], stream: None })
                .collect();
            while end_of_attack.recv_timeout(ROUND_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                strangers.iter_mut().for_each(UnauthenticatedClient::keep_busy);
                rounds.fetch_add(1, Ordering::SeqCst);
            }
        });
        wait_until("the attackers hold connections", || rounds.load(Ordering::SeqCst) > SETTLING);
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(SOON));
        let agent = config.build().new_agent();
        let stopped = agent
            .post(gateway.url("/estop"))
            .header("Authorization", gateway.bearer())
            .send_empty()
            .map(|answer| read_reply(Ok(answer)).json());
        drop(attack);
        assert_eq!(stopped.unwrap(), json!({ "active": true, "was_active": false }));
    });
    assert_eq!(gateway.get("/status").json()["estop"], true);
}

#[test]
fn a_stranger_gets_an_answer_and_is_disconnected() {
    let gateway = TestGateway::new();
    for path in ["/health", "/", "/status", "/nothing"] {
        // Reads until the gateway closes, although the client didn't ask for that.
        let answer = gateway
            .send_raw(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", gateway.port).as_bytes());
        assert!(answer.to_lowercase().contains("connection: close\r\n"), "{path}: {answer}");
    }
    // With the token, the connection is kept open.
    let known = gateway.send_with_headers("GET", "/health", &[], "");
    assert_eq!(known.to_lowercase().matches("connection: close").count(), 1, "we have asked for it: {known}");
}
