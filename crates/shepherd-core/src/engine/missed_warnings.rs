//! Warnings that fell due while no daemon ran (S9.1). They are recorded as given, so that none comes twice; the most
//! urgent one is kept until the person who plays listens.

use shepherd_util::{ClockReading, MonotonicInstant, SessionId};

use super::lifecycle::{profile_label, warning_event};
use super::recover::HEARTBEAT_TIMEOUT;
use super::{CoreEngine, CoreEvent};
use crate::session::{ScheduledWarning, SessionRecord};

impl CoreEngine {
    /// Returns the most urgent warning that is due and that no client can have seen. A warning that became due while the
    /// earlier daemon may still have run is left out, because a client may have seen it.
    pub(super) fn find_missed_warning(
        &self,
        session: &SessionRecord,
        last_heartbeat: Option<MonotonicInstant>,
        now: ClockReading,
    ) -> Option<ScheduledWarning> {
        let (then, left) = (session.ends.remaining(last_heartbeat?)?, session.ends.remaining(now.mono)?);
        let missed = |warning: &&ScheduledWarning| {
            warning.armed && left <= warning.before && then.saturating_sub(warning.before) > HEARTBEAT_TIMEOUT
        };
        session.warnings.iter().filter(missed).min_by_key(|warning| warning.before).cloned()
    }

    /// Returns the missed warning of a session, unless the session is being ended, the warning comes again before a new
    /// end, or another warning was given since. Nothing has to be carried out, because the warning is already recorded as
    /// given.
    #[must_use]
    pub fn missed_warning(&self, session_id: &SessionId, now: ClockReading) -> Option<CoreEvent> {
        let (warning, session) = (self.missed_warnings.get(session_id)?, self.sessions.get(session_id)?);
        let comes_again = !session.given.contains(&warning.before);
        let is_last = session.given.iter().all(|given| *given >= warning.before);
        let remaining = session.ends.remaining(now.mono)?;
        let profile = profile_label(&self.policy, &session.profile);
        let is_due = remaining <= warning.before;
        (session.is_running() && is_last && is_due && !comes_again)
            .then(|| warning_event(warning, session, profile, remaining))
    }

    /// Forgets the missed warning, because the person who plays has seen it or a later one.
    pub fn forget_missed_warning(&mut self, session_id: &SessionId) {
        self.missed_warnings.remove(session_id);
    }

    /// Returns the sessions with a warning that fell due while no daemon ran.
    pub fn sessions_with_missed_warnings(&self) -> impl Iterator<Item = &SessionRecord> {
        self.missed_warnings.keys().filter_map(|session_id| self.sessions.get(session_id))
    }
}
