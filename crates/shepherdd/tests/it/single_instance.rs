//! Two daemons at once: the second one refuses, says why, and changes nothing.

use std::path::Path;
use std::process::Output;

use crate::harness::ShepherddFixture;

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
"#;

/// A second daemon that shares something with the first.
fn run_second_daemon(household: &ShepherddFixture, data: &Path, socket: &Path) -> Output {
    let mut command = household.bare_command();
    command.arg("--policy").arg(household.policy_path());
    command.arg("--data-dir").arg(data).arg("--socket").arg(socket);
    command.output().unwrap()
}

#[test]
fn a_second_daemon_on_the_same_data_or_socket_refuses() {
    let household = ShepherddFixture::running(POLICY);
    household.launch("nap");
    let player = household.wait_for_program();
    let elsewhere = household.folder().join("elsewhere");
    for (data, socket, sentence) in [
        (
            household.data(),
            household.folder().join("other"),
            "is in use by another daemon; stop that daemon first",
        ),
        (elsewhere, household.socket(), "another daemon listens at"),
    ] {
        let refused = run_second_daemon(&household, &data, &socket);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(3), "{told}");
        assert!(told.contains(sentence), "{told}");
        assert_eq!(told.lines().filter(|line| line.contains("ERROR")).count(), 1, "{told}");
    }
    // The first one goes on as if nothing had been.
    assert_eq!(household.program_pids(), [player]);
    assert_eq!(household.state().session.map(|session| session.entry_id.to_string()), Some("nap".to_owned()));
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_taken_over() {
    let mut household = ShepherddFixture::running(POLICY);
    household.kill();
    assert!(household.socket().exists());
    household.start();
    assert!(household.end().success());
    assert!(!household.socket().exists());
}
