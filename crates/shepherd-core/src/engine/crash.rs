//! Crashes soon after the launch, which cause no cooldown: a child should not have to wait because a game failed to
//! start. The usage is charged all the same.

use shepherd_api::EndReason;
use shepherd_util::ClockReading;

use super::CoreEngine;
use crate::session::SessionRecord;

/// The number of crashes in a row that cause no cooldown. A program that is made to fail on purpose gains that many
/// short runs before each cooldown, and no more.
const MAX_EXCUSED_CRASHES: u32 = 3;

/// The signals by which the kernel ends a faulty program: ILL, TRAP, ABRT, BUS, FPE, SEGV and SYS. Other signals come
/// from a person or a log-out, and ending a program in that way must not avoid the cooldown.
const FAULT_SIGNALS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];

impl CoreEngine {
    /// Returns whether a session causes no cooldown because its program crashed soon, and counts such crashes.
    pub(super) fn excuse_crash(
        &mut self,
        session: &SessionRecord,
        reason: &EndReason,
        now: ClockReading,
    ) -> bool {
        let soon = now.mono.total_since(session.started) < session.crash_within;
        let crashes = self.snapshot.crashes.entry(session.profile.clone()).or_default();
        let count = crashes.get(&session.entry_id).copied().unwrap_or(0);
        let excused = soon && is_crash(reason) && count < MAX_EXCUSED_CRASHES;
        if excused {
            crashes.insert(session.entry_id.clone(), count + 1);
        } else {
            crashes.remove(&session.entry_id);
        }
        if crashes.is_empty() {
            self.snapshot.crashes.remove(&session.profile);
        }
        excused
    }
}

/// Returns whether a program ended by itself because of a fault. A program that was asked to end has another reason.
fn is_crash(reason: &EndReason) -> bool {
    match reason {
        EndReason::Exited { signal: Some(signal), .. } => FAULT_SIGNALS.contains(signal),
        EndReason::Exited { code, signal: None } => code.is_some_and(|code| code != 0),
        EndReason::Expired
        | EndReason::Stopped { .. }
        | EndReason::LaunchFailed { .. }
        | EndReason::LaunchTimedOut
        | EndReason::Lost => false,
    }
}
