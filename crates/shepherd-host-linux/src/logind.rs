//! `systemd-logind`, which tells who is logged in to the machine and logs people out (S19.2), over D-Bus. See
//! `org.freedesktop.login1(5)`.
//!
//! One task of the caller's runtime watches; it sleeps unless logind reports a change. Start reading at `watcher.rs`.

mod connection;
mod stops;
mod watcher;

use std::path::Path;

use shepherd_host_api::{LoginEvents, LoginMonitor, LoginStopRequest};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::watcher::{LogindRequest, LogindWatcher};

/// The message bus on which logind is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogindBus {
    /// The system's bus.
    System,
    /// The bus at this address.
    At(String),
}

/// The login monitor of a machine with logind.
#[derive(Debug)]
pub struct LogindMonitor {
    requests: UnboundedSender<LogindRequest>,
    /// The stream for the first subscriber.
    events: Option<LoginEvents>,
}

impl LogindMonitor {
    /// Starts the task, which waits for a request. Must be called in a Tokio runtime with time enabled.
    #[must_use]
    pub fn start(bus: LogindBus) -> Self {
        let (requests, received) = unbounded_channel();
        let (sender, events) = unbounded_channel();
        tokio::spawn(LogindWatcher::new(bus, received, sender).run());
        Self { requests, events: Some(events) }
    }

    fn request(&self, request: LogindRequest) {
        // The task ends only with the runtime.
        let _ = self.requests.send(request);
    }
}

impl LoginMonitor for LogindMonitor {
    fn subscribe(&mut self) -> LoginEvents {
        self.events.take().unwrap_or_else(|| unbounded_channel().1)
    }

    fn watch(&mut self) {
        self.request(LogindRequest::Watch);
    }

    fn rest(&mut self) {
        self.request(LogindRequest::Rest);
    }

    fn stop(&mut self, request: LoginStopRequest) {
        self.request(LogindRequest::Stop(request));
    }

    fn lock(&mut self, terminal: &str) {
        self.request(LogindRequest::Lock(terminal.to_owned()));
    }
}

/// Returns whether logind runs on this machine. It keeps this folder while it runs, by which `sd_login_monitor_new(3)`
/// finds it, too.
#[must_use]
pub fn logind_is_running() -> bool {
    Path::new("/run/systemd/seats").is_dir()
}
