//! Asking every member to end: once each, and also those who come while the others are asked.

use std::collections::HashMap;
use std::time::Duration;

use rustix::process::Signal;

use crate::ladder::StopSignal;
use crate::record::ProcessIdentity;
use crate::sys::procfs::{ProcRoot, ProcessStat, open_pidfd};

/// Whom a request has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalReach {
    /// Everybody who was a member when it was made. Who came of them afterwards, such as the helper of a program that
    /// tidies up, is not asked.
    AllMembers,
    /// Somebody may not have heard of it, because members came and went, or could not be looked at.
    Incomplete {
        /// When to look for them, by [`Tree::signal_remaining`](crate::Tree::signal_the_rest).
        retry_after: Duration,
    },
}

/// How often in a row the members are looked at. Each look meets at least those who have come to rest.
const MAX_PASSES: u32 = 8;

/// Until members that could not be reached are looked for; doubled each time.
const FIRST_RETRY: Duration = Duration::from_millis(10);

/// At most so long: whoever forks and can't be hit, or hides for lack of descriptors, wakes us no more often.
const MAX_RETRY: Duration = Duration::from_secs(1);

/// How a member was found when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Alive,
    Dead,
}

/// A request that not everybody is known to have heard.
pub(crate) struct SignalRequest {
    signal: StopSignal,
    signalled: HashMap<ProcessIdentity, MemberState>,
    pause: Duration,
}

impl SignalRequest {
    pub(super) fn new(signal: StopSignal) -> Self {
        Self { signal, signalled: HashMap::new(), pause: FIRST_RETRY }
    }

    pub(super) fn signal(&self) -> StopSignal {
        self.signal
    }

    /// Looks at the members, by `pass`, until all whom it meets have been asked before. A fork is not finished while a
    /// signal is pending: whoever is unknown then came of somebody who had heard it. Only who has died since the last
    /// look may have forked before it heard, and have left a child where this look had been already.
    pub(super) fn signal_members(&mut self, mut pass: impl FnMut(&mut SignalPass<'_>)) -> SignalReach {
        // A stopped member is continued so that it can hear it.
        let signals = [self.signal.to_kernel(), Signal::CONT];
        for _ in 0..MAX_PASSES {
            let mut look = SignalPass { signalled: &mut self.signalled, signals, settled: true };
            pass(&mut look);
            // Where nobody has been met at all, it is the looking that does not work, or the tree has ended.
            if look.settled && !self.signalled.is_empty() {
                return SignalReach::AllMembers;
            }
        }
        let look_again = self.pause;
        self.pause = self.pause.saturating_mul(2).min(MAX_RETRY);
        SignalReach::Incomplete { retry_after: look_again }
    }
}

/// One look at all members.
pub(super) struct SignalPass<'request> {
    signalled: &'request mut HashMap<ProcessIdentity, MemberState>,
    signals: [Signal; 2],
    /// Nobody was met who is new, who has died since the last look, or who was gone before it could be asked.
    settled: bool,
}

impl SignalPass<'_> {
    /// Asks the process of this number, unless it was asked before. Whether it is a member is looked at once its number
    /// has been pinned.
    pub(super) fn signal_once(
        &mut self,
        proc: &ProcRoot,
        pid: i32,
        is_member: impl FnOnce(ProcessStat) -> bool,
    ) {
        let is_known = |stat: &ProcessStat| {
            self.signalled.contains_key(&ProcessIdentity { pid, start_time: stat.start_time })
        };
        if let Some(stat) = proc.stat(pid).ok().filter(is_known) {
            return self.record_state(pid, stat);
        }
        self.settled = false;
        let Ok(pidfd) = open_pidfd(pid) else { return };
        let Some(stat) = proc.stat(pid).ok().filter(|stat| is_member(*stat)) else { return };
        for signal in self.signals {
            // Ended meanwhile: nothing to do.
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
        self.record_state(pid, stat);
    }

    fn record_state(&mut self, pid: i32, stat: ProcessStat) {
        let process = ProcessIdentity { pid, start_time: stat.start_time };
        let found = if stat.is_alive() { MemberState::Alive } else { MemberState::Dead };
        let before = self.signalled.insert(process, found);
        self.settled &= before.is_some_and(|before| before == found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(state: u8) -> ProcessStat {
        ProcessStat { state, parent: 0, group: 0, start_time: 0 }
    }

    /// Members that are nobody, so that none is signalled: each look meets those of this moment.
    fn signal_in_passes(request: &mut SignalRequest, looks: &[&[(i32, u8)]]) -> SignalReach {
        let mut looks = looks.iter();
        let reach = request.signal_members(|look| {
            for (pid, letter) in *looks.next().expect("no more looks") {
                look.record_state(*pid, state(*letter));
            }
        });
        assert_eq!(looks.len(), 0, "looks that were not needed");
        reach
    }

    #[test]
    fn it_is_looked_again_until_nobody_is_new() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        let looks: [&[(i32, u8)]; 3] =
            [&[(1, b'S'), (2, b'S')], &[(1, b'S'), (2, b'S'), (3, b'R')], &[(2, b'S'), (3, b'S')]];
        assert_eq!(signal_in_passes(&mut request, &looks), SignalReach::AllMembers);
    }

    /// It may have forked before it heard: its child is below somebody who had been looked at already.
    #[test]
    fn who_has_died_since_may_have_left_a_child() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        let looks: [&[(i32, u8)]; 4] =
            [&[(1, b'R')], &[(1, b'Z')], &[(1, b'Z'), (2, b'R')], &[(1, b'Z'), (2, b'R')]];
        assert_eq!(signal_in_passes(&mut request, &looks), SignalReach::AllMembers);
    }

    #[test]
    fn while_nobody_comes_to_rest_it_is_looked_ever_more_rarely() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        let mut next = 0;
        let pauses: Vec<SignalReach> = (0..9)
            .map(|_| {
                request.signal_members(|look| {
                    next += 1;
                    look.record_state(next, state(b'R'));
                })
            })
            .collect();
        let expected = [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000];
        let expected =
            expected.map(|pause| SignalReach::Incomplete { retry_after: Duration::from_millis(pause) });
        assert_eq!(pauses, expected);
    }

    #[test]
    fn a_request_that_nobody_has_heard_has_not_reached_everybody() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        assert_eq!(request.signal_members(|_| {}), SignalReach::Incomplete { retry_after: FIRST_RETRY });
        assert_eq!(signal_in_passes(&mut request, &[&[(1, b'S')], &[(1, b'S')]]), SignalReach::AllMembers);
    }
}
