//! Starting and ending.

use std::time::Duration;

use super::play::{Outcome, Play};
use super::{Case, Part, Stage};
use crate::{ExitStatus, HostEvent};

/// Longer than anything is waited for: whoever ends earlier did so because it was asked.
const LONG: Duration = Duration::from_secs(3_600);

/// Short enough to be waited for.
const SHORT: Duration = Duration::from_millis(200);

const AT_ONCE: Duration = Duration::ZERO;

pub(super) fn all<S: Stage>() -> Vec<Case<S>> {
    vec![
        ("a program that starts is reported and ends when it is killed", start_and_kill),
        ("a program that can't be started is reported with place, fault and cure", failing_start),
        ("an exit code is reported", exit_code),
        ("the signal that ended a program is reported", exit_signal),
        ("a program that is asked to end and does so is not killed", obedience),
        ("a program that ignores the request is killed when its grace is over", stubbornness),
        ("a second order can be stricter", stricter),
        ("a second order can't be laxer", laxer),
        ("a program that is stopped before it has started is ended when it is there", stop_before_start),
        ("a program that could not be started is not ended", stop_before_failure),
        ("a session that nobody knows is gone", stop_of_unknown),
        ("an order that comes after the last event changes nothing", stop_after_end),
        ("a program that hands over and leaves has not ended", hand_over),
        ("of two sessions only the one that is meant is ended", one_of_two),
        ("a session that is stopped and one that is started at once are never mixed up", pairs),
        ("a second subscriber ends the first", second_subscriber),
    ]
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, wanted: &T) -> Outcome {
    if is == wanted { Ok(()) } else { Err(format!("{what} is {is:?}, not {wanted:?}")) }
}

fn killed() -> ExitStatus {
    ExitStatus { code: None, signal: Some(9) }
}

fn start_and_kill<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Runs)?;
    play.silence()?;
    play.stop(&session, AT_ONCE)?;
    check("the status", &play.expect_exited(&session)?, &killed())
}

fn failing_start<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let entry = play.stage.entry(Part::Fails).entry_id;
    let session = play.spawn(Part::Fails)?;
    let failure = match play.next()? {
        HostEvent::SpawnFailed { session_id, failure } if session_id == session => failure,
        event => return Err(format!("{event:?} came, not the failure")),
    };
    let has_place = failure.detail.contains(entry.as_str());
    let has_cure = failure.detail.split_once("; ").is_some_and(|(_, cure)| !cure.is_empty());
    if has_place && has_cure { Ok(()) } else { Err(format!("`{failure}` lacks its place or its cure")) }
}

fn exit_code<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Exits { after: AT_ONCE, code: 7 })?;
    check("the status", &play.expect_exited(&session)?, &ExitStatus { code: Some(7), signal: None })
}

fn exit_signal<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::KillsItself)?;
    check("the status", &play.expect_exited(&session)?, &killed())
}

fn obedience<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Runs)?;
    play.stop(&session, LONG)?;
    play.expect_exited(&session).map(drop)
}

fn stubbornness<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Ignores)?;
    play.silence_of(SHORT)?;
    play.stop(&session, SHORT)?;
    check("the status", &play.expect_exited(&session)?, &killed())
}

fn stricter<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Ignores)?;
    play.silence_of(SHORT)?;
    play.stop(&session, LONG)?;
    play.silence_of(SHORT)?;
    play.stop(&session, AT_ONCE)?;
    check("the status", &play.expect_exited(&session)?, &killed())
}

fn laxer<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Ignores)?;
    play.silence_of(SHORT)?;
    play.stop(&session, SHORT)?;
    play.stop(&session, LONG)?;
    check("the status", &play.expect_exited(&session)?, &killed())
}

fn stop_before_start<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let session = play.spawn(Part::Runs)?;
    play.stop(&session, LONG)?;
    play.expect_spawned(&session)?;
    play.expect_exited(&session).map(drop)
}

fn stop_before_failure<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let session = play.spawn(Part::Fails)?;
    play.stop(&session, AT_ONCE)?;
    match play.next()? {
        HostEvent::SpawnFailed { session_id, .. } if session_id == session => Ok(()),
        event => Err(format!("{event:?} came, not the failure")),
    }
}

fn stop_of_unknown<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let session = play.stage.session_id();
    play.stop(&session, LONG)?;
    play.expect(&HostEvent::Gone { session_id: session })
}

fn stop_after_end<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::Exits { after: AT_ONCE, code: 0 })?;
    play.expect_exited(&session)?;
    play.stop(&session, AT_ONCE)
}

/// S6.2b: a session ends when its tree is empty, not when its first process exits.
fn hand_over<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session, _) = play.start(Part::HandsOver)?;
    play.silence_of(3 * SHORT)?;
    play.stop(&session, LONG)?;
    play.expect_exited(&session).map(drop)
}

fn one_of_two<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (first, _) = play.start(Part::Runs)?;
    let (second, _) = play.start(Part::Runs)?;
    for session in [first, second] {
        play.stop(&session, LONG)?;
        play.expect_exited(&session)?;
        play.silence()?;
    }
    Ok(())
}

/// S6.2b: exit events belong to exactly one session.
fn pairs<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (mut session, _) = play.start(Part::Runs)?;
    for _ in 0..play.stage.pairs() {
        play.stop(&session, LONG)?;
        let next = play.spawn(Part::Runs)?;
        let (mut ended, mut started) = (0, 0);
        while (ended, started) != (1, 1) {
            match play.next()? {
                HostEvent::Exited { session_id, .. } if session_id == session => ended += 1,
                HostEvent::Spawned { session_id, .. } if session_id == next => started += 1,
                event => return Err(format!("{event:?} came between {session} and {next}")),
            }
        }
        session = next;
    }
    play.stop(&session, AT_ONCE)?;
    play.expect_exited(&session).map(drop)
}

fn second_subscriber<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let mut first = play.subscribe_again()?;
    let (session, _) = play.start(Part::Runs)?;
    play.stop(&session, AT_ONCE)?;
    play.expect_exited(&session)?;
    match first.try_recv() {
        Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => Ok(()),
        other => Err(format!("the first still hears {other:?}")),
    }
}
