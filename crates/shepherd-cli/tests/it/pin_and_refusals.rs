//! PIN prompts and refusals, tested with a scripted daemon, because a real daemon gives some of these errors only when it
//! fails.

use jiff::Timestamp;
use shepherd_api::{
    AdminPin, ApiError, ClientRole, Command, CommandReply, DaemonStateSnapshot, ErrorCode, HealthView,
    Millis, ReasonCode, RejectedPolicyView, SessionPhase, SessionView,
};
use shepherd_util::SessionId;

use crate::support::fake_daemon::FakeDaemon;
use crate::support::terminal::TmuxTerminal;
use crate::support::{program, run_at, text};

fn pin_required() -> Result<CommandReply, ApiError> {
    Err(ApiError::new(ErrorCode::PinRequired, "Only an administrator may do this."))
}

fn extended() -> Result<CommandReply, ApiError> {
    Ok(CommandReply::Extended {
        session: SessionView {
            session_id: SessionId::from_random(1),
            entry_id: "racing".parse().unwrap(),
            label: "Racing".to_owned(),
            profile: "anna".parse().unwrap(),
            slot: Default::default(),
            counting: Default::default(),
            phase: SessionPhase::Running,
            warned: None,
            started_at: Timestamp::UNIX_EPOCH,
            hours_end: None,
            ran: None,
            remaining: Some(Millis(600_000)),
        },
    })
}

fn admin() -> Result<CommandReply, ApiError> {
    Ok(CommandReply::Authenticated { role: ClientRole::Admin })
}

fn commands_with_pin(pin: &str) -> Vec<Command> {
    let extend = Command::ExtendCurrent { by: Millis(600_000), session_id: None };
    let pin = AdminPin::try_from(pin.to_owned()).unwrap();
    vec![extend.clone(), Command::Authenticate { pin }, extend]
}

#[test]
fn the_pin_from_a_file_is_sent_only_when_needed() {
    // S11.3b.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pin");
    std::fs::write(&file, "4711\n").unwrap();
    let with_pin = ["extend", "10m", "--pin-file", file.to_str().unwrap()];
    let daemon = FakeDaemon::with_replies(vec![pin_required(), admin(), extended()]);
    let output = run_at(&daemon.socket(), &with_pin);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "✓ Racing now has 10 minutes left.\n");
    assert_eq!(daemon.received_commands(), commands_with_pin("4711"));

    let daemon = FakeDaemon::with_replies(vec![extended()]);
    assert_eq!(run_at(&daemon.socket(), &with_pin).status.code(), Some(0));
    assert_eq!(daemon.received_commands().len(), 1, "the PIN was not needed");
}

#[test]
fn restoring_the_rules_needs_the_pin_once() {
    // S11.3b.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pin");
    std::fs::write(&file, "4711\n").unwrap();
    let text_in_force = "config_version = 1\n".to_owned();
    let in_force = CommandReply::Policy { text: Some(text_in_force.clone()), digest: None, path: None };
    let applied = CommandReply::PolicyApplied { entry_count: 0 };
    let daemon = FakeDaemon::with_replies(vec![pin_required(), admin(), Ok(in_force), Ok(applied)]);
    let output = run_at(&daemon.socket(), &["policy", "restore", "--pin-file", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let pin = AdminPin::try_from("4711".to_owned()).unwrap();
    let ask = Command::GetPolicy {};
    let set = Command::SetPolicy { text: text_in_force };
    assert_eq!(daemon.received_commands(), [ask.clone(), Command::Authenticate { pin }, ask, set]);
}

#[test]
fn a_list_that_can_not_be_fetched_is_not_an_empty_one() {
    let broken = || Err(ApiError::new(ErrorCode::StoreUnavailable, "The disk is full."));
    for arguments in [&["launch", "Long Race"][..], &["list", "--profile", "Anna B"]] {
        let daemon = FakeDaemon::with_replies(vec![broken()]);
        let output = run_at(&daemon.socket(), arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert!(text(&output.stderr).starts_with("error: The disk is full.\n"), "{}", text(&output.stderr));
    }
}

#[test]
fn the_pin_prompt_hides_the_pin() {
    // S11.3b.
    let daemon = FakeDaemon::with_replies(vec![pin_required(), admin(), extended()]);
    let (program, socket) = (program(), daemon.socket());
    let line = format!("{} extend 10m --socket {}", program.display(), socket.display());
    let terminal = TmuxTerminal::run(80, 12, &line);
    terminal.wait_for_text("PIN");
    terminal.press("4711");
    terminal.press("Enter");
    let screen = terminal.wait_for_text("EXIT 0");
    assert!(screen.contains("Racing now has 10 minutes left."), "{screen}");
    assert!(!screen.contains("4711"), "{screen}");
    assert_eq!(daemon.received_commands(), commands_with_pin("4711"));
}

/// S7.3, S11.3b: a parent whom the daemon knows only by the PIN is told, too, and needs no PIN for that.
#[test]
fn the_status_tells_a_parent_without_the_pin_that_the_old_rules_are_in_force() {
    let state = CommandReply::State {
        snapshot: DaemonStateSnapshot {
            api_version: 1,
            at: Timestamp::UNIX_EPOCH,
            session: None,
            sessions: Vec::new(),
            entry_count: 1,
            mode: String::new(),
            clock_trusted: true,
            profiles: Vec::new(),
            language: None,
        },
    };
    let health = CommandReply::Health {
        health: HealthView {
            ready: true,
            daemon_version: "0.1.0".to_owned(),
            uptime: Millis(1),
            checks: Vec::new(),
            limitations: Vec::new(),
            containment: None,
            rejected_policy: Some(RejectedPolicyView {
                path: "policy.toml".to_owned(),
                since: Timestamp::UNIX_EPOCH,
                fault_count: 1,
                sentence: "policy.toml has 1 mistake".to_owned(),
            }),
            audit_log: None,
        },
    };
    for (role_with_pin, is_told) in
        [(Some(ClientRole::Admin), true), (Some(ClientRole::Shell), false), (None, false)]
    {
        let replies = vec![Ok(state.clone()), Ok(health.clone())];
        let daemon = FakeDaemon::with_replies_to(role_with_pin, replies);
        let output = run_at(&daemon.socket(), &["status"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout).contains("policy.toml has 1 mistake"), is_told, "{role_with_pin:?}");
    }
}

#[test]
fn an_interrupted_pin_prompt_restores_the_terminal() {
    let daemon = FakeDaemon::with_replies(vec![pin_required()]);
    let (program, socket) = (program(), daemon.socket());
    let command = format!("{} extend 10m --socket {}", program.display(), socket.display());
    let terminal = TmuxTerminal::run(
        80,
        12,
        &format!("trap : INT; {command}; stty -a | tr ' ;' '\\n\\n' | grep -x -e echo -e -echo"),
    );
    terminal.wait_for_text("PIN");
    terminal.press("C-c");
    let screen = terminal.wait_for_text("EXIT 0");
    assert!(screen.contains("give up: echo"), "{screen}");
}

#[test]
fn a_refusal_that_no_pin_can_change_asks_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pin");
    std::fs::write(&file, "4711\n").unwrap();
    let refused = Err(ApiError::new(ErrorCode::NotPermitted, "This session belongs to another profile."));
    let daemon = FakeDaemon::with_replies(vec![refused]);
    let output = run_at(&daemon.socket(), &["extend", "10m", "--pin-file", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(daemon.received_commands().len(), 1);
}

#[test]
fn without_a_terminal_a_missing_pin_exits_1_with_help() {
    let daemon = FakeDaemon::with_replies(vec![pin_required()]);
    let output = run_at(&daemon.socket(), &["extend", "10m"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stderr);
    assert!(shown.starts_with("error: Only an administrator may do this.\nhelp: "), "{shown}");
    assert!(shown.contains("--pin-file"), "{shown}");
}

#[test]
fn refusals_exit_1_and_daemon_failures_exit_3() {
    let check = |error: ApiError, code: i32| {
        let daemon = FakeDaemon::with_replies(vec![Err(error.clone())]);
        let output = run_at(&daemon.socket(), &["extend", "10m", "--output", "json"]);
        assert_eq!(output.status.code(), Some(code), "{error:?}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["error"], serde_json::to_value(&error).unwrap());
    };
    check(ApiError::denied("No.", vec![ReasonCode::NotForProfile]), 1);
    check(ApiError::new(ErrorCode::UnknownProfile, "Who?"), 1);
    check(ApiError::rate_limited("Slowly.", Millis(1_000)), 3);
    check(ApiError::new(ErrorCode::StoreUnavailable, "The disk is full."), 3);
    check(ApiError::new(ErrorCode::Internal, "A fault of ours."), 3);
}

#[test]
fn every_reason_is_printed_and_escaped() {
    let reasons =
        vec![ReasonCode::NotForProfile, ReasonCode::Disabled { reason: Some("broken\x1b[2J".to_owned()) }];
    let daemon = FakeDaemon::with_replies(vec![Err(ApiError::denied("No.", reasons))]);
    let shown = text(&run_at(&daemon.socket(), &["extend", "10m"]).stderr);
    assert!(shown.contains("error: Not available for this profile"), "{shown}");
    assert!(shown.contains("error: Switched off: broken\\u{1b}[2J\n"), "{shown}");
}

#[test]
fn an_unexpected_reply_is_an_error() {
    let daemon = FakeDaemon::with_replies(vec![Ok(CommandReply::PinChanged { set: true })]);
    let output = run_at(&daemon.socket(), &["status"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("unexpected reply from the daemon"));
}
