//! What happens, in a line for people: the same words wherever events are shown.

use jiff::Timestamp;
use shepherd_api::{Event, EventKind, Millis, SessionView, TimeRequestState, WarningSeverity};

use crate::context::DisplaySettings;
use crate::humanize;
use crate::output::TextTone;
use crate::text::escape_unsafe;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventLine {
    pub(crate) at: Timestamp,
    pub(crate) tone: TextTone,
    pub(crate) mark: &'static str,
    pub(crate) text: String,
}

/// Tells events one after the other, and remembers what the later ones leave out.
#[derive(Default)]
pub(crate) struct EventFormatter {
    label: Option<String>,
    stop_began: Option<Timestamp>,
}

impl EventFormatter {
    /// The line, if the event is worth one.
    pub(crate) fn format_event(&mut self, event: &Event, look: &DisplaySettings) -> Option<EventLine> {
        let (tone, mark, text) = self.describe_event(event, look)?;
        Some(EventLine { at: event.at, tone, mark, text })
    }

    fn describe_event(
        &mut self,
        event: &Event,
        look: &DisplaySettings,
    ) -> Option<(TextTone, &'static str, String)> {
        Some(match &event.kind {
            EventKind::SessionLaunching { session } => {
                (TextTone::Faint, "▷", format!("{} is being started", self.remember_label(session)))
            }
            EventKind::SessionStarted { session } => {
                let most = session.remaining.map_or_else(
                    || "without end".to_owned(),
                    // A moment has passed since the launch; people were told a round number.
                    |Millis(left)| format!("for {}", humanize::duration(Millis(left.saturating_add(999)))),
                );
                (TextTone::Good, "▶", format!("{} runs, {most}", self.remember_label(session)))
            }
            EventKind::WarningIssued { session, severity, message, .. } => {
                self.remember_label(session);
                (severity_tone(*severity), "!", escape_unsafe(message))
            }
            EventKind::DeadlineChanged { session } => {
                let left = session
                    .remaining
                    .map_or_else(|| "no end".to_owned(), |left| format!("{} left", humanize::duration(left)));
                (TextTone::Good, "↔", format!("{} has {left} now", self.remember_label(session)))
            }
            EventKind::SessionExpired { session, end } => {
                self.stop_began = Some(event.at);
                let label = self.remember_label(session);
                (TextTone::Warn, "◼", format!("{label} is being ended: {}", humanize::end_reason(end)))
            }
            EventKind::SessionEnded { end, .. } => {
                let label = self.label.take().unwrap_or_else(|| "It".to_owned());
                let took = self
                    .stop_began
                    .take()
                    .map(|began| describe_stop_duration(began, event.at))
                    .unwrap_or_default();
                (TextTone::Strong, "■", format!("{label} has ended: {}{took}", humanize::end_reason(end)))
            }
            EventKind::PolicyReloaded { entry_count } => {
                (TextTone::Strong, "↻", format!("another policy applies: {entry_count} entries"))
            }
            EventKind::ModeSwitched { mode } if mode.is_empty() => {
                (TextTone::Strong, "↻", "no mode applies any more: the policy as it is".to_owned())
            }
            EventKind::ModeSwitched { mode } => {
                (TextTone::Strong, "↻", format!("the mode is {} now", escape_unsafe(mode)))
            }
            EventKind::ClockTrustChanged { trusted: true } => {
                (TextTone::Good, "✓", "the clock is right again".to_owned())
            }
            EventKind::ClockTrustChanged { trusted: false } => {
                (TextTone::Bad, "✗", "the clock went back: nothing is launched until it is right".to_owned())
            }
            EventKind::RequestChanged { request } => {
                let (tone, state) = humanize::request_state(&request.state);
                let wants = format!("{} of {}", humanize::duration(request.amount), request.entry_id);
                match request.state {
                    TimeRequestState::Asked => (tone, "?", format!("{} asks for {wants}", request.profile)),
                    _ => (tone, "?", format!("{}'s request for {wants}: {state}", request.profile)),
                }
            }
            EventKind::GrantChanged { grant } => {
                let gift =
                    format!("{}: {}", humanize::scope(&grant.scope), humanize::gift(&grant.gift, look));
                match grant.revoked_at {
                    None => (TextTone::Good, "+", format!("granted: {gift}")),
                    Some(_) => (TextTone::Warn, "−", format!("taken back: {gift}")),
                }
            }
            EventKind::StateChanged { .. }
            | EventKind::EntriesChanged {}
            | EventKind::AuditAppended { .. }
            | EventKind::Unknown => return None,
        })
    }

    fn remember_label(&mut self, session: &SessionView) -> String {
        let label = escape_unsafe(&session.label);
        self.label = Some(label.clone());
        label
    }
}

pub(crate) fn severity_tone(severity: WarningSeverity) -> TextTone {
    match severity {
        WarningSeverity::Info => TextTone::Strong,
        WarningSeverity::Warn => TextTone::Warn,
        WarningSeverity::Critical => TextTone::Bad,
    }
}

/// How long the end took. A stubborn program takes its grace, others a moment.
fn describe_stop_duration(began: Timestamp, ended: Timestamp) -> String {
    let millis = ended.as_millisecond().saturating_sub(began.as_millisecond()).max(0);
    match millis {
        0..1000 => format!(", gone after {millis} ms"),
        _ => format!(", gone after {}.{} s", millis / 1000, millis % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use shepherd_api::{EndReason, SessionPhase};
    use shepherd_util::SessionId;

    use super::*;

    #[test]
    fn a_session_is_told_from_its_start_to_its_end() {
        let look = DisplaySettings { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC, width: 80 };
        let session_id = SessionId::from_random(1);
        let session = |remaining| SessionView {
            session_id: session_id.clone(),
            entry_id: "stubborn".parse().unwrap(),
            label: "Stubborn\u{7}".to_owned(),
            profile: "default".parse().unwrap(),
            phase: SessionPhase::Running,
            warned: None,
            started_at: Timestamp::UNIX_EPOCH,
            remaining: Some(Millis(remaining)),
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
        let mut teller = EventFormatter::default();
        let told: Vec<String> = events
            .into_iter()
            .filter_map(|(at, kind)| {
                teller.format_event(&Event { at: Timestamp::from_millisecond(at).unwrap(), kind }, &look)
            })
            .map(|told| format!("{} {}", told.mark, told.text))
            .collect();
        let expected = [
            "▷ Stubborn\\u{7} is being started",
            "▶ Stubborn\\u{7} runs, for 15 seconds",
            "! Stubborn ends now.",
            "◼ Stubborn\\u{7} is being ended: time was up",
            "■ Stubborn\\u{7} has ended: time was up, gone after 2.1 s",
        ];
        assert_eq!(told, expected);
    }
}
