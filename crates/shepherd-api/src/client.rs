//! The state that a front end keeps: the daemon's state, built from one snapshot and the events after it.

use jiff::Timestamp;

use crate::{DaemonStateSnapshot, Event, EventKind, Millis, SessionCounting, SessionPhase, SessionView};

/// A client's copy of the daemon's state. Every front end runs this code, so that their displays can't disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientState {
    /// The state without the sessions.
    snapshot: DaemonStateSnapshot,
    /// The sessions, the oldest first.
    sessions: Vec<KnownSession>,
}

/// A session as of the daemon's last message about it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownSession {
    view: SessionView,
    at: Timestamp,
}

impl KnownSession {
    /// Returns the session at a later time, with the remaining time counted down and the run time counted up.
    fn view_at(&self, at: Timestamp) -> SessionView {
        let passed = u64::try_from(at.as_millisecond().saturating_sub(self.at.as_millisecond()));
        let passed = passed.unwrap_or_default();
        let mut view = self.view.clone();
        let is_counting = view.counting != SessionCounting::Stopped;
        // The hours of a session end even if its time stands still.
        if let Some(Millis(remaining)) =
            view.remaining.as_mut().filter(|_| is_counting || view.hours_end.is_some())
        {
            *remaining = remaining.saturating_sub(passed);
        }
        // A session that is being launched does not run yet.
        if let Some(Millis(ran)) = &mut view.ran
            && is_counting
            && view.phase != SessionPhase::Launching
        {
            *ran = ran.saturating_add(passed);
        }
        view
    }
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
    pub fn new(mut snapshot: DaemonStateSnapshot) -> Self {
        let at = snapshot.at;
        let known = |view: &SessionView| KnownSession { view: view.clone(), at };
        let sessions = snapshot.all_sessions().iter().map(known).collect();
        (snapshot.session, snapshot.sessions) = (None, Vec::new());
        Self { snapshot, sessions }
    }

    /// Returns the sessions, the oldest first, each with the remaining time of the daemon's last message.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionView> {
        self.sessions.iter().map(|session| &session.view)
    }

    /// Returns the state at a later time, with the remaining time counted down and the run time counted up.
    ///
    /// A time before the last message counts as the time of that message, so that a clock that was set back never
    /// shows more time than the daemon sent.
    #[must_use]
    pub fn snapshot_at(&self, at: Timestamp) -> DaemonStateSnapshot {
        let at = at.max(self.snapshot.at);
        let sessions: Vec<SessionView> = self.sessions.iter().map(|session| session.view_at(at)).collect();
        let session = DaemonStateSnapshot::primary_session(&sessions).cloned();
        DaemonStateSnapshot { at, session, sessions, ..self.snapshot.clone() }
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
                self.update_session(event.at, session);
                RequiredRefresh::Entries
            }
            EventKind::SessionStarted { session }
            | EventKind::WarningIssued { session, .. }
            | EventKind::DeadlineChanged { session }
            | EventKind::SessionExpired { session, .. } => {
                self.update_session(event.at, session);
                RequiredRefresh::Nothing
            }
            EventKind::SessionEnded { session_id, .. } => {
                self.sessions.retain(|session| session.view.session_id != *session_id);
                RequiredRefresh::Entries
            }
            EventKind::PolicyReloaded { entry_count, language } => {
                self.snapshot.entry_count = *entry_count;
                self.snapshot.language = *language;
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

    fn update_session(&mut self, at: Timestamp, session: &SessionView) {
        let known = KnownSession { view: session.clone(), at };
        match self.sessions.iter_mut().find(|other| other.view.session_id == session.session_id) {
            Some(before) => *before = known,
            None => {
                let key = |view: &SessionView| (view.started_at, view.session_id.clone());
                let place = self.sessions.partition_point(|other| key(&other.view) < key(session));
                self.sessions.insert(place, known);
            }
        }
    }
}
