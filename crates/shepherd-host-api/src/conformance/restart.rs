//! Cases about the programs of an earlier host (S5.2, S9.1).

use std::time::Duration;

use super::case_context::{CaseContext, CaseResult};
use super::{ConformanceCase, ConformanceHarness, TestProgram};
use crate::{HostAdapter, HostEvent, HostSessionHandle};

/// Longer than any case waits.
const LONG_GRACE: Duration = Duration::from_secs(3_600);

pub(super) fn restart_cases<S: ConformanceHarness>() -> Vec<ConformanceCase<S>> {
    vec![
        ("a program is reattached by its handle and can be stopped", reattach_by_handle),
        ("a program is reattached without its handle and can be stopped", reattach_without_handle),
        ("a program that ignores requests is killed after it was reattached", reattached_killed_after_grace),
        ("a program that is stopped during its reattachment ends", stop_during_reattach),
        ("a program that ends while there is no host is gone", gone_after_restart),
        ("a program that never ran is gone, whatever the handle says", never_ran),
        ("the sessions of an earlier host are known to the next host", sessions_are_recorded),
    ]
}

/// The information by which the later host finds the program.
#[derive(PartialEq)]
enum ReattachBy {
    Handle,
    SessionId,
}

fn reattach_and_stop<S: ConformanceHarness>(
    context: &mut CaseContext<'_, S>,
    program: TestProgram,
    reattach_by: &ReattachBy,
) -> CaseResult {
    let (session_id, handle) = context.start(program)?;
    // Gives a program that ignores requests the time to install its signal handler.
    context.expect_no_event()?;
    context.restart();
    context.host()?.reattach(&session_id, (*reattach_by == ReattachBy::Handle).then_some(&handle));
    context.expect_reattached(&session_id)?;
    context.expect_no_event()?;
    let grace = if program == TestProgram::IgnoresRequests { Duration::from_millis(200) } else { LONG_GRACE };
    context.stop(&session_id, grace)?;
    context.expect_exited(&session_id).map(drop)
}

fn reattach_by_handle<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    reattach_and_stop(context, TestProgram::EndsOnRequest, &ReattachBy::Handle)
}

fn reattach_without_handle<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    reattach_and_stop(context, TestProgram::ForksAndExits, &ReattachBy::SessionId)
}

fn reattached_killed_after_grace<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    reattach_and_stop(context, TestProgram::IgnoresRequests, &ReattachBy::Handle)
}

fn stop_during_reattach<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session_id, handle) = context.start(TestProgram::EndsOnRequest)?;
    context.restart();
    context.host()?.reattach(&session_id, Some(&handle));
    context.stop(&session_id, LONG_GRACE)?;
    context.expect_reattached(&session_id)?;
    context.expect_exited(&session_id).map(drop)
}

fn gone_after_restart<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session_id, handle) =
        context.start(TestProgram::Exits { after: Duration::from_millis(500), code: 0 })?;
    context.restart_after(Duration::from_secs(2));
    context.host()?.reattach(&session_id, Some(&handle));
    context.expect_event(&HostEvent::Gone { session_id })
}

fn never_ran<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    for handle in [None, Some(HostSessionHandle::new("{\"never\": \"ran\"}".to_owned()))] {
        let session_id = context.harness.new_session_id();
        context.host()?.reattach(&session_id, handle.as_ref());
        context.expect_event(&HostEvent::Gone { session_id })?;
    }
    Ok(())
}

fn sessions_are_recorded<S: ConformanceHarness>(context: &mut CaseContext<'_, S>) -> CaseResult {
    let (session_id, _) = context.start(TestProgram::EndsOnRequest)?;
    context.restart();
    if !context.host()?.recorded_sessions().contains(&session_id) {
        return Err(format!("the host has no record of {session_id}"));
    }
    context.host()?.reattach(&session_id, None);
    context.expect_reattached(&session_id)?;
    context.stop(&session_id, Duration::ZERO)?;
    context.expect_exited(&session_id).map(drop)
}
