//! The desktop's notification service (`org.freedesktop.Notifications`), over D-Bus.
//!
//! The protocol is described in the Desktop Notifications Specification of freedesktop.org.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::timeout;
use zbus::fdo::{DBusProxy, NameOwnerChangedStream, RequestNameFlags};
use zbus::names::UniqueName;
use zbus::{Connection, Message, Variant, connection, proxy};

use crate::announcement::{Announcement, AnnouncementSubject, AnnouncementUrgency, AnswerButton};

/// The name of the notification service on the bus.
const SERVICE_NAME: &str = "org.freedesktop.Notifications";

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
    fn close_notification(&self, id: u32) -> zbus::Result<()>;

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
    #[error("could not write to the terminal")]
    Terminal(#[from] std::io::Error),
}

/// A signal of the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DesktopSignal {
    /// Somebody pressed a button.
    Pressed(PressedButton),
    /// A notification service has started. Announcements of an earlier one are no longer on the screen.
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
    service_changes: NameOwnerChangedStream,
    shown: BTreeMap<u32, ShownAnnouncement>,
}

/// An announcement on the screen. Its buttons are empty after one of them was pressed.
struct ShownAnnouncement {
    announcement: Announcement,
    service: ServiceInstance,
}

/// The running program that gave a notification its id, by its unique name on the bus. A call may start a service, so an
/// id can be known before the bus reports the start.
type ServiceInstance = Option<UniqueName<'static>>;

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
        let of_service = [(0, SERVICE_NAME)];
        let service_changes =
            DBusProxy::new(&bus).await?.receive_name_owner_changed_with_args(&of_service).await?;
        Ok(Some(Self { service, presses, service_changes, shown: BTreeMap::new() }))
    }

    /// Returns the connection to the session bus.
    pub(crate) fn bus(&self) -> &Connection {
        self.service.inner().connection()
    }

    /// Shows an announcement, in place of an earlier one on the same subject.
    pub(crate) async fn show(&mut self, announcement: Announcement) -> Result<(), ShowError> {
        let body = announcement.body.clone();
        self.show_with_body(announcement, &body).await
    }

    /// Shows an announcement again, with the reason for which its button failed. Its buttons work again.
    pub(crate) async fn show_failure(
        &mut self,
        announcement: Announcement,
        reason: &str,
    ) -> Result<(), ShowError> {
        let mut shown = self.shown.values_mut().map(|shown| &mut shown.announcement);
        if let Some(pressed) = shown.find(|shown| shown.subject == announcement.subject) {
            // Also if the reason can't be shown.
            pressed.buttons.clone_from(&announcement.buttons);
        }
        let body = format!("{reason}\n{}", announcement.body);
        self.show_with_body(announcement, &body).await
    }

    async fn show_with_body(&mut self, announcement: Announcement, body: &str) -> Result<(), ShowError> {
        let shown = timeout(SERVICE_TIMEOUT, self.notify(&announcement, body)).await;
        let (id, service) = shown.map_err(|_| ShowError::TimedOut)??;
        self.shown.retain(|_, shown| shown.announcement.subject != announcement.subject);
        self.shown.insert(id, ShownAnnouncement { announcement, service });
        if self.shown.len() > MOST_SHOWN {
            self.shown.pop_first();
        }
        Ok(())
    }

    async fn notify(&self, announcement: &Announcement, body: &str) -> zbus::Result<(u32, ServiceInstance)> {
        // The notification service may have been restarted since the last notification.
        let reply = self.service.inner().call_method("GetCapabilities", &()).await?;
        let capabilities: Vec<String> = reply.body().deserialize()?;
        let replaced = self.find(&announcement.subject, &sender_of(&reply)).unwrap_or_default();
        let can = |capability: &str| capabilities.iter().any(|known| known == capability);
        let body = if can("body-markup") { escape_markup(body) } else { Cow::from(body) };
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
        let title = announcement.title.as_str();
        let arguments = (SHOWN_NAME, replaced, ICON, title, &*body, actions, hints, expiry);
        let reply = self.service.inner().call_method("Notify", &arguments).await?;
        Ok((reply.body().deserialize()?, sender_of(&reply)))
    }

    /// Returns whether an announcement on a subject was shown and not removed.
    pub(crate) fn is_shown(&self, subject: &AnnouncementSubject) -> bool {
        self.shown.values().any(|shown| shown.announcement.subject == *subject)
    }

    /// Removes the announcements that no longer hold, as far as they would stay on the screen.
    pub(crate) async fn remove_stale(
        &mut self,
        holds: impl Fn(&AnnouncementSubject) -> bool,
    ) -> Result<(), ShowError> {
        let shown = self.shown.values().map(|shown| &shown.announcement);
        let stale = shown.filter(|announcement| announcement.can_go_stale() && !holds(&announcement.subject));
        let subjects: Vec<_> = stale.map(|announcement| announcement.subject.clone()).collect();
        for subject in subjects {
            self.remove(&subject).await?;
        }
        Ok(())
    }

    /// Removes the announcement on a subject from the screen, if it is still there.
    pub(crate) async fn remove(&mut self, subject: &AnnouncementSubject) -> Result<(), ShowError> {
        let shown = self.shown.iter().find(|(_, shown)| shown.announcement.subject == *subject);
        let Some((&id, _)) = shown else { return Ok(()) };
        self.shown.remove(&id);
        let removed = timeout(SERVICE_TIMEOUT, self.service.close_notification(id)).await;
        Ok(removed.map_err(|_| ShowError::TimedOut)??)
    }

    /// Returns the pressed button with its announcement, once: a button works only once. The notification may stay on the
    /// screen, so the next announcement on the subject still replaces it.
    pub(crate) fn take_button(&mut self, press: &PressedButton) -> Option<(AnswerButton, Announcement)> {
        let shown = &mut self.shown.get_mut(&press.notification)?.announcement;
        let pressed =
            (0..shown.buttons.len()).find(|index| button_key(&shown.subject, *index) == press.key)?;
        let announcement = shown.clone();
        let button = std::mem::take(&mut shown.buttons).into_iter().nth(pressed)?;
        Some((button, announcement))
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
                change = next_item(&mut self.service_changes) => {
                    let signal = change?;
                    let Ok(arguments) = signal.args() else { continue };
                    // Another service numbers its notifications anew. It may already have shown some of ours, because a
                    // call starts it.
                    let gone = arguments.old_owner().as_ref();
                    self.shown.retain(|_, shown| shown.service.as_ref() != gone);
                    if arguments.new_owner().is_some() {
                        return Some(DesktopSignal::ServiceStarted);
                    }
                }
            }
        }
    }

    /// Returns the id of the announcement on a subject, if this service shows it.
    fn find(&self, subject: &AnnouncementSubject, service: &ServiceInstance) -> Option<u32> {
        let is_meant =
            |shown: &ShownAnnouncement| shown.announcement.subject == *subject && shown.service == *service;
        self.shown.iter().find(|(_, shown)| is_meant(shown)).map(|(id, _)| *id)
    }
}

fn sender_of(reply: &Message) -> ServiceInstance {
    reply.header().sender().map(UniqueName::to_owned)
}

/// Returns the key of a button. It contains the id of the subject, so that no notification of another program can have
/// the same key.
fn button_key(subject: &AnnouncementSubject, index: usize) -> String {
    match subject {
        AnnouncementSubject::Session(session_id) => format!("{session_id}-{index}"),
        AnnouncementSubject::Request(request_id) => format!("{request_id}-{index}"),
        AnnouncementSubject::ClosedEntry(request_id) => format!("closed-{request_id}-{index}"),
    }
}

/// Waits for the next item of a stream.
pub(crate) async fn next_item<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
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
