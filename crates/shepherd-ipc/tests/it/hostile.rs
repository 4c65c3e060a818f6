//! Malformed, oversized, half-sent or hostile input costs the sender its connection, and nobody else anything (S11.4).

use std::io::Write;
use std::net::Shutdown;
use std::num::NonZeroU32;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use shepherd_api::Role;
use shepherd_ipc::{Limits, MAX_ADMIN_FRAME, MAX_FRAME, Rates};
use shepherd_util::RateLimit;

use crate::support::{Daemon, Everybody, Raw, eventually};

const HELLO: &str = r#"{"type":"hello","api_version":1,"client":"x"}"#;

/// Limits for whoever does not want to wait.
fn impatient() -> Limits {
    Limits {
        hello_patience: Duration::from_millis(300),
        line_patience: Duration::from_millis(300),
        idle_patience: Duration::from_millis(300),
        write_patience: Duration::from_millis(300),
        ..Limits::default()
    }
}

fn impatient_daemon() -> Daemon {
    Daemon::with(impatient(), Everybody(Some(Role::Admin)))
}

#[test]
fn what_is_no_message_ends_the_connection_with_its_reason() {
    let daemon = Daemon::start();
    let request = r#"{"type":"request","id":1,"command":{"type":"get_state"}}"#;
    for (sent, code) in [
        ("hello\n".to_owned(), "malformed-message"),
        ("{}\n".to_owned(), "malformed-message"),
        ("[1,2]\n".to_owned(), "malformed-message"),
        ("\u{0}\u{1}\u{2}\n".to_owned(), "malformed-message"),
        (format!("{}\n", "[".repeat(10_000)), "malformed-message"),
        (format!("{request}\n"), "handshake-expected"),
        (format!("{HELLO}\n{HELLO}\n"), "handshake-expected"),
        (format!("{HELLO}\n{{\"type\":\"goodbye\"}}\n"), "malformed-message"),
        (
            r#"{"type":"hello","api_version":99,"oldest_api_version":98,"client":"x"}"#.to_owned() + "\n",
            "unsupported-version",
        ),
    ] {
        let mut raw = daemon.raw();
        raw.send(sent.as_bytes());
        assert_eq!(raw.closing_code(), code, "{sent:.80}");
    }
    assert_eq!(daemon.hub.counts().faults, 9);
    daemon.assert_serves();
}

#[test]
fn bytes_that_are_no_text_are_no_message_either() {
    let daemon = Daemon::start();
    let mut raw = daemon.raw();
    raw.send(b"\xff\xfe\x80{\"type\"\n");
    assert_eq!(raw.closing_code(), "malformed-message");
    daemon.assert_serves();
}

#[test]
fn a_request_that_can_not_be_read_is_answered_and_the_connection_goes_on() {
    let daemon = Daemon::start();
    let mut raw = daemon.greeted();
    for (command, code) in [
        (json!({"type": "fly"}), "unknown-command"),
        (json!({"type": "get_state", "twice": true}), "invalid-command"),
        (json!({"type": "launch"}), "invalid-command"),
    ] {
        let reply = raw.call(5, &command);
        assert_eq!(reply["result"]["err"]["code"], code, "{reply}");
    }
    assert_eq!(raw.call(6, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
}

#[test]
fn a_line_may_be_long_for_an_administrator_and_short_for_all_others() {
    for (role, longest) in [(Role::Admin, MAX_ADMIN_FRAME), (Role::Shell, MAX_FRAME)] {
        let daemon = Daemon::with_role(role);
        let mut raw = daemon.greeted();
        let empty = json!({"type": "request", "id": 1, "command": {"type": "set_policy", "text": ""}});
        let text = "#".repeat(longest - empty.to_string().len());
        let reply = raw.call(1, &json!({"type": "set_policy", "text": text}));
        assert_eq!(reply["result"]["ok"].is_object(), role == Role::Admin, "{role:?}");
        raw.request(2, &json!({"type": "set_policy", "text": format!("{text}#")}));
        assert_eq!(raw.closing_code(), "message-too-large", "{role:?}");
    }
}

#[test]
fn a_line_of_100_megabytes_is_cut_off_at_once() {
    let daemon = Daemon::start();
    let before = resident_kib();
    let mut raw = daemon.greeted();
    let piece = vec![b'x'; 1024 * 1024];
    let mut sent = 0;
    while sent < 100 && raw.stream.write_all(&piece).is_ok() {
        sent += 1;
    }
    assert!(sent < 3, "{sent} MiB were taken in");
    assert_eq!(raw.closing_code(), "message-too-large");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more for a line that was refused");
    daemon.assert_serves();
}

/// What this process, which the daemon is a thread of, has in memory.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn whoever_says_nothing_is_sent_away() {
    let daemon = impatient_daemon();
    assert_eq!(daemon.raw().closing_code(), "timed-out");
    // After the handshake, too, unless it waits for events.
    assert_eq!(daemon.greeted().closing_code(), "timed-out");
    let mut subscriber = daemon.greeted();
    subscriber.call(1, &json!({"type": "subscribe_events"}));
    sleep(Duration::from_millis(900));
    assert_eq!(subscriber.call(2, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
}

#[test]
fn a_line_that_comes_byte_by_byte_has_to_end_in_time() {
    let daemon = impatient_daemon();
    for prepare in [Daemon::raw, Daemon::greeted, |daemon: &Daemon| {
        let mut raw = daemon.greeted();
        raw.call(1, &json!({"type": "subscribe_events"}));
        raw
    }] {
        let mut raw = prepare(&daemon);
        let started = Instant::now();
        // Every byte is a sign of life, but none ends the line.
        while raw.stream.write_all(b" ").is_ok() {
            assert!(started.elapsed() < Duration::from_secs(10), "it may go on like this for ever");
            sleep(Duration::from_millis(20));
        }
        assert_eq!(raw.closing_code(), "timed-out");
    }
    daemon.assert_serves();
}

#[test]
fn half_a_line_and_the_end_is_just_an_end() {
    let daemon = Daemon::start();
    let mut raw = daemon.greeted();
    raw.send(br#"{"type":"request","id":1"#);
    raw.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(raw.read(), None);
    eventually("the client is forgotten", || daemon.hub.counts().clients == 0);
    assert_eq!(daemon.hub.counts().faults, 0);
}

#[test]
fn whoever_asks_and_then_sends_no_more_is_still_answered() {
    // S11.1: `printf '…' | socat - UNIX-CONNECT:…`
    let daemon = Daemon::start();
    let mut raw = daemon.raw();
    let request =
        |id| format!("{{\"type\":\"request\",\"id\":{id},\"command\":{{\"type\":\"get_state\"}}}}\n");
    raw.send(format!("{HELLO}\r\n\n{}{}{}", request(1), request(2), request(3)).as_bytes());
    raw.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(raw.read().unwrap()["type"], "welcome");
    let ids: Vec<_> = std::iter::from_fn(|| raw.read()).map(|reply| reply["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3]);
}

/// As many requests as the socket takes from a client that reads nothing.
fn fill(raw: &mut Raw, command: &str) -> usize {
    raw.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let line = format!("{{\"type\":\"request\",\"id\":1,\"command\":{command}}}\n");
    let block = line.repeat(64);
    let mut sent = 0;
    while sent < 100_000_000 && raw.stream.write_all(block.as_bytes()).is_ok() {
        sent += block.len();
    }
    sent
}

#[test]
fn a_client_that_floods_and_never_reads_is_held_back_by_its_own_socket() {
    let limits = Limits { write_patience: Duration::from_secs(1), ..generous() };
    let daemon = Daemon::with(limits, Everybody(Some(Role::Observer)));
    for command in [r#"{"type":"get_state"}"#, r#"{"type":"reload_config"}"#, r#"{"type":"fly"}"#] {
        let before = resident_kib();
        let mut raw = daemon.greeted();
        let sent = fill(&mut raw, command);
        assert!(sent < 4 * 1024 * 1024, "{sent} bytes of {command} were taken in");
        assert!(resident_kib().saturating_sub(before) < 16 * 1024);
        daemon.assert_serves();
        eventually("it is sent away", || daemon.hub.counts().clients == 0);
    }
}

/// Rates that no test reaches.
fn generous() -> Limits {
    let rate = RateLimit::new(NonZeroU32::MAX, Duration::from_micros(1));
    let rates = Rates { looks: rate, surveys: rate, acts: rate };
    Limits { of_client: rates, of_user: rates, ..Limits::default() }
}

#[test]
fn long_answers_that_nobody_reads_do_not_pile_up() {
    // Four answers do not fit into a socket's buffer, and those of three clients not into what may wait.
    let limits = Limits { queued_bytes_of_one_user: 512 * 1024, ..generous() };
    let daemon = Daemon::with(limits, Everybody(Some(Role::Admin)));
    let mut greedy: Vec<_> = (0..30).map(|_| daemon.greeted()).collect();
    for raw in &mut greedy {
        let command = r#"{"type":"read_audit","after":null,"limit":100000}"#;
        let line = format!("{{\"type\":\"request\",\"id\":1,\"command\":{command}}}\n");
        raw.send(line.repeat(4).as_bytes());
    }
    eventually("most are sent away", || daemon.hub.counts().clients < 10);
    assert!(daemon.hub.counts().clients > 0, "who fits in may stay");
    drop(greedy);
    eventually("all are gone", || daemon.hub.counts().clients == 0);
    // What they had not read is not held against the next one.
    let reply = daemon.greeted().call(1, &json!({"type": "read_audit", "after": null, "limit": 500_000}));
    assert_eq!(reply["result"]["ok"]["type"], "metrics");
}

#[test]
fn too_many_commands_are_answered_with_when_to_come_back() {
    let few = RateLimit::new(NonZeroU32::new(3).unwrap(), Duration::from_millis(200));
    let of_client = Rates { looks: few, surveys: few, acts: few };
    let daemon = Daemon::with(Limits { of_client, ..Limits::default() }, Everybody(Some(Role::Admin)));
    let mut raw = daemon.greeted();
    let started = Instant::now();
    for id in 0..3 {
        assert_eq!(raw.call(id, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    }
    let refused = raw.call(3, &json!({"type": "get_state"}));
    assert_eq!(refused["result"]["err"]["code"], "rate-limited", "{refused}");
    let wait = refused["result"]["err"]["retry_after"].as_u64().unwrap();
    assert!(wait <= 200, "{refused}");
    // The next one is not even read before it is its turn, and then it is heard.
    assert_eq!(raw.call(4, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    assert!(started.elapsed() >= Duration::from_millis(wait));
    // Commands that act have a limit of their own, and other clients theirs.
    assert_eq!(
        raw.call(5, &json!({"type": "set_policy", "text": ""}))["result"]["ok"]["type"],
        "policy_applied"
    );
    daemon.assert_serves();
    assert_eq!(daemon.hub.counts().rate_limited, 1);
}

#[test]
fn more_connections_do_not_make_a_user_faster() {
    let few = RateLimit::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(60));
    let of_user = Rates { looks: few, surveys: few, acts: few };
    let daemon = Daemon::with(Limits { of_user, ..Limits::default() }, Everybody(Some(Role::Admin)));
    let mut answered = 0;
    for _ in 0..20 {
        let reply = daemon.greeted().call(1, &json!({"type": "get_state"}));
        answered += usize::from(reply["result"]["ok"].is_object());
    }
    assert_eq!(answered, 10);
}

#[test]
fn a_flood_delays_nobody_for_long() {
    // S13.4: whoever floods gets its turns and no more.
    let daemon = Daemon::with(generous(), Everybody(Some(Role::Admin)));
    let mut flooders: Vec<_> = (0..8).map(|_| daemon.greeted()).collect();
    std::thread::scope(|scope| {
        for raw in &mut flooders {
            scope.spawn(move || {
                for round in 0..200 {
                    let line = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"get_state\"}}\n";
                    raw.send(line.repeat(4).as_bytes());
                    for _ in 0..4 {
                        assert_eq!(raw.read().unwrap()["id"], 1, "round {round}");
                    }
                }
            });
        }
        let mut patient = daemon.greeted();
        for id in 0..50 {
            let started = Instant::now();
            patient.call(id, &json!({"type": "get_state"}));
            assert!(started.elapsed() < Duration::from_secs(5));
        }
    });
}
