//! What can be counted (S13.2): every figure moves with what it counts.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use rustix::process::geteuid;
use shepherd_api::{AdminPin, Command, CommandReply, ErrorCode};
use shepherd_ipc::CallError;

use crate::harness::{ShepherddFixture, wait_until};

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "1s"
warnings = []
"#;

fn figure(household: &ShepherddFixture, name: &str) -> u64 {
    let text = household.metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("shepherd_{name} ")));
    line.unwrap_or_else(|| panic!("{name} in\n{text}")).parse().unwrap()
}

/// A client that sends what is no message, and reads why that was its end.
fn send_malformed_message(household: &ShepherddFixture) {
    let mut stream = UnixStream::connect(household.socket()).unwrap();
    stream.write_all(b"nonsense\n").unwrap();
    let mut why = String::new();
    stream.read_to_string(&mut why).unwrap();
    assert!(why.contains("malformed-message"), "{why}");
}

#[test]
fn every_figure_moves_with_what_it_counts() {
    let household = ShepherddFixture::running(POLICY);
    let at_first = figure(&household, "connections_accepted_total");
    let listeners = [household.subscriber(), household.subscriber()];
    assert_eq!(figure(&household, "subscribers"), 2);
    assert_eq!(figure(&household, "clients"), 3, "and the one that asks");
    assert_eq!(figure(&household, "connections_accepted_total"), at_first + 5);
    drop(listeners);
    wait_until("they are gone", || figure(&household, "subscribers") == 0);
    send_malformed_message(&household);
    assert_eq!(figure(&household, "connections_ended_total"), 1);
    household.launch("nap");
    assert_eq!(figure(&household, "session_running"), 1);
    household.wait_until_idle();
    for name in ["launches_approved", "sessions_started", "expiries", "sessions_ended"] {
        assert_eq!(figure(&household, &format!("{name}_total")), 1, "{name}");
    }
    household.refusal("nothing");
    assert_eq!(figure(&household, "launches_denied_total"), 1);
    assert_eq!(figure(&household, "entries"), 1);
    for quiet in ["connections_failed", "events_left_out", "log_lines_lost", "store_failures", "warnings"] {
        assert_eq!(figure(&household, &format!("{quiet}_total")), 0, "{quiet}");
    }
}

#[test]
fn what_is_refused_is_counted() {
    let household = ShepherddFixture::running(POLICY);
    let pin: AdminPin = "2468".to_owned().try_into().unwrap();
    let refused = figure(&household, "commands_refused_total");
    if geteuid().is_root() {
        // No PIN stops root, but a stranger is not even let in.
        std::fs::set_permissions(household.folder(), Permissions::from_mode(0o755)).unwrap();
        crate::roles::as_user(&household, 65_005, |client| assert!(client.is_err()));
        assert_eq!(figure(&household, "connections_turned_away_total"), 1);
    } else {
        household.call(Command::SetPin { pin: Some(pin) }).unwrap();
        assert!(household.call(Command::SetPin { pin: None }).is_err());
    }
    assert_eq!(figure(&household, "commands_refused_total"), refused + 1);
    let mut client = household.client();
    let is_too_fast = |outcome: Result<CommandReply, CallError>| matches!(outcome, Err(CallError::Refused(error)) if error.code == ErrorCode::RateLimited);
    let too_fast = (0..400).filter(|_| is_too_fast(client.call(Command::ListGrants {}))).count();
    assert!(too_fast > 0);
    assert_eq!(figure(&household, "commands_rate_limited_total"), too_fast as u64);
}
