//! What happens, in a line for people: the same words wherever events are shown.

use jiff::Timestamp;
use shepherd_api::{Event, EventKind, Millis, RequestState, SessionView, Severity};

use crate::context::Look;
use crate::screen::Tone;
use crate::text::clean;
use crate::words;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) at: Timestamp,
    pub(crate) tone: Tone,
    pub(crate) mark: &'static str,
    pub(crate) text: String,
}

/// Tells events one after the other, and remembers what the later ones leave out.
#[derive(Default)]
pub(crate) struct Teller {
    label: Option<String>,
    end_began: Option<Timestamp>,
}

impl Teller {
    /// The line, if the event is worth one.
    pub(crate) fn tell(&mut self, event: &Event, look: &Look) -> Option<Told> {
        let (tone, mark, text) = self.words(event, look)?;
        Some(Told { at: event.at, tone, mark, text })
    }

    fn words(&mut self, event: &Event, look: &Look) -> Option<(Tone, &'static str, String)> {
        Some(match &event.kind {
            EventKind::SessionLaunching { session } => {
                (Tone::Faint, "▷", format!("{} is being started", self.remember(session)))
            }
            EventKind::SessionStarted { session } => {
                let most = session.remaining.map_or_else(
                    || "without end".to_owned(),
                    // A moment has passed since the launch; people were told a round number.
                    |Millis(left)| format!("for {}", words::length(Millis(left.saturating_add(999)))),
                );
                (Tone::Good, "▶", format!("{} runs, {most}", self.remember(session)))
            }
            EventKind::WarningIssued { session, severity, message, .. } => {
                self.remember(session);
                (severity_tone(*severity), "!", clean(message))
            }
            EventKind::DeadlineChanged { session } => {
                let left = session
                    .remaining
                    .map_or_else(|| "no end".to_owned(), |left| format!("{} left", words::length(left)));
                (Tone::Good, "↔", format!("{} has {left} now", self.remember(session)))
            }
            EventKind::SessionExpired { session, end } => {
                self.end_began = Some(event.at);
                let label = self.remember(session);
                (Tone::Warn, "◼", format!("{label} is being ended: {}", words::end(end)))
            }
            EventKind::SessionEnded { end, .. } => {
                let label = self.label.take().unwrap_or_else(|| "It".to_owned());
                let took = self.end_began.take().map(|began| took(began, event.at)).unwrap_or_default();
                (Tone::Strong, "■", format!("{label} has ended: {}{took}", words::end(end)))
            }
            EventKind::PolicyReloaded { entry_count } => {
                (Tone::Strong, "↻", format!("another policy applies: {entry_count} entries"))
            }
            EventKind::ModeSwitched { mode } if mode.is_empty() => {
                (Tone::Strong, "↻", "no mode applies any more: the policy as it is".to_owned())
            }
            EventKind::ModeSwitched { mode } => {
                (Tone::Strong, "↻", format!("the mode is {} now", clean(mode)))
            }
            EventKind::ClockTrustChanged { trusted: true } => {
                (Tone::Good, "✓", "the clock is right again".to_owned())
            }
            EventKind::ClockTrustChanged { trusted: false } => {
                (Tone::Bad, "✗", "the clock went back: nothing is launched until it is right".to_owned())
            }
            EventKind::RequestChanged { request } => {
                let (tone, state) = words::request_state(&request.state);
                let wants = format!("{} of {}", words::length(request.amount), request.entry_id);
                match request.state {
                    RequestState::Asked => (tone, "?", format!("{} asks for {wants}", request.profile)),
                    _ => (tone, "?", format!("{}'s request for {wants}: {state}", request.profile)),
                }
            }
            EventKind::GrantChanged { grant } => {
                let gift = format!("{}: {}", words::scope(&grant.scope), words::gift(&grant.gift, look));
                match grant.revoked_at {
                    None => (Tone::Good, "+", format!("granted: {gift}")),
                    Some(_) => (Tone::Warn, "−", format!("taken back: {gift}")),
                }
            }
            EventKind::StateChanged { .. }
            | EventKind::EntriesChanged {}
            | EventKind::AuditAppended { .. }
            | EventKind::Unknown => return None,
        })
    }

    fn remember(&mut self, session: &SessionView) -> String {
        let label = clean(&session.label);
        self.label = Some(label.clone());
        label
    }
}

pub(crate) fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Info => Tone::Strong,
        Severity::Warn => Tone::Warn,
        Severity::Critical => Tone::Bad,
    }
}

/// How long the end took. A stubborn program takes its grace, others a moment.
fn took(began: Timestamp, ended: Timestamp) -> String {
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
        let look = Look { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC, width: 80 };
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
                    severity: Severity::Critical,
                    message: "Stubborn ends now.".to_owned(),
                },
            ),
            (15_000, EventKind::SessionExpired { session: session(0), end: EndReason::Expired }),
            (17_130, EventKind::SessionEnded { session_id: session_id.clone(), end: EndReason::Expired }),
            (18_000, EventKind::EntriesChanged {}),
        ];
        let mut teller = Teller::default();
        let told: Vec<String> = events
            .into_iter()
            .filter_map(|(at, kind)| {
                teller.tell(&Event { at: Timestamp::from_millisecond(at).unwrap(), kind }, &look)
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
