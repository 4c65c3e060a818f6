//! What happened, and how clients are told (S3.7, S10.4).

use std::time::Duration;

use shepherd_api::{EndReason, EventKind, SessionPhase, SessionView, WarningSeverity};
use shepherd_util::{ClockReading, EntryId, MonotonicInstant, SessionId};

use super::CoreEngine;
use crate::session::{SessionRecord, SessionStage};

/// What clients and the daemon have to know (S3.7), in the order in which it happened.
#[derive(Clone, Debug, PartialEq)]
pub enum CoreEvent {
    /// The program runs.
    SessionStarted {
        /// Which session.
        session_id: SessionId,
        /// Of which entry.
        entry_id: EntryId,
        /// When it ends if the machine stays awake; `NotRequested` is without end.
        deadline: Option<MonotonicInstant>,
    },
    /// The end comes near.
    Warning {
        /// Of which session.
        session_id: SessionId,
        /// The threshold that was passed.
        threshold_secs: u64,
        /// What is left.
        remaining: Duration,
        /// How loud.
        severity: WarningSeverity,
        /// What to say.
        message: String,
    },
    /// The end of a session was moved, and its warnings with it (S3.5b).
    DeadlineChanged {
        /// Of which session.
        session_id: SessionId,
        /// What is left now; `NotRequested` is without end.
        remaining: Option<Duration>,
    },
    /// The program has to be ended now, whatever it likes.
    ExpireDue {
        /// Of which session.
        session_id: SessionId,
    },
    /// A session is over.
    SessionEnded {
        /// Which.
        session_id: SessionId,
        /// Why.
        reason: EndReason,
    },
    /// What can be launched has changed.
    EntryAvailabilityChanged,
    /// Another policy applies.
    PolicyReloaded {
        /// How many entries it has.
        entry_count: usize,
    },
}

impl CoreEngine {
    /// The session as clients see it, if there is one.
    #[must_use]
    pub fn session_view(&self, now: ClockReading) -> Option<SessionView> {
        self.snapshot.session.as_ref().map(|session| build_session_view(session, now.mono))
    }

    /// An event in the words of the protocol, as long as it is news: right after the step that it came of.
    #[must_use]
    pub fn event_kind(&self, event: &CoreEvent, now: ClockReading) -> EventKind {
        let shown = |session: &SessionRecord| build_session_view(session, now.mono);
        match event {
            CoreEvent::SessionStarted { session_id, .. } => self.session_event(session_id, now, |session| {
                EventKind::SessionStarted { session: shown(session) }
            }),
            CoreEvent::Warning { session_id, threshold_secs, severity, message, .. } => {
                self.session_event(session_id, now, |session| EventKind::WarningIssued {
                    session: shown(session),
                    threshold_secs: *threshold_secs,
                    severity: *severity,
                    message: message.clone(),
                })
            }
            CoreEvent::DeadlineChanged { session_id, .. } => self.session_event(session_id, now, |session| {
                EventKind::DeadlineChanged { session: shown(session) }
            }),
            CoreEvent::ExpireDue { session_id } => self.session_event(session_id, now, |session| {
                let end = session.stage.end_reason().cloned().unwrap_or(EndReason::Expired);
                EventKind::SessionExpired { session: shown(session), end }
            }),
            CoreEvent::SessionEnded { session_id, reason } => {
                EventKind::SessionEnded { session_id: session_id.clone(), end: reason.clone() }
            }
            CoreEvent::EntryAvailabilityChanged => EventKind::EntriesChanged {},
            CoreEvent::PolicyReloaded { entry_count } => {
                EventKind::PolicyReloaded { entry_count: *entry_count }
            }
        }
    }

    /// What is said of a session carries it whole. If another step has ended it meanwhile, the state says so.
    fn session_event(
        &self,
        session_id: &SessionId,
        now: ClockReading,
        say: impl FnOnce(&SessionRecord) -> EventKind,
    ) -> EventKind {
        match self.snapshot.session.as_ref().filter(|session| session.session_id == *session_id) {
            Some(session) => say(session),
            None => EventKind::StateChanged { snapshot: self.get_state(now) },
        }
    }
}

fn build_session_view(session: &SessionRecord, now: MonotonicInstant) -> SessionView {
    let (phase, warned) = match session.stage {
        SessionStage::Launching => (SessionPhase::Launching, None),
        SessionStage::Running { warned: None, .. } => (SessionPhase::Running, None),
        SessionStage::Running { warned, .. } => (SessionPhase::Warned, warned),
        SessionStage::Withdrawn { .. } | SessionStage::Expiring { .. } => (SessionPhase::Expiring, None),
    };
    SessionView {
        session_id: session.session_id.clone(),
        entry_id: session.entry_id.clone(),
        label: session.label.clone(),
        profile: session.profile.clone(),
        phase,
        warned,
        started_at: session.started_at,
        remaining: session.ends.remaining(now).map(Into::into),
    }
}
