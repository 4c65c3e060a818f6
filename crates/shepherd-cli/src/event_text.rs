//! Turns events into lines for people, for the live view, `launch --wait` and the demonstration.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shepherd_api::{EndReason, Event, EventKind, SessionView, TimeRequestState, WarningSeverity};
use shepherd_util::SessionId;
use ward_terminal::{TextTone, escape_label, format_count};

use crate::context::DisplaySettings;
use crate::humanize;

/// A line that describes an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventLine {
    pub(crate) at: Timestamp,
    pub(crate) tone: TextTone,
    pub(crate) mark: &'static str,
    pub(crate) text: String,
}

/// Describes a sequence of events, and remembers the facts that later events leave out.
#[derive(Default)]
pub(crate) struct EventFormatter {
    sessions: BTreeMap<SessionId, KnownSession>,
}

/// The facts about a session that its later events leave out.
#[derive(Default)]
struct KnownSession {
    label: String,
    stop_began: Option<Timestamp>,
}

impl EventFormatter {
    /// Creates a formatter for the later events of a session.
    pub(crate) fn for_session(session: &SessionView) -> Self {
        let mut formatter = Self::default();
        formatter.remember(session, escape_label(&session.label));
        formatter
    }

    /// Returns the line for an event, or `None` if people need not see the event.
    pub(crate) fn format_event(&mut self, event: &Event, display: &DisplaySettings) -> Option<EventLine> {
        let (tone, mark, text) = self.describe_event(event, display)?;
        Some(EventLine { at: event.at, tone, mark, text })
    }

    fn describe_event(
        &mut self,
        event: &Event,
        display: &DisplaySettings,
    ) -> Option<(TextTone, &'static str, String)> {
        Some(match &event.kind {
            EventKind::SessionLaunching { session } => {
                (TextTone::Faint, "▷", format!("{} is starting", self.remember_label(session, display)))
            }
            EventKind::SessionStarted { session } => {
                let most = session.remaining.map_or_else(
                    || "with no time limit".to_owned(),
                    |left| format!("for up to {}", humanize::duration(left)),
                );
                (TextTone::Good, "▶", format!("{} is running, {most}", self.remember_label(session, display)))
            }
            EventKind::WarningIssued { session, severity, message, .. } => {
                self.remember_label(session, display);
                (severity_tone(*severity), "!", escape_label(message))
            }
            EventKind::DeadlineChanged { session } => {
                let left = session.remaining.map_or_else(
                    || "no time limit".to_owned(),
                    |left| format!("{} left", humanize::duration(left)),
                );
                (TextTone::Good, "↔", format!("{} now has {left}", self.remember_label(session, display)))
            }
            EventKind::SessionExpired { session, end } => {
                let label = self.remember_label(session, display);
                if let Some(known) = self.sessions.get_mut(&session.session_id) {
                    known.stop_began = Some(event.at);
                }
                (TextTone::Warn, "◼", format!("{label} is stopping: {}", humanize::end_reason(end)))
            }
            EventKind::SessionEnded { session_id, end } => {
                let known = self.sessions.remove(session_id);
                let label = known.as_ref().map_or_else(|| "The session".to_owned(), |known| known.label.clone());
                let took = known
                    .and_then(|known| known.stop_began)
                    .map(|began| describe_stop_duration(began, event.at))
                    .unwrap_or_default();
                let hint = if is_crash(end) { "; see `shepherd log`" } else { "" };
                (
                    TextTone::Strong,
                    "■",
                    format!("{label} has ended: {}{hint}{took}", humanize::end_reason(end)),
                )
            }
            EventKind::PolicyReloaded { entry_count, .. } => (
                TextTone::Strong,
                "↻",
                format!("new policy in force: {}", format_count(*entry_count, "entry", "entries")),
            ),
            EventKind::ModeSwitched { mode } if mode.is_empty() => {
                (TextTone::Strong, "↻", "no mode is set any more".to_owned())
            }
            EventKind::ModeSwitched { mode } => {
                (TextTone::Strong, "↻", format!("the mode is now {}", escape_label(mode)))
            }
            EventKind::ClockTrustChanged { trusted: true } => {
                (TextTone::Good, "✓", "the clock is trusted again".to_owned())
            }
            EventKind::ClockTrustChanged { trusted: false } => (
                TextTone::Bad,
                "✗",
                "the clock was set back: nothing can be launched until it is set or, if it is right, confirmed with \
                 `shepherd clock confirm`"
                    .to_owned(),
            ),
            EventKind::RequestChanged { request } => {
                let (tone, state) = humanize::request_state(&request.state);
                let wants = format!(
                    "{} of {}",
                    humanize::duration(request.amount),
                    humanize::entry_name(&request.entry_id, display)
                );
                let name = humanize::profile_name(&request.profile, display);
                match request.state {
                    TimeRequestState::Asked => (tone, "?", format!("{name} asks for {wants}")),
                    _ => (tone, "?", format!("{name}'s request for {wants}: {state}")),
                }
            }
            EventKind::GrantChanged { grant } => {
                let scope = humanize::scope(&grant.scope, display);
                let gift = format!("{scope}: {}", humanize::gift(&grant.gift, display));
                match grant.revoked_at {
                    None => (TextTone::Good, "+", format!("granted: {gift}")),
                    Some(_) => (TextTone::Warn, "−", format!("revoked: {gift}")),
                }
            }
            EventKind::StateChanged { .. }
            | EventKind::EntriesChanged {}
            | EventKind::AuditAppended { .. }
            | EventKind::Unknown => return None,
        })
    }

    /// Returns the label of a session, with the child's if the household has several children.
    fn remember_label(&mut self, session: &SessionView, display: &DisplaySettings) -> String {
        let label = escape_label(&session.label);
        let label = match display.labels.has_several_profiles() {
            true => format!("{}: {label}", humanize::profile_name(&session.profile, display)),
            false => label,
        };
        self.remember(session, label)
    }

    fn remember(&mut self, session: &SessionView, label: String) -> String {
        self.sessions.entry(session.session_id.clone()).or_default().label.clone_from(&label);
        label
    }
}

/// Returns true if a program ended by itself with an error.
fn is_crash(end: &EndReason) -> bool {
    matches!(end, EndReason::Exited { code, signal } if signal.is_some() || code.is_some_and(|code| code != 0))
}

pub(crate) fn severity_tone(severity: WarningSeverity) -> TextTone {
    match severity {
        WarningSeverity::Info => TextTone::Strong,
        WarningSeverity::Warn => TextTone::Warn,
        WarningSeverity::Critical => TextTone::Bad,
    }
}

/// Describes how long a program took to stop. Most stop at once; a stubborn one uses its grace period.
fn describe_stop_duration(began: Timestamp, ended: Timestamp) -> String {
    let millis = ended.as_millisecond().saturating_sub(began.as_millisecond()).max(0);
    match millis {
        0..1000 => format!(" (stopped after {millis} ms)"),
        _ => format!(" (stopped after {}.{} s)", millis / 1000, millis % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{Millis, SessionPhase};
    use shepherd_util::SessionId;

    use super::*;

    #[test]
    fn a_session_is_described_from_its_start_to_its_end() {
        let display = DisplaySettings::new(Timestamp::UNIX_EPOCH, TimeZone::UTC, 80);
        let session_id = SessionId::from_random(1);
        let session = |remaining| SessionView {
            session_id: session_id.clone(),
            entry_id: "stubborn".parse().unwrap(),
            label: "Stubborn\u{7}".to_owned(),
            profile: "default".parse().unwrap(),
            slot: Default::default(),
            counting: Default::default(),
            phase: SessionPhase::Running,
            warned: None,
            started_at: Timestamp::UNIX_EPOCH,
            remaining: Some(Millis(remaining)),
            hours_end: None,
            ran: None,
        };
        let events = [
            (0, EventKind::SessionLaunching { session: session(15_000) }),
            (20, EventKind::SessionStarted { session: session(14_980) }),
            (
                10_000,
                EventKind::WarningIssued {
                    session: session(5_000),
                    threshold_secs: 5,
                    severity: WarningSeverity::Critical,
                    message: "Stubborn ends now.".to_owned(),
                },
            ),
            (15_000, EventKind::SessionExpired { session: session(0), end: EndReason::Expired }),
            (17_130, EventKind::SessionEnded { session_id: session_id.clone(), end: EndReason::Expired }),
            (18_000, EventKind::EntriesChanged {}),
        ];
        let mut formatter = EventFormatter::default();
        let lines: Vec<String> = events
            .into_iter()
            .filter_map(|(at, kind)| {
                formatter
                    .format_event(&Event { at: Timestamp::from_millisecond(at).unwrap(), kind }, &display)
            })
            .map(|line| format!("{} {}", line.mark, line.text))
            .collect();
        let expected = [
            "▷ Stubborn\\u{7} is starting",
            "▶ Stubborn\\u{7} is running, for up to 15 seconds",
            "! Stubborn ends now.",
            "◼ Stubborn\\u{7} is stopping: time is up",
            "■ Stubborn\\u{7} has ended: time is up (stopped after 2.1 s)",
        ];
        assert_eq!(lines, expected);
    }
}
