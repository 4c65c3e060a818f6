//! How many refusals go on record: nobody can fill a disk with being refused, and none goes uncounted (S8.3).

use std::num::NonZeroU32;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::StoreWrite;
use shepherd_util::{KeyedLimiter, MonotonicInstant, Now, RateLimit};

use super::Service;
use crate::store_thread::Awaited;

/// Refusals of one user that are recorded at once: more than a child comes to who tries everything there is.
const AT_ONCE: u32 = 50;

/// After that, one in so much time: some megabytes in a year of nothing else.
const ONE_IN: Duration = Duration::from_secs(60);

/// Users that are told apart.
const USERS: usize = 1_024;

/// Who the notes are by.
const DAEMON: &str = "shepherdd";

/// What of the refusals is recorded.
pub(crate) struct Refusals {
    recorded: KeyedLimiter<u32>,
    left_out: u64,
}

/// Whether a refusal goes on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It does.
    Yes,
    /// It is only counted.
    No,
}

impl Refusals {
    pub(crate) fn new() -> Self {
        let at_once = NonZeroU32::new(AT_ONCE).unwrap_or(NonZeroU32::MIN);
        Self { recorded: KeyedLimiter::new(RateLimit::new(at_once, ONE_IN), USERS), left_out: 0 }
    }

    fn count(&mut self, uid: u32, now: MonotonicInstant) -> Recorded {
        match self.recorded.take(&uid, now) {
            Ok(()) => Recorded::Yes,
            Err(_) => {
                self.left_out = self.left_out.saturating_add(1);
                Recorded::No
            }
        }
    }
}

impl Service {
    /// Counts a refusal of this user. If it is to be recorded, what was left out before is told first.
    pub(super) fn count_refusal(&mut self, uid: u32, now: Now) -> Recorded {
        let recorded = self.refusals.count(uid, now.mono);
        if recorded == Recorded::Yes {
            self.tell_of_refusals(now);
        }
        recorded
    }

    /// Puts on record how many refusals were left out.
    pub(super) fn tell_of_refusals(&mut self, now: Now) {
        match std::mem::take(&mut self.refusals.left_out) {
            0 => {}
            count => {
                let text = format!("{count} refusals were not recorded, because there were too many");
                self.note(DAEMON, AuditKind::Note { text }, now);
            }
        }
    }

    /// The engine has put a launch on record that it denied; with too many of them, that is taken back.
    pub(super) fn record_denial(&mut self, uid: u32, now: Now) {
        let mut writes = self.engine.take_writes();
        if self.count_refusal(uid, now) == Recorded::No {
            writes.retain(|write| !is_denial(write));
        }
        self.write(writes, Awaited::ByNobody, now);
    }
}

fn is_denial(write: &StoreWrite) -> bool {
    matches!(write, StoreWrite::AppendAudit(line) if matches!(line.what, AuditKind::LaunchDenied { .. }))
}
