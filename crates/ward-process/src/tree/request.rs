//! Asking every member to end: once each, and also those who come while the others are asked.

use std::collections::HashMap;
use std::time::Duration;

use rustix::process::Signal;

use crate::ladder::StopSignal;
use crate::record::RootProcess;
use crate::sys::procfs::{ProcRoot, Stat, pidfd_of};

/// Whom a request has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everybody who was a member when it was made. Who came of them afterwards, such as the helper of a program that
    /// tidies up, is not asked.
    Everybody,
    /// Somebody may not have heard of it, because members came and went, or could not be looked at.
    NotYet {
        /// When to look for them, by [`Tree::signal_the_rest`](crate::Tree::signal_the_rest).
        look_again: Duration,
    },
}

/// How often in a row the members are looked at. Each look meets at least those who have come to rest.
const MOST_LOOKS: u32 = 8;

/// Until members that could not be reached are looked for; doubled each time.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// At most so long: whoever forks and can't be hit, or hides for lack of descriptors, wakes us no more often.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// How a member was found when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Alive,
    Dead,
}

/// A request that not everybody is known to have heard.
pub(crate) struct Request {
    signal: StopSignal,
    asked: HashMap<RootProcess, Found>,
    pause: Duration,
}

impl Request {
    pub(super) fn new(signal: StopSignal) -> Self {
        Self { signal, asked: HashMap::new(), pause: LOOK_AGAIN }
    }

    pub(super) fn signal(&self) -> StopSignal {
        self.signal
    }

    /// Looks at the members, by `pass`, until all whom it meets have been asked before. A fork is not finished while a
    /// signal is pending: whoever is unknown then came of somebody who had heard it. Only who has died since the last
    /// look may have forked before it heard, and have left a child where this look had been already.
    pub(super) fn reach(&mut self, mut pass: impl FnMut(&mut Look<'_>)) -> Reach {
        // A stopped member is continued so that it can hear it.
        let signals = [self.signal.to_kernel(), Signal::CONT];
        for _ in 0..MOST_LOOKS {
            let mut look = Look { asked: &mut self.asked, signals, at_rest: true };
            pass(&mut look);
            // Where nobody has been met at all, it is the looking that does not work, or the tree has ended.
            if look.at_rest && !self.asked.is_empty() {
                return Reach::Everybody;
            }
        }
        let look_again = self.pause;
        self.pause = self.pause.saturating_mul(2).min(LOOK_AT_LEAST_EVERY);
        Reach::NotYet { look_again }
    }
}

/// One look at all members.
pub(super) struct Look<'request> {
    asked: &'request mut HashMap<RootProcess, Found>,
    signals: [Signal; 2],
    /// Nobody was met who is new, who has died since the last look, or who was gone before it could be asked.
    at_rest: bool,
}

impl Look<'_> {
    /// Asks the process of this number, unless it was asked before. Whether it is a member is looked at once its number
    /// has been pinned.
    pub(super) fn meet(&mut self, proc: &ProcRoot, pid: i32, is_member: impl FnOnce(Stat) -> bool) {
        let is_known =
            |stat: &Stat| self.asked.contains_key(&RootProcess { pid, start_time: stat.start_time });
        if let Some(stat) = proc.stat(pid).ok().filter(is_known) {
            return self.note(pid, stat);
        }
        self.at_rest = false;
        let Ok(pidfd) = pidfd_of(pid) else { return };
        let Some(stat) = proc.stat(pid).ok().filter(|stat| is_member(*stat)) else { return };
        for signal in self.signals {
            // Ended meanwhile: nothing to do.
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
        self.note(pid, stat);
    }

    fn note(&mut self, pid: i32, stat: Stat) {
        let process = RootProcess { pid, start_time: stat.start_time };
        let found = if stat.is_alive() { Found::Alive } else { Found::Dead };
        let before = self.asked.insert(process, found);
        self.at_rest &= before.is_some_and(|before| before == found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(state: u8) -> Stat {
        Stat { state, parent: 0, group: 0, start_time: 0 }
    }

    /// Members that are nobody, so that none is signalled: each look meets those of this moment.
    fn reach(request: &mut Request, looks: &[&[(i32, u8)]]) -> Reach {
        let mut looks = looks.iter();
        let reach = request.reach(|look| {
            for (pid, letter) in *looks.next().expect("no more looks") {
                look.note(*pid, state(*letter));
            }
        });
        assert_eq!(looks.len(), 0, "looks that were not needed");
        reach
    }

    #[test]
    fn it_is_looked_again_until_nobody_is_new() {
        let mut request = Request::new(StopSignal::Terminate);
        let looks: [&[(i32, u8)]; 3] =
            [&[(1, b'S'), (2, b'S')], &[(1, b'S'), (2, b'S'), (3, b'R')], &[(2, b'S'), (3, b'S')]];
        assert_eq!(reach(&mut request, &looks), Reach::Everybody);
    }

    /// It may have forked before it heard: its child is below somebody who had been looked at already.
    #[test]
    fn who_has_died_since_may_have_left_a_child() {
        let mut request = Request::new(StopSignal::Terminate);
        let looks: [&[(i32, u8)]; 4] =
            [&[(1, b'R')], &[(1, b'Z')], &[(1, b'Z'), (2, b'R')], &[(1, b'Z'), (2, b'R')]];
        assert_eq!(reach(&mut request, &looks), Reach::Everybody);
    }

    #[test]
    fn while_nobody_comes_to_rest_it_is_looked_ever_more_rarely() {
        let mut request = Request::new(StopSignal::Terminate);
        let mut next = 0;
        let pauses: Vec<Reach> = (0..9)
            .map(|_| {
                request.reach(|look| {
                    next += 1;
                    look.note(next, state(b'R'));
                })
            })
            .collect();
        let expected = [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000];
        let expected = expected.map(|pause| Reach::NotYet { look_again: Duration::from_millis(pause) });
        assert_eq!(pauses, expected);
    }

    #[test]
    fn a_request_that_nobody_has_heard_has_not_reached_everybody() {
        let mut request = Request::new(StopSignal::Terminate);
        assert_eq!(request.reach(|_| {}), Reach::NotYet { look_again: LOOK_AGAIN });
        assert_eq!(reach(&mut request, &[&[(1, b'S')], &[(1, b'S')]]), Reach::Everybody);
    }
}
