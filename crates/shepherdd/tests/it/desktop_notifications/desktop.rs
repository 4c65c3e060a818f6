//! A desktop for tests: a message bus, and a double of the notification service.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use shepherd_notify::{NotifierError, NotifierOptions};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use zbus::object_server::SignalEmitter;
use zbus::{OwnedVariant, connection, interface};

use crate::harness::{PATIENCE, ShepherddFixture, wait_until};

const BUS_CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <servicedir>FOLDER</servicedir>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// The bus starts this program for the first call of the notification service. The test waits for the file, and then
/// takes the name.
const ACTIVATED_SERVICE: &str = "[D-BUS Service]
Name=org.freedesktop.Notifications
Exec=/usr/bin/touch FOLDER/activated
";

/// A session bus of its own, which ends with the test.
pub(crate) struct MessageBus {
    daemon: Child,
    pub(crate) address: String,
    folder: TempDir,
}

impl MessageBus {
    /// Starts a bus that knows no services.
    pub(crate) fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    /// Starts a bus that starts the notification service when it is called.
    fn with_activation() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("notifications.service"),
            fill_folder(ACTIVATED_SERVICE, folder.path()),
        )
        .unwrap();
        Self::start_in(folder)
    }

    fn start_in(folder: TempDir) -> Self {
        let configuration = folder.path().join("bus.conf");
        std::fs::write(&configuration, fill_folder(BUS_CONFIGURATION, folder.path())).unwrap();
        let mut daemon = Program::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--print-address=1", "--config-file"])
            .arg(configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is missing; `cargo xtask setup` installs it");
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { daemon, address: address.trim().to_owned(), folder }
    }

    fn activation_file(&self) -> PathBuf {
        self.folder.path().join("activated")
    }

    fn end(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn fill_folder(text: &str, folder: &Path) -> String {
    text.replace("FOLDER", folder.to_str().unwrap())
}

impl Drop for MessageBus {
    fn drop(&mut self) {
        self.end();
    }
}

/// A notification as the desktop gets it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownNotification {
    pub(super) id: u32,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) buttons: Vec<String>,
    pub(super) keys: Vec<String>,
    pub(super) urgency: u8,
}

#[derive(Debug, PartialEq)]
pub(super) enum DesktopEvent {
    Shown(ShownNotification),
    Closed(u32),
}

/// The notification service of a desktop that understands markup.
struct NotificationDouble {
    events: Sender<DesktopEvent>,
    last_id: u32,
}

#[interface(name = "org.freedesktop.Notifications")]
impl NotificationDouble {
    #[expect(clippy::too_many_arguments, reason = "the specification defines this signature")]
    fn notify(
        &mut self,
        _app_name: String,
        replaces_id: u32,
        _app_icon: String,
        summary: String,
        body: String,
        actions: Vec<String>,
        mut hints: HashMap<String, OwnedVariant>,
        _expire_timeout: i32,
    ) -> u32 {
        if replaces_id == 0 {
            self.last_id += 1;
        }
        let id = if replaces_id == 0 { self.last_id } else { replaces_id };
        let urgency = hints.remove("urgency").and_then(|urgency| u8::try_from(urgency).ok()).unwrap();
        let keys = actions.iter().step_by(2).cloned().collect();
        let buttons = actions.into_iter().skip(1).step_by(2).collect();
        let shown = ShownNotification { id, title: summary, body, buttons, keys, urgency };
        let _ = self.events.send(DesktopEvent::Shown(shown));
        id
    }

    fn close_notification(&self, id: u32) {
        let _ = self.events.send(DesktopEvent::Closed(id));
    }

    fn get_capabilities(&self) -> Vec<String> {
        vec!["actions".to_owned(), "body".to_owned(), "body-markup".to_owned()]
    }

    #[zbus(signal)]
    async fn action_invoked(emitter: &SignalEmitter<'_>, id: u32, action_key: &str) -> zbus::Result<()>;
}

/// A desktop, on which notifiers run.
pub(super) struct TestDesktop {
    bus: MessageBus,
    pub(super) runtime: tokio::runtime::Runtime,
    service: Option<zbus::Connection>,
    events: Receiver<DesktopEvent>,
}

impl TestDesktop {
    /// Starts a desktop with a notification service.
    pub(super) fn start() -> Self {
        let mut desktop = Self::on_bus(MessageBus::start());
        desktop.start_service();
        desktop
    }

    /// Starts a desktop whose notification service is started by the first call.
    pub(super) fn with_activation() -> Self {
        Self::on_bus(MessageBus::with_activation())
    }

    fn on_bus(bus: MessageBus) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { bus, runtime, service: None, events: channel().1 }
    }

    pub(super) fn start_service(&mut self) {
        let (sender, events) = channel();
        let double = NotificationDouble { events: sender, last_id: 0 };
        let service = self.runtime.block_on(async {
            connection::Builder::address(self.bus.address.as_str())
                .serve_at("/org/freedesktop/Notifications", double)
                .name("org.freedesktop.Notifications")
                .build()
                .await
        });
        (self.service, self.events) = (Some(service.unwrap()), events);
    }

    /// Waits until a call has to start the notification service, and starts it.
    pub(super) fn start_activated_service(&mut self) {
        let file = self.bus.activation_file();
        wait_until("the notification service is called", || file.exists());
        std::fs::remove_file(file).unwrap();
        self.start_service();
    }

    /// Ends the notification service, as if it had crashed or were idle.
    pub(super) fn end_service(&mut self) {
        if let Some(service) = self.service.take() {
            self.runtime.block_on(service.close()).unwrap();
        }
        wait_until("the bus knows that the service has ended", || !self.has_service());
    }

    fn has_service(&self) -> bool {
        let has_owner = async {
            let bus = connection::Builder::address(self.bus.address.as_str()).build().await?;
            let name = "org.freedesktop.Notifications".try_into()?;
            Ok::<_, zbus::Error>(zbus::fdo::DBusProxy::new(&bus).await?.name_has_owner(name).await?)
        };
        self.runtime.block_on(has_owner).unwrap()
    }

    /// Replaces the notification service by another one, as if it had crashed.
    pub(super) fn restart_service(&mut self) {
        self.end_service();
        self.start_service();
    }

    /// Returns the address of the bus.
    pub(super) fn address(&self) -> &str {
        &self.bus.address
    }

    /// Ends the login.
    pub(super) fn end_bus(&mut self) {
        self.bus.end();
    }

    /// Returns the settings of a notifier that talks to the daemon at this socket.
    pub(super) fn options(&self, socket: PathBuf) -> NotifierOptions {
        NotifierOptions::new(socket, |error| eprintln!("{error:?}")).on_bus(self.bus.address.clone())
    }

    pub(super) fn show_for_child(&self, daemon: &ShepherddFixture, profile: &str) {
        self.show_for_child_through(daemon, daemon.socket(), profile);
    }

    /// Shows the notifications of a child, by a notifier that reaches the daemon at this socket.
    pub(super) fn show_for_child_through(&self, daemon: &ShepherddFixture, socket: PathBuf, profile: &str) {
        let options = self.options(socket).for_profile(Some(profile.parse().unwrap()));
        self.run_and_wait(daemon, options);
    }

    pub(super) fn show_for_parent(&self, daemon: &ShepherddFixture) {
        self.show_for_parent_through(daemon, daemon.socket());
    }

    /// Shows the notifications of a parent, by a notifier that reaches the daemon at this socket.
    pub(super) fn show_for_parent_through(&self, daemon: &ShepherddFixture, socket: PathBuf) {
        self.run_and_wait(daemon, self.options(socket));
    }

    /// Runs a notifier, and waits until the daemon reports every later event to it.
    fn run_and_wait(&self, daemon: &ShepherddFixture, options: NotifierOptions) {
        let subscribers = metric(daemon, "subscribers") + 1;
        self.run(options);
        wait_for_subscribers(daemon, subscribers);
    }

    pub(super) fn run(&self, options: NotifierOptions) -> JoinHandle<Result<(), NotifierError>> {
        self.runtime.spawn(shepherd_notify::run(options))
    }

    pub(super) fn next(&self) -> DesktopEvent {
        self.events.recv_timeout(PATIENCE).expect("no notification came")
    }

    pub(super) fn next_shown(&self) -> ShownNotification {
        match self.next() {
            DesktopEvent::Shown(shown) => shown,
            DesktopEvent::Closed(id) => panic!("notification {id} was closed"),
        }
    }

    /// Waits for the next event, which removes a notification, and returns its id.
    pub(super) fn next_closed(&self) -> u32 {
        match self.next() {
            DesktopEvent::Closed(id) => id,
            DesktopEvent::Shown(shown) => panic!("{shown:?}"),
        }
    }

    pub(super) fn press(&self, shown: &ShownNotification, button: &str) {
        let index = shown.buttons.iter().position(|known| known == button).unwrap();
        self.press_key(shown.id, &shown.keys[index]);
    }

    pub(super) fn press_key(&self, id: u32, key: &str) {
        self.runtime
            .block_on(async {
                let server = self.service.as_ref().unwrap().object_server();
                let double =
                    server.interface::<_, NotificationDouble>("/org/freedesktop/Notifications").await?;
                NotificationDouble::action_invoked(double.signal_emitter(), id, key).await
            })
            .unwrap();
    }
}

/// Waits until this many clients get events.
pub(super) fn wait_for_subscribers(daemon: &ShepherddFixture, number: u64) {
    wait_until("the notifier gets events", || metric(daemon, "subscribers") == number);
}

/// Returns a metric of the daemon; 0 if it has not been counted yet.
pub(super) fn metric(daemon: &ShepherddFixture, name: &str) -> u64 {
    let text = daemon.metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("shepherd_{name} ")));
    line.map_or(0, |figure| figure.parse().unwrap())
}
