//! What the tray shows at a moment. Everything here is pure.

use std::time::Duration;

use shepherd_api::{Command, Millis, SessionPhase, SessionView};
use shepherd_text::SentenceCatalogue;
use shepherd_util::SessionId;

use super::icon::{IconFace, IconTone};

const MINUTE: Duration = Duration::from_secs(60);

/// Below this time, the icon changes its colour.
const SOON: Duration = Duration::from_mins(5);

/// A running session of the child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraySession {
    pub(crate) session_id: SessionId,
    label: String,
    phase: SessionPhase,
    /// The time that is left; `None` if there is no limit.
    remaining: Option<Duration>,
    ask: Option<AskItem>,
}

/// A menu item that asks for time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskItem {
    pub(crate) label: String,
    pub(crate) command: Command,
}

/// The icon with its texts and menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrayContent {
    pub(crate) face: IconFace,
    pub(crate) tone: IconTone,
    /// True if a session runs. Otherwise the tray hides the icon.
    pub(crate) is_active: bool,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) menu: Vec<MenuItem>,
}

/// A line of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MenuItem {
    pub(crate) label: String,
    /// The session and the command of a line that can be clicked.
    pub(crate) action: Option<MenuAction>,
}

/// What a click on a line of the menu does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MenuAction {
    pub(crate) session_id: SessionId,
    pub(crate) session_label: String,
    pub(crate) item: AskItem,
}

impl TraySession {
    /// Returns a session as it is this long after the message that described it.
    pub(crate) fn new(session: &SessionView, passed: Duration, ask: Option<AskItem>) -> Self {
        let remaining =
            session.remaining.map(|Millis(left)| Duration::from_millis(left).saturating_sub(passed));
        Self {
            session_id: session.session_id.clone(),
            label: session.label.clone(),
            phase: session.phase,
            remaining,
            ask,
        }
    }

    fn is_closing(&self) -> bool {
        self.phase == SessionPhase::Expiring
    }

    /// Describes the time that is left in whole minutes, because the text isn't updated in between.
    fn remaining_in_words(&self, catalogue: &SentenceCatalogue) -> Option<String> {
        let remaining = self.remaining?;
        let minutes = remaining.as_secs() / MINUTE.as_secs();
        Some(match minutes {
            0 => catalogue.less_than_a_minute(),
            minutes => catalogue.duration(Duration::from_secs(minutes * MINUTE.as_secs())),
        })
    }

    /// Describes the session in one line.
    fn line(&self, catalogue: &SentenceCatalogue) -> String {
        if self.is_closing() {
            return catalogue.closing_title(&self.label);
        }
        match self.remaining_in_words(catalogue) {
            Some(remaining) => catalogue.session_line(&self.label, &remaining),
            None => catalogue.session_line_without_limit(&self.label),
        }
    }
}

impl TrayContent {
    /// Returns what the tray shows while these sessions run.
    pub(crate) fn new(catalogue: &SentenceCatalogue, sessions: &[TraySession]) -> Self {
        let soonest = sessions
            .iter()
            .filter_map(|session| if session.is_closing() { Some(Duration::ZERO) } else { session.remaining })
            .min();
        let face = soonest.map_or(IconFace::Unlimited, |left| match left.as_secs() / MINUTE.as_secs() {
            0 => IconFace::LastMinute,
            minutes => IconFace::Minutes(minutes),
        });
        let tone = match soonest {
            Some(left) if left < MINUTE => IconTone::Now,
            Some(left) if left < SOON + MINUTE => IconTone::Soon,
            Some(_) | None => IconTone::Calm,
        };
        let (title, text) = match sessions {
            [] => (catalogue.nothing_running(), String::new()),
            [only] => (only.label.clone(), only.line(catalogue)),
            several => {
                let lines: Vec<_> = several.iter().map(|session| session.line(catalogue)).collect();
                ("Shepherd".to_owned(), lines.join("\n"))
            }
        };
        let menu = sessions.iter().flat_map(|session| session.menu_items(catalogue)).collect();
        Self { face, tone, is_active: !sessions.is_empty(), title, text, menu }
    }

    /// Returns the time until the tray shows something else by itself. In the last minute, nothing changes any more.
    pub(crate) fn next_change(sessions: &[TraySession]) -> Option<Duration> {
        let next = |session: &TraySession| {
            let remaining = session.remaining.filter(|left| *left >= MINUTE && !session.is_closing())?;
            let beyond = remaining.as_millis() % MINUTE.as_millis();
            // A millisecond later than a whole minute, a minute less is left.
            Some(Duration::from_millis(u64::try_from(beyond).unwrap_or_default() + 1))
        };
        sessions.iter().filter_map(next).min()
    }
}

impl TraySession {
    fn menu_items(&self, catalogue: &SentenceCatalogue) -> Vec<MenuItem> {
        let ask = self.ask.clone().map(|item| MenuItem {
            label: item.label.clone(),
            action: Some(MenuAction {
                session_id: self.session_id.clone(),
                session_label: self.label.clone(),
                item,
            }),
        });
        std::iter::once(MenuItem { label: self.line(catalogue), action: None }).chain(ask).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use shepherd_text::Language;

    use super::*;

    fn session(label: &str, remaining: Option<u64>) -> TraySession {
        let view = SessionView {
            session_id: SessionId::from_random(1),
            entry_id: "tuxmath".parse().unwrap(),
            label: label.to_owned(),
            profile: "anna".parse().unwrap(),
            slot: shepherd_api::SessionSlot::Foreground,
            counting: shepherd_api::SessionCounting::Active,
            phase: SessionPhase::Running,
            started_at: Timestamp::UNIX_EPOCH,
            remaining: remaining.map(|seconds| Millis(seconds * 1000)),
            hours_end: None,
            ran: None,
            warned: None,
        };
        TraySession::new(&view, Duration::ZERO, None)
    }

    fn shown(remaining: Option<u64>) -> (IconFace, IconTone, String) {
        let catalogue = SentenceCatalogue::of(Language::English);
        let content = TrayContent::new(catalogue, &[session("Maths", remaining)]);
        (content.face, content.tone, content.text)
    }

    // S19.3
    #[test]
    fn whole_minutes_are_shown_and_never_too_many() {
        let check = |remaining, face, tone, text: &str| {
            assert_eq!(shown(remaining), (face, tone, text.to_owned()), "{remaining:?}");
        };
        check(Some(3_000), IconFace::Minutes(50), IconTone::Calm, "Maths: 50 minutes left");
        check(Some(359), IconFace::Minutes(5), IconTone::Soon, "Maths: 5 minutes left");
        check(Some(119), IconFace::Minutes(1), IconTone::Soon, "Maths: 1 minute left");
        check(Some(60), IconFace::Minutes(1), IconTone::Soon, "Maths: 1 minute left");
        check(Some(59), IconFace::LastMinute, IconTone::Now, "Maths: less than 1 minute left");
        check(Some(7_500), IconFace::Minutes(125), IconTone::Calm, "Maths: 2 hours 5 minutes left");
        check(None, IconFace::Unlimited, IconTone::Calm, "Maths: no time limit");
    }

    // S19.3
    #[test]
    fn the_tray_changes_once_a_minute_and_not_in_the_last_one() {
        let next = |seconds| TrayContent::next_change(&[session("Maths", Some(seconds))]);
        assert_eq!(next(300), Some(Duration::from_millis(1)));
        assert_eq!(next(359), Some(Duration::from_millis(59_001)));
        assert_eq!(next(60), Some(Duration::from_millis(1)));
        assert_eq!(next(59), None);
        assert_eq!(TrayContent::next_change(&[session("Maths", None)]), None);
        assert_eq!(TrayContent::next_change(&[]), None);
    }

    #[test]
    fn several_sessions_are_shown_together_and_the_first_end_counts() {
        let catalogue = SentenceCatalogue::of(Language::German);
        let sessions = [session("Radio", None), session("Maths", Some(600)), session("Film", Some(3_700))];
        let content = TrayContent::new(catalogue, &sessions);
        assert_eq!((content.face, content.title.as_str()), (IconFace::Minutes(10), "Shepherd"));
        assert_eq!(
            content.text,
            "Radio: ohne Zeitlimit\nMaths: noch 10 Minuten\nFilm: noch 1 Stunde 1 Minute"
        );
        assert!(!TrayContent::new(catalogue, &[]).is_active);
    }

    #[test]
    fn the_time_since_the_last_message_is_counted() {
        let view = session("Maths", Some(600));
        let later = TraySession { remaining: view.remaining.map(|left| left.saturating_sub(MINUTE)), ..view };
        let content = TrayContent::new(SentenceCatalogue::of(Language::English), &[later]);
        assert_eq!(content.face, IconFace::Minutes(9));
    }
}
