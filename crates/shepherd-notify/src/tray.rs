//! The icon in the desktop's tray, with the minutes that are left. A desktop without a tray has no icon; the icon appears
//! when a tray comes.

mod content;
mod icon;
mod item;
mod menu;

use std::time::Duration;

use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use zbus::Connection;
use zbus::fdo::{DBusProxy, NameOwnerChangedStream};
use zbus::object_server::InterfaceRef;

pub(crate) use self::content::{AskItem, MenuAction, TrayContent, TraySession};
use self::item::{ChangedParts, StatusItem};
use self::menu::TrayMenu;
use crate::desktop::next_item;

/// The service that knows all icons, and shows them or passes them on.
const WATCHER_NAME: &str = "org.kde.StatusNotifierWatcher";
const WATCHER_PATH: &str = "/StatusNotifierWatcher";

/// The paths that trays expect.
const ITEM_PATH: &str = "/StatusNotifierItem";
const MENU_PATH: &str = "/MenuBar";

/// The number of clicks that wait until they are handled.
const MOST_CLICKS: usize = 4;

/// The time that the tray gets to take the icon. A tray that hangs must not keep warnings away.
const TRAY_TIMEOUT: Duration = Duration::from_secs(5);

/// Something that happened to the tray.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrayEvent {
    /// A tray is there now, and has to be shown the icon.
    TrayCame,
    Clicked(Box<MenuAction>),
}

/// The connection to the tray.
pub(crate) struct TrayIcon {
    bus: Connection,
    watcher_changes: NameOwnerChangedStream,
    /// True while the desktop has a tray.
    has_tray: bool,
    registration: TrayRegistration,
    /// The objects on the bus, once they were needed.
    exported: Option<ExportedIcon>,
    clicks: Receiver<MenuAction>,
    click_sender: tokio::sync::mpsc::Sender<MenuAction>,
}

/// Whether the present tray knows the icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrayRegistration {
    Needed,
    Done,
}

/// The icon and its menu on the bus.
struct ExportedIcon {
    item: InterfaceRef<StatusItem>,
    menu: InterfaceRef<TrayMenu>,
}

impl TrayIcon {
    pub(crate) async fn new(bus: Connection) -> zbus::Result<Self> {
        // Starts the task that answers calls, long before a tray can call: until the task runs, calls are lost.
        let _ = bus.object_server();
        let names = DBusProxy::new(&bus).await?;
        let watcher_changes = names.receive_name_owner_changed_with_args(&[(0, WATCHER_NAME)]).await?;
        let has_tray = names.name_has_owner(WATCHER_NAME.try_into()?).await?;
        let (click_sender, clicks) = channel(MOST_CLICKS);
        let registration = TrayRegistration::Needed;
        Ok(Self { bus, watcher_changes, has_tray, registration, exported: None, clicks, click_sender })
    }

    /// Returns whether there is a tray that shows the icon.
    pub(crate) fn has_tray(&self) -> bool {
        self.has_tray
    }

    /// Waits for the next event. `None` if the bus is gone.
    pub(crate) async fn next_event(&mut self) -> Option<TrayEvent> {
        loop {
            tokio::select! {
                Some(action) = self.clicks.recv() => return Some(TrayEvent::Clicked(Box::new(action))),
                change = next_item(&mut self.watcher_changes) => {
                    let signal = change?;
                    let Ok(arguments) = signal.args() else { continue };
                    self.has_tray = arguments.new_owner().is_some();
                    self.registration = TrayRegistration::Needed;
                    if self.has_tray {
                        return Some(TrayEvent::TrayCame);
                    }
                }
            }
        }
    }

    /// Shows this in the tray. Without a tray, or as long as no session has run, there is no icon.
    pub(crate) async fn show(&mut self, content: TrayContent) -> zbus::Result<()> {
        if !self.has_tray || (self.exported.is_none() && !content.is_active) {
            return Ok(());
        }
        match &self.exported {
            Some(exported) => exported.replace(content).await?,
            None => self.exported = Some(self.export(content).await?),
        }
        if std::mem::replace(&mut self.registration, TrayRegistration::Done) == TrayRegistration::Needed {
            self.register().await?;
        }
        Ok(())
    }

    /// Gives the icon to the tray.
    async fn register(&self) -> zbus::Result<()> {
        let name = self.bus.unique_name().map(ToString::to_string).unwrap_or_default();
        let call = self.bus.call_method(
            Some(WATCHER_NAME),
            WATCHER_PATH,
            Some(WATCHER_NAME),
            "RegisterStatusNotifierItem",
            &name,
        );
        // A tray that doesn't answer has no icon, until it starts again.
        if let Ok(registered) = timeout(TRAY_TIMEOUT, call).await {
            registered?;
        }
        Ok(())
    }

    async fn export(&self, content: TrayContent) -> zbus::Result<ExportedIcon> {
        let server = self.bus.object_server();
        server.at(MENU_PATH, TrayMenu::new(content.menu.clone(), self.click_sender.clone())).await?;
        server.at(ITEM_PATH, StatusItem::new(content)).await?;
        Ok(ExportedIcon {
            item: server.interface(ITEM_PATH).await?,
            menu: server.interface(MENU_PATH).await?,
        })
    }
}

impl ExportedIcon {
    async fn replace(&self, content: TrayContent) -> zbus::Result<()> {
        let lines = content.menu.clone();
        let changed = self.item.get_mut().await.replace(content);
        self.announce(changed).await?;
        if changed.menu {
            let revision = self.menu.get_mut().await.replace(lines);
            TrayMenu::layout_updated(self.menu.signal_emitter(), revision, 0).await?;
        }
        Ok(())
    }

    /// Tells trays which parts to read again.
    async fn announce(&self, changed: ChangedParts) -> zbus::Result<()> {
        let emitter = self.item.signal_emitter();
        if changed.icon {
            StatusItem::new_icon(emitter).await?;
        }
        if changed.texts {
            StatusItem::new_title(emitter).await?;
            StatusItem::new_tool_tip(emitter).await?;
        }
        if changed.status {
            let status = self.item.get().await.status();
            StatusItem::new_status(emitter, &status).await?;
        }
        Ok(())
    }
}
