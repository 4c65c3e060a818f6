//! Keys of the live view.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use shepherd_api::{
    AdminPin, DaemonStateSnapshot, MAX_PIN_LENGTH, StopMode, TimeRequestDecision, TimeRequestView,
};
use ward_terminal::{TextTone, escape_label};

use super::{DEFAULT_REQUEST_MINUTES, LiveViewAction, LiveViewModel, LiveViewPopup};
use crate::watch::LiveViewExit;
use crate::watch::inputs::LiveViewRequest;

/// Most digits of the requested minutes. Three digits allow up to 999 minutes.
const MAX_MINUTE_DIGITS: usize = 3;

impl LiveViewModel {
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> LiveViewAction {
        if key.kind == KeyEventKind::Release {
            return LiveViewAction::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => LiveViewAction::Exit(LiveViewExit::Quit),
                KeyCode::Char('l') => LiveViewAction::Redraw,
                _ => LiveViewAction::Nothing,
            };
        }
        self.notice = None;
        match self.popup.take() {
            Some(popup) => self.popup_key(popup, key.code),
            None => self.list_key(key.code),
        }
    }

    fn list_key(&mut self, code: KeyCode) -> LiveViewAction {
        let last = self.entries.len().saturating_sub(1);
        match code {
            KeyCode::Char('q') => return LiveViewAction::Exit(LiveViewExit::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.selected = last,
            KeyCode::Char('?' | 'h') => self.popup = Some(LiveViewPopup::Help),
            KeyCode::Char('s') => return self.stop_key(StopMode::Graceful),
            KeyCode::Char('S') => return self.stop_key(StopMode::Force),
            KeyCode::Enter | KeyCode::Char('w' | 'r') => return self.entry_key(code),
            KeyCode::Char('a') => match self.time_requests.first().cloned() {
                Some(_) if !self.may_answer => {
                    self.notice = Some((TextTone::Faint, "Your parents answer this.".to_owned()));
                }
                Some(request) => self.open_answer(request),
                None => self.notice = Some((TextTone::Faint, "Nobody is asking for time.".to_owned())),
            },
            _ => {}
        }
        LiveViewAction::Nothing
    }

    /// Stops the session of the selected entry. If it doesn't run, another session of the same child is stopped; without
    /// several children, the daemon chooses.
    fn stop_key(&mut self, mode: StopMode) -> LiveViewAction {
        let selected = self.selected_session();
        let child = self.entries.get(self.selected).and_then(|entry| entry.child.as_ref());
        let Some(child) = child.filter(|_| selected.is_none()) else {
            return LiveViewAction::Send(vec![LiveViewRequest::Stop(mode, selected)]);
        };
        let mut sessions = self.sessions_at(self.display.now);
        sessions.retain(|session| session.profile == child.profile);
        match DaemonStateSnapshot::primary_session(&sessions) {
            Some(session) => {
                LiveViewAction::Send(vec![LiveViewRequest::Stop(mode, Some(session.session_id.clone()))])
            }
            None => {
                let notice = format!("Nothing is running for {}.", escape_label(&child.label));
                self.notice = Some((TextTone::Faint, notice));
                LiveViewAction::Nothing
            }
        }
    }

    /// Handles keys that act on the selected entry.
    fn entry_key(&mut self, code: KeyCode) -> LiveViewAction {
        let Some(entry) = self.entries.get(self.selected) else {
            self.notice = Some((TextTone::Faint, "There are no entries.".to_owned()));
            return LiveViewAction::Nothing;
        };
        let entry_id = entry.view.entry_id.clone();
        let request = match code {
            KeyCode::Enter => LiveViewRequest::Launch(entry_id),
            KeyCode::Char('w') => LiveViewRequest::Why(entry_id),
            _ => {
                let (label, minutes) = (escape_label(&entry.view.label), DEFAULT_REQUEST_MINUTES.to_owned());
                self.popup = Some(LiveViewPopup::RequestTime { entry_id, label, minutes });
                return LiveViewAction::Nothing;
            }
        };
        self.send_for_selected(request)
    }

    /// Sends a request for the child of the selected line, if the view shows several children.
    fn send_for_selected(&self, request: LiveViewRequest) -> LiveViewAction {
        let child = self.entries.get(self.selected).and_then(|entry| entry.child.as_ref());
        LiveViewAction::Send(vec![match child {
            Some(child) => {
                LiveViewRequest::ForProfile { profile: child.profile.clone(), request: Box::new(request) }
            }
            None => request,
        }])
    }

    fn open_answer(&mut self, request: TimeRequestView) {
        let minutes = request.amount.0.div_ceil(60_000).to_string();
        self.popup = Some(LiveViewPopup::Answer { request: Box::new(request), minutes });
    }

    fn answer_key(
        &mut self,
        request: Box<TimeRequestView>,
        mut minutes: String,
        code: KeyCode,
    ) -> LiveViewAction {
        let decision = match code {
            KeyCode::Esc | KeyCode::Char('q') => return LiveViewAction::Nothing,
            KeyCode::Char('n') => Some(TimeRequestDecision::Deny { why: None }),
            KeyCode::Enter | KeyCode::Char('y') => {
                let minutes = minutes.parse().ok().filter(|minutes| *minutes > 0);
                minutes.map(|minutes| TimeRequestDecision::Grant { minutes: Some(minutes) })
            }
            KeyCode::Backspace => {
                minutes.pop();
                None
            }
            KeyCode::Char(digit @ '0'..='9') if minutes.len() < MAX_MINUTE_DIGITS => {
                minutes.push(digit);
                None
            }
            KeyCode::Down | KeyCode::Tab => {
                let place =
                    self.time_requests.iter().position(|known| known.request_id == request.request_id);
                let next = place.map_or(0, |place| (place + 1) % self.time_requests.len().max(1));
                if let Some(next) = self.time_requests.get(next).cloned() {
                    self.open_answer(next);
                    return LiveViewAction::Nothing;
                }
                None
            }
            _ => None,
        };
        match decision {
            Some(decision) => {
                let request_id = request.request_id;
                LiveViewAction::Send(vec![LiveViewRequest::Decide { request_id, decision }])
            }
            None => {
                self.popup = Some(LiveViewPopup::Answer { request, minutes });
                LiveViewAction::Nothing
            }
        }
    }

    fn popup_key(&mut self, popup: LiveViewPopup, code: KeyCode) -> LiveViewAction {
        match popup {
            LiveViewPopup::Help => LiveViewAction::Nothing,
            LiveViewPopup::Why { why, scroll } => {
                let scroll = match code {
                    KeyCode::Down | KeyCode::Char('j') => scroll.saturating_add(1),
                    KeyCode::Up | KeyCode::Char('k') => scroll.saturating_sub(1),
                    _ => return LiveViewAction::Nothing,
                };
                self.popup = Some(LiveViewPopup::Why { why, scroll });
                LiveViewAction::Nothing
            }
            LiveViewPopup::RequestTime { entry_id, label, mut minutes } => {
                match code {
                    KeyCode::Esc | KeyCode::Char('q') => return LiveViewAction::Nothing,
                    KeyCode::Enter => {
                        if let Some(minutes) = minutes.parse().ok().filter(|minutes| *minutes > 0) {
                            return self
                                .send_for_selected(LiveViewRequest::RequestTime { entry_id, minutes });
                        }
                    }
                    KeyCode::Backspace => {
                        minutes.pop();
                    }
                    KeyCode::Char(digit @ '0'..='9') if minutes.len() < MAX_MINUTE_DIGITS => {
                        minutes.push(digit);
                    }
                    _ => {}
                }
                self.popup = Some(LiveViewPopup::RequestTime { entry_id, label, minutes });
                LiveViewAction::Nothing
            }
            LiveViewPopup::Answer { request, minutes } => self.answer_key(request, minutes, code),
            LiveViewPopup::Pin { request, message, typed } => self.pin_key(request, message, typed, code),
        }
    }

    fn pin_key(
        &mut self,
        request: LiveViewRequest,
        message: String,
        mut typed: String,
        code: KeyCode,
    ) -> LiveViewAction {
        let message = match code {
            KeyCode::Esc => return LiveViewAction::Nothing,
            KeyCode::Enter => match AdminPin::try_from(std::mem::take(&mut typed)) {
                Ok(pin) => {
                    return LiveViewAction::Send(vec![LiveViewRequest::WithPin {
                        pin,
                        request: Box::new(request),
                    }]);
                }
                Err(error) => format!("{error}."),
            },
            KeyCode::Backspace => {
                typed.pop();
                message
            }
            KeyCode::Char(letter) if typed.chars().count() < MAX_PIN_LENGTH => {
                typed.push(letter);
                message
            }
            _ => message,
        };
        self.popup = Some(LiveViewPopup::Pin { request, message, typed });
        LiveViewAction::Nothing
    }
}
