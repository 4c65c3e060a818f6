//! Clients without a token can't block authorised clients, least of all the emergency stop (C5.3, C11).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{TestGateway, read_reply};
use crate::support::TEST_TIMEOUT;

const STRANGERS: usize = 600;

/// The number of rounds after which the attackers hold as many connections as they can get.
const SETTLING: usize = 2;

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
        let mut heard = [0; 4096];
        if let Some(stream) = &mut there {
            let lives = match stream.read(&mut heard) {
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
fn the_stop_gets_through_whatever_strangers_hold() {
    for asks in [["\r\n", "\r\n"], ["\r\n", "X-Half: "]] {
        check_estop_among(asks);
    }
}

fn check_estop_among(asks: [&'static str; 2]) {
    let gateway = TestGateway::new();
    let (rounds, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let port = gateway.port;
            let mut strangers: Vec<UnauthenticatedClient> = (0..STRANGERS)
                .map(|number| UnauthenticatedClient { port, asks: asks[number % 2], stream: None })
                .collect();
            let mut patience = None;
            while over.load(Ordering::SeqCst) == 0 && patience.is_none_or(|end| Instant::now() < end) {
                strangers.iter_mut().for_each(UnauthenticatedClient::keep_busy);
                if rounds.fetch_add(1, Ordering::SeqCst) == SETTLING {
                    patience = Some(Instant::now() + TEST_TIMEOUT);
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let enough = Instant::now() + TEST_TIMEOUT;
        while rounds.load(Ordering::SeqCst) <= SETTLING && Instant::now() < enough {
            std::thread::sleep(Duration::from_millis(20));
        }
        if rounds.load(Ordering::SeqCst) <= SETTLING {
            over.store(1, Ordering::SeqCst);
            panic!("the strangers do not come");
        }
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(SOON));
        let agent = config.build().new_agent();
        let stopped = agent
            .post(gateway.url("/estop"))
            .header("Authorization", gateway.bearer())
            .send_empty()
            .map(|answer| read_reply(Ok(answer)).json());
        over.store(1, Ordering::SeqCst);
        assert_eq!(stopped.unwrap(), json!({ "active": true, "was_active": false }));
    });
    assert_eq!(gateway.get("/status").json()["estop"], true);
}

#[test]
fn a_stranger_is_answered_and_sent_away() {
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
