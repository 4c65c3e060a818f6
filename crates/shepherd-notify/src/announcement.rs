//! Announcements: what a person is told about an event, and what they can answer. Everything here is pure.

use std::time::{Duration, Instant};

use jiff::{Timestamp, Zoned};
use shepherd_api::{
    Command, EndReason, EntryScope, EventKind, GrantKind, Millis, SessionPhase, SessionView,
    TimeRequestDecision, TimeRequestState, TimeRequestView, WarningSeverity,
};
use shepherd_text::SentenceCatalogue;
use shepherd_util::{EntryId, RequestId, SessionId};

use crate::listed_entry::ListedEntry;
use crate::words;

/// The minutes that the button of a warning asks for.
const ASKED_MINUTES: u32 = 10;

/// An end that moves by no more than this is not worth a notification. Each message rounds the remaining time.
const NOTICEABLE_MOVE_SECONDS: i64 = 5;

/// A message for the person at this desktop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Announcement {
    pub(crate) subject: AnnouncementSubject,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) urgency: AnnouncementUrgency,
    pub(crate) buttons: Vec<AnswerButton>,
}

/// The subject of an announcement. A later announcement on the same subject replaces the earlier one on the screen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnnouncementSubject {
    Session(SessionId),
    Request(RequestId),
    /// The entry that stays closed although this request for it was granted.
    ClosedEntry(RequestId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnnouncementUrgency {
    /// Disappears by itself.
    Passing,
    /// Also shown over a full-screen window.
    Important,
    /// Shown over a full-screen window until it is closed or replaced.
    Lasting,
}

impl Announcement {
    /// Returns whether the announcement must be removed when it no longer holds: it stays on the screen, or has buttons.
    pub(crate) fn can_go_stale(&self) -> bool {
        self.urgency == AnnouncementUrgency::Lasting || !self.buttons.is_empty()
    }
}

/// A button, and the command that it sends to the daemon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnswerButton {
    pub(crate) label: String,
    pub(crate) command: Command,
}

/// The moment of a message from the daemon, on two clocks. They differ by the time that the machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageTime {
    /// The daemon's wall clock.
    pub(crate) at: Timestamp,
    /// The clock of this process, which stands still while the machine sleeps (`CLOCK_MONOTONIC`).
    pub(crate) awake: Instant,
}

impl MessageTime {
    /// Returns the seconds by which the wall clock went ahead of the other one since an earlier message.
    fn seconds_asleep_since(&self, earlier: &Self) -> i64 {
        let awake = self.awake.saturating_duration_since(earlier.awake).as_secs();
        let passed = self.at.as_second().saturating_sub(earlier.at.as_second());
        passed.saturating_sub(i64::try_from(awake).unwrap_or(i64::MAX))
    }
}

/// A session as the child knows it from the last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownSession {
    pub(crate) session_id: SessionId,
    entry_id: EntryId,
    label: String,
    /// The end if the machine stays awake; `None` if the session is unlimited.
    end: Option<Timestamp>,
    /// True if the session ends with its hours, so that extra time doesn't move its end.
    ends_with_hours: bool,
    known_since: MessageTime,
}

impl KnownSession {
    pub(crate) fn new(session: &SessionView, time: MessageTime) -> Self {
        let end =
            session.remaining.and_then(|Millis(left)| time.at.checked_add(Duration::from_millis(left)).ok());
        Self {
            session_id: session.session_id.clone(),
            entry_id: session.entry_id.clone(),
            label: session.label.clone(),
            end,
            ends_with_hours: session.hours_end.is_some(),
            known_since: time,
        }
    }

    pub(crate) fn is_of(&self, entry_id: &EntryId) -> bool {
        self.entry_id == *entry_id
    }

    /// Returns the time until the hours of this entry end its session, if nothing ends it before.
    fn hours_left(&self, entry_id: &EntryId, now: Timestamp) -> Option<Millis> {
        let end = self.end.filter(|_| self.ends_with_hours && self.entry_id == *entry_id)?;
        Duration::try_from(end.duration_since(now)).ok().map(Millis::from)
    }
}

/// Returns what a child is told about an event of their own session, which was known like this.
pub(crate) fn for_session(
    catalogue: &SentenceCatalogue,
    kind: &EventKind,
    time: MessageTime,
    known: Option<&KnownSession>,
) -> Option<Announcement> {
    let (session, title, body, urgency) = match kind {
        EventKind::WarningIssued { session, severity, message, .. } => {
            let urgency = match severity {
                WarningSeverity::Info => AnnouncementUrgency::Passing,
                WarningSeverity::Warn => AnnouncementUrgency::Important,
                WarningSeverity::Critical => AnnouncementUrgency::Lasting,
            };
            (session, session.label.clone(), message.clone(), urgency)
        }
        EventKind::DeadlineChanged { session } => {
            let (title, body) = describe_moved_end(catalogue, session, time, known)?;
            (session, title, body, AnnouncementUrgency::Important)
        }
        EventKind::SessionExpired { session, end } => {
            let body = catalogue.closing_body(&words::end_reason(catalogue, end)?);
            (session, catalogue.closing_title(&session.label), body, AnnouncementUrgency::Lasting)
        }
        _ => return None,
    };
    let can_ask = session.phase != SessionPhase::Expiring && session.remaining.is_some();
    let buttons = if can_ask { vec![ask_for_more(catalogue, session)] } else { Vec::new() };
    Some(Announcement {
        subject: AnnouncementSubject::Session(session.session_id.clone()),
        title,
        body,
        urgency,
        buttons,
    })
}

/// Returns what a child is told about the end of their session. `None` if the child knows, because the program ended by
/// itself.
pub(crate) fn for_end(
    catalogue: &SentenceCatalogue,
    session: &KnownSession,
    end: &EndReason,
) -> Option<Announcement> {
    Some(Announcement {
        subject: AnnouncementSubject::Session(session.session_id.clone()),
        title: catalogue.ended_title(&session.label),
        body: words::end_reason(catalogue, end)?,
        urgency: AnnouncementUrgency::Important,
        buttons: Vec::new(),
    })
}

fn describe_moved_end(
    catalogue: &SentenceCatalogue,
    session: &SessionView,
    time: MessageTime,
    known: Option<&KnownSession>,
) -> Option<(String, String)> {
    let (label, known) = (&session.label, known?);
    let Some(remaining) = session.remaining else {
        // Unlimited sessions are announced anew after each sleep.
        known.end?;
        return Some((catalogue.more_time_title(label), catalogue.no_limit_now(label)));
    };
    let title = match known.end {
        None => catalogue.less_time_title(label),
        Some(old_end) => {
            let moved = KnownSession::new(session, time).end?.as_second().saturating_sub(old_end.as_second());
            // Run time stands still while the machine sleeps and the hours of an entry don't, so a sleep moves the end
            // by its own length or not at all.
            let asleep = time.seconds_asleep_since(&known.known_since);
            if moved > asleep.max(0).saturating_add(NOTICEABLE_MOVE_SECONDS) {
                catalogue.more_time_title(label)
            } else if moved < asleep.min(0).saturating_sub(NOTICEABLE_MOVE_SECONDS) {
                catalogue.less_time_title(label)
            } else {
                return None;
            }
        }
    };
    Some((title, catalogue.ends_in(label, &words::length(catalogue, remaining))))
}

/// Returns the button that asks for more time of a session.
pub(crate) fn ask_for_more(catalogue: &SentenceCatalogue, session: &SessionView) -> AnswerButton {
    let (entry_id, profile) = (session.entry_id.clone(), Some(session.profile.clone()));
    AnswerButton {
        label: catalogue.ask_button(ASKED_MINUTES),
        command: Command::RequestTime { entry_id, minutes: ASKED_MINUTES, note: None, profile },
    }
}

/// Returns what a child is told about their own request, for this entry, while this session runs. The entry is `None`
/// if the daemon doesn't list it.
pub(crate) fn for_own_request(
    catalogue: &SentenceCatalogue,
    request: &TimeRequestView,
    entry: Option<ListedEntry<'_>>,
    session: Option<&KnownSession>,
    now: &Zoned,
) -> Option<Announcement> {
    let label = entry.map_or(request.entry_id.as_str(), |entry| entry.view.label.as_str());
    let amount = words::length(catalogue, request.amount);
    let (title, body) = match &request.state {
        TimeRequestState::Asked => (catalogue.asked_title(), catalogue.asked_body(&amount, label)),
        TimeRequestState::Granted { .. } => {
            let running = session.filter(|session| session.entry_id == request.entry_id);
            let but = match running {
                Some(session) => session
                    .hours_left(&request.entry_id, now.timestamp())
                    .map(|left| catalogue.granted_but_ends(&words::length(catalogue, left))),
                None => {
                    let closed = entry.and_then(|entry| entry.closed(catalogue, now));
                    closed.map(|closed| catalogue.granted_but_stays(&closed.until))
                }
            };
            let granted = catalogue.granted_body(label);
            (catalogue.granted_title(), but.map_or(granted.clone(), |but| format!("{granted} {but}")))
        }
        TimeRequestState::Denied { why } => {
            let reason = why.as_ref().map(|why| format!(" {}", catalogue.quoted(why))).unwrap_or_default();
            (catalogue.denied_title(), format!("{}{reason}", catalogue.denied_body(label)))
        }
        TimeRequestState::Lapsed => (catalogue.lapsed_title(), catalogue.lapsed_body(&amount, label)),
        TimeRequestState::Seen => return None,
    };
    Some(Announcement {
        subject: AnnouncementSubject::Request(request.request_id.clone()),
        title,
        body,
        urgency: AnnouncementUrgency::Important,
        buttons: Vec::new(),
    })
}

/// Returns what a parent is told about the request of a child with this name. `None` if the request is settled.
pub(crate) fn for_request_of_child(
    catalogue: &SentenceCatalogue,
    request: &TimeRequestView,
    child: &str,
    label: &str,
) -> Option<Announcement> {
    if !request.state.is_open() {
        return None;
    }
    let amount = words::length(catalogue, request.amount);
    let note = request.note.as_ref().map(|note| format!("\n{}", catalogue.quoted(note))).unwrap_or_default();
    let answer = |label: String, decision: TimeRequestDecision| AnswerButton {
        label,
        command: Command::DecideRequest { request_id: request.request_id.clone(), decision },
    };
    Some(Announcement {
        subject: AnnouncementSubject::Request(request.request_id.clone()),
        title: catalogue.request_title(child, &amount),
        body: format!("{label}{note}"),
        urgency: AnnouncementUrgency::Lasting,
        buttons: vec![
            answer(catalogue.yes_button(&amount), TimeRequestDecision::Grant { minutes: None }),
            answer(catalogue.no_button(), TimeRequestDecision::Deny { why: None }),
        ],
    })
}

/// Returns what a parent is told who has granted a request, if the session ends with its hours in spite of it. The
/// button opens the entry for the granted time, and for this child only.
pub(crate) fn for_granted_request(
    catalogue: &SentenceCatalogue,
    request: &TimeRequestView,
    amount: Millis,
    session: &SessionView,
) -> Option<Announcement> {
    let is_meant = session.entry_id == request.entry_id && session.profile == request.profile;
    let end = session.hours_end.filter(|_| is_meant)?;
    let left = words::length(catalogue, session.remaining?);
    let more = words::length(catalogue, amount);
    let go_on = Command::Grant {
        profile: Some(session.profile.clone()),
        scope: EntryScope::Entry { entry_id: session.entry_id.clone() },
        gift: GrantKind::OpenUntil { until: end.checked_add(Duration::from(amount)).ok()? },
        valid_from: None,
        lapses_at: None,
        why: None,
    };
    Some(Announcement {
        subject: AnnouncementSubject::Session(session.session_id.clone()),
        title: catalogue.still_ends_title(&session.label, &left),
        body: catalogue.still_ends_body(),
        urgency: AnnouncementUrgency::Lasting,
        buttons: vec![AnswerButton { label: catalogue.go_on_button(&more), command: go_on }],
    })
}

/// Returns what a parent is told who has granted a request, if the entry stays closed in spite of it. If only its hours keep
/// it closed, a button opens it for as long as was granted, from now on, and for this child only.
pub(crate) fn for_granted_closed_entry(
    catalogue: &SentenceCatalogue,
    request: &TimeRequestView,
    amount: Millis,
    entry: ListedEntry<'_>,
    now: &Zoned,
) -> Option<Announcement> {
    let closed = entry.closed(catalogue, now)?;
    let until = now.timestamp().checked_add(Duration::from(amount)).ok()?;
    let open = Command::Grant {
        profile: Some(request.profile.clone()),
        scope: EntryScope::Entry { entry_id: request.entry_id.clone() },
        gift: GrantKind::OpenUntil { until },
        valid_from: None,
        lapses_at: None,
        why: None,
    };
    let open =
        AnswerButton { label: catalogue.open_until_button(&catalogue.time(until, now)), command: open };
    Some(Announcement {
        subject: AnnouncementSubject::ClosedEntry(request.request_id.clone()),
        title: catalogue.stays_closed_title(&entry.view.label),
        body: catalogue.stays_closed_body(&closed.until),
        urgency: AnnouncementUrgency::Lasting,
        // Longer hours don't help either if another entry comes first.
        buttons: if closed.is_locked { Vec::new() } else { vec![open] },
    })
}

#[cfg(test)]
mod tests;
