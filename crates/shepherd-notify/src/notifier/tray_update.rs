//! Keeps the tray up to date: after each event, and once a minute.

use jiff::Timestamp;
use shepherd_api::{SessionPhase, SessionView};

use super::Notifier;
use crate::announcement;
use crate::desktop::ShowError;
use crate::tray::{AskItem, TrayContent, TraySession};

impl Notifier {
    /// Shows the sessions of the child in the tray, and sets the timer for the next minute. Without a tray, or if nothing
    /// runs, nothing wakes the process.
    pub(super) async fn update_tray(&mut self) -> Result<(), ShowError> {
        if !self.screen.has_tray() {
            self.minute_timer.arm(None)?;
            return Ok(());
        }
        let sessions = self.tray_sessions();
        self.minute_timer.arm(TrayContent::next_change(&sessions))?;
        self.screen.show_in_tray(TrayContent::new(self.catalogue(), &sessions)).await
    }

    fn tray_sessions(&self) -> Vec<TraySession> {
        let state = self.watcher.state().map(|state| state.snapshot_at(Timestamp::MIN));
        let passed = self.updated_at.elapsed();
        let all = state.into_iter().flat_map(|state| state.sessions);
        let own = all.filter(|session| self.is_own(session));
        own.map(|session| TraySession::new(&session, passed, self.ask_item(&session))).collect()
    }

    /// Returns the line of the menu that asks for time, if more time can help.
    fn ask_item(&self, session: &SessionView) -> Option<AskItem> {
        if session.phase == SessionPhase::Expiring || session.remaining.is_none() {
            return None;
        }
        let button = announcement::ask_for_more(self.catalogue(), session);
        Some(AskItem { label: button.label, command: button.command })
    }
}
