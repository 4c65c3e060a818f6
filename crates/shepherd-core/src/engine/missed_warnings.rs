//! Warnings that fell due while there was no daemon to give them (S9.1). They are on record as given, so that none
//! comes twice; the most urgent of them is kept for whoever listens first.

use shepherd_util::{ClockReading, MonotonicInstant};

use super::lifecycle::{profile_label, warning_event};
use super::recover::HEARTBEAT_TIMEOUT;
use super::{CoreEngine, CoreEvent};
use crate::session::{ScheduledWarning, SessionStage};

impl CoreEngine {
    /// The most urgent warning that is due and that nobody can have heard. One that fell due while there may still have
    /// been a daemon may have been, though it is not on record: no warning is heard twice.
    pub(super) fn find_missed_warning(
        &self,
        last_sign: Option<MonotonicInstant>,
        now: ClockReading,
    ) -> Option<ScheduledWarning> {
        let session = self.snapshot.session.as_ref()?;
        let (then, left) = (session.ends.remaining(last_sign?)?, session.ends.remaining(now.mono)?);
        let missed = |warning: &&ScheduledWarning| {
            warning.armed && left <= warning.before && then.saturating_sub(warning.before) > HEARTBEAT_TIMEOUT
        };
        session.warnings.iter().filter(missed).min_by_key(|warning| warning.before).cloned()
    }

    /// The warning that nobody could hear when it was given, for somebody who can now. It is told once, and not at all
    /// when it is too late for it.
    pub fn take_missed_warning(&mut self, now: ClockReading) -> Option<CoreEvent> {
        let warning = self.missed_warning.take()?;
        let session = self.snapshot.session.as_ref()?;
        let is_last = session.given.iter().all(|given| *given >= warning.before);
        let remaining = session.ends.remaining(now.mono)?;
        let is_running = matches!(session.stage, SessionStage::Running { .. });
        let whose = profile_label(&self.policy, &session.profile);
        (is_running && is_last).then(|| warning_event(&warning, session, whose, remaining))
    }
}
