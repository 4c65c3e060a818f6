//! The connection to logind: its signals, the terminals, and the calls that end or lock them.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use shepherd_core::policy::TerminalState;
use shepherd_host_api::LoginTerminal;
use zbus::message::Type;
use zbus::names::OwnedUniqueName;
use zbus::{Connection, MatchRule, Message, MessageStream, OwnedObjectPath, OwnedVariant, connection};

use super::LogindBus;

const SERVICE: &str = "org.freedesktop.login1";
const MANAGER_PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
const SESSION: &str = "org.freedesktop.login1.Session";
const SESSION_PATHS: &str = "/org/freedesktop/login1/session";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const BUS: &str = "org.freedesktop.DBus";

/// The time for an answer of logind. A logind that hangs counts as gone.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Signals that wait while a call is made. Each log-in causes only a few.
const QUEUE_LENGTH: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The properties of a session that matter here.
const WATCHED_PROPERTIES: [&str; 4] = ["Active", "LockedHint", "IdleHint", "State"];

/// The error for a session that has ended.
const NO_SUCH_SESSION: &str = "org.freedesktop.login1.NoSuchSession";

/// The state in which a session is over, although some of its processes may still run.
const CLOSING: &str = "closing";

/// What a signal of logind means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogindSignal {
    /// Somebody logged in or out, or logind was started.
    SessionsChanged,
    /// A session changed its state.
    SessionChanged { path: String },
    /// logind ended. It is started again soon.
    Ended,
}

/// A connection to the bus, with the terminals as of the last signal.
pub(super) struct LogindConnection {
    bus: Connection,
    signals: [MessageStream; 3],
    /// The unique name of logind on the bus. Signals of others are ignored: anybody can send us one.
    owner: Option<OwnedUniqueName>,
    /// The terminals by the path of their session.
    terminals: BTreeMap<String, LoginTerminal>,
}

impl LogindConnection {
    pub(super) async fn open(bus: &LogindBus) -> zbus::Result<Self> {
        let builder = match bus {
            LogindBus::System => connection::Builder::system(),
            LogindBus::At(address) => connection::Builder::address(address.as_str()),
        };
        let bus = builder.method_timeout(CALL_TIMEOUT).build().await?;
        let signal = || MatchRule::builder().msg_type(Type::Signal);
        let rules = [
            signal().sender(BUS).interface(BUS).member("NameOwnerChanged").add_arg(SERVICE).build()?,
            signal().sender(SERVICE).interface(MANAGER).path(MANAGER_PATH).build()?,
            signal().sender(SERVICE).interface(PROPERTIES).path_namespace(SESSION_PATHS).build()?,
        ];
        let [owners, sessions, properties] = rules;
        let listen = async |rule| MessageStream::for_match_rule(rule, &bus, Some(QUEUE_LENGTH)).await;
        let signals = [listen(owners).await?, listen(sessions).await?, listen(properties).await?];
        let mut connection = Self { bus, signals, owner: None, terminals: BTreeMap::new() };
        connection.list_terminals().await?;
        Ok(connection)
    }

    pub(super) fn terminals(&self) -> Vec<LoginTerminal> {
        self.terminals.values().cloned().collect()
    }

    /// Waits for the next signal that means something. `None` if the bus is gone.
    pub(super) async fn next_signal(&mut self) -> Option<zbus::Result<LogindSignal>> {
        loop {
            let [owners, sessions, properties] = &mut self.signals;
            let message = tokio::select! {
                message = next_item(owners) => message?,
                message = next_item(sessions) => message?,
                message = next_item(properties) => message?,
            };
            match message.map(|message| self.interpret(&message)) {
                Ok(Some(signal)) => return Some(Ok(signal)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn interpret(&mut self, message: &Message) -> Option<LogindSignal> {
        let header = message.header();
        let sender = header.sender()?.as_str();
        let member = header.member()?.as_str();
        if member == "NameOwnerChanged" && sender == BUS {
            let (_, _, new): (String, String, String) = message.body().deserialize().ok()?;
            return Some(if new.is_empty() { LogindSignal::Ended } else { LogindSignal::SessionsChanged });
        }
        if self.owner.as_ref().is_none_or(|owner| owner.as_str() != sender) {
            return None;
        }
        match member {
            "SessionNew" | "SessionRemoved" => Some(LogindSignal::SessionsChanged),
            "PropertiesChanged" => {
                let body = message.body();
                let (_, changed, gone): (String, HashMap<String, OwnedVariant>, Vec<String>) =
                    body.deserialize().ok()?;
                let mut names = changed.keys().chain(&gone);
                let is_news = names.any(|name| WATCHED_PROPERTIES.contains(&name.as_str()));
                is_news.then(|| LogindSignal::SessionChanged {
                    path: header.path().map(ToString::to_string).unwrap_or_default(),
                })
            }
            _ => None,
        }
    }

    /// Asks logind for all sessions.
    pub(super) async fn list_terminals(&mut self) -> zbus::Result<()> {
        let reply = self.call(MANAGER_PATH, MANAGER, "ListSessions", &()).await?;
        self.owner = reply.header().sender().map(|sender| sender.to_owned().into());
        let listed: Vec<(String, u32, String, String, OwnedObjectPath)> = reply.body().deserialize()?;
        self.terminals.clear();
        for (id, uid, _, _, path) in listed {
            self.read_terminal(path.as_str(), id, uid).await?;
        }
        Ok(())
    }

    /// Asks logind for one session that changed.
    pub(super) async fn refresh_terminal(&mut self, path: &str) -> zbus::Result<()> {
        match self.terminals.remove(path) {
            Some(terminal) => self.read_terminal(path, terminal.id, terminal.uid).await,
            // A session that was none of our business may have become one.
            None => self.list_terminals().await,
        }
    }

    async fn read_terminal(&mut self, path: &str, id: String, uid: u32) -> zbus::Result<()> {
        let reply = match self.call(path, PROPERTIES, "GetAll", &SESSION).await {
            Ok(reply) => reply,
            Err(error) if is_gone(&error) => return Ok(()),
            // A fault must not look like a log-out.
            Err(error) => return Err(error),
        };
        let properties = SessionProperties(reply.body().deserialize()?);
        if properties.is_login() {
            self.terminals.insert(path.to_owned(), LoginTerminal { id, uid, state: properties.state() });
        }
        Ok(())
    }

    /// Logs out of a session. logind asks its processes to end.
    pub(super) async fn terminate_session(&self, id: &str) -> zbus::Result<()> {
        self.call(MANAGER_PATH, MANAGER, "TerminateSession", &id).await.map(drop)
    }

    /// Stops the service manager of an account with its services, also if they would go on after a log-out.
    pub(super) async fn terminate_user(&self, uid: u32) -> zbus::Result<()> {
        self.call(MANAGER_PATH, MANAGER, "TerminateUser", &uid).await.map(drop)
    }

    /// Asks the desktop of a session to lock its screen.
    pub(super) async fn lock_session(&self, id: &str) -> zbus::Result<()> {
        self.call(MANAGER_PATH, MANAGER, "LockSession", &id).await.map(drop)
    }

    async fn call<B: serde::Serialize + zbus::DynamicType>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> zbus::Result<Message> {
        self.bus.call_method(Some(SERVICE), path, Some(interface), method, body).await
    }
}

/// The properties of a session.
struct SessionProperties(HashMap<String, OwnedVariant>);

impl SessionProperties {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|value| <&str>::try_from(value).ok()).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| bool::try_from(value).unwrap_or_default())
    }

    /// Returns whether somebody uses this session: not the log-in screen, a service manager, or a job of cron.
    fn is_login(&self) -> bool {
        self.text("Class").starts_with("user") && self.text("State") != CLOSING
    }

    fn state(&self) -> TerminalState {
        TerminalState {
            active: self.flag("Active"),
            locked: self.flag("LockedHint"),
            idle: self.flag("IdleHint"),
        }
    }
}

/// Returns whether a session ended before it could be asked for.
fn is_gone(error: &zbus::Error) -> bool {
    match error {
        zbus::Error::FDO(error) => matches!(**error, zbus::fdo::Error::UnknownObject(_)),
        zbus::Error::MethodError(name, ..) => name.as_str() == NO_SUCH_SESSION,
        _ => false,
    }
}

async fn next_item<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
