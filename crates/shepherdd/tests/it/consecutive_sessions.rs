//! Sessions that follow each other as fast as possible (S6.2b).

use shepherd_api::{AuditKind, Command, CommandReply, EndReason, EventKind, StopMode};
use shepherd_util::SessionId;

use crate::harness::{ShepherddFixture, call_at_allowed_rate, policy, sleep_entry};

const POLICY: &str =
    policy!(sleep_entry!("one", r#"max_run = "1h""#), sleep_entry!("two", r#"max_run = "1h""#));

/// Each session is stopped and the next one launched at once.
#[test]
fn a_thousand_sessions_end_each_once_and_in_order() {
    const ROUNDS: usize = 1_000;
    let mut fixture = ShepherddFixture::in_memory(POLICY);
    fixture.start();
    let mut listener = fixture.subscriber();
    let mut client = fixture.client();
    let mut launched: Vec<SessionId> = Vec::new();
    let mut ended: Vec<(SessionId, EndReason)> = Vec::new();
    for round in 0..ROUNDS {
        let entry_id = if round % 2 == 0 { "one" } else { "two" }.parse().unwrap();
        let launch = Command::Launch { entry_id: Clone::clone(&entry_id), profile: None, display: None };
        let session = match call_at_allowed_rate(&mut client, &launch) {
            Ok(CommandReply::Launched { session }) => session,
            other => panic!("{other:?}"),
        };
        assert_eq!(session.entry_id, entry_id);
        launched.push(session.session_id);
        // Some sessions are stopped before their program runs, others afterwards.
        if round % 3 == 0 {
            listener.wait_for(|event| matches!(event, EventKind::SessionStarted { .. }).then_some(()));
        }
        call_at_allowed_rate(&mut client, &Command::StopCurrent { mode: StopMode::Force, session_id: None })
            .unwrap();
        ended.push(listener.wait_for(|event| match event {
            EventKind::SessionEnded { session_id, end } => Some((session_id.clone(), end.clone())),
            _ => None,
        }));
    }
    let order: Vec<SessionId> = ended.into_iter().map(|(session_id, _)| session_id).collect();
    assert_eq!(order, launched);
    fixture.assert_no_processes_left();
    let mut on_record = Vec::new();
    for record in fixture.audit() {
        if let AuditKind::SessionEnded { session_id, .. } = record.line.what {
            on_record.push(session_id);
        }
    }
    assert_eq!(on_record, launched);
    assert!(fixture.end().success());
    fixture.assert_chain_is_sound();
}
