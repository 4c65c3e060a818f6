//! Attempts around the limits of logins, with a double of logind. Only root can end processes of another account.

use std::os::unix::process::CommandExt;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use shepherd_api::{Command, CommandReply, LoginAnswer, Millis, SessionCounting, SessionView};
use shepherd_ipc::BlockingClient;

use crate::harness::{ShepherddFixture, assert_stays, call_at_allowed_rate, wait_until};
use crate::logins::fake_logind::{FakeLogind, LogindCall};
use crate::logins::{BEHIND, CHILD, IDLE, IN_USE, LOCKED, daemon_with, login_session, wait_for_counting};

fn may_log_in(fixture: &ShepherddFixture) -> bool {
    let reply = fixture.call(Command::CheckLogin { uid: CHILD, gid: None }).unwrap();
    !matches!(reply, CommandReply::LoginChecked { login: LoginAnswer::Refused { .. } })
}

pub(super) fn own_desktop() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, "daily_quota = \"2s\"\nstop_grace = 0");
    logind.log_in("2", CHILD, IN_USE);
    wait_for_counting(&fixture, SessionCounting::Active);
    assert!(may_log_in(&fixture), "a second terminal is allowed");
    wait_until("the child is logged out", || login_session(&fixture).is_none());
    assert!(logind.calls().contains(&LogindCall::TerminateSession("2".to_owned())));
    assert!(!may_log_in(&fixture));
    // PAM can be bypassed, by a parent who changes it or a fault.
    logind.log_in("3", CHILD, IN_USE);
    wait_until("the child is logged out again", || {
        logind.calls().contains(&LogindCall::TerminateSession("3".to_owned()))
    });
}

pub(super) fn service_manager() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, "max_run = \"1s\"\nstop_grace = 0");
    // A process outside of the login, as of another service.
    let mut program = geteuid().is_root().then(|| {
        let script = "trap '' TERM; (setsid sleep 60 &); while :; do sleep 1; done";
        Program::new("sh").args(["-c", script]).uid(CHILD).gid(CHILD).spawn().unwrap()
    });
    logind.log_in("2", CHILD, IN_USE);
    wait_for_counting(&fixture, SessionCounting::Active);
    wait_until("the login has ended", || login_session(&fixture).is_none());
    assert!(logind.calls().contains(&LogindCall::TerminateUser(CHILD)), "the account's service manager");
    if let Some(program) = &mut program {
        assert!(program.try_wait().unwrap().is_some(), "a process has survived the login");
    }
}

pub(super) fn second_seat() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, r#"counts = "unlocked""#);
    logind.log_in("2", CHILD, IN_USE);
    wait_for_counting(&fixture, SessionCounting::Active);
    let (session, start) = (login_session(&fixture).unwrap().session_id, Instant::now());
    logind.log_in("5", CHILD, IN_USE);
    wait_until("the daemon knows the second terminal", || logind.was_read("5"));
    logind.set("2", BEHIND);
    assert_stays("the time counts", Duration::from_millis(1_500), || {
        login_session(&fixture).is_some_and(|login| login.counting == SessionCounting::Active)
    });
    let login = login_session(&fixture).unwrap();
    assert_eq!(login.session_id, session);
    let ran = login.ran.map_or(Duration::ZERO, Duration::from);
    assert!(ran <= start.elapsed() + Duration::from_secs(2), "{ran:?} counted double");
    logind.set("5", LOCKED);
    wait_for_counting(&fixture, SessionCounting::Stopped);
    wait_until("the claim is made true", || {
        logind.calls().contains(&LogindCall::LockSession("5".to_owned()))
    });
}

/// Returns the time that is left for games today.
fn time_for_games(client: &mut BlockingClient) -> Millis {
    let profile = Some("anna".parse().unwrap());
    match call_at_allowed_rate(client, &Command::ListEntries { at_time: None, profile }) {
        Ok(CommandReply::Entries { entries, .. }) => {
            let race = entries.iter().find(|entry| entry.entry_id.as_str() == "race").unwrap();
            race.left_today.unwrap()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn idle_earning() {
    let logind = FakeLogind::start();
    let fixture = daemon_with(&logind, "");
    logind.log_in("2", CHILD, IDLE);
    wait_for_counting(&fixture, SessionCounting::Idle);
    let (entry_id, profile) = ("maths".parse().unwrap(), Some("anna".parse().unwrap()));
    fixture.call(Command::Launch { entry_id, profile, display: None }).unwrap();
    let is_idle = |session: &SessionView| {
        session.entry_id.as_str() == "maths" && session.counting == SessionCounting::Idle
    };
    wait_until("maths runs while nobody is there", || fixture.state().sessions.iter().any(is_idle));
    let mut client = fixture.client();
    let before = time_for_games(&mut client);
    assert_stays("nothing is earned", Duration::from_millis(2_500), || time_for_games(&mut client) == before);
    logind.set("2", IN_USE);
    wait_until("the child is back and earns", || time_for_games(&mut client) > before);
}
