//! Writes heartbeats on a thread of its own while there is a session: a power cut costs the child at most the time
//! between two of them (S8.2). The loop doesn't wake up for a heartbeat and doesn't wait for its disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use shepherd_core::{CLOCK_JITTER, DaemonHeartbeat, HEARTBEAT_INTERVAL};
use shepherd_store::HeartbeatFile;
use shepherd_util::{BootId, Clock, ClockReading, ErrorChain, SystemClock};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A message to the loop.
#[derive(Debug)]
pub(crate) enum HeartbeatReport {
    /// A heartbeat could not be written. The message repeats with each failure, because the usage of the session then
    /// has to be written to the store.
    Failed {
        /// The cause, for people.
        detail: String,
    },
    /// Heartbeats can be written again.
    Recovered,
}

/// The heartbeat mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeartbeatMode {
    /// The first heartbeat comes at once, further ones while the machine is awake.
    Active,
    /// No heartbeat is written.
    Paused,
}

/// The loop's handle to the thread.
pub(crate) struct HeartbeatThread {
    shared: Arc<HeartbeatShared>,
    mode: HeartbeatMode,
}

#[derive(Default)]
struct HeartbeatShared {
    state: Mutex<HeartbeatState>,
    changed: Condvar,
}

#[derive(Default)]
struct HeartbeatState {
    command: HeartbeatCommand,
    /// The time of the last heartbeat, written or failed.
    last_beat: Option<ClockReading>,
    /// The last heartbeat before the machine was suspended, until it is requested.
    before_sleep: Option<ClockReading>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HeartbeatCommand {
    #[default]
    Pause,
    Run,
    Exit,
}

impl HeartbeatThread {
    pub(crate) fn start(
        boot: BootId,
        file: HeartbeatFile,
    ) -> std::io::Result<(Self, UnboundedReceiver<HeartbeatReport>)> {
        let (reports, news) = unbounded_channel();
        let shared = Arc::new(HeartbeatShared::default());
        let heart = HeartbeatWorker { boot, file, shared: shared.clone(), reports, failing: false };
        std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || heart.run())?;
        Ok((Self { shared, mode: HeartbeatMode::Paused }, news))
    }

    /// Sets the heartbeat mode.
    pub(crate) fn set_mode(&mut self, rhythm: HeartbeatMode) {
        if std::mem::replace(&mut self.mode, rhythm) != rhythm {
            self.shared.send_command(match rhythm {
                HeartbeatMode::Active => HeartbeatCommand::Run,
                HeartbeatMode::Paused => HeartbeatCommand::Pause,
            });
        }
    }

    /// Returns the last heartbeat before the machine was suspended, if it was since the last call.
    pub(crate) fn take_beat_before_sleep(&self, now: ClockReading) -> Option<ClockReading> {
        let mut state = self.shared.state();
        let last = state.last_beat.filter(|last| has_slept(*last, now));
        state.before_sleep.take().or(last)
    }
}

impl Drop for HeartbeatThread {
    /// Ends the thread. A thread that hangs on a dead disk is not waited for.
    fn drop(&mut self) {
        self.shared.send_command(HeartbeatCommand::Exit);
    }
}

impl HeartbeatShared {
    fn state(&self) -> MutexGuard<'_, HeartbeatState> {
        // No holder of the lock leaves a half-written state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_command(&self, wanted: HeartbeatCommand) {
        let mut state = self.state();
        state.command = wanted;
        // A heartbeat from before the session doesn't belong to it.
        (state.last_beat, state.before_sleep) = (None, None);
        self.changed.notify_one();
    }
}

struct HeartbeatWorker {
    boot: BootId,
    file: HeartbeatFile,
    shared: Arc<HeartbeatShared>,
    reports: UnboundedSender<HeartbeatReport>,
    failing: bool,
}

impl HeartbeatWorker {
    fn run(mut self) {
        // If there is no space now, there may be later; otherwise the failure is reported then.
        self.file.prepare().ok();
        while self.wait_until_due() == HeartbeatStep::Write {
            self.write_heartbeat();
        }
    }

    /// Returns the time until the next heartbeat: the first at once, the others while the machine is awake.
    fn wait_until_due(&self) -> HeartbeatStep {
        let mut state = self.shared.state();
        loop {
            state = match (state.command, state.last_beat) {
                (HeartbeatCommand::Exit, _) => return HeartbeatStep::Exit,
                (HeartbeatCommand::Pause, _) => {
                    self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                (HeartbeatCommand::Run, None) => return HeartbeatStep::Write,
                (HeartbeatCommand::Run, Some(last)) => {
                    let left =
                        HEARTBEAT_INTERVAL.saturating_sub(SystemClock.now().mono.awake_since(last.mono));
                    let waited = self.shared.changed.wait_timeout(state, left);
                    let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() && state.command == HeartbeatCommand::Run {
                        return HeartbeatStep::Write;
                    }
                    state
                }
            };
        }
    }

    fn write_heartbeat(&mut self) {
        let at = SystemClock.now();
        let mut state = self.shared.state();
        if let Some(last) = state.last_beat.replace(at).filter(|last| has_slept(*last, at)) {
            state.before_sleep.get_or_insert(last);
        }
        drop(state);
        match self.file.write(DaemonHeartbeat { boot: self.boot, at }) {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    self.report(HeartbeatReport::Recovered);
                }
            }
            Err(error) => {
                self.failing = true;
                self.report(HeartbeatReport::Failed { detail: ErrorChain(&error).to_string() });
            }
        }
    }

    fn report(&self, report: HeartbeatReport) {
        // Sending fails only while the daemon ends.
        self.reports.send(report).ok();
    }
}

/// The next task of the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeartbeatStep {
    Write,
    Exit,
}

fn has_slept(earlier: ClockReading, now: ClockReading) -> bool {
    now.mono.suspended_since(earlier.mono) > CLOCK_JITTER
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use shepherd_store::{SqliteStore, Store};
    use shepherd_util::MonotonicInstant;

    use super::*;

    fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < deadline, "never: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn each_session_begins_with_a_heartbeat() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let (store, _) = SqliteStore::open(&data, SystemClock.now().wall).unwrap();
        let boot = BootId::read().unwrap();
        let (mut heartbeat, mut reports) =
            HeartbeatThread::start(boot, HeartbeatFile::in_folder(&data)).unwrap();
        let last = || store.load().unwrap().heartbeat;
        assert_eq!(last(), None);
        for _ in 0..3 {
            let began = SystemClock.now().mono;
            heartbeat.set_mode(HeartbeatMode::Active);
            wait_until("it is on the disk", || {
                last().is_some_and(|heartbeat| {
                    heartbeat.boot == boot && heartbeat.at.mono.total() >= began.total()
                })
            });
            heartbeat.set_mode(HeartbeatMode::Paused);
        }
        assert!(reports.try_recv().is_err(), "nothing went wrong");
    }

    #[test]
    fn the_last_heartbeat_before_a_sleep_is_reported_after_it() {
        let heartbeat = HeartbeatThread { shared: Arc::default(), mode: HeartbeatMode::Paused };
        let now = SystemClock.now();
        let slept = |hours: u64| {
            let mono = MonotonicInstant::new(
                now.mono.total() + Duration::from_secs(3_600 * hours),
                now.mono.awake() + Duration::from_secs(1),
            );
            ClockReading { wall: now.wall, mono }
        };
        assert_eq!(heartbeat.take_beat_before_sleep(now), None);
        heartbeat.shared.state().last_beat = Some(now);
        assert_eq!(heartbeat.take_beat_before_sleep(slept(0)), None);
        assert_eq!(heartbeat.take_beat_before_sleep(slept(8)), Some(now));
        // This holds even if there was another heartbeat since the machine woke up.
        *heartbeat.shared.state() = HeartbeatState {
            last_beat: Some(slept(8)),
            before_sleep: Some(now),
            ..HeartbeatState::default()
        };
        assert_eq!(heartbeat.take_beat_before_sleep(slept(8)), Some(now));
        assert_eq!(heartbeat.take_beat_before_sleep(slept(8)), None, "once");
    }
}
