//! `shepherd pam-check`, as `pam_exec` runs it before a log-in (S19.2).

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use shepherd_api::LOGIN_WITHOUT_DAEMON;

use crate::support::{CliTestDaemon, command, policy, text};

/// An account that every machine has stands for the child's.
const CHILD: &str = "nobody";

/// A policy that closes the child's login all day.
macro_rules! closed_login {
    ($settings:literal) => {
        policy!(
            r#"
[profiles.kid]
accounts = ["nobody"]

[[exceptions]]
from = 2020-01-01
to = 2100-01-01
closed = true

[[entries]]
id = "computer"
kind = "login"
always = true
"#,
            $settings
        )
    };
}

fn pam_check(socket: &Path, data: &Path, user: &str) -> Command {
    let mut check = command(&["pam-check"]);
    check.arg("--socket").arg(socket).arg("--data").arg(data);
    check.env("PAM_USER", user).env("PAM_TYPE", "account").env("PAM_SERVICE", "sshd");
    check
}

fn check(daemon: &CliTestDaemon, user: &str) -> Output {
    pam_check(&daemon.socket(), &daemon.path("data"), user).output().unwrap()
}

#[track_caller]
fn assert_allowed(output: &Output) {
    let (said, code) = (text(&output.stdout) + &text(&output.stderr), output.status.code());
    assert_eq!((said.as_str(), code), ("", Some(0)));
}

#[track_caller]
fn assert_refused(output: &Output, sentence: &str) {
    assert_eq!((text(&output.stdout), output.status.code()), (format!("{sentence}\n"), Some(1)));
    assert_eq!(text(&output.stderr), "");
}

// S19.2
#[test]
fn a_child_is_refused_with_a_sentence_and_nobody_else_is() {
    let daemon = CliTestDaemon::start(Some(closed_login!("")));
    assert_refused(&check(&daemon, CHILD), "Not at this time.");
    for other in ["root", "daemon", "no-such-account", ""] {
        assert_allowed(&check(&daemon, other));
    }
    let logged_out =
        pam_check(&daemon.socket(), &daemon.path("data"), CHILD).env("PAM_TYPE", "close_session").output();
    assert_allowed(&logged_out.unwrap());
    let log = daemon.run_text(&["audit", "list"]);
    assert!(log.contains("computer") && log.contains("pam-check sshd"), "{log}");
}

// S19.2
#[test]
fn without_a_daemon_only_the_children_of_the_last_policy_are_refused() {
    let mut daemon = CliTestDaemon::start(Some(closed_login!("")));
    // The answer to a command shows that the daemon has written its files.
    daemon.run_text(&["reload"]);
    daemon.stop();
    assert_refused(&check(&daemon, CHILD), LOGIN_WITHOUT_DAEMON);
    for other in ["root", "daemon", "no-such-account"] {
        assert_allowed(&check(&daemon, other));
    }

    std::fs::write(daemon.path("policy.toml"), "this is no policy").unwrap();
    std::fs::remove_file(daemon.path("data/last-valid-policy.toml")).unwrap();
    daemon.restart();
    assert_refused(&check(&daemon, CHILD), LOGIN_WITHOUT_DAEMON);

    std::fs::write(daemon.path("policy.toml"), closed_login!("without_daemon = \"allow\"")).unwrap();
    daemon.run_text(&["reload"]);
    assert_refused(&check(&daemon, CHILD), "Not at this time.");
    crate::support::wait_until("the list of accounts is empty", || {
        !daemon.path("data/logins-without-daemon.json").exists()
    });
    daemon.stop();
    assert_allowed(&check(&daemon, CHILD));
}

// S19.2
#[test]
fn a_machine_without_rules_for_logins_refuses_nobody() {
    let mut daemon = CliTestDaemon::start(Some(policy!("[profiles.kid]\naccounts = [\"nobody\"]\n")));
    assert_allowed(&check(&daemon, CHILD));
    daemon.stop();
    assert_allowed(&check(&daemon, CHILD));
}

// S19.2
#[test]
fn a_daemon_that_hangs_counts_as_none_after_two_seconds() {
    let folder = tempfile::Builder::new().prefix("pc-").tempdir_in("/tmp").unwrap();
    let socket = folder.path().join("socket");
    let _hung = UnixListener::bind(&socket).unwrap();
    std::fs::write(folder.path().join("logins-without-daemon.json"), r#"{"refused":[65534]}"#).unwrap();
    let start = Instant::now();
    assert_refused(&pam_check(&socket, folder.path(), CHILD).output().unwrap(), LOGIN_WITHOUT_DAEMON);
    assert!(start.elapsed() < Duration::from_millis(2_500), "{:?}", start.elapsed());
}

// S19.2
#[test]
fn the_childs_environment_leads_to_no_other_daemon() {
    let daemon = CliTestDaemon::start(Some(closed_login!("")));
    let mut check = command(&["pam-check", "--output", "json"]);
    check.env("PAM_USER", CHILD).env("SHEPHERD_SOCKET", daemon.socket());
    check.env("SHEPHERD_DATA", daemon.path("data"));
    // This machine has no daemon of its own, so the answer is yes.
    assert_eq!(
        text(&check.output().unwrap().stdout).split_whitespace().collect::<String>(),
        r#"{"allowed":true,"sentence":null}"#
    );
}
