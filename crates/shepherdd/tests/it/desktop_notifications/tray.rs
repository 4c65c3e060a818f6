//! The icon in the tray, with a double of the tray.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use shepherd_api::{StopMode, TimeRequestState};
use zbus::{OwnedVariant, Proxy, Variant, connection, interface};

use super::desktop::TestDesktop;
use super::{POLICY, launch_for, launch_with_warning, request_states};
use crate::harness::{PATIENCE, ShepherddFixture, wait_until};

/// The service that icons register with.
struct WatcherDouble {
    registered: Sender<String>,
}

#[interface(name = "org.kde.StatusNotifierWatcher")]
impl WatcherDouble {
    fn register_status_notifier_item(&self, service: String) {
        let _ = self.registered.send(service);
    }
}

/// A tray, as it sees the icon.
struct TrayDouble<'d> {
    desktop: &'d TestDesktop,
    bus: zbus::Connection,
    registered: Receiver<String>,
}

/// An icon in one size: width, height, pixels.
type IconPixmap = (i32, i32, Vec<u8>);

type ToolTip = (String, Vec<IconPixmap>, String, String);

type MenuLayout = (i32, HashMap<String, OwnedVariant>, Vec<OwnedVariant>);

impl<'d> TrayDouble<'d> {
    fn start(desktop: &'d TestDesktop) -> Self {
        let (sender, registered) = channel();
        let bus = desktop.runtime.block_on(async {
            connection::Builder::address(desktop.address())
                .serve_at("/StatusNotifierWatcher", WatcherDouble { registered: sender })
                .name("org.kde.StatusNotifierWatcher")
                .build()
                .await
        });
        Self { desktop, bus: bus.unwrap(), registered }
    }

    /// Waits for an icon, and returns the name of its program on the bus.
    fn next_icon(&self) -> String {
        self.registered.recv_timeout(PATIENCE).expect("no icon came")
    }

    fn item(&self, icon: &str) -> Proxy<'static> {
        self.proxy(icon, "/StatusNotifierItem", "org.kde.StatusNotifierItem")
    }

    fn proxy(&self, icon: &str, path: &'static str, interface: &'static str) -> Proxy<'static> {
        let proxy = zbus::proxy::Builder::new(&self.bus)
            .destination(icon.to_owned())
            .path(path)
            .interface(interface)
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build();
        self.desktop.runtime.block_on(proxy).unwrap()
    }

    fn property<T: serde::de::DeserializeOwned + zbus::Type>(&self, icon: &str, name: &str) -> T {
        self.desktop.runtime.block_on(self.item(icon).get_property(name)).unwrap()
    }

    fn status(&self, icon: &str) -> String {
        self.property(icon, "Status")
    }

    /// Returns the title and the text of the tool tip.
    fn texts(&self, icon: &str) -> (String, String) {
        let tip: ToolTip = self.property(icon, "ToolTip");
        (tip.2, tip.3)
    }

    /// Returns the lines of the menu with their ids, and whether they can be clicked.
    fn menu(&self, icon: &str) -> Vec<(i32, String, bool)> {
        let menu = self.proxy(icon, "/MenuBar", "com.canonical.dbusmenu");
        let arguments = (0_i32, -1_i32, Vec::<String>::new());
        let layout = self.desktop.runtime.block_on(menu.call("GetLayout", &arguments));
        let (_revision, (_root, _properties, lines)): (u32, MenuLayout) = layout.unwrap();
        let line = |line: OwnedVariant| {
            let (id, mut properties, _) = MenuLayout::try_from(line).unwrap();
            let label = properties.remove("label").unwrap().try_into().unwrap();
            (id, label, properties.remove("enabled").unwrap().try_into().unwrap())
        };
        lines.into_iter().map(line).collect()
    }

    fn click(&self, icon: &str, id: i32) {
        let menu = self.proxy(icon, "/MenuBar", "com.canonical.dbusmenu");
        let event = (id, "clicked", Variant::from(0_i32), 0_u32);
        let clicked = self.desktop.runtime.block_on(menu.call::<_, _, ()>("Event", &event));
        clicked.unwrap();
    }
}

// S19.3
#[test]
fn the_tray_shows_the_minutes_that_are_left_and_asks_for_more() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    let tray = TrayDouble::start(&desktop);
    desktop.show_for_child(&daemon, "anna");
    launch_with_warning(&daemon, &desktop);
    let icon = tray.next_icon();
    assert_eq!(tray.status(&icon), "Active");
    assert_eq!(tray.texts(&icon), ("Maths".to_owned(), "Maths: 4 minutes left".to_owned()));
    let pixmaps: Vec<IconPixmap> = tray.property(&icon, "IconPixmap");
    let sizes: Vec<_> = pixmaps.iter().map(|(width, height, bytes)| (*width, *height, bytes.len())).collect();
    assert_eq!(sizes, [(24, 24, 24 * 24 * 4), (48, 48, 48 * 48 * 4)]);
    let menu = tray.menu(&icon);
    assert_eq!(
        menu,
        [(1, "Maths: 4 minutes left".to_owned(), false), (2, "Ask for 10 more minutes".to_owned(), true)]
    );
    tray.click(&icon, 1);
    tray.click(&icon, 2);
    assert_eq!(desktop.next_shown().title, "Asked");
    assert_eq!(request_states(&daemon), [TimeRequestState::Asked]);
    daemon.stop(StopMode::Force).unwrap();
    wait_until("the icon is hidden", || tray.status(&icon) == "Passive");
    assert_eq!(tray.menu(&icon), []);
}

// S19.3
#[test]
fn the_icon_appears_when_a_tray_comes_and_again_in_the_next_one() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_child(&daemon, "anna");
    launch_with_warning(&daemon, &desktop);
    let tray = TrayDouble::start(&desktop);
    let icon = tray.next_icon();
    assert_eq!(tray.texts(&icon).0, "Maths");
    desktop.runtime.block_on(tray.bus.close()).unwrap();
    let next = TrayDouble::start(&desktop);
    assert_eq!(next.next_icon(), icon);
    daemon.stop(StopMode::Force).unwrap();
}

#[test]
fn a_child_has_no_icon_for_the_game_of_another() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    let tray = TrayDouble::start(&desktop);
    desktop.show_for_child(&daemon, "anna");
    launch_for(&daemon, "racing", "ben");
    daemon.stop(StopMode::Force).unwrap();
    daemon.wait_until_idle();
    // Events come in their order, so an icon for the others would have come before this one.
    launch_with_warning(&daemon, &desktop);
    let icon = tray.next_icon();
    assert_eq!(tray.texts(&icon).0, "Maths");
    assert!(tray.registered.try_recv().is_err());
    daemon.stop(StopMode::Force).unwrap();
}
