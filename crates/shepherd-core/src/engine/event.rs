//! Events of the engine, and their form in the protocol (S3.7, S10.4).

use std::time::Duration;

use shepherd_api::{
    EndReason, EventKind, GrantView, SessionCounting, SessionPhase, SessionView, TimeRequestView,
    WarningSeverity,
};
use shepherd_util::{ClockReading, DeadlineClock, EntryId, MonotonicInstant, SessionId};

use super::CoreEngine;
use crate::session::{SessionPlan, SessionRecord, SessionStage, launch_slot};

/// Something that happened and that clients are told about (S3.7).
#[derive(Clone, Debug, PartialEq)]
pub enum CoreEvent {
    /// A launch was approved, and the program is being started.
    SessionLaunching { session_id: SessionId },
    /// The program runs.
    SessionStarted {
        session_id: SessionId,
        entry_id: EntryId,
        /// The end of the session if the machine stays awake; `None` if the session is unlimited.
        deadline: Option<MonotonicInstant>,
    },
    /// The end of the session comes near.
    Warning {
        session_id: SessionId,
        /// The threshold that was passed.
        threshold_secs: u64,
        remaining: Duration,
        severity: WarningSeverity,
        message: WarningMessage,
    },
    /// The end of a session was moved, and its warnings with it (S3.5b).
    DeadlineChanged {
        session_id: SessionId,
        /// The time that is left; `None` if the session is unlimited.
        remaining: Option<Duration>,
    },
    /// The engine ends the session, because its time is over or the daemon shuts down.
    ExpireDue { session_id: SessionId },
    /// A client asked to end the session.
    StopRequested { session_id: SessionId },
    /// The session is over.
    SessionEnded { session_id: SessionId, reason: EndReason },
    /// Other entries may be launched than before.
    EntryAvailabilityChanged,
    /// Another policy applies.
    PolicyReloaded { entry_count: usize },
    /// A grant was given, or revoked.
    GrantChanged { grant: Box<GrantView> },
    /// A time request was made, seen or answered.
    RequestChanged { request: Box<TimeRequestView> },
}

/// The message of a warning, before the daemon puts it into the language of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarningMessage {
    /// The parents' own message, with the placeholders `{remaining}`, `{label}` and `{profile}`.
    pub template: Option<String>,
    /// The label of the entry.
    pub label: String,
    /// The label of the profile.
    pub profile: String,
}

impl CoreEngine {
    /// Returns a session as clients see it.
    #[must_use]
    pub fn session_view(&self, session_id: &SessionId, now: ClockReading) -> Option<SessionView> {
        self.sessions.get(session_id).map(|session| build_session_view(session, now, self.counting_mode()))
    }

    /// Returns all sessions as clients see them, the oldest first.
    #[must_use]
    pub fn session_views(&self, now: ClockReading) -> Vec<SessionView> {
        let mut sessions: Vec<&SessionRecord> = self.sessions.iter().collect();
        sessions.sort_by_key(|session| (session.started_at, &session.session_id));
        let view = |session| build_session_view(session, now, self.counting_mode());
        sessions.into_iter().map(view).collect()
    }

    /// Returns an event in the form of the protocol. Call this right after the change that announced the event, because
    /// the result shows the session as it is now. `describe_warning` puts a warning with its remaining time into words.
    #[must_use]
    pub fn event_kind(
        &self,
        event: &CoreEvent,
        now: ClockReading,
        describe_warning: impl Fn(&WarningMessage, Duration) -> String,
    ) -> EventKind {
        let shown = |session: &SessionRecord| build_session_view(session, now, self.counting_mode());
        match event {
            CoreEvent::SessionLaunching { session_id } => self.session_event(session_id, now, |session| {
                EventKind::SessionLaunching { session: shown(session) }
            }),
            CoreEvent::SessionStarted { session_id, .. } => self.session_event(session_id, now, |session| {
                EventKind::SessionStarted { session: shown(session) }
            }),
            CoreEvent::Warning { session_id, threshold_secs, remaining, severity, message } => self
                .session_event(session_id, now, |session| EventKind::WarningIssued {
                    session: shown(session),
                    threshold_secs: *threshold_secs,
                    severity: *severity,
                    message: describe_warning(message, *remaining),
                }),
            CoreEvent::DeadlineChanged { session_id, .. } => self.session_event(session_id, now, |session| {
                EventKind::DeadlineChanged { session: shown(session) }
            }),
            CoreEvent::ExpireDue { session_id } | CoreEvent::StopRequested { session_id } => self
                .session_event(session_id, now, |session| {
                    let end = session.stage.end_reason().cloned().unwrap_or(EndReason::Expired);
                    EventKind::SessionExpired { session: shown(session), end }
                }),
            CoreEvent::SessionEnded { session_id, reason } => {
                EventKind::SessionEnded { session_id: session_id.clone(), end: reason.clone() }
            }
            CoreEvent::EntryAvailabilityChanged => EventKind::EntriesChanged {},
            CoreEvent::PolicyReloaded { entry_count } => EventKind::PolicyReloaded {
                entry_count: *entry_count,
                language: Some(self.policy.rules().language),
            },
            CoreEvent::GrantChanged { grant } => EventKind::GrantChanged { grant: (**grant).clone() },
            CoreEvent::RequestChanged { request } => {
                EventKind::RequestChanged { request: (**request).clone() }
            }
        }
    }

    /// Builds an event that shows the whole session. If the session is over by now, the event is the present state.
    fn session_event(
        &self,
        session_id: &SessionId,
        now: ClockReading,
        build: impl FnOnce(&SessionRecord) -> EventKind,
    ) -> EventKind {
        match self.sessions.get(session_id) {
            Some(session) => build(session),
            None => EventKind::StateChanged { snapshot: self.get_state(now) },
        }
    }
}

impl SessionPlan {
    /// Returns the new session as clients see it.
    #[must_use]
    pub fn session_view(&self, now: MonotonicInstant) -> SessionView {
        SessionView {
            session_id: self.session_id.clone(),
            entry_id: self.entry_id.clone(),
            label: self.entry.label.clone(),
            profile: self.profile.clone(),
            slot: launch_slot(&self.entry).unwrap_or_default(),
            counting: SessionCounting::Active,
            phase: SessionPhase::Launching,
            warned: None,
            started_at: self.started_at,
            remaining: self.deadline.map(|deadline| deadline.total_since(now).into()),
            // The event of the start has it.
            hours_end: None,
            ran: Some(Duration::ZERO.into()),
        }
    }
}

fn build_session_view(session: &SessionRecord, now: ClockReading, counting: DeadlineClock) -> SessionView {
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
        slot: session.slot.clone(),
        counting: session.counting,
        phase,
        warned,
        started_at: session.started_at,
        remaining: session.ends.remaining(now.mono).map(Into::into),
        hours_end: session.ends.hours_end(now).filter(|_| phase != SessionPhase::Expiring),
        ran: Some(session.run_time(now.mono, counting).into()),
    }
}
