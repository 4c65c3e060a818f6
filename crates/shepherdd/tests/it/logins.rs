//! Logins as sessions, with a double of logind on a real message bus (S19.2). `cargo xtask test --only units` has the same
//! with a real logind and real log-ins.

pub(crate) mod fake_logind;

use std::time::Duration;

use shepherd_api::{
    AuditKind, Command, CommandReply, LoginAnswer, ReasonCode, SessionCounting, SessionSlot, SessionView,
};
use shepherd_core::policy::TerminalState;

use self::fake_logind::{FakeLogind, LogindCall};
use crate::harness::{ShepherddFixture, assert_stays, policy, sleep_entry, wait_until};

/// An account that this machine doesn't have.
pub(crate) const CHILD: u32 = 65_031;

/// Two logins and a program that earns, of the same profile. `SETTINGS` stands for settings of the login.
pub(crate) const POLICY: &str = policy!(
    r#"
[profiles.anna]
accounts = [65031]

[budgets.games]
daily = "10m"

[[entries]]
id = "computer"
kind = "login"
always = true
SETTINGS
"#,
    sleep_entry!("maths", r#"earns = { budget = "games", for_each = "1s", earned = "1m", ceiling = "1h" }"#),
    sleep_entry!("race", r#"budgets = ["games"]"#)
);

pub(crate) const IN_USE: TerminalState = TerminalState { active: true, locked: false, idle: false };
pub(crate) const IDLE: TerminalState = TerminalState { idle: true, ..IN_USE };
pub(crate) const LOCKED: TerminalState = TerminalState { locked: true, ..IN_USE };
pub(crate) const BEHIND: TerminalState = TerminalState { active: false, ..IN_USE };

/// Starts a daemon that asks this logind.
pub(crate) fn daemon_with(logind: &FakeLogind, settings: &str) -> ShepherddFixture {
    let policy = POLICY.replace("SETTINGS", settings);
    let mut fixture =
        ShepherddFixture::new(&policy).with_variable("DBUS_SYSTEM_BUS_ADDRESS", logind.address());
    fixture.start();
    fixture
}

/// Returns the session that stands for the child's login.
pub(crate) fn login_session(fixture: &ShepherddFixture) -> Option<SessionView> {
    let state = fixture.state();
    let mut sessions: Vec<SessionView> = state.sessions;
    sessions.extend(state.session);
    let is_login = |session: &SessionView| session.slot == SessionSlot::Login { account: CHILD.to_string() };
    sessions.into_iter().find(is_login)
}

pub(crate) fn wait_for_counting(fixture: &ShepherddFixture, counting: SessionCounting) {
    wait_until("the login counts as it should", || {
        login_session(fixture).is_some_and(|session| session.counting == counting)
    });
}

fn may_log_in(fixture: &ShepherddFixture) -> LoginAnswer {
    match fixture.call(Command::CheckLogin { uid: CHILD, gid: None }) {
        Ok(CommandReply::LoginChecked { login }) => login,
        other => panic!("{other:?}"),
    }
}

// S19.2
#[test]
fn a_login_counts_while_it_is_active_and_unlocked() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, r#"counts = "unlocked""#);
    logind.log_in("2", CHILD, IN_USE);
    wait_for_counting(&fixture, SessionCounting::Active);
    for (terminal, counting) in [
        (LOCKED, SessionCounting::Stopped),
        (IN_USE, SessionCounting::Active),
        (BEHIND, SessionCounting::Stopped),
        (IDLE, SessionCounting::Idle),
    ] {
        logind.set("2", terminal);
        wait_for_counting(&fixture, counting);
    }
    // A desktop that says it is locked is locked.
    assert_eq!(logind.calls(), [LogindCall::LockSession("2".to_owned())]);
}

// S19.2
#[test]
fn several_terminals_are_one_session_which_outlives_restarts_and_ends_with_the_last() {
    let mut logind = FakeLogind::start();
    // A login that exists already is adopted when the daemon starts.
    logind.log_in("2", CHILD, IN_USE);
    let mut fixture = daemon_with(&logind, "");
    wait_for_counting(&fixture, SessionCounting::Active);
    let session = login_session(&fixture).unwrap().session_id;
    logind.log_in("5", CHILD, BEHIND);
    logind.log_out("2");
    wait_for_counting(&fixture, SessionCounting::Stopped);
    fixture.kill();
    fixture.start();
    logind.restart();
    logind.set("5", IN_USE);
    wait_for_counting(&fixture, SessionCounting::Active);
    assert_eq!(login_session(&fixture).map(|login| login.session_id), Some(session));
    logind.log_out("5");
    wait_until("the session has ended", || login_session(&fixture).is_none());
    let is_start = |what: &AuditKind| matches!(what, AuditKind::SessionStarted { .. });
    assert_eq!(fixture.count_audit_records(is_start), 1);
}

// S19.2
#[test]
fn a_login_of_another_account_is_none_of_our_business() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, "");
    logind.log_in("2", CHILD + 1, IN_USE);
    logind.log_in("3", 0, IN_USE);
    assert_stays("no session", Duration::from_millis(500), || login_session(&fixture).is_none());
    assert_eq!(logind.calls(), []);
}

// S19.2
#[test]
fn without_logind_nobody_whose_login_is_limited_may_log_in() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, "");
    wait_until("the daemon watches logind", || matches!(may_log_in(&fixture), LoginAnswer::Allowed { .. }));
    let reasons = |answer: LoginAnswer| match answer {
        LoginAnswer::Refused { reasons, .. } => reasons.iter().map(ReasonCode::code).collect(),
        other => vec![if other == LoginAnswer::Unlimited { "unlimited" } else { "allowed" }],
    };
    drop(logind);
    wait_until("logind is missed", || reasons(may_log_in(&fixture)) == ["host-cannot-run"]);
    let limitations = fixture.health().limitations.join("\n");
    assert!(limitations.contains("systemd-logind"), "{limitations}");
}

// S19.2
#[test]
fn a_login_that_can_be_locked_is_not_ended() {
    let logind = FakeLogind::start();
    let fixture =
        daemon_with(&logind, "max_run = \"1s\"\nend = \"lock\"\nstop_grace = 0\ncooldown_after_run = \"1h\"");
    logind.log_in("2", CHILD, IN_USE);
    let locks = || logind.calls().iter().filter(|call| matches!(call, LogindCall::LockSession(_))).count();
    wait_until("the screen is to be locked", || locks() == 1);
    logind.set("2", LOCKED);
    wait_until("the session has ended", || login_session(&fixture).is_none());
    logind.set("2", IN_USE);
    wait_until("the screen is to be locked again", || locks() == 2);
    logind.set("2", LOCKED);
    assert_stays("no session", Duration::from_millis(300), || login_session(&fixture).is_none());
    assert!(!logind.calls().contains(&LogindCall::TerminateUser(CHILD)));
}
