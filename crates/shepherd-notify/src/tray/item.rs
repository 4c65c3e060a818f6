//! The tray icon on the bus (StatusNotifierItem, as freedesktop.org describes it).

use zbus::object_server::SignalEmitter;
use zbus::{ObjectPath, interface};

use super::MENU_PATH;
use super::content::TrayContent;
use super::icon::IconPixmap;

/// The icon name, the icon itself, the title and the text of a tool tip.
type ToolTip = (String, Vec<IconPixmap>, String, String);

/// The object that trays read.
pub(super) struct StatusItem {
    content: TrayContent,
}

/// The parts of the icon that an update changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangedParts {
    pub(super) icon: bool,
    pub(super) texts: bool,
    pub(super) status: bool,
    pub(super) menu: bool,
}

impl StatusItem {
    pub(super) fn new(content: TrayContent) -> Self {
        Self { content }
    }

    pub(super) fn replace(&mut self, content: TrayContent) -> ChangedParts {
        let old = std::mem::replace(&mut self.content, content);
        let new = &self.content;
        ChangedParts {
            icon: (old.face, old.tone) != (new.face, new.tone),
            texts: (&old.title, &old.text) != (&new.title, &new.text),
            status: old.is_active != new.is_active,
            menu: old.menu != new.menu,
        }
    }
}

#[interface(name = "org.kde.StatusNotifierItem")]
impl StatusItem {
    #[zbus(property(emits_changed_signal = "const"))]
    fn category(&self) -> String {
        "ApplicationStatus".to_owned()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn id(&self) -> String {
        "shepherd".to_owned()
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn title(&self) -> String {
        self.content.title.clone()
    }

    /// Returns whether the icon is shown: trays hide a passive one.
    #[zbus(property(emits_changed_signal = "false"))]
    pub(super) fn status(&self) -> String {
        if self.content.is_active { "Active" } else { "Passive" }.to_owned()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn window_id(&self) -> i32 {
        0
    }

    /// Returns no name, so that trays take the drawn icon.
    #[zbus(property(emits_changed_signal = "const"))]
    fn icon_name(&self) -> String {
        String::new()
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn icon_pixmap(&self) -> Vec<IconPixmap> {
        self.content.face.draw(self.content.tone)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn tool_tip(&self) -> ToolTip {
        (String::new(), Vec::new(), self.content.title.clone(), self.content.text.clone())
    }

    /// Returns true: a click opens the menu.
    #[zbus(property(emits_changed_signal = "const"))]
    fn item_is_menu(&self) -> bool {
        true
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn menu(&self) -> ObjectPath<'static> {
        ObjectPath::from_static_str_unchecked(MENU_PATH)
    }

    fn activate(&self, _x: i32, _y: i32) {}

    fn secondary_activate(&self, _x: i32, _y: i32) {}

    fn context_menu(&self, _x: i32, _y: i32) {}

    fn scroll(&self, _delta: i32, _orientation: String) {}

    #[zbus(signal)]
    pub(super) async fn new_title(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn new_icon(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn new_tool_tip(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn new_status(emitter: &SignalEmitter<'_>, status: &str) -> zbus::Result<()>;
}
