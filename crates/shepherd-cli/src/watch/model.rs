//! The picture that the live view shows, and what keys and events do to it. Nothing here touches the terminal.

mod keys;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{
    ClientState, DaemonStateSnapshot, EntryView, Event, EventKind, Refresh, SessionPhase, WhyView,
};
use shepherd_util::{EntryId, ProfileId};

use crate::context::Look;
use crate::screen::Tone;
use crate::tell::{Teller, Told, severity_tone};
use crate::text::clean;
use crate::watch::Left;
use crate::watch::feed::{Answer, Feed, Wish};

/// Lines of what happened that are kept: more than any screen shows.
const MOST_TOLD: usize = 200;

/// Minutes that are proposed when time is asked for.
const PROPOSED_MINUTES: &str = "15";

pub(super) struct Model {
    pub(super) look: Look,
    pub(super) profile: Option<ProfileId>,
    pub(super) link: Link,
    state: Option<ClientState>,
    pub(super) entries: Vec<EntryView>,
    pub(super) selected: usize,
    pub(super) told: VecDeque<Told>,
    /// The last warning of the session that runs.
    pub(super) warning: Option<(Tone, String)>,
    /// What came of the last key, until the next.
    pub(super) notice: Option<(Tone, String)>,
    pub(super) popup: Option<Popup>,
    teller: Teller,
    asking: Asking,
}

/// Whether what is shown is true.
pub(super) enum Link {
    /// Not yet.
    Connecting,
    Up,
    Down {
        why: String,
    },
}

pub(super) enum Popup {
    Help,
    Why { why: Box<WhyView>, scroll: u16 },
    RequestTime { entry_id: EntryId, label: String, minutes: String },
    Pin { wish: Wish, told: String, typed: String },
}

/// Whether the entries are being asked for, so that many events make few questions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    No,
    Yes,
    /// And something happened since.
    YesAndAgain,
}

/// What the view has to do next.
pub(super) enum Step {
    Nothing,
    Ask(Vec<Wish>),
    Leave(Left),
}

impl Model {
    pub(super) fn new(look: Look, profile: Option<ProfileId>, greeting: Vec<String>) -> Self {
        let at = look.now;
        let greeting = greeting.into_iter().map(|text| Told { at, tone: Tone::Strong, mark: "·", text });
        Self {
            look,
            profile,
            link: Link::Connecting,
            state: None,
            entries: Vec::new(),
            selected: 0,
            told: greeting.collect(),
            warning: None,
            notice: None,
            popup: None,
            teller: Teller::default(),
            asking: Asking::No,
        }
    }

    /// The state at a moment, what remains counted down.
    pub(super) fn picture(&self, now: Timestamp) -> Option<DaemonStateSnapshot> {
        self.state.as_ref().map(|state| state.picture(now))
    }

    /// When the countdown shows another second; `None` while there is none to show.
    pub(super) fn next_tick(&self, now: Timestamp) -> Option<Duration> {
        if !matches!(self.link, Link::Up) {
            return None;
        }
        let session = self.picture(now)?.session?;
        let left = session.remaining?.0;
        let counts = left > 0 && session.phase != SessionPhase::Expiring;
        // What is shown is rounded up: it changes when the full second is reached.
        counts.then(|| Duration::from_millis(if left.is_multiple_of(1000) { 1 } else { left % 1000 }))
    }

    pub(super) fn take_in(&mut self, feed: Feed) -> Step {
        match feed {
            Feed::Key(key) => return self.key(key),
            Feed::Resized => {}
            Feed::InputGone => return Step::Leave(Left::Quit),
            Feed::Signal(signal) => return Step::Leave(Left::Signal(signal)),
            Feed::Resynced { state, missed } => {
                if matches!(self.link, Link::Down { .. }) {
                    self.say(Timestamp::now(), Tone::Good, "✓", "connected again".to_owned());
                }
                if missed > 0 {
                    self.say(Timestamp::now(), Tone::Faint, "…", format!("{missed} events were left out"));
                }
                self.link = Link::Up;
                self.state = Some(*state);
                return self.ask_entries();
            }
            Feed::Happened { state, event, refresh } => {
                self.state = Some(*state);
                self.happened(&event);
                return match refresh {
                    Refresh::Nothing => Step::Nothing,
                    Refresh::Entries | Refresh::Everything => self.ask_entries(),
                };
            }
            Feed::Disconnected { why } => {
                if matches!(self.link, Link::Up) {
                    self.say(Timestamp::now(), Tone::Bad, "✗", "not connected any more".to_owned());
                }
                self.link = Link::Down { why: clean(&why) };
                self.asking = Asking::No;
                return Step::Ask(vec![Wish::HangUp]);
            }
            Feed::Answered(answer) => return self.answered(answer),
        }
        Step::Nothing
    }

    fn happened(&mut self, event: &Event) {
        match &event.kind {
            EventKind::WarningIssued { severity, message, .. } => {
                self.warning = Some((severity_tone(*severity), clean(message)));
            }
            EventKind::DeadlineChanged { .. }
            | EventKind::SessionLaunching { .. }
            | EventKind::SessionEnded { .. }
            | EventKind::StateChanged { .. } => self.warning = None,
            _ => {}
        }
        if let Some(told) = self.teller.tell(event, &self.look) {
            self.keep(told);
        }
    }

    fn answered(&mut self, answer: Answer) -> Step {
        match answer {
            Answer::Entries(entries) => {
                self.entries = entries;
                self.selected = self.selected.min(self.entries.len().saturating_sub(1));
                return self.entries_answered();
            }
            Answer::NoEntries(told) => {
                self.notice = Some((Tone::Bad, clean(&told)));
                return self.entries_answered();
            }
            Answer::PinWanted { wish, told } => {
                self.popup = Some(Popup::Pin { wish, told: clean(&told), typed: String::new() });
            }
            Answer::Why(why) => self.popup = Some(Popup::Why { why, scroll: 0 }),
            Answer::Notice(tone, told) => self.notice = Some((tone, clean(&told))),
        }
        Step::Nothing
    }

    fn ask_entries(&mut self) -> Step {
        let was = self.asking;
        self.asking = if was == Asking::No { Asking::Yes } else { Asking::YesAndAgain };
        if was == Asking::No { Step::Ask(vec![Wish::Entries]) } else { Step::Nothing }
    }

    fn entries_answered(&mut self) -> Step {
        let again = self.asking == Asking::YesAndAgain;
        self.asking = Asking::No;
        if again { self.ask_entries() } else { Step::Nothing }
    }

    fn say(&mut self, at: Timestamp, tone: Tone, mark: &'static str, text: String) {
        self.keep(Told { at, tone, mark, text });
    }

    fn keep(&mut self, told: Told) {
        if self.told.len() >= MOST_TOLD {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }
}

#[cfg(test)]
pub(super) mod tests;
