//! A double of `systemd-logind` on a message bus of its own, with terminals that follow a script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use shepherd_core::policy::TerminalState;
use tokio::runtime::Runtime;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedObjectPath, connection, interface};

use crate::desktop_notifications::desktop::MessageBus;

const MANAGER_PATH: &str = "/org/freedesktop/login1";

/// A call that the daemon made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogindCall {
    TerminateSession(String),
    TerminateUser(u32),
    LockSession(String),
}

/// The state that both objects share.
#[derive(Default)]
struct LogindState {
    terminals: BTreeMap<String, (u32, TerminalState)>,
    calls: Vec<LogindCall>,
    /// The terminals whose state was read.
    read: BTreeSet<String>,
}

type SharedState = Arc<Mutex<LogindState>>;

struct ManagerDouble(SharedState);

#[interface(name = "org.freedesktop.login1.Manager")]
impl ManagerDouble {
    fn list_sessions(&self) -> Vec<(String, u32, String, String, OwnedObjectPath)> {
        let state = self.0.lock().unwrap();
        let terminals = state.terminals.iter();
        terminals
            .map(|(id, (uid, _))| (id.clone(), *uid, "kid".to_owned(), "seat0".to_owned(), session_path(id)))
            .collect()
    }

    fn terminate_session(&self, id: String) {
        let mut state = self.0.lock().unwrap();
        state.terminals.remove(&id);
        state.calls.push(LogindCall::TerminateSession(id));
    }

    fn terminate_user(&self, uid: u32) {
        self.0.lock().unwrap().calls.push(LogindCall::TerminateUser(uid));
    }

    fn lock_session(&self, id: String) {
        self.0.lock().unwrap().calls.push(LogindCall::LockSession(id));
    }

    #[zbus(signal)]
    async fn session_new(emitter: &SignalEmitter<'_>, id: &str, path: OwnedObjectPath) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn session_removed(
        emitter: &SignalEmitter<'_>,
        id: &str,
        path: OwnedObjectPath,
    ) -> zbus::Result<()>;
}

struct SessionDouble {
    id: String,
    state: SharedState,
}

impl SessionDouble {
    fn terminal(&self) -> TerminalState {
        let state = self.state.lock().unwrap();
        state.terminals.get(&self.id).map(|(_, terminal)| *terminal).unwrap_or_default()
    }
}

#[interface(name = "org.freedesktop.login1.Session")]
impl SessionDouble {
    #[zbus(property)]
    fn class(&self) -> String {
        self.state.lock().unwrap().read.insert(self.id.clone());
        "user".to_owned()
    }

    #[zbus(property)]
    fn state(&self) -> String {
        if self.terminal().active { "active" } else { "online" }.to_owned()
    }

    #[zbus(property)]
    fn active(&self) -> bool {
        self.terminal().active
    }

    #[zbus(property)]
    fn locked_hint(&self) -> bool {
        self.terminal().locked
    }

    #[zbus(property)]
    fn idle_hint(&self) -> bool {
        self.terminal().idle
    }
}

/// The double, which ends with the test.
pub(crate) struct FakeLogind {
    bus: MessageBus,
    runtime: Runtime,
    service: Connection,
    state: SharedState,
}

impl FakeLogind {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (bus, state) = (MessageBus::start(), SharedState::default());
        let service = runtime.block_on(serve(&bus, &state)).unwrap();
        Self { bus, runtime, service, state }
    }

    /// Returns the address of the bus.
    pub(crate) fn address(&self) -> &str {
        &self.bus.address
    }

    /// Restarts logind, which remembers its sessions.
    pub(crate) fn restart(&mut self) {
        self.runtime.block_on(self.service.clone().close()).unwrap();
        self.service = self.runtime.block_on(serve(&self.bus, &self.state)).unwrap();
    }

    fn serve_session(&self, id: &str) {
        let double = SessionDouble { id: id.to_owned(), state: Arc::clone(&self.state) };
        self.runtime.block_on(self.service.object_server().at(session_path(id), double)).unwrap();
    }

    /// Logs an account in at a terminal.
    pub(crate) fn log_in(&self, id: &str, uid: u32, terminal: TerminalState) {
        self.serve_session(id);
        self.state.lock().unwrap().terminals.insert(id.to_owned(), (uid, terminal));
        self.runtime
            .block_on(async {
                let manager =
                    self.service.object_server().interface::<_, ManagerDouble>(MANAGER_PATH).await?;
                ManagerDouble::session_new(manager.signal_emitter(), id, session_path(id)).await
            })
            .unwrap();
    }

    pub(crate) fn log_out(&self, id: &str) {
        self.state.lock().unwrap().terminals.remove(id);
        self.runtime
            .block_on(async {
                let server = self.service.object_server();
                server.remove::<SessionDouble, _>(session_path(id)).await?;
                let manager = server.interface::<_, ManagerDouble>(MANAGER_PATH).await?;
                ManagerDouble::session_removed(manager.signal_emitter(), id, session_path(id)).await
            })
            .unwrap();
    }

    /// Changes the state of a terminal.
    pub(crate) fn set(&self, id: &str, terminal: TerminalState) {
        self.state.lock().unwrap().terminals.get_mut(id).unwrap().1 = terminal;
        self.runtime
            .block_on(async {
                let session =
                    self.service.object_server().interface::<_, SessionDouble>(session_path(id)).await?;
                let double = session.get().await;
                double.active_changed(session.signal_emitter()).await?;
                double.locked_hint_changed(session.signal_emitter()).await?;
                double.idle_hint_changed(session.signal_emitter()).await
            })
            .unwrap();
    }

    /// Returns whether the daemon has read the state of a terminal.
    pub(crate) fn was_read(&self, id: &str) -> bool {
        self.state.lock().unwrap().read.contains(id)
    }

    pub(crate) fn calls(&self) -> Vec<LogindCall> {
        self.state.lock().unwrap().calls.clone()
    }
}

/// Serves all sessions, and takes the name then, as logind does.
async fn serve(bus: &MessageBus, state: &SharedState) -> zbus::Result<Connection> {
    let ids: Vec<String> = state.lock().unwrap().terminals.keys().cloned().collect();
    let mut service = connection::Builder::address(bus.address.as_str())
        .serve_at(MANAGER_PATH, ManagerDouble(Arc::clone(state)));
    for id in ids {
        service = service.serve_at(session_path(&id), SessionDouble { id, state: Arc::clone(state) });
    }
    service.name("org.freedesktop.login1").build().await
}

fn session_path(id: &str) -> OwnedObjectPath {
    format!("/org/freedesktop/login1/session/_{id}").try_into().unwrap()
}
