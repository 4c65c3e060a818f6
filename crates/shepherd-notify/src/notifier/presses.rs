//! Buttons that somebody pressed, and clicks in the menu of the tray.

use jiff::Zoned;
use shepherd_api::{Command, CommandReply, GrantKind, GrantView, SessionView, TimeRequestView};
use shepherd_ipc::CallError;
use shepherd_text::SentenceCatalogue;

use super::Notifier;
use super::requests::ListedEntries;
use crate::announcement::{self, Announcement, AnnouncementSubject, AnnouncementUrgency};
use crate::desktop::{PressedButton, ShowError};
use crate::recipient::DaemonCallError;
use crate::tray::MenuAction;

/// Returns a sentence for the person who pressed a button.
fn failure_sentence(catalogue: &SentenceCatalogue, error: &DaemonCallError) -> String {
    match error {
        DaemonCallError::Call(CallError::Refused(error)) => catalogue.refusal(error),
        DaemonCallError::Connect(_) | DaemonCallError::Call(_) => catalogue.unreachable(),
    }
}

impl Notifier {
    pub(super) async fn handle_press(&mut self, press: &PressedButton) -> Result<(), ShowError> {
        let Some((button, announcement)) = self.screen.take_button(press) else { return Ok(()) };
        let error = match self.call(button.command).await {
            Ok(CommandReply::Decided { request, grant: Some(grant) }) => {
                return self.announce_granted(&request, &grant).await;
            }
            // Success needs no message: the daemon reports the new state of the request.
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let urgency = announcement.urgency.max(AnnouncementUrgency::Important);
        let catalogue = self.catalogue();
        let reason = catalogue.button_failed(&button.label, &failure_sentence(catalogue, &error));
        self.screen.show_failure(Announcement { urgency, ..announcement }, &reason).await
    }

    /// Tells a parent if the time that they have granted can't be used, because the hours end before or the entry stays
    /// closed.
    async fn announce_granted(
        &mut self,
        request: &TimeRequestView,
        grant: &GrantView,
    ) -> Result<(), ShowError> {
        let GrantKind::Extra { amount } = grant.gift else { return Ok(()) };
        let sessions = match self.call(Command::GetState {}).await {
            Ok(CommandReply::State { snapshot }) => snapshot.all_sessions().to_vec(),
            _ => Vec::new(),
        };
        let is_meant = |session: &&SessionView| {
            session.entry_id == request.entry_id && session.profile == request.profile
        };
        let announced = match sessions.iter().find(is_meant) {
            Some(session) => announcement::for_granted_request(self.catalogue(), request, amount, session),
            None => {
                let mut listed = ListedEntries::new();
                let entry = self.entry_of(request, &mut listed).await;
                entry.and_then(|entry| {
                    announcement::for_granted_closed_entry(
                        self.catalogue(),
                        request,
                        amount,
                        entry,
                        &Zoned::now(),
                    )
                })
            }
        };
        match announced {
            Some(announced) => self.show(announced).await,
            None => Ok(()),
        }
    }

    /// Does what a line of the tray's menu says. Success needs no message: the daemon reports the request.
    pub(super) async fn handle_click(&mut self, action: MenuAction) -> Result<(), ShowError> {
        let Err(error) = self.call(action.item.command).await else { return Ok(()) };
        let catalogue = self.catalogue();
        self.show(Announcement {
            subject: AnnouncementSubject::Session(action.session_id),
            title: action.session_label,
            body: catalogue.button_failed(&action.item.label, &failure_sentence(catalogue, &error)),
            urgency: AnnouncementUrgency::Important,
            buttons: Vec::new(),
        })
        .await
    }
}
