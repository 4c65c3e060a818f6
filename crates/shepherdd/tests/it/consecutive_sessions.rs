//! One session after the other, as fast as it goes (S6.2b).

use std::time::Duration;

use shepherd_api::{AuditKind, Command, CommandReply, EndReason, EventKind, StopMode};
use shepherd_util::SessionId;

use crate::harness::ShepherddFixture;

const POLICY: &str = r#"
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
    let mut household = ShepherddFixture::in_memory(POLICY);
    household.start();
    let mut listener = household.subscriber();
    let mut client = household.client();
    let mut launched: Vec<SessionId> = Vec::new();
    let mut ended: Vec<(SessionId, EndReason)> = Vec::new();
    for round in 0..ROUNDS {
        let entry_id = if round % 2 == 0 { "one" } else { "two" }.parse().unwrap();
        let session = loop {
            match client.call(Command::Launch { entry_id: Clone::clone(&entry_id), profile: None }) {
                Ok(CommandReply::Launched { session }) => break session,
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
    household.assert_no_processes_left();
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
