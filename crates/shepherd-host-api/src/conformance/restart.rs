//! What a later host does about the programs of an earlier one (S5.2, S9.1).

use std::time::Duration;

use super::case_context::{CaseContext, CaseResult};
use super::{ConformanceCase, ConformanceHarness, TestProgram};
use crate::{HostAdapter, HostEvent, HostSessionHandle};

/// Longer than anything is waited for.
const LONG_GRACE: Duration = Duration::from_secs(3_600);

pub(super) fn restart_cases<S: ConformanceHarness>() -> Vec<ConformanceCase<S>> {
    vec![
        ("a program is taken back by its handle and can be ended", reattach_by_handle),
        ("a program is taken back without its handle and can be ended", reattach_without_handle),
        ("a program that ignores requests is killed after it was taken back", reattached_killed_after_grace),
        ("a program that is stopped while it is taken back is ended", stop_during_reattach),
        ("a program that ends while nobody looks is gone", gone_after_restart),
        ("a program that never ran is gone, whatever the handle says", never_ran),
        ("what an earlier host left is known to the next", sessions_are_recorded),
    ]
}

/// What the later host is given.
#[derive(PartialEq)]
enum ReattachBy {
    Handle,
    SessionId,
}

fn reattach_and_stop<S: ConformanceHarness>(
    play: &mut CaseContext<'_, S>,
    part: TestProgram,
    given: &ReattachBy,
) -> CaseResult {
    let (session_id, handle) = play.start(part)?;
    // So that it has come to where it ignores requests, if it does.
    play.expect_no_event()?;
    play.restart();
    play.host()?.reattach(&session_id, (*given == ReattachBy::Handle).then_some(&handle));
    play.expect_reattached(&session_id)?;
    play.expect_no_event()?;
    let grace = if part == TestProgram::IgnoresRequests { Duration::from_millis(200) } else { LONG_GRACE };
    play.stop(&session_id, grace)?;
    play.expect_exited(&session_id).map(drop)
}

fn reattach_by_handle<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    reattach_and_stop(play, TestProgram::EndsOnRequest, &ReattachBy::Handle)
}

fn reattach_without_handle<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    reattach_and_stop(play, TestProgram::ForksAndExits, &ReattachBy::SessionId)
}

fn reattached_killed_after_grace<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    reattach_and_stop(play, TestProgram::IgnoresRequests, &ReattachBy::Handle)
}

fn stop_during_reattach<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session_id, handle) = play.start(TestProgram::EndsOnRequest)?;
    play.restart();
    play.host()?.reattach(&session_id, Some(&handle));
    play.stop(&session_id, LONG_GRACE)?;
    play.expect_reattached(&session_id)?;
    play.expect_exited(&session_id).map(drop)
}

fn gone_after_restart<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session_id, handle) =
        play.start(TestProgram::Exits { after: Duration::from_millis(500), code: 0 })?;
    play.restart_after(Duration::from_secs(2));
    play.host()?.reattach(&session_id, Some(&handle));
    play.expect_event(&HostEvent::Gone { session_id })
}

fn never_ran<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    for handle in [None, Some(HostSessionHandle::new("{\"never\": \"ran\"}".to_owned()))] {
        let session_id = play.harness.new_session_id();
        play.host()?.reattach(&session_id, handle.as_ref());
        play.expect_event(&HostEvent::Gone { session_id })?;
    }
    Ok(())
}

fn sessions_are_recorded<S: ConformanceHarness>(play: &mut CaseContext<'_, S>) -> CaseResult {
    let (session_id, _) = play.start(TestProgram::EndsOnRequest)?;
    play.restart();
    if !play.host()?.recorded_sessions().contains(&session_id) {
        return Err(format!("{session_id} is forgotten"));
    }
    play.host()?.reattach(&session_id, None);
    play.expect_reattached(&session_id)?;
    play.stop(&session_id, Duration::ZERO)?;
    play.expect_exited(&session_id).map(drop)
}
