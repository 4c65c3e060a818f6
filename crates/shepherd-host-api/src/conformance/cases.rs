//! Starting and ending.

use std::time::Duration;

use super::case_context::{CaseContext, CaseResult};
use super::{ConformanceCase, ConformanceHarness, TestProgram};
use crate::{ExitStatus, HostEvent};

/// Longer than anything is waited for: whoever ends earlier did so because it was asked.
const LONG_GRACE: Duration = Duration::from_secs(3_600);

/// Short enough to be waited for.
const SHORT_GRACE: Duration = Duration::from_millis(200);

const NO_GRACE: Duration = Duration::ZERO;

pub(super) fn start_stop_cases<S: ConformanceHarness>() -> Vec<ConformanceCase<S>> {
    vec![
        ("a program that starts is reported and ends when it is killed", start_and_kill),
        ("a program that can't be started is reported with place, fault and cure", failing_start),
        ("an exit code is reported", exit_code),
        ("the signal that ended a program is reported", exit_signal),
        ("a program that is asked to end and does so is not killed", ends_on_request),
        ("a program that ignores the request is killed when its grace is over", killed_after_grace),
        ("a second order can be stricter", second_stop_stricter),
        ("a second order can't be laxer", second_stop_laxer),
        ("a program that is stopped before it has started is ended when it is there", stop_before_start),
        ("a program that could not be started is not ended", stop_before_failure),
        ("a session that nobody knows is gone", stop_unknown_session),
        ("an order that comes after the last event changes nothing", stop_after_end),
        ("a program that hands over and leaves has not ended", fork_and_exit),
        ("of two sessions only the one that is meant is ended", stops_only_named_session),
        (
            "a session that is stopped and one that is started at once are never mixed up",
            stop_and_start_at_once,
        ),
        ("a second subscriber ends the first", second_subscriber),
    ]
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, wanted: &T) -> CaseResult {
    if is == wanted { Ok(()) } else { Err(format!("{what} is {is:?}, not {wanted:?}")) }
}

fn killed_status() -> ExitStatus {
    ExitStatus { code: None, signal: Some(9) }
}

fn start_and_kill<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::EndsOnRequest)?;
    play.expect_no_event()?;
    play.stop(&session, NO_GRACE)?;
    check("the status", &play.expect_exited(&session)?, &killed_status())
}

fn failing_start<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let entry = play.harness.entry_for(TestProgram::FailsToStart).entry_id;
    let session = play.spawn(TestProgram::FailsToStart)?;
    let failure = match play.next_event()? {
        HostEvent::SpawnFailed { session_id, failure } if session_id == session => failure,
        event => return Err(format!("{event:?} came, not the failure")),
    };
    let has_place = failure.detail.contains(entry.as_str());
    let has_cure = failure.detail.split_once("; ").is_some_and(|(_, cure)| !cure.is_empty());
    if has_place && has_cure { Ok(()) } else { Err(format!("`{failure}` lacks its place or its cure")) }
}

fn exit_code<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::Exits { after: NO_GRACE, code: 7 })?;
    check("the status", &play.expect_exited(&session)?, &ExitStatus { code: Some(7), signal: None })
}

fn exit_signal<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::KillsItself)?;
    check("the status", &play.expect_exited(&session)?, &killed_status())
}

fn ends_on_request<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::EndsOnRequest)?;
    play.stop(&session, LONG_GRACE)?;
    play.expect_exited(&session).map(drop)
}

fn killed_after_grace<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::IgnoresRequests)?;
    play.expect_no_event_for(SHORT_GRACE)?;
    play.stop(&session, SHORT_GRACE)?;
    check("the status", &play.expect_exited(&session)?, &killed_status())
}

fn second_stop_stricter<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::IgnoresRequests)?;
    play.expect_no_event_for(SHORT_GRACE)?;
    play.stop(&session, LONG_GRACE)?;
    play.expect_no_event_for(SHORT_GRACE)?;
    play.stop(&session, NO_GRACE)?;
    check("the status", &play.expect_exited(&session)?, &killed_status())
}

fn second_stop_laxer<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::IgnoresRequests)?;
    play.expect_no_event_for(SHORT_GRACE)?;
    play.stop(&session, SHORT_GRACE)?;
    play.stop(&session, LONG_GRACE)?;
    check("the status", &play.expect_exited(&session)?, &killed_status())
}

fn stop_before_start<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let session = play.spawn(TestProgram::EndsOnRequest)?;
    play.stop(&session, LONG_GRACE)?;
    play.expect_spawned(&session)?;
    play.expect_exited(&session).map(drop)
}

fn stop_before_failure<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let session = play.spawn(TestProgram::FailsToStart)?;
    play.stop(&session, NO_GRACE)?;
    match play.next_event()? {
        HostEvent::SpawnFailed { session_id, .. } if session_id == session => Ok(()),
        event => Err(format!("{event:?} came, not the failure")),
    }
}

fn stop_unknown_session<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let session = play.harness.new_session_id();
    play.stop(&session, LONG_GRACE)?;
    play.expect_event(&HostEvent::Gone { session_id: session })
}

fn stop_after_end<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::Exits { after: NO_GRACE, code: 0 })?;
    play.expect_exited(&session)?;
    play.stop(&session, NO_GRACE)
}

/// S6.2b: a session ends when its tree is empty, not when its first process exits.
fn fork_and_exit<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = play.start(TestProgram::ForksAndExits)?;
    play.expect_no_event_for(3 * SHORT_GRACE)?;
    play.stop(&session, LONG_GRACE)?;
    play.expect_exited(&session).map(drop)
}

fn stops_only_named_session<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (first, _) = play.start(TestProgram::EndsOnRequest)?;
    let (second, _) = play.start(TestProgram::EndsOnRequest)?;
    for session in [first, second] {
        play.stop(&session, LONG_GRACE)?;
        play.expect_exited(&session)?;
        play.expect_no_event()?;
    }
    Ok(())
}

/// S6.2b: exit events belong to exactly one session.
fn stop_and_start_at_once<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (mut session, _) = play.start(TestProgram::EndsOnRequest)?;
    for _ in 0..play.harness.stop_start_rounds() {
        play.stop(&session, LONG_GRACE)?;
        let next = play.spawn(TestProgram::EndsOnRequest)?;
        let (mut ended, mut started) = (0, 0);
        while (ended, started) != (1, 1) {
            match play.next_event()? {
                HostEvent::Exited { session_id, .. } if session_id == session => ended += 1,
                HostEvent::Spawned { session_id, .. } if session_id == next => started += 1,
                event => return Err(format!("{event:?} came between {session} and {next}")),
            }
        }
        session = next;
    }
    play.stop(&session, NO_GRACE)?;
    play.expect_exited(&session).map(drop)
}

fn second_subscriber<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let mut first = play.subscribe_again()?;
    let (session, _) = play.start(TestProgram::EndsOnRequest)?;
    play.stop(&session, NO_GRACE)?;
    play.expect_exited(&session)?;
    match first.try_recv() {
        Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => Ok(()),
        other => Err(format!("the first still hears {other:?}")),
    }
}
