//! The place where the person at this login sees announcements: a desktop, or a text console.

use std::io;

use crate::announcement::{Announcement, AnnouncementSubject, AnswerButton};
use crate::desktop::{DesktopNotifications, DesktopSignal, PressedButton, ShowError};
use crate::terminal::TextConsole;
use crate::tray::{MenuAction, TrayContent, TrayEvent, TrayIcon};

/// The place of announcements.
pub(crate) enum AnnouncementScreen {
    Desktop(Box<Desktop>),
    Console(TextConsole),
}

/// A graphical desktop.
pub(crate) struct Desktop {
    notifications: DesktopNotifications,
    tray: TrayIcon,
}

/// Something that happened on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScreenEvent {
    /// Somebody pressed a button of a notification.
    Pressed(PressedButton),
    /// Somebody chose a line of the tray's menu.
    Clicked(Box<MenuAction>),
    /// A notification service has started. Announcements of an earlier one are no longer on the screen.
    ServiceStarted,
    /// A tray has started, and has to be given the icon.
    TrayCame,
}

impl AnnouncementScreen {
    /// Takes a desktop.
    pub(crate) async fn desktop(notifications: DesktopNotifications) -> zbus::Result<Self> {
        let tray = TrayIcon::new(notifications.bus().clone()).await?;
        Ok(Self::Desktop(Box::new(Desktop { notifications, tray })))
    }

    /// Takes the terminal that this process was started from.
    pub(crate) fn console() -> io::Result<Self> {
        Ok(Self::Console(TextConsole::open()?))
    }

    /// Shows an announcement, in place of an earlier one on the same subject.
    pub(crate) async fn show(&mut self, announcement: Announcement) -> Result<(), ShowError> {
        match self {
            Self::Desktop(desktop) => desktop.notifications.show(announcement).await,
            Self::Console(console) => Ok(console.show(announcement)?),
        }
    }

    /// Shows an announcement again, with the reason for which its button failed. Its buttons work again.
    pub(crate) async fn show_failure(
        &mut self,
        announcement: Announcement,
        reason: &str,
    ) -> Result<(), ShowError> {
        match self {
            Self::Desktop(desktop) => desktop.notifications.show_failure(announcement, reason).await,
            // A console has no buttons.
            Self::Console(_) => Ok(()),
        }
    }

    /// Returns whether an announcement on a subject was shown and not removed.
    pub(crate) fn is_shown(&self, subject: &AnnouncementSubject) -> bool {
        match self {
            Self::Desktop(desktop) => desktop.notifications.is_shown(subject),
            Self::Console(console) => console.is_shown(subject),
        }
    }

    /// Removes the announcements that no longer hold, as far as they would stay on the screen.
    pub(crate) async fn remove_stale(
        &mut self,
        holds: impl Fn(&AnnouncementSubject) -> bool,
    ) -> Result<(), ShowError> {
        match self {
            Self::Desktop(desktop) => desktop.notifications.remove_stale(holds).await,
            Self::Console(console) => {
                console.forget_stale(holds);
                Ok(())
            }
        }
    }

    /// Removes the announcement on a subject from the screen, if it is still there.
    pub(crate) async fn remove(&mut self, subject: &AnnouncementSubject) -> Result<(), ShowError> {
        match self {
            Self::Desktop(desktop) => desktop.notifications.remove(subject).await,
            Self::Console(console) => {
                console.forget_stale(|shown| shown != subject);
                Ok(())
            }
        }
    }

    /// Returns the pressed button with its announcement, once.
    pub(crate) fn take_button(&mut self, press: &PressedButton) -> Option<(AnswerButton, Announcement)> {
        match self {
            Self::Desktop(desktop) => desktop.notifications.take_button(press),
            Self::Console(_) => None,
        }
    }

    /// Returns whether there is a tray for an icon.
    pub(crate) fn has_tray(&self) -> bool {
        match self {
            Self::Desktop(desktop) => desktop.tray.has_tray(),
            Self::Console(_) => false,
        }
    }

    /// Shows this in the tray, if there is one.
    pub(crate) async fn show_in_tray(&mut self, content: TrayContent) -> Result<(), ShowError> {
        match self {
            Self::Desktop(desktop) => Ok(desktop.tray.show(content).await?),
            Self::Console(_) => Ok(()),
        }
    }

    /// Waits for the next event. `None` if the login has ended.
    pub(crate) async fn next_event(&mut self) -> Option<ScreenEvent> {
        match self {
            Self::Desktop(desktop) => tokio::select! {
                signal = desktop.notifications.next_signal() => signal.map(|signal| match signal {
                    DesktopSignal::Pressed(press) => ScreenEvent::Pressed(press),
                    DesktopSignal::ServiceStarted => ScreenEvent::ServiceStarted,
                }),
                event = desktop.tray.next_event() => event.map(|event| match event {
                    TrayEvent::TrayCame => ScreenEvent::TrayCame,
                    TrayEvent::Clicked(action) => ScreenEvent::Clicked(action),
                }),
            },
            Self::Console(console) => {
                console.wait_for_hangup().await;
                None
            }
        }
    }
}
