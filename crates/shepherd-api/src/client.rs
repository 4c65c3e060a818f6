//! The state that a front end keeps: the daemon's state, built from one snapshot and the events after it.

use jiff::Timestamp;

use crate::{DaemonStateSnapshot, Event, EventKind, Millis, SessionPhase, SessionView};

/// A client's copy of the daemon's state. Every front end runs this code, so that their displays can't disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientState {
    snapshot: DaemonStateSnapshot,
    /// The time of the last message with the session's remaining time.
    remaining_updated_at: Timestamp,
}

/// The data that a client has to request again after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a list that is shown may be out of date"]
pub enum RequiredRefresh {
    /// Nothing: the copy is complete.
    Nothing,
    /// The list of entries.
    Entries,
    /// Everything, including the state: the client doesn't understand the event.
    Everything,
}

impl ClientState {
    /// Creates the copy from the first snapshot, or from a new one after the client fell behind.
    #[must_use]
    pub fn new(snapshot: DaemonStateSnapshot) -> Self {
        let remaining_told_at = snapshot.at;
        Self { snapshot, remaining_updated_at: remaining_told_at }
    }

    /// Returns the session with the remaining time of the daemon's last message.
    #[must_use]
    pub fn session(&self) -> Option<&SessionView> {
        self.snapshot.session.as_ref()
    }

    /// Returns the state at a later time, with the remaining time counted down and the run time counted up.
    ///
    /// A time before the last message counts as the time of that message, so that a clock that was set back never
    /// shows more time than the daemon sent.
    #[must_use]
    pub fn snapshot_at(&self, at: Timestamp) -> DaemonStateSnapshot {
        let at = at.max(self.snapshot.at);
        let passed =
            u64::try_from(at.as_millisecond().saturating_sub(self.remaining_updated_at.as_millisecond()))
                .unwrap_or_default();
        let mut picture = DaemonStateSnapshot { at, ..self.snapshot.clone() };
        if let Some(session) = &mut picture.session {
            if let Some(Millis(remaining)) = &mut session.remaining {
                *remaining = remaining.saturating_sub(passed);
            }
            // A session that is being launched does not run yet.
            if let Some(Millis(ran)) = &mut session.ran
                && session.phase != SessionPhase::Launching
            {
                *ran = ran.saturating_add(passed);
            }
        }
        picture
    }

    /// Applies an event. Events arrive in the order in which they happened, beginning with the snapshot.
    pub fn apply(&mut self, event: &Event) -> RequiredRefresh {
        let refresh = self.apply_kind(event);
        self.snapshot.at = event.at;
        refresh
    }

    fn apply_kind(&mut self, event: &Event) -> RequiredRefresh {
        match &event.kind {
            EventKind::StateChanged { snapshot } => {
                *self = Self::new(snapshot.clone());
                RequiredRefresh::Entries
            }
            EventKind::SessionLaunching { session } => {
                self.replace_session(event.at, Some(session));
                RequiredRefresh::Entries
            }
            EventKind::SessionStarted { session }
            | EventKind::WarningIssued { session, .. }
            | EventKind::DeadlineChanged { session }
            | EventKind::SessionExpired { session, .. } => {
                self.replace_session(event.at, Some(session));
                RequiredRefresh::Nothing
            }
            EventKind::SessionEnded { session_id, .. } => {
                if self.session().is_some_and(|session| session.session_id == *session_id) {
                    self.replace_session(event.at, None);
                }
                RequiredRefresh::Entries
            }
            EventKind::PolicyReloaded { entry_count } => {
                self.snapshot.entry_count = *entry_count;
                RequiredRefresh::Entries
            }
            EventKind::ModeSwitched { mode } => {
                self.snapshot.mode.clone_from(mode);
                RequiredRefresh::Entries
            }
            EventKind::ClockTrustChanged { trusted } => {
                self.snapshot.clock_trusted = *trusted;
                RequiredRefresh::Entries
            }
            EventKind::EntriesChanged {} | EventKind::GrantChanged { .. } => RequiredRefresh::Entries,
            EventKind::RequestChanged { .. } | EventKind::AuditAppended { .. } => RequiredRefresh::Nothing,
            EventKind::Unknown => RequiredRefresh::Everything,
        }
    }

    fn replace_session(&mut self, at: Timestamp, session: Option<&SessionView>) {
        self.snapshot.session = session.cloned();
        self.remaining_updated_at = at;
    }
}
