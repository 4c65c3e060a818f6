//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use shepherd_api::{MAX_PIN_LENGTH, Pin, StopMode};

use super::{Model, PROPOSED_MINUTES, Popup, Step};
use crate::screen::Tone;
use crate::text::clean;
use crate::watch::Left;
use crate::watch::feed::Wish;

/// Digits of the minutes that can be asked for: a thousand minutes are more than a day has.
const MOST_DIGITS: usize = 3;

impl Model {
    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        if key.kind == KeyEventKind::Release {
            return Step::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            let leaves = matches!(key.code, KeyCode::Char('c' | 'd'));
            return if leaves { Step::Leave(Left::Quit) } else { Step::Nothing };
        }
        self.notice = None;
        match self.popup.take() {
            Some(popup) => self.popup_key(popup, key.code),
            None => self.list_key(key.code),
        }
    }

    fn list_key(&mut self, code: KeyCode) -> Step {
        let last = self.entries.len().saturating_sub(1);
        match code {
            KeyCode::Char('q') => return Step::Leave(Left::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.selected = last,
            KeyCode::Char('?' | 'h') => self.popup = Some(Popup::Help),
            KeyCode::Char('s') => return Step::Ask(vec![Wish::Stop(StopMode::Graceful)]),
            KeyCode::Char('S') => return Step::Ask(vec![Wish::Stop(StopMode::Force)]),
            KeyCode::Enter | KeyCode::Char('w' | 'r') => return self.entry_key(code),
            _ => {}
        }
        Step::Nothing
    }

    /// Keys that are about the entry that is selected.
    fn entry_key(&mut self, code: KeyCode) -> Step {
        let Some(entry) = self.entries.get(self.selected) else {
            self.notice = Some((Tone::Faint, "There is no entry to choose.".to_owned()));
            return Step::Nothing;
        };
        let entry_id = entry.entry_id.clone();
        match code {
            KeyCode::Enter => return Step::Ask(vec![Wish::Launch(entry_id)]),
            KeyCode::Char('w') => return Step::Ask(vec![Wish::Why(entry_id)]),
            _ => {
                let (label, minutes) = (clean(&entry.label), PROPOSED_MINUTES.to_owned());
                self.popup = Some(Popup::RequestTime { entry_id, label, minutes });
            }
        }
        Step::Nothing
    }

    fn popup_key(&mut self, popup: Popup, code: KeyCode) -> Step {
        match popup {
            Popup::Help => Step::Nothing,
            Popup::Why { why, scroll } => {
                let scroll = match code {
                    KeyCode::Down | KeyCode::Char('j') => scroll.saturating_add(1),
                    KeyCode::Up | KeyCode::Char('k') => scroll.saturating_sub(1),
                    _ => return Step::Nothing,
                };
                self.popup = Some(Popup::Why { why, scroll });
                Step::Nothing
            }
            Popup::RequestTime { entry_id, label, mut minutes } => {
                match code {
                    KeyCode::Esc | KeyCode::Char('q') => return Step::Nothing,
                    KeyCode::Enter => {
                        if let Some(minutes) = minutes.parse().ok().filter(|minutes| *minutes > 0) {
                            return Step::Ask(vec![Wish::RequestTime { entry_id, minutes }]);
                        }
                    }
                    KeyCode::Backspace => {
                        minutes.pop();
                    }
                    KeyCode::Char(digit @ '0'..='9') if minutes.len() < MOST_DIGITS => minutes.push(digit),
                    _ => {}
                }
                self.popup = Some(Popup::RequestTime { entry_id, label, minutes });
                Step::Nothing
            }
            Popup::Pin { wish, told, typed } => self.pin_key(wish, told, typed, code),
        }
    }

    fn pin_key(&mut self, wish: Wish, told: String, mut typed: String, code: KeyCode) -> Step {
        let told = match code {
            KeyCode::Esc => return Step::Nothing,
            KeyCode::Enter => match Pin::try_from(std::mem::take(&mut typed)) {
                Ok(pin) => return Step::Ask(vec![Wish::WithPin { pin, wish: Box::new(wish) }]),
                Err(error) => format!("{error}."),
            },
            KeyCode::Backspace => {
                typed.pop();
                told
            }
            KeyCode::Char(letter) if typed.chars().count() < MAX_PIN_LENGTH => {
                typed.push(letter);
                told
            }
            _ => told,
        };
        self.popup = Some(Popup::Pin { wish, told, typed });
        Step::Nothing
    }
}
