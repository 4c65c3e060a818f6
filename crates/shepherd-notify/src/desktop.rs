//! The desktop's notification service (`org.freedesktop.Notifications`), over D-Bus.
//!
//! The protocol is described in the Desktop Notifications Specification of freedesktop.org.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::timeout;
use zbus::fdo::RequestNameFlags;
use zbus::proxy::OwnerChangedStream;
use zbus::{Connection, Variant, connection, proxy};

use crate::announcement::{Announcement, AnnouncementSubject, AnnouncementUrgency, AnswerButton};

/// The name that the program owns on the bus, so that it runs once for each login.
const BUS_NAME: &str = "org.shepherd.Notify";

/// The shown name of the program.
const SHOWN_NAME: &str = "Shepherd";

/// An icon of the freedesktop.org naming specification, which every desktop has.
const ICON: &str = "appointment-soon";

/// The time for which an important notification is shown: long enough to be read in a game.
const IMPORTANT_MILLIS: i32 = 20_000;

/// Lets the desktop choose for how long a notification is shown.
const DESKTOP_CHOOSES: i32 = -1;

/// Shows a notification until it is closed.
const UNTIL_CLOSED: i32 = 0;

/// The urgency that desktops also show over a full-screen window.
const URGENCY_CRITICAL: u8 = 2;

const URGENCY_NORMAL: u8 = 1;

/// The time that the notification service gets. A service that hangs must not keep later warnings away.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);

#[proxy(
    interface = "org.freedesktop.Notifications",
    default_service = "org.freedesktop.Notifications",
    default_path = "/org/freedesktop/Notifications"
)]
trait NotificationService {
    #[expect(clippy::too_many_arguments, reason = "the specification defines this signature")]
    fn notify(
        &self,
        app_name: &str,
        replaces_id: u32,
        app_icon: &str,
        summary: &str,
        body: &str,
        actions: &[&str],
        hints: HashMap<&str, Variant<'_>>,
        expire_timeout: i32,
    ) -> zbus::Result<u32>;

    fn close_notification(&self, id: u32) -> zbus::Result<()>;

    fn get_capabilities(&self) -> zbus::Result<Vec<String>>;

    #[zbus(signal)]
    fn action_invoked(&self, id: u32, action_key: &str) -> zbus::Result<()>;
}

/// The number of notifications that are remembered. Desktops number them upwards, so the oldest is forgotten first.
const MOST_SHOWN: usize = 64;

/// The reason for which a notification could not be shown or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShowError {
    #[error("could not use the desktop's notification service")]
    Service(#[from] zbus::Error),
    #[error("the desktop's notification service did not answer in time")]
    TimedOut,
}

/// A signal of the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DesktopSignal {
    /// Somebody pressed a button.
    Pressed(PressedButton),
    /// A notification service has started, so nothing of ours is on the screen.
    ServiceStarted,
}

/// A button that somebody pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PressedButton {
    notification: u32,
    key: String,
}

/// The message bus of the desktop.
#[derive(Clone, Debug)]
pub(crate) enum DesktopBus {
    /// The bus that the login's environment names.
    OfLogin,
    /// The bus at this address.
    At(String),
}

/// The connection to the notification service, and the notifications on the screen.
pub(crate) struct DesktopNotifications {
    service: NotificationServiceProxy<'static>,
    presses: ActionInvokedStream,
    service_changes: OwnerChangedStream<'static>,
    shown: BTreeMap<u32, Announcement>,
}

impl DesktopNotifications {
    /// Connects to the session bus. Returns `None` if another instance already serves this login.
    pub(crate) async fn connect(bus: &DesktopBus) -> zbus::Result<Option<Self>> {
        let bus = match bus {
            DesktopBus::OfLogin => Connection::session().await?,
            DesktopBus::At(address) => connection::Builder::address(address.as_str()).build().await?,
        };
        match bus.request_name_with_flags(BUS_NAME, RequestNameFlags::DO_NOT_QUEUE).await {
            Err(zbus::Error::NameTaken) => return Ok(None),
            requested => requested?,
        };
        let service = NotificationServiceProxy::new(&bus).await?;
        let presses = service.receive_action_invoked().await?;
        let service_changes = service.inner().receive_owner_changed().await?;
        Ok(Some(Self { service, presses, service_changes, shown: BTreeMap::new() }))
    }

    /// Shows an announcement, in place of an earlier one on the same subject.
    pub(crate) async fn show(&mut self, announcement: Announcement) -> Result<(), ShowError> {
        let replaced = self.find(&announcement.subject).unwrap_or_default();
        let shown = timeout(SERVICE_TIMEOUT, self.notify(&announcement, replaced)).await;
        let id = shown.map_err(|_| ShowError::TimedOut)??;
        self.shown.remove(&replaced);
        self.shown.insert(id, announcement);
        if self.shown.len() > MOST_SHOWN {
            self.shown.pop_first();
        }
        Ok(())
    }

    async fn notify(&self, announcement: &Announcement, replaced: u32) -> zbus::Result<u32> {
        // The notification service may have been restarted since the last notification.
        let capabilities = self.service.get_capabilities().await?;
        let can = |capability: &str| capabilities.iter().any(|known| known == capability);
        let body = if can("body-markup") {
            escape_markup(&announcement.body)
        } else {
            Cow::from(&announcement.body)
        };
        let keys: Vec<String> =
            (0..announcement.buttons.len()).map(|index| button_key(&announcement.subject, index)).collect();
        let labels = announcement.buttons.iter().map(|button| button.label.as_str());
        let actions: Vec<&str> =
            keys.iter().map(String::as_str).zip(labels).flat_map(<[&str; 2]>::from).collect();
        let actions = if can("actions") { actions.as_slice() } else { &[] };
        let (urgency, expiry) = match announcement.urgency {
            AnnouncementUrgency::Passing => (URGENCY_NORMAL, DESKTOP_CHOOSES),
            AnnouncementUrgency::Important => (URGENCY_CRITICAL, IMPORTANT_MILLIS),
            AnnouncementUrgency::Lasting => (URGENCY_CRITICAL, UNTIL_CLOSED),
        };
        let hints = HashMap::from([("urgency", Variant::from(urgency))]);
        let title = &announcement.title;
        self.service.notify(SHOWN_NAME, replaced, ICON, title, &body, actions, hints, expiry).await
    }

    /// Removes the announcement on a subject from the screen, if it is still there.
    pub(crate) async fn remove(&mut self, subject: &AnnouncementSubject) -> Result<(), ShowError> {
        let Some(id) = self.find(subject) else { return Ok(()) };
        self.shown.remove(&id);
        let removed = timeout(SERVICE_TIMEOUT, self.service.close_notification(id)).await;
        Ok(removed.map_err(|_| ShowError::TimedOut)??)
    }

    /// Returns the pressed button with the subject of its announcement, once: a button works only once. The notification
    /// may stay on the screen, so the next announcement on the subject still replaces it.
    pub(crate) fn take_button(
        &mut self,
        press: &PressedButton,
    ) -> Option<(AnswerButton, AnnouncementSubject)> {
        let announcement = self.shown.get_mut(&press.notification)?;
        let subject = announcement.subject.clone();
        let pressed =
            (0..announcement.buttons.len()).find(|index| button_key(&subject, *index) == press.key)?;
        let button = std::mem::take(&mut announcement.buttons).into_iter().nth(pressed)?;
        Some((button, subject))
    }

    /// Waits for the next signal. `None` if the bus is gone.
    pub(crate) async fn next_signal(&mut self) -> Option<DesktopSignal> {
        loop {
            tokio::select! {
                pressed = next_item(&mut self.presses) => {
                    let signal = pressed?;
                    // Every program on the desktop gets the signals of all notifications.
                    let Ok(arguments) = signal.args() else { continue };
                    let key = arguments.action_key.to_owned();
                    return Some(DesktopSignal::Pressed(PressedButton { notification: arguments.id, key }));
                }
                owner = next_item(&mut self.service_changes) => {
                    // Another service numbers its notifications anew, so ours can't be told from those of others.
                    self.shown.clear();
                    if owner?.is_some() {
                        return Some(DesktopSignal::ServiceStarted);
                    }
                }
            }
        }
    }

    fn find(&self, subject: &AnnouncementSubject) -> Option<u32> {
        self.shown.iter().find(|(_, shown)| shown.subject == *subject).map(|(id, _)| *id)
    }
}

/// Returns the key of a button. It contains the id of the subject, so that no notification of another program can have
/// the same key.
fn button_key(subject: &AnnouncementSubject, index: usize) -> String {
    match subject {
        AnnouncementSubject::Session(session_id) => format!("{session_id}-{index}"),
        AnnouncementSubject::Request(request_id) => format!("{request_id}-{index}"),
    }
}

async fn next_item<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}

/// Shows text as it is on a desktop that understands markup, so that a child's note can't contain links or pictures.
fn escape_markup(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return Cow::from(text);
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown_as_text() {
        assert_eq!(escape_markup("five more"), "five more");
        assert_eq!(escape_markup("<a href='x'>R&B</a>"), "&lt;a href='x'&gt;R&amp;B&lt;/a&gt;");
    }
}
