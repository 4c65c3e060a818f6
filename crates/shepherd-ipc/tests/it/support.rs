//! The shared set-up of the tests: a server with a trivial loop on its own thread, and clients that send raw bytes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use shepherd_api::{
    ApiError, ClientRole, Command, CommandReply, DaemonStateSnapshot, ErrorCode, Event, EventKind,
};
use shepherd_ipc::{
    ClientHub, ClientOptions, ConnectionLimits, IncomingEvent, IpcServer, PeerAuthorizer, PeerCredentials,
    PeerPermissions, PinState, PinStore, ServerOptions,
};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The longest wait of a test: long enough for a busy machine, and reached only by a failing test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Gives every peer the same role.
pub(crate) struct FixedRole(pub(crate) Option<ClientRole>);

impl PeerAuthorizer for FixedRole {
    fn authorize(&self, _: &PeerCredentials, pin: PinState) -> Option<PeerPermissions> {
        let role_with_pin = self.0?;
        let role = if pin == PinState::Set { role_with_pin.min(ClientRole::Shell) } else { role_with_pin };
        Some(PeerPermissions { role, role_with_pin, profile: None })
    }
}

pub(crate) struct IpcTestDaemon {
    pub(crate) folder: TempDir,
    pub(crate) hub: ClientHub,
    /// The events that a daemon would record.
    pub(crate) records: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl IpcTestDaemon {
    pub(crate) fn start() -> Self {
        Self::with_authorizer(ConnectionLimits::default(), FixedRole(Some(ClientRole::Admin)))
    }

    pub(crate) fn with_role(role: ClientRole) -> Self {
        Self::with_authorizer(ConnectionLimits::default(), FixedRole(Some(role)))
    }

    pub(crate) fn with_authorizer(
        limits: ConnectionLimits,
        gatekeeper: impl PeerAuthorizer + 'static,
    ) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), limits, Arc::new(gatekeeper))
    }

    pub(crate) fn in_folder(
        folder: TempDir,
        limits: ConnectionLimits,
        gatekeeper: Arc<dyn PeerAuthorizer>,
    ) -> Self {
        let records = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel();
        let (ready, hub) = std::sync::mpsc::channel();
        let (path, noted) = (folder.path().to_owned(), Arc::clone(&records));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let pin = PinStore::open(path.join("pin.json")).unwrap();
                let server = IpcServer::bind(options(&path, limits), gatekeeper, pin).unwrap();
                ready.send(server.hub().clone()).unwrap();
                serve_until_stopped(server, stopped, &noted).await;
            });
        });
        let hub = hub.recv().expect("the daemon did not come up");
        Self { folder, hub, records, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket(self.folder.path())
    }

    pub(crate) fn options(&self) -> ClientOptions {
        ClientOptions { call_timeout: TEST_TIMEOUT, ..ClientOptions::new(self.socket(), "test") }
    }

    pub(crate) fn connect_raw(&self) -> RawClient {
        RawClient::connect(&self.socket())
    }

    /// Opens a connection, and makes the handshake.
    pub(crate) fn connect_greeted(&self) -> RawClient {
        let mut raw = self.connect_raw();
        raw.hello();
        raw
    }

    /// Checks that the daemon answers another client.
    pub(crate) fn assert_serves(&self) {
        let reply = self.connect_greeted().call(1, &json!({"type": "get_state"}));
        assert_eq!(reply["result"]["ok"]["type"], "state", "{reply}");
    }

    /// Shuts the daemon down, and returns its folder for the next one.
    pub(crate) fn stop(mut self) -> TempDir {
        self.shut_down();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    fn shut_down(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for IpcTestDaemon {
    fn drop(&mut self) {
        self.shut_down();
    }
}

pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("shepherd.sock")
}

pub(crate) fn options(folder: &Path, limits: ConnectionLimits) -> ServerOptions {
    ServerOptions {
        socket: socket(folder),
        mode: 0o666,
        group: None,
        daemon_version: "0.0.0-test".to_owned(),
        limits,
    }
}

async fn serve_until_stopped(
    mut server: IpcServer,
    mut stopped: oneshot::Receiver<()>,
    records: &Mutex<Vec<String>>,
) {
    let hub = server.hub().clone();
    loop {
        let incoming = tokio::select! {
            incoming = server.next_event() => incoming,
            _ = &mut stopped => break,
        };
        let record = |text: String| records.lock().unwrap().push(text);
        match incoming.expect("the channel is open as long as the server") {
            IncomingEvent::Request { client, request_id, command: Command::SetPin { pin } } => {
                hub.change_pin(client, request_id, pin);
            }
            IncomingEvent::Request { client, request_id, command } => {
                hub.respond(&client.client_id, request_id, reply_to(&command));
            }
            IncomingEvent::Authenticated { client } => record(format!("authenticated {}", client.name)),
            IncomingEvent::PinChange { client, outcome } => {
                record(format!("pin of {}: {}", client.name, outcome.is_ok()));
            }
            IncomingEvent::Refused { peer, command, unrecorded, .. } => {
                record(format!("uid {} {command} unrecorded {unrecorded}", peer.uid));
            }
            IncomingEvent::NeedsSnapshot { client_id } => hub.send_snapshot(&client_id, snapshot(77)),
        }
    }
    server.shutdown().await;
}

fn reply_to(command: &Command) -> Result<CommandReply, ApiError> {
    match command {
        Command::GetState {} => Ok(CommandReply::State { snapshot: snapshot(0) }),
        Command::SubscribeEvents {} => Ok(CommandReply::Subscribed { snapshot: snapshot(0) }),
        // The limit of the request is the size of the reply.
        Command::ReadAudit { limit, .. } => {
            Ok(CommandReply::Metrics { text: "x".repeat(usize::try_from(*limit).unwrap()) })
        }
        Command::SetPolicy { text } => Ok(CommandReply::PolicyApplied { entry_count: text.len() }),
        other => Err(ApiError::new(ErrorCode::Internal, format!("`{}` is not answered here", other.name()))),
    }
}

pub(crate) fn snapshot(entry_count: usize) -> DaemonStateSnapshot {
    DaemonStateSnapshot {
        api_version: 1,
        at: Timestamp::UNIX_EPOCH,
        session: None,
        sessions: Vec::new(),
        entry_count,
        mode: "school".to_owned(),
        clock_trusted: true,
        profiles: Vec::new(),
        language: None,
    }
}

/// Returns an event that carries a number.
pub(crate) fn event(number: usize) -> Event {
    Event {
        at: Timestamp::UNIX_EPOCH,
        kind: EventKind::PolicyReloaded { entry_count: number, language: None },
    }
}

/// A client that sends raw bytes.
pub(crate) struct RawClient {
    pub(crate) stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl RawClient {
    pub(crate) fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn send_json(&mut self, message: &Value) {
        self.send(format!("{message}\n").as_bytes());
    }

    pub(crate) fn request(&mut self, id: u64, command: &Value) {
        self.send_json(&json!({"type": "request", "id": id, "command": command}));
    }

    /// Returns the next line, or `None` at the end of the connection.
    pub(crate) fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing to read: {error}"),
        }
    }

    pub(crate) fn hello(&mut self) -> Value {
        self.send_json(&json!({"type": "hello", "api_version": 1, "client": "raw"}));
        let welcome = self.read().expect("no welcome");
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        welcome
    }

    pub(crate) fn call(&mut self, id: u64, command: &Value) -> Value {
        self.request(id, command);
        let reply = self.read().expect("no answer");
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    /// Returns the code with which the daemon closes the connection.
    pub(crate) fn closing_code(&mut self) -> String {
        loop {
            let message = self.read().expect("the connection ended without a word");
            if message["type"] == "closing" {
                assert_eq!(self.read(), None, "the last word was not the last");
                return message["error"]["code"].as_str().unwrap().to_owned();
            }
        }
    }
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {TEST_TIMEOUT:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
