//! The notifier with a real daemon and a real message bus. Only the desktop's notification service is a double: it keeps
//! what it is asked to show, and presses buttons.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command as Program, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use shepherd_api::{Command, CommandReply, EntryScope, GrantKind, Millis, StopMode, TimeRequestState};
use shepherd_notify::{NotifierError, NotifierOptions};
use zbus::object_server::SignalEmitter;
use zbus::{OwnedVariant, connection, interface};

use crate::harness::{PATIENCE, ShepherddFixture, policy, sleep_entry};

const POLICY: &str = policy!(
    "[profiles.anna]\nlabel = \"Anna\"\n[profiles.ben]\nlabel = \"Ben\"\n",
    sleep_entry!(
        "maths",
        "label = \"Maths\"\nmax_run = \"4s\"\nstop_grace = \"0s\"\nwarnings = [{ before = \"3s\", severity = \"critical\" }]"
    ),
    sleep_entry!("racing", "label = \"Racing\"\nmax_run = \"30m\"")
);

/// The tests run between 12:00 and 13:00, so the hours end before the longest run.
const HOURS_END_FIRST: &str = policy!(
    "[profiles.anna]\nlabel = \"Anna\"\n",
    "[[entries]]\nid = \"racing\"\nlabel = \"Racing\"\nargv = [\"sleep\", \"TOKEN\"]\nmax_run = \"4h\"\n",
    "windows = [{ from = \"11:00\", to = \"14:00\" }]\n"
);

/// A session bus of its own, which ends with the test.
struct MessageBus {
    daemon: Child,
    address: String,
}

impl MessageBus {
    fn start() -> Self {
        let mut daemon = Program::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is missing; `cargo xtask setup` installs it");
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { daemon, address: address.trim().to_owned() }
    }
}

impl Drop for MessageBus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// A notification as the desktop gets it.
#[derive(Clone, Debug, PartialEq)]
struct ShownNotification {
    id: u32,
    title: String,
    body: String,
    buttons: Vec<String>,
    keys: Vec<String>,
    urgency: u8,
}

enum DesktopEvent {
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

/// A desktop with a notifier on it.
struct TestDesktop {
    bus: MessageBus,
    runtime: tokio::runtime::Runtime,
    service: zbus::Connection,
    events: Receiver<DesktopEvent>,
}

impl TestDesktop {
    fn start() -> Self {
        let bus = MessageBus::start();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (service, events) = Self::start_service(&bus, &runtime);
        Self { bus, runtime, service, events }
    }

    fn start_service(
        bus: &MessageBus,
        runtime: &tokio::runtime::Runtime,
    ) -> (zbus::Connection, Receiver<DesktopEvent>) {
        let (sender, events) = channel();
        let double = NotificationDouble { events: sender, last_id: 0 };
        let service = runtime
            .block_on(async {
                connection::Builder::address(bus.address.as_str())
                    .name("org.freedesktop.Notifications")
                    .serve_at("/org/freedesktop/Notifications", double)
                    .build()
                    .await
            })
            .unwrap();
        (service, events)
    }

    /// Replaces the notification service by another one, as if it had crashed.
    fn restart_service(&mut self) {
        let old = self.service.clone();
        self.runtime.block_on(old.close()).unwrap();
        (self.service, self.events) = Self::start_service(&self.bus, &self.runtime);
    }

    fn options(&self, daemon: &ShepherddFixture) -> NotifierOptions {
        NotifierOptions::new(daemon.socket(), |error| eprintln!("{error:?}")).on_bus(self.bus.address.clone())
    }

    fn show_for_child(&self, daemon: &ShepherddFixture, profile: &str) {
        let options = self.options(daemon).for_profile(Some(profile.parse().unwrap()));
        self.runtime.spawn(shepherd_notify::run(options));
        self.wait_for_notifier();
    }

    fn show_for_parent(&self, daemon: &ShepherddFixture) {
        self.runtime.spawn(shepherd_notify::run(self.options(daemon)));
        self.wait_for_notifier();
    }

    /// Waits until the notifier has its name on the bus; the daemon then reports every later event to it.
    fn wait_for_notifier(&self) {
        crate::harness::wait_until("the notifier is on the bus", || {
            self.runtime.block_on(async {
                let names = zbus::fdo::DBusProxy::new(&self.service).await.unwrap();
                names.name_has_owner("org.shepherd.Notify".try_into().unwrap()).await.unwrap()
            })
        });
    }

    fn next(&self) -> DesktopEvent {
        self.events.recv_timeout(PATIENCE).expect("no notification came")
    }

    fn next_shown(&self) -> ShownNotification {
        match self.next() {
            DesktopEvent::Shown(shown) => shown,
            DesktopEvent::Closed(id) => panic!("notification {id} was closed"),
        }
    }

    fn press(&self, shown: &ShownNotification, button: &str) {
        let index = shown.buttons.iter().position(|known| known == button).unwrap();
        self.press_key(shown.id, &shown.keys[index]);
    }

    fn press_key(&self, id: u32, key: &str) {
        self.runtime
            .block_on(async {
                let server = self.service.object_server();
                let double =
                    server.interface::<_, NotificationDouble>("/org/freedesktop/Notifications").await?;
                NotificationDouble::action_invoked(double.signal_emitter(), id, key).await
            })
            .unwrap();
    }
}

fn texts(shown: &ShownNotification) -> (&str, &str) {
    (&shown.title, &shown.body)
}

fn launch_for(daemon: &ShepherddFixture, entry: &str, profile: &str) {
    let (entry_id, profile) = (entry.parse().unwrap(), Some(profile.parse().unwrap()));
    let launched = daemon.call(Command::Launch { entry_id, profile, display: None });
    assert!(matches!(launched, Ok(CommandReply::Launched { .. })), "{launched:?}");
}

fn ask_for_time(daemon: &ShepherddFixture, profile: &str, note: &str) {
    let asked = daemon.call(Command::RequestTime {
        entry_id: "racing".parse().unwrap(),
        minutes: 15,
        note: Some(note.to_owned().try_into().unwrap()),
        profile: Some(profile.parse().unwrap()),
    });
    assert!(matches!(asked, Ok(CommandReply::Request { .. })), "{asked:?}");
}

fn request_states(daemon: &ShepherddFixture) -> Vec<TimeRequestState> {
    match daemon.call(Command::ListRequests {}) {
        Ok(CommandReply::Requests { requests }) => {
            requests.into_iter().map(|request| request.state).collect()
        }
        other => panic!("{other:?}"),
    }
}

// S19.3
#[test]
fn a_child_sees_the_warning_the_closing_and_the_end() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_child(&daemon, "anna");
    launch_for(&daemon, "maths", "anna");
    let warned = desktop.next_shown();
    assert_eq!(texts(&warned), ("Maths", "Maths ends in 3 seconds."));
    assert_eq!(
        (warned.urgency, warned.buttons.as_slice()),
        (2, ["Ask for 10 more minutes".to_owned()].as_slice())
    );
    let closing = desktop.next_shown();
    assert_eq!(texts(&closing), ("Maths is closing", "The time is up. Save now."));
    let ended = desktop.next_shown();
    assert_eq!(texts(&ended), ("Maths has ended", "The time is up."));
    assert_eq!((closing.id, ended.id), (warned.id, warned.id), "each replaces the one before");
}

// S19.3
#[test]
fn the_button_of_a_warning_asks_the_parents_for_time() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_child(&daemon, "anna");
    launch_for(&daemon, "maths", "anna");
    let warned = desktop.next_shown();
    desktop.press(&warned, "Ask for 10 more minutes");
    let asked = desktop.next_shown();
    assert_eq!(texts(&asked), ("Asked", "You asked for 10 minutes of Maths."));
    assert_eq!(request_states(&daemon), [TimeRequestState::Asked]);
    desktop.press(&warned, "Ask for 10 more minutes");
    let grant = Command::Grant {
        profile: Some("anna".parse().unwrap()),
        scope: EntryScope::Entry { entry_id: "maths".parse().unwrap() },
        gift: GrantKind::Extra { amount: Millis::from(Duration::from_secs(600)) },
        valid_from: None,
        lapses_at: None,
        why: None,
    };
    daemon.call(grant).unwrap();
    let more = desktop.next_shown();
    assert_eq!(more.title, "More time for Maths", "a button works once");
    assert_eq!(more.id, warned.id, "it replaces the warning, which may still be on the screen");
    daemon.stop(StopMode::Force).unwrap();
}

#[test]
fn a_child_sees_nothing_of_another_child() {
    let daemon = ShepherddFixture::running(POLICY);
    let (anna, ben) = (TestDesktop::start(), TestDesktop::start());
    anna.show_for_child(&daemon, "anna");
    ben.show_for_child(&daemon, "ben");
    launch_for(&daemon, "maths", "ben");
    assert_eq!(ben.next_shown().title, "Maths");
    assert_eq!(ben.next_shown().title, "Maths is closing");
    assert_eq!(ben.next_shown().title, "Maths has ended");
    assert!(anna.events.try_recv().is_err());
}

// S2.7, S19.3
#[test]
fn a_parent_answers_a_request_with_a_button() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "<b>please</b>");
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let asked = desktop.next_shown();
    assert_eq!(texts(&asked), ("Anna asks for 15 minutes", "Racing\n“&lt;b&gt;please&lt;/b&gt;”"));
    assert_eq!(asked.buttons, ["Yes, 15 minutes", "No"]);
    desktop.press(&asked, "No");
    crate::harness::wait_until("the request is answered", || {
        request_states(&daemon) == [TimeRequestState::Denied { why: None }]
    });
}

// S2.7, S19.3
#[test]
fn parent_and_child_learn_that_the_hours_end_before_the_granted_time_is_used() {
    let daemon = ShepherddFixture::running(HOURS_END_FIRST);
    let (mum, anna) = (TestDesktop::start(), TestDesktop::start());
    mum.show_for_parent(&daemon);
    anna.show_for_child(&daemon, "anna");
    launch_for(&daemon, "racing", "anna");
    ask_for_time(&daemon, "anna", "please");
    assert_eq!(anna.next_shown().title, "Asked");
    mum.press(&mum.next_shown(), "Yes, 15 minutes");
    let granted = anna.next_shown();
    assert!(granted.body.starts_with("You get more time for Racing. But it still ends in "), "{granted:?}");
    // The request disappears from the parent's desktop before or after this.
    let told = std::iter::repeat_with(|| mum.next()).find_map(|event| match event {
        DesktopEvent::Shown(shown) => Some(shown),
        DesktopEvent::Closed(_) => None,
    });
    let told = told.unwrap();
    assert!(told.title.starts_with("Racing still ends in "), "{told:?}");
    mum.press(&told, "Let it go on for 15 minutes");
    assert_eq!(anna.next_shown().title, "More time for Racing");
    daemon.stop(StopMode::Force).unwrap();
}

#[test]
fn a_request_that_another_parent_answers_disappears() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "ben", "please");
    let (mum, dad) = (TestDesktop::start(), TestDesktop::start());
    mum.show_for_parent(&daemon);
    dad.show_for_parent(&daemon);
    let (asked_mum, asked_dad) = (mum.next_shown(), dad.next_shown());
    mum.press(&asked_mum, "Yes, 15 minutes");
    match dad.next() {
        DesktopEvent::Closed(id) => assert_eq!(id, asked_dad.id),
        DesktopEvent::Shown(shown) => panic!("{shown:?}"),
    }
}

#[test]
fn warnings_are_shown_again_after_the_daemon_was_killed() {
    let mut daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_child(&daemon, "anna");
    launch_for(&daemon, "maths", "anna");
    assert_eq!(desktop.next_shown().title, "Maths");
    daemon.kill();
    daemon.start();
    let ended =
        std::iter::repeat_with(|| desktop.next_shown()).find(|shown| shown.title == "Maths has ended");
    assert_eq!(ended.map(|shown| shown.body).as_deref(), Some("The time is up."));
}

#[test]
fn a_login_has_one_notifier() {
    let daemon = ShepherddFixture::running(POLICY);
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let second = desktop.runtime.block_on(shepherd_notify::run(desktop.options(&daemon)));
    assert!(matches!(second, Err(NotifierError::AlreadyRunning)), "{second:?}");
}

#[test]
fn a_button_of_another_programs_notification_answers_nothing() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let asked = desktop.next_shown();
    desktop.press_key(asked.id, "0");
    desktop.press_key(asked.id, "default");
    desktop.press_key(asked.id + 1, &asked.keys[0]);
    desktop.press(&asked, "No");
    crate::harness::wait_until("the request is answered", || {
        request_states(&daemon) == [TimeRequestState::Denied { why: None }]
    });
}

#[test]
fn a_request_is_shown_again_by_a_restarted_notification_service() {
    let daemon = ShepherddFixture::running(POLICY);
    ask_for_time(&daemon, "anna", "please");
    let mut desktop = TestDesktop::start();
    desktop.show_for_parent(&daemon);
    let before = desktop.next_shown();
    desktop.restart_service();
    let after = desktop.next_shown();
    assert_eq!(texts(&after), texts(&before));
    desktop.press(&after, "Yes, 15 minutes");
    crate::harness::wait_until("the request is answered", || {
        matches!(request_states(&daemon).as_slice(), [TimeRequestState::Granted { .. }])
    });
}
