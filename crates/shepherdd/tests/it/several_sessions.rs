//! Several sessions at once (S19.1), end to end: two children play, one of them with music, and the daemon is killed.

use shepherd_api::{
    ApiError, AuditKind, Command, CommandReply, ErrorCode, SessionPhase, SessionView, StopMode,
};
use shepherd_ipc::CallError;
use shepherd_util::SessionId;

use crate::harness::{ShepherddFixture, policy, sleep_entry, wait_until};

const POLICY: &str = policy!(
    r#"
[profiles.anna]
label = "Anna"

[profiles.ben]
label = "Ben"

[budgets.screen]
daily = "1h"
"#,
    sleep_entry!("game", r#"budgets = ["screen"]"#),
    sleep_entry!("film", r#"budgets = ["screen"]"#),
    sleep_entry!(
        "music",
        r#"budgets = ["screen"]
slot = "background""#
    )
);

fn launch(fixture: &ShepherddFixture, entry: &str, child: &str) -> Result<SessionView, ApiError> {
    let (entry_id, profile) = (entry.parse().unwrap(), Some(child.parse().unwrap()));
    match fixture.call(Command::Launch { entry_id, profile, display: None }) {
        Ok(CommandReply::Launched { session }) => Ok(session),
        Err(CallError::Refused(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn running_ids(fixture: &ShepherddFixture) -> Vec<SessionId> {
    let sessions = fixture.state().sessions.into_iter();
    let running = sessions.filter(|session| session.phase == SessionPhase::Running);
    running.map(|session| session.session_id).collect()
}

fn stop(fixture: &ShepherddFixture, session_id: Option<&SessionId>) -> Result<CommandReply, CallError> {
    fixture.call(Command::StopCurrent { mode: StopMode::Graceful, session_id: session_id.cloned() })
}

#[test]
fn two_children_play_at_once_and_a_restarted_daemon_takes_all_sessions_back() {
    let mut fixture = ShepherddFixture::running(POLICY);
    let game = launch(&fixture, "game", "anna").unwrap();
    let film = launch(&fixture, "film", "ben").unwrap();
    let music = launch(&fixture, "music", "anna").unwrap();
    let refused = launch(&fixture, "film", "anna").unwrap_err();
    assert_eq!(refused.reasons[0].code(), "session-active");
    let all = [&game, &film, &music].map(|session| session.session_id.clone());
    wait_until("all programs run", || running_ids(&fixture) == all);
    assert_eq!(fixture.state().session.map(|session| session.session_id), Some(game.session_id.clone()));
    assert_eq!(fixture.program_pids().len(), 3);
    // Music and game share a budget, so both have the same time.
    let lefts: Vec<u64> =
        fixture.state().sessions.iter().map(|session| session.remaining.unwrap().0).collect();
    assert!(lefts[0].abs_diff(lefts[2]) < 5_000, "{lefts:?}");

    fixture.kill();
    fixture.start();
    assert_eq!(running_ids(&fixture), all);
    assert_eq!(fixture.program_pids().len(), 3);

    let Err(CallError::Refused(unclear)) = stop(&fixture, None) else { panic!("it chose one") };
    assert_eq!(unclear.code, ErrorCode::SeveralSessions);
    for named in ["game of Anna", "film of Ben"] {
        assert!(unclear.sentence.contains(named), "{}", unclear.sentence);
    }
    let unknown = stop(&fixture, Some(&SessionId::from_random(7)));
    assert!(
        matches!(&unknown, Err(CallError::Refused(error)) if error.code == ErrorCode::UnknownSession),
        "{unknown:?}"
    );
    stop(&fixture, Some(&game.session_id)).unwrap();
    wait_until("the game has ended", || fixture.state().sessions.len() == 2);
    // One session in the foreground is left.
    stop(&fixture, None).unwrap();
    wait_until("the film has ended", || fixture.state().sessions.len() == 1);
    assert_eq!(running_ids(&fixture), std::slice::from_ref(&music.session_id));
    stop(&fixture, None).unwrap();
    fixture.wait_until_idle();
    let ended = fixture.audit().into_iter().filter_map(|record| match record.line.what {
        AuditKind::SessionEnded { session_id, .. } => Some(session_id),
        _ => None,
    });
    assert_eq!(ended.collect::<Vec<_>>(), [game, film, music].map(|session| session.session_id));
    assert!(fixture.end().success());
    fixture.assert_chain_is_sound();
}
