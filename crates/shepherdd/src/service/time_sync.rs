//! Tells the engine when the system's time synchronisation vouches for the clock (S4.5), so that a clock that was wrong
//! and is right again needs no command.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shepherd_util::{ClockReading, MonotonicInstant};

use super::DaemonService;
use crate::sys;

/// The interval at which the kernel is asked while the clock is untrusted. Some time services say only a while after they
/// set the clock that it is right.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The file that `systemd-timesyncd` touches whenever it has synchronised the clock. The kernel can't be asked in our own
/// systemd unit, which forbids all system calls about the clock.
const TIMESYNCD_FILE: &str = "/run/systemd/timesync/synchronized";

/// `systemd-timesyncd` synchronises at least every 2048 seconds. The rest is for a server that answers late.
const TIMESYNCD_INTERVAL: SignedDuration = SignedDuration::from_secs(2_100);

/// The sources that may vouch for the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeSyncSource {
    /// The kernel and `systemd-timesyncd`. Only root can make either of them say that the clock is right.
    #[default]
    System,
    /// Only an administrator may.
    Nobody,
}

/// The check of the system's time synchronisation.
#[derive(Debug, Default)]
pub(crate) struct TimeSyncCheck {
    pub(crate) source: TimeSyncSource,
    /// The next check; `None` while the clock is trusted, so that an idle daemon sleeps (S4.7).
    next: Option<MonotonicInstant>,
}

impl DaemonService {
    /// Asks the system, and tells the engine if the clock is synchronised.
    pub(super) fn check_time_sync(&mut self, now: ClockReading) {
        if self.time_sync.source == TimeSyncSource::Nobody {
            return;
        }
        if sys::is_clock_synchronised() || was_touched_lately(Path::new(TIMESYNCD_FILE), now.wall) {
            let effects = self.engine.clock_synchronised(now);
            if !effects.is_empty() {
                self.carry_out(effects, now);
            }
        }
        let is_trusted = self.engine.is_clock_trusted(now);
        self.time_sync.next = (!is_trusted).then(|| now.mono.after(CHECK_INTERVAL));
    }

    /// Returns the moment at which the loop has to wake up.
    pub(super) fn next_due(&self) -> Option<MonotonicInstant> {
        let due = [self.engine.next_due(), self.time_sync.next];
        due.into_iter().flatten().min_by_key(|due| due.total())
    }
}

/// Returns whether a file was touched lately. A time in the future means that the clock was set back since.
fn was_touched_lately(path: &Path, now: Timestamp) -> bool {
    let touched = std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let touched = touched.and_then(|touched| Timestamp::try_from(touched).ok());
    touched.is_some_and(|touched| {
        (SignedDuration::ZERO..=TIMESYNCD_INTERVAL).contains(&now.duration_since(touched))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_for_one_interval_after_it_was_touched() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let touched = Timestamp::try_from(file.as_file().metadata().unwrap().modified().unwrap()).unwrap();
        let at = |seconds: i64| touched + SignedDuration::from_secs(seconds);
        let answers =
            [-60, -1, 0, 2_000, 2_100, 2_101].map(|later| was_touched_lately(file.path(), at(later)));
        assert_eq!(answers, [false, false, true, true, true, false]);
        assert!(!was_touched_lately(Path::new("/nonexistent/file"), touched));
    }
}
