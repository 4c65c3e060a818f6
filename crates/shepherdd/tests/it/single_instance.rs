//! A second daemon on the same data or socket: it exits with a reason, and changes nothing.

use std::path::Path;
use std::process::Output;

use crate::harness::{ShepherddFixture, policy, sleep_entry};

const POLICY: &str = policy!(sleep_entry!("nap", ""));

/// Runs a second daemon until it exits.
fn run_second_daemon(fixture: &ShepherddFixture, data: &Path, socket: &Path) -> Output {
    let mut command = fixture.bare_command();
    command.arg("--policy").arg(fixture.policy_path());
    command.arg("--data-dir").arg(data).arg("--socket").arg(socket);
    command.output().unwrap()
}

#[test]
fn a_second_daemon_on_the_same_data_or_socket_refuses() {
    let fixture = ShepherddFixture::running(POLICY);
    fixture.launch("nap");
    let player = fixture.wait_for_program();
    let elsewhere = fixture.folder().join("elsewhere");
    for (data, socket, sentence) in [
        (
            fixture.data(),
            fixture.folder().join("other"),
            "is in use by another daemon; stop that daemon first",
        ),
        (elsewhere, fixture.socket(), "another daemon listens at"),
    ] {
        let refused = run_second_daemon(&fixture, &data, &socket);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(3), "{message}");
        assert!(message.contains(sentence), "{message}");
        assert_eq!(message.lines().filter(|line| line.contains("ERROR")).count(), 1, "{message}");
    }
    // The first daemon goes on.
    assert_eq!(fixture.program_pids(), [player]);
    assert_eq!(fixture.state().session.map(|session| session.entry_id.to_string()), Some("nap".to_owned()));
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_taken_over() {
    let mut fixture = ShepherddFixture::running(POLICY);
    fixture.kill();
    assert!(fixture.socket().exists());
    fixture.start();
    assert!(fixture.end().success());
    assert!(!fixture.socket().exists());
}
