//! The metrics (S13.2).

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use rustix::process::geteuid;
use shepherd_api::{AdminPin, Command};

use crate::harness::{ShepherddFixture, policy, sleep_entry, wait_until};

const POLICY: &str = policy!(sleep_entry!(
    "nap",
    r#"max_run = "3s"
warnings = []"#
));

fn figure(fixture: &ShepherddFixture, name: &str) -> u64 {
    let text = fixture.metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("shepherd_{name} ")));
    line.unwrap_or_else(|| panic!("{name} in\n{text}")).parse().unwrap()
}

/// Sends a malformed message, and checks the reason with which the daemon closes the connection.
fn send_malformed_message(fixture: &ShepherddFixture) {
    let mut stream = UnixStream::connect(fixture.socket()).unwrap();
    stream.write_all(b"nonsense\n").unwrap();
    let mut why = String::new();
    stream.read_to_string(&mut why).unwrap();
    assert!(why.contains("malformed-message"), "{why}");
}

#[test]
fn every_counter_follows_its_events() {
    let fixture = ShepherddFixture::running(POLICY);
    let at_first = figure(&fixture, "connections_accepted_total");
    let listeners = [fixture.subscriber(), fixture.subscriber()];
    assert_eq!(figure(&fixture, "subscribers"), 2);
    assert_eq!(figure(&fixture, "clients"), 3, "two subscribers and this client");
    assert_eq!(figure(&fixture, "connections_accepted_total"), at_first + 5);
    drop(listeners);
    wait_until("the subscribers are gone", || figure(&fixture, "subscribers") == 0);
    send_malformed_message(&fixture);
    assert_eq!(figure(&fixture, "connections_ended_total"), 1);
    fixture.launch("nap");
    assert_eq!(figure(&fixture, "session_running"), 1);
    fixture.wait_until_idle();
    for name in ["launches_approved", "sessions_started", "expiries", "sessions_ended"] {
        assert_eq!(figure(&fixture, &format!("{name}_total")), 1, "{name}");
    }
    fixture.refusal("nothing");
    assert_eq!(figure(&fixture, "launches_denied_total"), 1);
    assert_eq!(figure(&fixture, "entries"), 1);
    for quiet in ["connections_failed", "events_left_out", "log_lines_lost", "store_failures", "warnings"] {
        assert_eq!(figure(&fixture, &format!("{quiet}_total")), 0, "{quiet}");
    }
}

#[test]
fn refusals_are_counted() {
    let fixture = ShepherddFixture::running(POLICY);
    let pin: AdminPin = "2468".to_owned().try_into().unwrap();
    let refused = figure(&fixture, "commands_refused_total");
    if geteuid().is_root() {
        // Root needs no PIN, but another user is refused at the connection.
        std::fs::set_permissions(fixture.folder(), Permissions::from_mode(0o755)).unwrap();
        crate::roles::as_user(&fixture, 65_005, |client| assert!(client.is_err()));
        assert_eq!(figure(&fixture, "connections_turned_away_total"), 1);
    } else {
        fixture.call(Command::SetPin { pin: Some(pin) }).unwrap();
        assert!(fixture.call(Command::SetPin { pin: None }).is_err());
    }
    assert_eq!(figure(&fixture, "commands_refused_total"), refused + 1);
    // All requests are sent before an answer is read, or a busy machine would slow them down to the allowed rate.
    let hello = r#"{"type":"hello","api_version":1,"client":"test"}"#;
    let request =
        |id: u32| format!("{{\"type\":\"request\",\"id\":{id},\"command\":{{\"type\":\"list_grants\"}}}}\n");
    let requests: String = (0..400).map(request).collect();
    let mut stream = UnixStream::connect(fixture.socket()).unwrap();
    stream.write_all(format!("{hello}\n{requests}").as_bytes()).unwrap();
    let answers = BufReader::new(stream).lines().map(Result::unwrap).skip(1).take(400);
    let too_fast = answers.filter(|answer| answer.contains("rate-limited")).count();
    assert!(too_fast > 0);
    assert_eq!(figure(&fixture, "commands_rate_limited_total"), too_fast as u64);
}
