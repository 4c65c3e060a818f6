//! Malformed, oversized, incomplete or hostile input ends its connection, and affects no other client (S11.4).

use std::io::Write;
use std::net::Shutdown;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use serde_json::json;
use shepherd_api::ClientRole;
use shepherd_ipc::{CommandRates, ConnectionLimits, MAX_ADMIN_FRAME, MAX_FRAME};
use shepherd_util::RateLimit;

use crate::support::{FixedRole, IpcTestDaemon, RawClient, wait_until};

const HELLO: &str = r#"{"type":"hello","api_version":1,"client":"x"}"#;

/// Limits that are short enough to wait for, and long enough for a handshake on a busy machine.
fn short_timeouts() -> ConnectionLimits {
    ConnectionLimits {
        hello_timeout: Duration::from_millis(600),
        line_timeout: Duration::from_millis(600),
        idle_timeout: Duration::from_millis(600),
        write_timeout: Duration::from_millis(600),
        ..ConnectionLimits::default()
    }
}

fn daemon_with_short_timeouts() -> IpcTestDaemon {
    IpcTestDaemon::with_authorizer(short_timeouts(), FixedRole(Some(ClientRole::Admin)))
}

#[test]
fn an_invalid_message_closes_the_connection_with_a_reason() {
    let daemon = IpcTestDaemon::start();
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
        let mut raw = daemon.connect_raw();
        raw.send(sent.as_bytes());
        assert_eq!(raw.closing_code(), code, "{sent:.80}");
    }
    assert_eq!(daemon.hub.counts().protocol_errors, 9);
    daemon.assert_serves();
}

#[test]
fn bytes_that_are_not_utf8_close_the_connection() {
    let daemon = IpcTestDaemon::start();
    let mut raw = daemon.connect_raw();
    raw.send(b"\xff\xfe\x80{\"type\"\n");
    assert_eq!(raw.closing_code(), "malformed-message");
    daemon.assert_serves();
}

#[test]
fn an_invalid_request_is_answered_and_the_connection_stays_open() {
    let daemon = IpcTestDaemon::start();
    let mut raw = daemon.connect_greeted();
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
    for (role, longest) in [(ClientRole::Admin, MAX_ADMIN_FRAME), (ClientRole::Shell, MAX_FRAME)] {
        let daemon = IpcTestDaemon::with_role(role);
        let mut raw = daemon.connect_greeted();
        let empty = json!({"type": "request", "id": 1, "command": {"type": "set_policy", "text": ""}});
        let text = "#".repeat(longest - empty.to_string().len());
        let reply = raw.call(1, &json!({"type": "set_policy", "text": text}));
        assert_eq!(reply["result"]["ok"].is_object(), role == ClientRole::Admin, "{role:?}");
        raw.request(2, &json!({"type": "set_policy", "text": format!("{text}#")}));
        assert_eq!(raw.closing_code(), "message-too-large", "{role:?}");
    }
}

#[test]
fn a_line_of_100_megabytes_is_cut_off_at_once() {
    let daemon = IpcTestDaemon::start();
    let before = resident_kib();
    let mut raw = daemon.connect_greeted();
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

/// Returns the memory of this process; the daemon is one of its threads.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_silent_client_is_disconnected() {
    let daemon = daemon_with_short_timeouts();
    assert_eq!(daemon.connect_raw().closing_code(), "timed-out");
    // The idle timeout also applies after the handshake, unless the client waits for events.
    assert_eq!(daemon.connect_greeted().closing_code(), "timed-out");
    let mut subscriber = daemon.connect_greeted();
    subscriber.call(1, &json!({"type": "subscribe_events"}));
    // Twice the idle timeout passes.
    std::thread::sleep(2 * short_timeouts().idle_timeout);
    assert_eq!(subscriber.call(2, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
}

#[test]
fn a_line_that_comes_byte_by_byte_has_to_end_in_time() {
    let daemon = daemon_with_short_timeouts();
    for prepare in [IpcTestDaemon::connect_raw, IpcTestDaemon::connect_greeted, |daemon: &IpcTestDaemon| {
        let mut raw = daemon.connect_greeted();
        raw.call(1, &json!({"type": "subscribe_events"}));
        raw
    }] {
        let mut raw = prepare(&daemon);
        // The client keeps sending, but never ends the line.
        wait_until("the end of the connection", || raw.stream.write_all(b" ").is_err());
        assert_eq!(raw.closing_code(), "timed-out");
    }
    daemon.assert_serves();
}

#[test]
fn half_a_line_and_the_end_is_just_an_end() {
    let daemon = IpcTestDaemon::start();
    let mut raw = daemon.connect_greeted();
    raw.send(br#"{"type":"request","id":1"#);
    raw.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(raw.read(), None);
    wait_until("the client is forgotten", || daemon.hub.counts().clients == 0);
    assert_eq!(daemon.hub.counts().protocol_errors, 0);
}

#[test]
fn a_half_closed_connection_still_gets_its_replies() {
    // S11.1: `printf '…' | socat - UNIX-CONNECT:…`
    let daemon = IpcTestDaemon::start();
    let mut raw = daemon.connect_raw();
    let request =
        |id| format!("{{\"type\":\"request\",\"id\":{id},\"command\":{{\"type\":\"get_state\"}}}}\n");
    raw.send(format!("{HELLO}\r\n\n{}{}{}", request(1), request(2), request(3)).as_bytes());
    raw.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(raw.read().unwrap()["type"], "welcome");
    let ids: Vec<_> = std::iter::from_fn(|| raw.read()).map(|reply| reply["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3]);
}

/// Sends as many requests as the socket accepts from a client that reads nothing.
fn send_until_blocked(raw: &mut RawClient, command: &str) -> usize {
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
fn a_client_that_floods_and_never_reads_is_slowed_by_its_own_socket() {
    let limits = ConnectionLimits { write_timeout: Duration::from_secs(1), ..generous_limits() };
    let daemon = IpcTestDaemon::with_authorizer(limits, FixedRole(Some(ClientRole::Observer)));
    for command in [r#"{"type":"get_state"}"#, r#"{"type":"reload_config"}"#, r#"{"type":"fly"}"#] {
        let before = resident_kib();
        let mut raw = daemon.connect_greeted();
        let sent = send_until_blocked(&mut raw, command);
        assert!(sent < 4 * 1024 * 1024, "{sent} bytes of {command} were taken in");
        assert!(resident_kib().saturating_sub(before) < 16 * 1024);
        daemon.assert_serves();
        wait_until("the client is disconnected", || daemon.hub.counts().clients == 0);
    }
}

/// Returns rate limits that no test reaches.
fn generous_limits() -> ConnectionLimits {
    let rate = RateLimit::new(NonZeroU32::MAX, Duration::from_micros(1));
    let rates = CommandRates { cheap: rate, listings: rate, expensive: rate };
    ConnectionLimits { rates_per_client: rates, rates_per_user: rates, ..ConnectionLimits::default() }
}

#[test]
fn long_unread_replies_do_not_pile_up() {
    // Four replies don't fit into the buffer of a socket, and those of three clients exceed the limit of waiting
    // replies.
    let limits = ConnectionLimits { queued_bytes_per_user: 512 * 1024, ..generous_limits() };
    let daemon = IpcTestDaemon::with_authorizer(limits, FixedRole(Some(ClientRole::Admin)));
    let mut greedy: Vec<_> = (0..30).map(|_| daemon.connect_greeted()).collect();
    for raw in &mut greedy {
        let command = r#"{"type":"read_audit","after":null,"limit":100000}"#;
        let line = format!("{{\"type\":\"request\",\"id\":1,\"command\":{command}}}\n");
        raw.send(line.repeat(4).as_bytes());
    }
    wait_until("most are sent away", || daemon.hub.counts().clients < 10);
    assert!(daemon.hub.counts().clients > 0, "who fits in may stay");
    drop(greedy);
    wait_until("all clients are disconnected", || daemon.hub.counts().clients == 0);
    // Unread replies of closed connections don't count for the next client.
    let reply =
        daemon.connect_greeted().call(1, &json!({"type": "read_audit", "after": null, "limit": 500_000}));
    assert_eq!(reply["result"]["ok"]["type"], "metrics");
}

#[test]
fn too_many_commands_are_answered_with_when_to_come_back() {
    let few = RateLimit::new(NonZeroU32::new(3).unwrap(), Duration::from_secs(1));
    let of_client = CommandRates { cheap: few, listings: few, expensive: few };
    let daemon = IpcTestDaemon::with_authorizer(
        ConnectionLimits { rates_per_client: of_client, ..ConnectionLimits::default() },
        FixedRole(Some(ClientRole::Admin)),
    );
    let mut raw = daemon.connect_greeted();
    let started = Instant::now();
    for id in 0..3 {
        assert_eq!(raw.call(id, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    }
    let refused = raw.call(3, &json!({"type": "get_state"}));
    assert_eq!(refused["result"]["err"]["code"], "rate-limited", "{refused}");
    let wait = refused["result"]["err"]["retry_after"].as_u64().unwrap();
    assert!(wait <= 1_000, "{refused}");
    // The next request is not even read before its turn, and then it is answered.
    assert_eq!(raw.call(4, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    assert!(started.elapsed() >= Duration::from_millis(wait));
    // Commands that change something have their own limit, and other clients have theirs.
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
    let of_user = CommandRates { cheap: few, listings: few, expensive: few };
    let daemon = IpcTestDaemon::with_authorizer(
        ConnectionLimits { rates_per_user: of_user, ..ConnectionLimits::default() },
        FixedRole(Some(ClientRole::Admin)),
    );
    let mut answered = 0;
    for _ in 0..20 {
        let reply = daemon.connect_greeted().call(1, &json!({"type": "get_state"}));
        answered += usize::from(reply["result"]["ok"].is_object());
    }
    assert_eq!(answered, 10);
}

#[test]
fn heavy_a_flood_delays_nobody_for_long() {
    // S13.4: a client that floods the daemon gets its share and no more.
    let daemon = IpcTestDaemon::with_authorizer(generous_limits(), FixedRole(Some(ClientRole::Admin)));
    let mut flooders: Vec<_> = (0..8).map(|_| daemon.connect_greeted()).collect();
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
        let mut patient = daemon.connect_greeted();
        for id in 0..50 {
            let started = Instant::now();
            patient.call(id, &json!({"type": "get_state"}));
            assert!(started.elapsed() < Duration::from_secs(5));
        }
    });
}
