//! Programs that do not want to end, as entries of a policy (S6.2, S6.2b), and one after the other as fast as it goes.

use std::time::{Duration, Instant};

use shepherd_api::{AuditKind, Command, EndReason, EventKind, Reply, StopMode};
use shepherd_util::SessionId;

use crate::harness::{Household, until};

const POLICY: &str = r#"
config_version = 1
stop_grace = "10s"

[defaults]
always = true
max_run = "2s"

[[entries]]
id = "wrapper"
argv = ["sh", "-c", "sleep TOKEN & exit 0"]

[[entries]]
id = "double-fork"
argv = ["sh", "-c", "(setsid sh -c '(setsid sleep TOKEN &) ; exit 0' &) ; exec sleep TOKEN"]

[[entries]]
id = "own-session"
argv = ["sh", "-c", "setsid sleep TOKEN & setsid sleep TOKEN & wait"]

[[entries]]
id = "deaf"
argv = ["sh", "-c", "trap '' TERM INT HUP; sleep TOKEN & exec sleep TOKEN"]
stop_grace = "700ms"

# At most 60 processes of a program that starts others and leaves, over and over.
[[entries]]
id = "bomb"
argv = ["sh", "-c", "n=$1; while [ $n -gt 0 ]; do n=$((n-1)); setsid sh -c 'sleep 0.1; sleep TOKEN & exit 0' & done; sleep TOKEN", "sh", "60"]
resources = { processes = 200 }
stop_grace = "0s"
"#;

/// Runs an entry until it is ended, and lets nothing be left.
fn check(entry: &str, processes: usize) -> Duration {
    let household = Household::running(POLICY);
    let mut listener = household.subscriber();
    let launched = Instant::now();
    let session = household.launch(entry);
    until("all of it runs", || household.players().len() >= processes);
    let end = listener.wait_for(|event| match event {
        EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => Some(end.clone()),
        _ => None,
    });
    let took = launched.elapsed();
    assert_eq!(end, EndReason::Expired, "{entry}");
    assert_eq!(household.players(), Vec::<i32>::new(), "{entry}");
    household.assert_nothing_left();
    assert!(took >= Duration::from_secs(2), "{entry}: never early: {took:?}");
    took
}

#[test]
fn nothing_that_a_program_starts_outlives_its_end() {
    std::thread::scope(|scope| {
        for (entry, processes) in [("wrapper", 1), ("double-fork", 2), ("own-session", 2), ("bomb", 30)] {
            scope.spawn(move || check(entry, processes));
        }
    });
}

#[test]
fn whoever_is_deaf_to_signals_has_its_grace_and_no_more() {
    let took = check("deaf", 2);
    assert!(took >= Duration::from_millis(2_700), "the grace is given: {took:?}");
    assert!(took < Duration::from_secs(9), "the entry's own, not the policy's: {took:?}");
}

const TWO: &str = r#"
config_version = 1

[defaults]
always = true
max_run = "1h"

[[entries]]
id = "one"
argv = ["sleep", "TOKEN"]

[[entries]]
id = "two"
argv = ["sleep", "TOKEN"]
"#;

/// Stop one and launch the next at once, a thousand times: none is mixed up.
#[test]
fn a_thousand_sessions_end_each_once_and_in_order() {
    const ROUNDS: usize = 1_000;
    let mut household = Household::in_memory(TWO);
    household.start();
    let mut listener = household.subscriber();
    let mut client = household.client();
    let mut launched: Vec<SessionId> = Vec::new();
    let mut ended: Vec<(SessionId, EndReason)> = Vec::new();
    for round in 0..ROUNDS {
        let entry_id = if round % 2 == 0 { "one" } else { "two" }.parse().unwrap();
        let session = loop {
            match client.call(Command::Launch { entry_id: Clone::clone(&entry_id), profile: None }) {
                Ok(Reply::Launched { session }) => break session,
                Err(error) => {
                    let error = error.api_error().unwrap_or_else(|| panic!("{error}")).clone();
                    // Either the one before is not gone yet, or we are too fast for the daemon's taste.
                    let wait = error.retry_after.map_or(Duration::from_millis(1), Duration::from);
                    assert!(
                        error.reasons.iter().all(|reason| reason.code() == "session-active"),
                        "{error:?}"
                    );
                    std::thread::sleep(wait);
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(session.entry_id, entry_id);
        launched.push(session.session_id);
        // Some are stopped before they run, some when they do.
        if round % 3 == 0 {
            listener.wait_for(|event| matches!(event, EventKind::SessionStarted { .. }).then_some(()));
        }
        while let Err(error) = client.call(Command::StopCurrent { mode: StopMode::Force }) {
            let wait =
                error.api_error().and_then(|error| error.retry_after).unwrap_or_else(|| panic!("{error:?}"));
            std::thread::sleep(wait.into());
        }
        ended.push(listener.wait_for(|event| match event {
            EventKind::SessionEnded { session_id, end } => Some((session_id.clone(), end.clone())),
            _ => None,
        }));
    }
    let order: Vec<SessionId> = ended.into_iter().map(|(session_id, _)| session_id).collect();
    assert_eq!(order, launched);
    household.assert_nothing_left();
    let mut on_record = Vec::new();
    for record in household.audit() {
        if let AuditKind::SessionEnded { session_id, .. } = record.line.what {
            on_record.push(session_id);
        }
    }
    assert_eq!(on_record, launched);
    assert!(household.end().success());
    household.assert_chain_is_sound();
}
