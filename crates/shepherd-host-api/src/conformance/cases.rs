//! Cases about starting and stopping programs.

use std::time::Duration;

use super::case_context::{CaseContext, CaseResult};
use super::{ConformanceCase, ConformanceHarness, TestProgram};
use crate::{ExitStatus, HostEvent};

/// Longer than any case waits: a program that ends earlier did so on request.
const LONG_GRACE: Duration = Duration::from_secs(3_600);

/// Short enough that a case can wait for it.
const SHORT_GRACE: Duration = Duration::from_millis(200);

const NO_GRACE: Duration = Duration::ZERO;

pub(super) fn start_stop_cases<S: ConformanceHarness>() -> Vec<ConformanceCase<S>> {
    vec![
        ("a program that starts is reported and ends when it is killed", start_and_kill),
        ("a program that can't be started is reported with place, fault and cure", failing_start),
        ("an exit code is reported", exit_code),
        ("the signal that ended a program is reported", exit_signal),
        ("a program that ends on request is not killed", ends_on_request),
        ("a program that ignores the request is killed when its grace is over", killed_after_grace),
        ("a second stop can be stricter", second_stop_stricter),
        ("a second stop can't be laxer", second_stop_laxer),
        ("a program that is stopped before it has started is stopped as soon as it runs", stop_before_start),
        ("a program that could not be started has no exit event", stop_before_failure),
        ("a stop of an unknown session reports it as gone", stop_unknown_session),
        ("a stop after the last event changes nothing", stop_after_end),
        ("a program whose first process exits has not ended while another process runs", fork_and_exit),
        ("of two sessions only the named session is stopped", stops_only_named_session),
        ("events of a stopped session and of the next session are never mixed up", stop_and_start_at_once),
        ("a second subscriber ends the stream of the first", second_subscriber),
    ]
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, wanted: &T) -> CaseResult {
    if is == wanted { Ok(()) } else { Err(format!("{what} is {is:?}, not {wanted:?}")) }
}

fn killed_status() -> ExitStatus {
    ExitStatus { code: None, signal: Some(9) }
}

fn start_and_kill<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::EndsOnRequest)?;
    context.expect_no_event()?;
    context.stop(&session, NO_GRACE)?;
    check("the status", &context.expect_exited(&session)?, &killed_status())
}

fn failing_start<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let entry = context.harness.entry_for(TestProgram::FailsToStart).entry_id;
    let session = context.spawn(TestProgram::FailsToStart)?;
    let failure = match context.next_event()? {
        HostEvent::SpawnFailed { session_id, failure } if session_id == session => failure,
        event => return Err(format!("received {event:?} instead of the failure")),
    };
    let has_place = failure.detail.contains(entry.as_str());
    let has_cure = failure.detail.split_once("; ").is_some_and(|(_, cure)| !cure.is_empty());
    if has_place && has_cure { Ok(()) } else { Err(format!("`{failure}` names no entry or no cure")) }
}

fn exit_code<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::Exits { after: NO_GRACE, code: 7 })?;
    check("the status", &context.expect_exited(&session)?, &ExitStatus { code: Some(7), signal: None })
}

fn exit_signal<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::KillsItself)?;
    check("the status", &context.expect_exited(&session)?, &killed_status())
}

fn ends_on_request<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::EndsOnRequest)?;
    context.stop(&session, LONG_GRACE)?;
    context.expect_exited(&session).map(drop)
}

fn killed_after_grace<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::IgnoresRequests)?;
    context.expect_no_event_for(SHORT_GRACE)?;
    context.stop(&session, SHORT_GRACE)?;
    check("the status", &context.expect_exited(&session)?, &killed_status())
}

fn second_stop_stricter<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::IgnoresRequests)?;
    context.expect_no_event_for(SHORT_GRACE)?;
    context.stop(&session, LONG_GRACE)?;
    context.expect_no_event_for(SHORT_GRACE)?;
    context.stop(&session, NO_GRACE)?;
    check("the status", &context.expect_exited(&session)?, &killed_status())
}

fn second_stop_laxer<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::IgnoresRequests)?;
    context.expect_no_event_for(SHORT_GRACE)?;
    context.stop(&session, SHORT_GRACE)?;
    context.stop(&session, LONG_GRACE)?;
    check("the status", &context.expect_exited(&session)?, &killed_status())
}

fn stop_before_start<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let session = context.spawn(TestProgram::EndsOnRequest)?;
    context.stop(&session, LONG_GRACE)?;
    context.expect_spawned(&session)?;
    context.expect_exited(&session).map(drop)
}

fn stop_before_failure<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let session = context.spawn(TestProgram::FailsToStart)?;
    context.stop(&session, NO_GRACE)?;
    match context.next_event()? {
        HostEvent::SpawnFailed { session_id, .. } if session_id == session => Ok(()),
        event => Err(format!("received {event:?} instead of the failure")),
    }
}

fn stop_unknown_session<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let session = context.harness.new_session_id();
    context.stop(&session, LONG_GRACE)?;
    context.expect_event(&HostEvent::Gone { session_id: session })
}

fn stop_after_end<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::Exits { after: NO_GRACE, code: 0 })?;
    context.expect_exited(&session)?;
    context.stop(&session, NO_GRACE)
}

/// S6.2b: a session ends when its tree is empty, not when its first process exits.
fn fork_and_exit<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session, _) = context.start(TestProgram::ForksAndExits)?;
    context.expect_no_event_for(3 * SHORT_GRACE)?;
    context.stop(&session, LONG_GRACE)?;
    context.expect_exited(&session).map(drop)
}

fn stops_only_named_session<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (first, _) = context.start(TestProgram::EndsOnRequest)?;
    let (second, _) = context.start(TestProgram::EndsOnRequest)?;
    for session in [first, second] {
        context.stop(&session, LONG_GRACE)?;
        context.expect_exited(&session)?;
        context.expect_no_event()?;
    }
    Ok(())
}

/// S6.2b: exit events belong to exactly one session.
fn stop_and_start_at_once<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (mut session, _) = context.start(TestProgram::EndsOnRequest)?;
    for _ in 0..context.harness.stop_start_rounds() {
        context.stop(&session, LONG_GRACE)?;
        let next = context.spawn(TestProgram::EndsOnRequest)?;
        let (mut ended, mut started) = (0, 0);
        while (ended, started) != (1, 1) {
            match context.next_event()? {
                HostEvent::Exited { session_id, .. } if session_id == session => ended += 1,
                HostEvent::Spawned { session_id, .. } if session_id == next => started += 1,
                event => return Err(format!("received {event:?} between {session} and {next}")),
            }
        }
        session = next;
    }
    context.stop(&session, NO_GRACE)?;
    context.expect_exited(&session).map(drop)
}

fn second_subscriber<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let mut first = context.subscribe_again()?;
    let (session, _) = context.start(TestProgram::EndsOnRequest)?;
    context.stop(&session, NO_GRACE)?;
    context.expect_exited(&session)?;
    match first.try_recv() {
        Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => Ok(()),
        other => Err(format!("the first stream still gives {other:?}")),
    }
}
