//! The state of the live view. Keys, events and replies change it; it never touches the terminal.

mod keys;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{
    AuditKind, ClientState, DaemonStateSnapshot, EntryView, Event, EventKind, ExplanationView, GrantKind,
    Millis, ProfileView, RequiredRefresh, SessionCounting, SessionPhase, SessionView, TimeRequestView,
};
use shepherd_text::ClosedEntry;
use shepherd_util::{EntryId, ProfileId, SessionId};
use ward_terminal::{TextTone, escape_label, format_count};

use crate::context::{DisplaySettings, PolicyLabels};
use crate::event_text::{EventFormatter, EventLine, severity_tone};
use crate::humanize;
use crate::refusal::open_command;
use crate::watch::inputs::{LiveViewInput, LiveViewReply, LiveViewRequest};
use crate::watch::{DaemonLifetime, LiveViewExit};

/// The number of event lines that are kept: more than any terminal shows.
const MAX_EVENT_LINES: usize = 200;

/// The time after which the entries are fetched again while a session runs: their used and remaining time changes, and the
/// daemon sends no event about it.
const ENTRIES_REFRESH_INTERVAL: Duration = Duration::from_secs(15);

/// The minutes that a new request for time proposes.
const DEFAULT_REQUEST_MINUTES: &str = "15";

pub(super) struct LiveViewModel {
    pub(super) display: DisplaySettings,
    pub(super) profile: Option<ProfileId>,
    pub(super) lifetime: DaemonLifetime,
    pub(super) connection: LiveViewConnection,
    state: Option<ClientState>,
    pub(super) entries: Vec<LiveViewEntry>,
    /// Requests for time that wait for an answer, oldest first.
    pub(super) time_requests: Vec<TimeRequestView>,
    /// False if the person at this view can't answer requests, also with the PIN.
    may_answer: bool,
    pub(super) selected: usize,
    pub(super) event_lines: VecDeque<EventLine>,
    /// A line for a parent if the rules in force aren't those of the policy file.
    pub(super) old_rules: Option<String>,
    /// The last warning of each session.
    pub(super) warnings: BTreeMap<SessionId, (TextTone, String)>,
    /// The result of the last key, shown until the next key.
    pub(super) notice: Option<(TextTone, String)>,
    pub(super) popup: Option<LiveViewPopup>,
    event_formatter: EventFormatter,
    entries_refresh: EntriesRefresh,
    /// The time of the next refresh of the entries without an event, while a session runs.
    entries_due: Option<Timestamp>,
}

/// An entry in the list.
pub(super) struct LiveViewEntry {
    pub(super) view: EntryView,
    /// The profile of the entry, if the view shows several profiles.
    pub(super) child: Option<ProfileView>,
}

pub(super) enum LiveViewConnection {
    Connecting,
    Connected,
    Disconnected { why: String },
}

pub(super) enum LiveViewPopup {
    Help,
    Why {
        why: Box<ExplanationView>,
        scroll: u16,
    },
    RequestTime {
        entry_id: EntryId,
        label: String,
        minutes: String,
    },
    /// A parent's answer to a request for time.
    Answer {
        request: Box<TimeRequestView>,
        minutes: String,
    },
    Pin {
        request: LiveViewRequest,
        message: String,
        typed: String,
    },
}

/// The state of the entry list's refresh, so that many events lead to few requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntriesRefresh {
    Idle,
    Pending,
    /// A reply is pending, and an event has already made it out of date.
    PendingAgain,
}

/// The next action of the event loop after an input.
pub(super) enum LiveViewAction {
    Nothing,
    Send(Vec<LiveViewRequest>),
    /// Draw every cell again: the terminal may show something else than what was drawn last.
    Redraw,
    Exit(LiveViewExit),
}

impl LiveViewAction {
    /// Adds requests to an action that sends requests or does nothing. Other actions stay as they are.
    fn and_send(self, more: impl IntoIterator<Item = LiveViewRequest>) -> Self {
        let mut requests = match self {
            Self::Nothing => Vec::new(),
            Self::Send(requests) => requests,
            Self::Redraw | Self::Exit(_) => return self,
        };
        requests.extend(more);
        if requests.is_empty() { Self::Nothing } else { Self::Send(requests) }
    }
}

/// Returns true if the daemon has read the policy file. Only administrators get such a line of the audit log.
fn is_about_policy(event: &Event) -> bool {
    match &event.kind {
        EventKind::PolicyReloaded { .. } => true,
        EventKind::AuditAppended { record } => {
            matches!(record.line.what, AuditKind::PolicyRejected { .. })
        }
        _ => false,
    }
}

impl LiveViewModel {
    pub(super) fn new(
        display: DisplaySettings,
        profile: Option<ProfileId>,
        lifetime: DaemonLifetime,
        greeting: Vec<String>,
    ) -> Self {
        let at = display.now;
        let greeting =
            greeting.into_iter().map(|text| EventLine { at, tone: TextTone::Strong, mark: "·", text });
        Self {
            display,
            profile,
            lifetime,
            connection: LiveViewConnection::Connecting,
            state: None,
            entries: Vec::new(),
            time_requests: Vec::new(),
            may_answer: true,
            selected: 0,
            event_lines: greeting.collect(),
            old_rules: None,
            warnings: BTreeMap::new(),
            notice: None,
            popup: None,
            event_formatter: EventFormatter::default(),
            entries_refresh: EntriesRefresh::Idle,
            entries_due: None,
        }
    }

    /// Returns the daemon's state at a time, with the remaining time counted down.
    pub(super) fn state_at(&self, now: Timestamp) -> Option<DaemonStateSnapshot> {
        self.state.as_ref().map(|state| state.snapshot_at(now))
    }

    /// Returns the time until the countdown changes or the entries have to be fetched again, or `None` without a session.
    pub(super) fn next_tick(&mut self, now: Timestamp) -> Option<Duration> {
        let sessions = self.running_sessions(now);
        let advances = |session: &&SessionView| {
            session.counting != SessionCounting::Stopped || session.hours_end.is_some()
        };
        let left = sessions.iter().filter(advances).filter_map(|session| session.remaining);
        // The countdown is rounded up, so it changes when a full second is reached.
        let countdown = left.filter(|left| left.0 > 0).map(|Millis(left)| {
            Duration::from_millis(if left.is_multiple_of(1000) { 1 } else { left % 1000 })
        });
        let countdown = countdown.min();
        countdown.into_iter().chain(self.schedule_refresh(now, !sessions.is_empty())).min()
    }

    /// Returns the sessions that go on.
    fn running_sessions(&self, now: Timestamp) -> Vec<SessionView> {
        if !matches!(self.connection, LiveViewConnection::Connected) {
            return Vec::new();
        }
        let mut sessions = self.sessions_at(now);
        sessions.retain(|session| session.phase != SessionPhase::Expiring);
        sessions
    }

    /// Returns all sessions, the oldest first.
    pub(super) fn sessions_at(&self, now: Timestamp) -> Vec<SessionView> {
        self.state_at(now).map(|state| state.sessions).unwrap_or_default()
    }

    /// Returns the session of the selected entry, if the entry runs for its child.
    pub(super) fn selected_session(&self) -> Option<SessionId> {
        let entry = self.entries.get(self.selected)?;
        let child = entry.child.as_ref().map(|child| &child.profile).or(self.profile.as_ref());
        let is_meant = |session: &SessionView| {
            session.entry_id == entry.view.entry_id && child.is_none_or(|child| *child == session.profile)
        };
        let mut meant = self.sessions_at(self.display.now).into_iter().filter(is_meant);
        let session = meant.next()?;
        // Several children may run the same entry.
        meant.next().is_none().then_some(session.session_id)
    }

    /// Returns the time until the next refresh of the entries without an event.
    fn schedule_refresh(&mut self, now: Timestamp, is_running: bool) -> Option<Duration> {
        if !is_running || self.entries_refresh != EntriesRefresh::Idle {
            self.entries_due = None;
            return None;
        }
        let latest = now + ENTRIES_REFRESH_INTERVAL;
        // A clock that was set back must not delay the refresh.
        let due = self.entries_due.map_or(latest, |due| due.min(latest));
        self.entries_due = Some(due);
        Some(due.duration_since(now).try_into().unwrap_or(Duration::ZERO))
    }

    /// Fetches the entries again if that is due.
    pub(super) fn refresh_if_due(&mut self, now: Timestamp) -> LiveViewAction {
        match self.entries_due.take_if(|due| *due <= now) {
            Some(_) => self.request_entries(),
            None => LiveViewAction::Nothing,
        }
    }

    pub(super) fn handle_input(&mut self, input: LiveViewInput) -> LiveViewAction {
        match input {
            LiveViewInput::Key(key) => self.handle_key(key),
            LiveViewInput::Resized => LiveViewAction::Redraw,
            LiveViewInput::InputClosed => LiveViewAction::Exit(LiveViewExit::Quit),
            LiveViewInput::Signal(signal) => LiveViewAction::Exit(LiveViewExit::Signal(signal)),
            LiveViewInput::Resynced { state, missed } => {
                if matches!(self.connection, LiveViewConnection::Disconnected { .. }) {
                    self.push_line(Timestamp::now(), TextTone::Good, "✓", "connected again".to_owned());
                }
                if missed > 0 {
                    self.push_line(
                        Timestamp::now(),
                        TextTone::Faint,
                        "…",
                        format!(
                            "{} left out",
                            format_count(
                                usize::try_from(missed).unwrap_or(usize::MAX),
                                "event was",
                                "events were"
                            )
                        ),
                    );
                }
                self.connection = LiveViewConnection::Connected;
                let profiles = state.snapshot_at(self.display.now).profiles;
                profiles.into_iter().for_each(|profile| self.display.labels.insert_profile(profile));
                self.state = Some(*state);
                self.request_entries().and_send([LiveViewRequest::TimeRequests, LiveViewRequest::OldRules])
            }
            LiveViewInput::EventReceived { state, event, refresh } => {
                self.state = Some(*state);
                self.handle_event(&event);
                let refreshed = match refresh {
                    RequiredRefresh::Nothing => LiveViewAction::Nothing,
                    RequiredRefresh::Entries | RequiredRefresh::Everything => self.request_entries(),
                };
                refreshed.and_send(is_about_policy(&event).then_some(LiveViewRequest::OldRules))
            }
            LiveViewInput::Disconnected { why } => {
                if matches!(self.connection, LiveViewConnection::Connected) {
                    self.push_line(Timestamp::now(), TextTone::Bad, "✗", "connection lost".to_owned());
                }
                self.connection = LiveViewConnection::Disconnected { why: escape_label(&why) };
                self.entries_refresh = EntriesRefresh::Idle;
                LiveViewAction::Send(vec![LiveViewRequest::Disconnect])
            }
            LiveViewInput::ReplyReceived(reply) => self.handle_reply(reply),
        }
    }

    fn handle_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RequestChanged { request } => self.update_time_request(request),
            EventKind::WarningIssued { session, severity, message, .. } => {
                let warning = (severity_tone(*severity), escape_label(message));
                self.warnings.insert(session.session_id.clone(), warning);
            }
            EventKind::DeadlineChanged { session } | EventKind::SessionLaunching { session } => {
                self.warnings.remove(&session.session_id);
            }
            EventKind::SessionEnded { session_id, .. } => drop(self.warnings.remove(session_id)),
            EventKind::StateChanged { .. } => self.warnings.clear(),
            _ => {}
        }
        if let Some(line) = self.event_formatter.format_event(event, &self.display) {
            self.push_event_line(line);
        }
    }

    fn handle_reply(&mut self, reply: LiveViewReply) -> LiveViewAction {
        match reply {
            LiveViewReply::Entries(entries) => {
                let line = |view| LiveViewEntry { view, child: None };
                return self.replace_entries(entries.into_iter().map(line).collect());
            }
            LiveViewReply::Household(household) => {
                let entries = household.into_iter().flat_map(|(profile, entries)| {
                    entries.into_iter().map(move |view| LiveViewEntry { view, child: Some(profile.clone()) })
                });
                return self.replace_entries(entries.collect());
            }
            LiveViewReply::TimeRequests { requests, may_answer } => {
                self.may_answer = may_answer;
                self.time_requests = requests.into_iter().filter(|request| request.state.is_open()).collect();
            }
            LiveViewReply::OldRules(line) => self.old_rules = line,
            LiveViewReply::EntriesFailed(message) => {
                self.notice = Some((TextTone::Bad, escape_label(&message)));
                return self.entries_received();
            }
            LiveViewReply::PinRequired { request, message } => {
                self.popup = Some(LiveViewPopup::Pin {
                    request,
                    message: escape_label(&message),
                    typed: String::new(),
                });
            }
            LiveViewReply::Why(why) => self.popup = Some(LiveViewPopup::Why { why, scroll: 0 }),
            LiveViewReply::Denied(reason) => {
                self.notice = Some((TextTone::Bad, humanize::reason(&reason, &self.display)));
            }
            LiveViewReply::Granted { entry_id, grant, entries, sessions } => {
                let granted = match (humanize::session_of_grant(&sessions, &grant), grant.gift) {
                    // Short, because a terminal of 80 columns has to show the command.
                    (Some(SessionView { hours_end: Some(end), .. }), GrantKind::Extra { amount }) => format!(
                        "Granted, but its hours end at {}. To let it go on: {}",
                        humanize::grant_end(*end, &self.display),
                        humanize::extend_command(amount),
                    ),
                    (Some(_), _) => "The request was granted.".to_owned(),
                    (None, _) => {
                        let closed = humanize::find_closed_entry(&entries, &entry_id, &self.display);
                        let hint = closed.map(|closed| {
                            let sentence = humanize::stays_closed(&closed);
                            if closed.is_locked {
                                return format!(" {sentence}");
                            }
                            let until = humanize::time_in_an_hour(&self.display);
                            let command = open_command(&until, &entry_id, grant.profile.as_ref());
                            format!(" {sentence} To open it for an hour: `{command}`")
                        });
                        format!("The request was granted.{}", hint.unwrap_or_default())
                    }
                };
                self.notice = Some((TextTone::Good, granted));
            }
            LiveViewReply::Asked(request) => {
                let hint = self.closed_entry(&request).map(|closed| {
                    format!(" {} A yes gives time, but doesn't open it.", humanize::stays_closed(&closed))
                });
                let sent = format!("The request was sent to your parents.{}", hint.unwrap_or_default());
                self.notice = Some((TextTone::Good, sent));
            }
            LiveViewReply::Notice(tone, message) => self.notice = Some((tone, escape_label(&message))),
        }
        LiveViewAction::Nothing
    }

    fn replace_entries(&mut self, entries: Vec<LiveViewEntry>) -> LiveViewAction {
        self.display.labels = PolicyLabels::default();
        for entry in &entries {
            self.display.labels.insert(entry.view.entry_id.clone(), entry.view.label.clone());
            entry.child.iter().for_each(|child| self.display.labels.insert_profile(child.clone()));
        }
        if let Some(state) = self.state_at(self.display.now) {
            self.display.labels.set_language(state.language);
            // Entries of other profiles may be running.
            for session in state.sessions {
                self.display.labels.insert(session.entry_id, session.label);
            }
            state.profiles.into_iter().for_each(|profile| self.display.labels.insert_profile(profile));
        }
        self.entries = entries;
        self.selected = self.selected.min(self.entries.len().saturating_sub(1));
        self.entries_received()
    }

    /// Returns the entry of a request if it stays closed for the child who asks.
    pub(super) fn closed_entry(&self, request: &TimeRequestView) -> Option<ClosedEntry> {
        let is_meant = |session: &SessionView| {
            session.entry_id == request.entry_id && session.profile == request.profile
        };
        if self.sessions_at(self.display.now).iter().any(is_meant) {
            return None;
        }
        let entry = self.entries.iter().find(|entry| {
            let child = entry.child.as_ref().map(|child| &child.profile).or(self.profile.as_ref());
            entry.view.entry_id == request.entry_id && child.is_none_or(|child| *child == request.profile)
        })?;
        humanize::closed_entry(&entry.view, &self.display)
    }

    fn update_time_request(&mut self, request: &TimeRequestView) {
        self.time_requests.retain(|known| known.request_id != request.request_id);
        if request.state.is_open() {
            self.time_requests.push(request.clone());
        } else if matches!(&self.popup, Some(LiveViewPopup::Answer { request: shown, .. }) if shown.request_id == request.request_id)
        {
            // Another parent has answered.
            self.popup = None;
        }
    }

    fn request_entries(&mut self) -> LiveViewAction {
        let was = self.entries_refresh;
        self.entries_refresh =
            if was == EntriesRefresh::Idle { EntriesRefresh::Pending } else { EntriesRefresh::PendingAgain };
        if was == EntriesRefresh::Idle {
            LiveViewAction::Send(vec![LiveViewRequest::Entries])
        } else {
            LiveViewAction::Nothing
        }
    }

    fn entries_received(&mut self) -> LiveViewAction {
        let again = self.entries_refresh == EntriesRefresh::PendingAgain;
        self.entries_refresh = EntriesRefresh::Idle;
        if again { self.request_entries() } else { LiveViewAction::Nothing }
    }

    fn push_line(&mut self, at: Timestamp, tone: TextTone, mark: &'static str, text: String) {
        self.push_event_line(EventLine { at, tone, mark, text });
    }

    fn push_event_line(&mut self, line: EventLine) {
        if self.event_lines.len() >= MAX_EVENT_LINES {
            self.event_lines.pop_front();
        }
        self.event_lines.push_back(line);
    }
}

#[cfg(test)]
pub(super) mod tests;
