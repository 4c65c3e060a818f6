//! How many refusals go on record: nobody can fill a disk with being refused, and none goes uncounted (S8.3).

use std::num::NonZeroU32;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::StoreWrite;
use shepherd_util::{ClockReading, KeyedLimiter, MonotonicInstant, RateLimit};

use super::DaemonService;
use crate::store_thread::BatchWaiter;

/// Refusals of one user that are recorded at once: more than a child comes to who tries everything there is.
const RECORDED_BURST: u32 = 50;

/// After that, one in so much time: some megabytes in a year of nothing else.
const RECORD_INTERVAL: Duration = Duration::from_secs(60);

/// Users that are told apart.
const MAX_TRACKED_USERS: usize = 1_024;

/// Who the notes are by.
const DAEMON_ACTOR: &str = "shepherdd";

/// What of the refusals is recorded.
pub(crate) struct RefusalLimiter {
    limiter: KeyedLimiter<u32>,
    unrecorded: u64,
}

/// Whether a refusal goes on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalDisposition {
    /// It does.
    Record,
    /// It is only counted.
    CountOnly,
}

impl RefusalLimiter {
    pub(crate) fn new() -> Self {
        let at_once = NonZeroU32::new(RECORDED_BURST).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: KeyedLimiter::new(RateLimit::new(at_once, RECORD_INTERVAL), MAX_TRACKED_USERS),
            unrecorded: 0,
        }
    }

    fn count(&mut self, uid: u32, now: MonotonicInstant) -> RefusalDisposition {
        match self.limiter.take(&uid, now) {
            Ok(()) => RefusalDisposition::Record,
            Err(_) => {
                self.unrecorded = self.unrecorded.saturating_add(1);
                RefusalDisposition::CountOnly
            }
        }
    }
}

impl DaemonService {
    /// Counts a refusal of this user. If it is to be recorded, what was left out before is told first.
    pub(super) fn count_refusal(&mut self, uid: u32, now: ClockReading) -> RefusalDisposition {
        let recorded = self.refusals.count(uid, now.mono);
        if recorded == RefusalDisposition::Record {
            self.record_omitted_refusals(now);
        }
        recorded
    }

    /// Puts on record how many refusals were left out.
    pub(super) fn record_omitted_refusals(&mut self, now: ClockReading) {
        match std::mem::take(&mut self.refusals.unrecorded) {
            0 => {}
            count => {
                let text = format!("{count} refusals were not recorded, because there were too many");
                self.append_audit(DAEMON_ACTOR, AuditKind::Note { text }, now);
            }
        }
    }

    /// The engine has put a launch on record that it denied; with too many of them, that is taken back.
    pub(super) fn record_denial(&mut self, uid: u32, now: ClockReading) {
        let mut writes = self.engine.take_writes();
        if self.count_refusal(uid, now) == RefusalDisposition::CountOnly {
            writes.retain(|write| !is_denial(write));
        }
        self.submit_writes(writes, BatchWaiter::Nobody, now);
    }
}

fn is_denial(write: &StoreWrite) -> bool {
    matches!(write, StoreWrite::AppendAudit(line) if matches!(line.what, AuditKind::LaunchDenied { .. }))
}
