//! The scenario of S13.5: a policy, a program that sleeps for ever, its warnings and its end.

use std::time::Instant;

use shepherd_api::{EndReason, EventKind, StopMode};

use crate::harness::ShepherddFixture;

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "999"]
always = true
max_run = "4s"
warnings = [{ before = "3s" }, { before = "1s", severity = "critical" }]
"#;

#[test]
fn a_program_that_never_exits_is_warned_and_ended() {
    let fixture = ShepherddFixture::running(POLICY);
    let mut listener = fixture.subscriber();
    assert_eq!(listener.snapshot.session, None);
    let launched = Instant::now();
    let session = fixture.launch("nap");
    let mut story = Vec::new();
    let end = listener.wait_for(|event| {
        match event {
            EventKind::SessionLaunching { .. } => story.push("launching".to_owned()),
            EventKind::SessionStarted { .. } => story.push("started".to_owned()),
            EventKind::WarningIssued { threshold_secs, .. } => {
                story.push(format!("warning {threshold_secs}"));
            }
            EventKind::SessionExpired { .. } => story.push("expired".to_owned()),
            EventKind::SessionEnded { session_id, end } => {
                assert_eq!(*session_id, session.session_id);
                return Some(end.clone());
            }
            _ => {}
        }
        None
    });
    assert_eq!(story, ["launching", "started", "warning 3", "warning 1", "expired"]);
    assert_eq!(end, EndReason::Expired);
    assert!(launched.elapsed().as_secs_f64() >= 4.0, "never early: {:?}", launched.elapsed());
    assert_eq!(fixture.state().session, None);
}

/// Clients ask for all entries when they change, so an end is reported once.
#[test]
fn the_end_of_a_session_is_reported_once() {
    let fixture = ShepherddFixture::running(POLICY);
    let mut listener = fixture.subscriber();
    fixture.launch("nap");
    fixture.stop(StopMode::Force).unwrap();
    let is_end = |event: &EventKind| matches!(event, EventKind::SessionEnded { .. });
    listener.wait_for(|event| is_end(event).then_some(()));
    let mut changes = 0;
    fixture.launch("nap");
    listener.wait_for(|event| {
        changes += u32::from(matches!(event, EventKind::EntriesChanged {}));
        matches!(event, EventKind::SessionLaunching { .. }).then_some(())
    });
    assert_eq!(changes, 1);
}
