//! The menu of the tray icon (`com.canonical.dbusmenu`, which every tray with StatusNotifierItem reads).

use std::collections::{BTreeSet, HashMap};

use tokio::sync::mpsc::Sender;
use zbus::object_server::SignalEmitter;
use zbus::{OwnedVariant, Variant, interface};

use super::content::{MenuAction, MenuItem};

/// The id of the menu itself. Its lines are numbered from 1.
const ROOT: i32 = 0;

type MenuProperties = HashMap<String, OwnedVariant>;

/// A line with its properties and the lines below it.
type MenuLayout = (i32, MenuProperties, Vec<OwnedVariant>);

/// An event of a line: its id, the kind, data and the time.
type MenuEvent = (i32, String, OwnedVariant, u32);

/// The object that trays read the menu from.
pub(super) struct TrayMenu {
    lines: Vec<MenuItem>,
    revision: u32,
    clicks: Sender<MenuAction>,
}

impl TrayMenu {
    pub(super) fn new(lines: Vec<MenuItem>, clicks: Sender<MenuAction>) -> Self {
        Self { lines, revision: 1, clicks }
    }

    /// Replaces the lines, and returns the new revision of the menu.
    pub(super) fn replace(&mut self, lines: Vec<MenuItem>) -> u32 {
        self.lines = lines;
        self.revision = self.revision.wrapping_add(1);
        self.revision
    }

    fn numbered(&self) -> impl Iterator<Item = (i32, &MenuItem)> {
        (1..).zip(&self.lines)
    }

    fn handle(&self, id: i32, kind: &str) {
        let line = self.numbered().find(|(number, _)| *number == id);
        if let ("clicked", Some((_, MenuItem { action: Some(action), .. }))) = (kind, line) {
            // A person who clicks faster than requests are sent asks for the same again.
            let _ = self.clicks.try_send(action.clone());
        }
    }
}

#[interface(name = "com.canonical.dbusmenu")]
impl TrayMenu {
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> u32 {
        3
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn text_direction(&self) -> String {
        "ltr".to_owned()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn status(&self) -> String {
        "normal".to_owned()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn icon_theme_path(&self) -> Vec<String> {
        Vec::new()
    }

    #[zbus(out_args("revision", "layout"))]
    fn get_layout(
        &self,
        parent_id: i32,
        _recursion_depth: i32,
        _property_names: Vec<String>,
    ) -> zbus::fdo::Result<(u32, MenuLayout)> {
        if parent_id != ROOT {
            let line = self.numbered().find(|(id, _)| *id == parent_id);
            let properties = line.map(|(_, line)| line_properties(line)).unwrap_or_default();
            return Ok((self.revision, (parent_id, properties, Vec::new())));
        }
        let lines = self.numbered().map(|(id, line)| {
            let layout: MenuLayout = (id, line_properties(line), Vec::new());
            OwnedVariant::try_from(Variant::from(layout))
        });
        let lines = lines.collect::<zbus::Result<Vec<_>>>()?;
        Ok((self.revision, (ROOT, root_properties(), lines)))
    }

    fn get_group_properties(
        &self,
        ids: Vec<i32>,
        _property_names: Vec<String>,
    ) -> Vec<(i32, MenuProperties)> {
        let ids: BTreeSet<i32> = ids.into_iter().collect();
        let wanted = |id: i32| ids.is_empty() || ids.contains(&id);
        let root = wanted(ROOT).then(|| (ROOT, root_properties()));
        let lines = self.numbered().filter(|(id, _)| wanted(*id));
        root.into_iter().chain(lines.map(|(id, line)| (id, line_properties(line)))).collect()
    }

    fn get_property(&self, id: i32, name: &str) -> zbus::fdo::Result<OwnedVariant> {
        let line = self.numbered().find(|(number, _)| *number == id);
        let mut properties = line.map_or_else(root_properties, |(_, line)| line_properties(line));
        let unknown = || zbus::fdo::Error::InvalidArgs(format!("no property `{name}`"));
        properties.remove(name).ok_or_else(unknown)
    }

    fn event(&self, id: i32, kind: &str, _data: OwnedVariant, _timestamp: u32) {
        self.handle(id, kind);
    }

    fn event_group(&self, events: Vec<MenuEvent>) -> Vec<i32> {
        for (id, kind, _, _) in events {
            self.handle(id, &kind);
        }
        Vec::new()
    }

    /// Returns whether the tray has to read the menu again. It was told of every change.
    fn about_to_show(&self, _id: i32) -> bool {
        false
    }

    #[zbus(out_args("updates_needed", "id_errors"))]
    fn about_to_show_group(&self, _ids: Vec<i32>) -> (Vec<i32>, Vec<i32>) {
        (Vec::new(), Vec::new())
    }

    #[zbus(signal)]
    pub(super) async fn layout_updated(
        emitter: &SignalEmitter<'_>,
        revision: u32,
        parent: i32,
    ) -> zbus::Result<()>;
}

fn root_properties() -> MenuProperties {
    properties([("children-display", Variant::from("submenu"))])
}

fn line_properties(line: &MenuItem) -> MenuProperties {
    // An underscore would mark a key.
    let label = line.label.replace('_', "__");
    properties([("label", Variant::from(label)), ("enabled", Variant::from(line.action.is_some()))])
}

fn properties<const COUNT: usize>(all: [(&str, Variant<'_>); COUNT]) -> MenuProperties {
    // Only descriptors can fail to be copied.
    let owned = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.try_into().ok()?)));
    owned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_with_an_underscore_marks_no_key() {
        let line = MenuItem { label: "my_game".to_owned(), action: None };
        let shown = line_properties(&line).remove("label").map(String::try_from);
        assert_eq!(shown, Some(Ok("my__game".to_owned())));
    }
}
