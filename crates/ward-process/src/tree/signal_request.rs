//! Sends a signal to every member of a tree once, including members that appear while others are being
//! signalled.

use std::collections::HashMap;
use std::time::Duration;

use rustix::process::Signal;

use crate::ladder::StopSignal;
use crate::record::ProcessIdentity;
use crate::sys::procfs::{ProcRoot, ProcessStat, open_pidfd};

/// The result of sending a signal to the members of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalDelivery {
    /// The signal has reached every process that was a member when it was sent. Later children of these, such
    /// as the helper of a program that cleans up, are not signalled.
    AllMembers,
    /// Some members may not have received the signal, because members were forking and ending, or could not
    /// be read in `/proc`.
    Incomplete {
        /// Time to wait before calling
        /// [`ProcessTree::signal_remaining`](crate::ProcessTree::signal_remaining).
        retry_after: Duration,
    },
}

/// Number of passes over the members in a row. Each pass reaches at least the members that aren't forking.
const MAX_PASSES: u32 = 8;

/// Time before the first retry; it doubles with each retry.
const FIRST_RETRY: Duration = Duration::from_millis(10);

/// Longest time between retries. It bounds how often a tree that keeps forking, or that can't be signalled
/// for lack of descriptors, wakes us.
const MAX_RETRY: Duration = Duration::from_secs(1);

/// The state of a member in the last pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Alive,
    Dead,
}

/// A signal that may not have reached all members yet.
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

    /// Makes passes over the members, by `visit_members`, until a pass meets only members that have been
    /// signalled before.
    ///
    /// The kernel doesn't complete a fork while a signal is pending, so an unknown process that appears after
    /// a complete pass is the child of a process that had received the signal. The exception is a member that
    /// has died since the last pass: it may have forked before it received the signal, and its child may be
    /// at a place that the pass had already visited. Such a death therefore requires another pass.
    pub(super) fn signal_members(
        &mut self,
        mut visit_members: impl FnMut(&mut SignalPass<'_>),
    ) -> SignalDelivery {
        // A stopped member acts on a signal only after it is continued.
        let signals = [self.signal.to_kernel(), Signal::CONT];
        for _ in 0..MAX_PASSES {
            let mut pass = SignalPass { signalled: &mut self.signalled, signals, settled: true };
            visit_members(&mut pass);
            // If no member was ever found, reading /proc fails or the tree has ended.
            if pass.settled && !self.signalled.is_empty() {
                return SignalDelivery::AllMembers;
            }
        }
        let retry_after = self.pause;
        self.pause = self.pause.saturating_mul(2).min(MAX_RETRY);
        SignalDelivery::Incomplete { retry_after }
    }
}

/// A pass over all members.
pub(super) struct SignalPass<'request> {
    signalled: &'request mut HashMap<ProcessIdentity, MemberState>,
    signals: [Signal; 2],
    /// True if the pass met no member that is new, that has died since the last pass, or that was gone before
    /// it could be signalled.
    settled: bool,
}

impl SignalPass<'_> {
    /// Signals the process with this pid unless it was signalled before. `is_member` is called once the pid
    /// has been pinned by a pidfd.
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
            // Fails if the process has ended meanwhile, which is fine.
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
        ProcessStat { state, parent: 0, group: 0, threads: 1, start_time: 0 }
    }

    /// Runs a request in which each pass meets the given pids and states. The members are simulated, and no
    /// process is signalled.
    fn signal_in_passes(request: &mut SignalRequest, passes: &[&[(i32, u8)]]) -> SignalDelivery {
        let mut passes = passes.iter();
        let delivery = request.signal_members(|pass| {
            for (pid, letter) in *passes.next().expect("more passes than expected") {
                pass.record_state(*pid, state(*letter));
            }
        });
        assert_eq!(passes.len(), 0, "fewer passes than expected");
        delivery
    }

    #[test]
    fn passes_are_repeated_until_no_member_is_new() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        let passes: [&[(i32, u8)]; 3] =
            [&[(1, b'S'), (2, b'S')], &[(1, b'S'), (2, b'S'), (3, b'R')], &[(2, b'S'), (3, b'S')]];
        assert_eq!(signal_in_passes(&mut request, &passes), SignalDelivery::AllMembers);
    }

    /// The dead member may have forked before it received the signal, and the pass may already have visited
    /// the place where its child is.
    #[test]
    fn a_member_that_died_since_the_last_pass_requires_another_pass() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        let passes: [&[(i32, u8)]; 4] =
            [&[(1, b'R')], &[(1, b'Z')], &[(1, b'Z'), (2, b'R')], &[(1, b'Z'), (2, b'R')]];
        assert_eq!(signal_in_passes(&mut request, &passes), SignalDelivery::AllMembers);
    }

    #[test]
    fn retries_become_rarer_while_new_members_keep_appearing() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        let mut next = 0;
        let reaches: Vec<SignalDelivery> = (0..9)
            .map(|_| {
                request.signal_members(|pass| {
                    next += 1;
                    pass.record_state(next, state(b'R'));
                })
            })
            .collect();
        let expected = [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000];
        let expected =
            expected.map(|pause| SignalDelivery::Incomplete { retry_after: Duration::from_millis(pause) });
        assert_eq!(reaches, expected);
    }

    #[test]
    fn a_signal_without_any_recipient_is_incomplete() {
        let mut request = SignalRequest::new(StopSignal::Terminate);
        assert_eq!(request.signal_members(|_| {}), SignalDelivery::Incomplete { retry_after: FIRST_RETRY });
        assert_eq!(signal_in_passes(&mut request, &[&[(1, b'S')], &[(1, b'S')]]), SignalDelivery::AllMembers);
    }
}
