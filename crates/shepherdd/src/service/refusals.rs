//! Limits how many refusals are recorded, so that no client can fill the disk with them. Every refusal is at least
//! counted (S8.3).

use std::num::NonZeroU32;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_core::Effects;
use shepherd_util::{ClockReading, KeyedLimiter, MonotonicInstant, RateLimit};

use super::{DAEMON_ACTOR, DaemonService};

/// Refusals of one user that are recorded without delay: more than a child causes who tries everything.
const RECORDED_BURST: u32 = 50;

/// The interval at which one more refusal is recorded after that. A year of nothing else takes some megabytes.
const RECORD_INTERVAL: Duration = Duration::from_secs(60);

/// Users that have a limit of their own.
const MAX_TRACKED_USERS: usize = 1_024;

/// Decides which refusals are recorded, and counts the others.
pub(crate) struct RefusalLimiter {
    limiter: KeyedLimiter<u32>,
    unrecorded: u64,
}

/// The treatment of a refusal: recorded, or only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalDisposition {
    Record,
    CountOnly,
}

impl RefusalLimiter {
    pub(crate) fn new() -> Self {
        let burst = NonZeroU32::new(RECORDED_BURST).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: KeyedLimiter::new(RateLimit::new(burst, RECORD_INTERVAL), MAX_TRACKED_USERS),
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
    /// Counts a refusal of this user. If it is to be recorded, the number of omitted refusals is recorded first.
    pub(super) fn count_refusal(&mut self, uid: u32, now: ClockReading) -> RefusalDisposition {
        let disposition = self.refusals.count(uid, now.mono);
        if disposition == RefusalDisposition::Record {
            self.record_omitted_refusals(now);
        }
        disposition
    }

    /// Records how many refusals were omitted.
    pub(super) fn record_omitted_refusals(&mut self, now: ClockReading) {
        match std::mem::take(&mut self.refusals.unrecorded) {
            0 => {}
            count => {
                let refusals = if count == 1 { "refusal was" } else { "refusals were" };
                let text = format!("{count} {refusals} not recorded, because there were too many");
                self.append_audit(DAEMON_ACTOR, AuditKind::Note { text }, now);
            }
        }
    }

    /// Carries out the effects of a denied launch, without the audit line if this user was refused too often.
    pub(super) fn record_denial(&mut self, uid: u32, mut effects: Effects, now: ClockReading) {
        match self.count_refusal(uid, now) {
            RefusalDisposition::Record => {}
            RefusalDisposition::CountOnly => {
                effects.discard_audit_lines(|what| matches!(what, AuditKind::LaunchDenied { .. }));
            }
        }
        self.carry_out(effects, now);
    }
}
