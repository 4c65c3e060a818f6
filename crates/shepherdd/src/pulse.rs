//! Signs of life on a thread of their own, while there is a session: a power cut costs the child no more than the time
//! between two of them (S8.2). Nobody else wakes up for it, and nobody waits for its disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use shepherd_core::{JITTER, PULSE, Pulse};
use shepherd_store::PulseFile;
use shepherd_util::{BootId, Chain, Clock, Now, SystemClock};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What the loop has to know.
#[derive(Debug)]
pub(crate) enum PulseReport {
    /// A sign of life could not be written. It comes again with each that can't: somebody else has to write down how
    /// far the session is.
    Failed {
        /// Why, for people.
        detail: String,
    },
    /// They can be written again.
    Works,
}

/// Whether signs of life are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rhythm {
    /// The first at once, and more of them while the machine is awake.
    Beating,
    /// None.
    Resting,
}

/// The loop's end of it.
pub(crate) struct PulseThread {
    shared: Arc<Shared>,
    rhythm: Rhythm,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wanted: Wanted,
    /// When there was last one, whether or not it could be written.
    last: Option<Now>,
    /// The last one before the machine slept, until somebody asks for it.
    before_sleep: Option<Now>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Wanted {
    #[default]
    Rest,
    Beat,
    End,
}

impl PulseThread {
    pub(crate) fn start(
        boot: BootId,
        file: PulseFile,
    ) -> std::io::Result<(Self, UnboundedReceiver<PulseReport>)> {
        let (reports, news) = unbounded_channel();
        let shared = Arc::new(Shared::default());
        let heart = Heart { boot, file, shared: shared.clone(), reports, failing: false };
        std::thread::Builder::new().name("pulse".to_owned()).spawn(move || heart.run())?;
        Ok((Self { shared, rhythm: Rhythm::Resting }, news))
    }

    /// Gives signs of life so from now on.
    pub(crate) fn take_up(&mut self, rhythm: Rhythm) {
        if std::mem::replace(&mut self.rhythm, rhythm) != rhythm {
            self.shared.want(match rhythm {
                Rhythm::Beating => Wanted::Beat,
                Rhythm::Resting => Wanted::Rest,
            });
        }
    }

    /// The last sign of life before the machine slept, if it has since anybody asked.
    pub(crate) fn before_sleep(&self, now: Now) -> Option<Now> {
        let mut state = self.shared.state();
        let last = state.last.filter(|last| has_slept(*last, now));
        state.before_sleep.take().or(last)
    }
}

impl Drop for PulseThread {
    /// Ends the thread. One that hangs on a dead disk is not waited for.
    fn drop(&mut self) {
        self.shared.want(Wanted::End);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nobody leaves half of it behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, wanted: Wanted) {
        let mut state = self.state();
        state.wanted = wanted;
        // What was before a session is none of it.
        (state.last, state.before_sleep) = (None, None);
        self.changed.notify_one();
    }
}

struct Heart {
    boot: BootId,
    file: PulseFile,
    shared: Arc<Shared>,
    reports: UnboundedSender<PulseReport>,
    failing: bool,
}

impl Heart {
    fn run(mut self) {
        // If there is no room for it now, there may be when it is needed; otherwise that is told then.
        self.file.prepare().ok();
        while self.wait() == Next::Beat {
            self.beat();
        }
    }

    /// Until the next one is due: the first at once, and the others while the machine is awake.
    fn wait(&self) -> Next {
        let mut state = self.shared.state();
        loop {
            state = match (state.wanted, state.last) {
                (Wanted::End, _) => return Next::End,
                (Wanted::Rest, _) => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                (Wanted::Beat, None) => return Next::Beat,
                (Wanted::Beat, Some(last)) => {
                    let left = PULSE.saturating_sub(SystemClock.now().mono.awake_since(last.mono));
                    let waited = self.shared.changed.wait_timeout(state, left);
                    let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() && state.wanted == Wanted::Beat {
                        return Next::Beat;
                    }
                    state
                }
            };
        }
    }

    fn beat(&mut self) {
        let at = SystemClock.now();
        let mut state = self.shared.state();
        if let Some(last) = state.last.replace(at).filter(|last| has_slept(*last, at)) {
            state.before_sleep.get_or_insert(last);
        }
        drop(state);
        match self.file.write(Pulse { boot: self.boot, at }) {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    self.report(PulseReport::Works);
                }
            }
            Err(error) => {
                self.failing = true;
                self.report(PulseReport::Failed { detail: Chain(&error).to_string() });
            }
        }
    }

    fn report(&self, report: PulseReport) {
        // The loop is gone only when the daemon is.
        self.reports.send(report).ok();
    }
}

/// What there is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Beat,
    End,
}

fn has_slept(earlier: Now, now: Now) -> bool {
    now.mono.suspended_since(earlier.mono) > JITTER
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use shepherd_store::{SqliteStore, Store};
    use shepherd_util::MonotonicInstant;

    use super::*;

    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < deadline, "never: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn each_session_begins_with_a_sign_of_life() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let (store, _) = SqliteStore::open(&data, SystemClock.now().wall).unwrap();
        let boot = BootId::read().unwrap();
        let (mut pulse, mut reports) = PulseThread::start(boot, PulseFile::in_folder(&data)).unwrap();
        let last = || store.load().unwrap().pulse;
        assert_eq!(last(), None);
        for _ in 0..3 {
            let began = SystemClock.now().mono;
            pulse.take_up(Rhythm::Beating);
            until("it is on the disk", || {
                last().is_some_and(|pulse| pulse.boot == boot && pulse.at.mono.total() >= began.total())
            });
            pulse.take_up(Rhythm::Resting);
        }
        assert!(reports.try_recv().is_err(), "nothing went wrong");
    }

    #[test]
    fn the_last_moment_before_a_sleep_is_told_once_it_is_over() {
        let pulse = PulseThread { shared: Arc::default(), rhythm: Rhythm::Resting };
        let now = SystemClock.now();
        let slept = |hours: u64| {
            let mono = MonotonicInstant::new(
                now.mono.total() + Duration::from_secs(3_600 * hours),
                now.mono.awake() + Duration::from_secs(1),
            );
            Now { wall: now.wall, mono }
        };
        assert_eq!(pulse.before_sleep(now), None);
        pulse.shared.state().last = Some(now);
        assert_eq!(pulse.before_sleep(slept(0)), None);
        assert_eq!(pulse.before_sleep(slept(8)), Some(now));
        // Also if there was another sign of life since it woke up.
        *pulse.shared.state() = State { last: Some(slept(8)), before_sleep: Some(now), ..State::default() };
        assert_eq!(pulse.before_sleep(slept(8)), Some(now));
        assert_eq!(pulse.before_sleep(slept(8)), None, "once");
    }
}
