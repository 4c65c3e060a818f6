//! The agent over HTTP, for programs and a browser of this machine and of nobody else (C5.3).
//!
//! It listens on a loopback address only. Every request names us as its host and, when a page sent it, as its origin;
//! all but the page itself and `/health` bear the token that lies in the home for its owner alone. A turn runs on a thread
//! of its own with a door of its own, as if a process had been started for it: the same gate, receipts and memory. What
//! needs a yes waits under `/approvals` until somebody answers, and silence is a no.
//!
//! Start at `routes.rs`, what can be asked; `guard.rs` says who may; `chat.rs` is a turn.

mod approvals;
mod blocking_io;
mod chat;
mod guard;
mod live_config;
mod metrics;
mod rate_limit;
mod receipt_chain;
mod remote_operator;
mod response;
mod routes;
mod run_file;
mod server;
mod state;
mod turns;
mod views;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use collieclaw_agent::channel::Channel;
use collieclaw_agent::config::Config;
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::runtime::AgentRuntime;
use collieclaw_listen::AccessToken;
use thiserror::Error;

pub use live_config::{ConfigFileStamp, LoadedConfig};
use remote_operator::ChatOutcome;
use turns::TurnRegistry;

/// The document that describes the gateway to programs.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Reads the configuration, or says why it can't.
type ConfigLoader = Box<dyn Fn() -> Result<LoadedConfig, String> + Send + Sync>;

/// Opens all that a turn needs, as a process does when it starts; or says in a sentence why it can't.
type RuntimeOpener = Box<dyn Fn(&Config) -> Result<AgentRuntime, String> + Send + Sync>;

/// Its name.
const CHANNEL_NAME: &str = "gateway";

/// Tells an event, where a configuration wants it.
type EventReporter = Box<dyn Fn(&Config, AgentEvent<'_>) + Send + Sync>;

/// What a gateway is made of.
pub struct GatewayParts {
    /// What is in force at its start.
    pub initial_config: LoadedConfig,
    /// Its file, before it was read.
    pub config_stamp: Option<ConfigFileStamp>,
    /// Where the emergency stop is.
    pub home: AgentHome,
    /// What every request bears.
    pub token: AccessToken,
    /// Reads the configuration again.
    pub load_config: ConfigLoader,
    /// Opens what a turn needs.
    pub open_runtime: RuntimeOpener,
    /// Tells which configuration has come into force.
    pub report_event: EventReporter,
    /// Hears where it listens, as soon as requests are taken.
    pub on_listening: Box<dyn Fn(SocketAddr) + Send + Sync>,
}

/// The channel `gateway`, for whoever starts it and for its turns.
#[derive(Clone)]
pub struct HttpGateway {
    parts: Arc<GatewayParts>,
    turns: TurnRegistry,
}

/// Why there is no gateway.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The port is somebody else's.
    #[error("can't listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The machine gives no thread or descriptor.
    #[error("the gateway can't be set up")]
    Setup(#[from] io::Error),
}

impl HttpGateway {
    /// One that can be started.
    #[must_use]
    pub fn new(parts: GatewayParts) -> Self {
        Self { parts: Arc::new(parts), turns: TurnRegistry::default() }
    }

    /// Where the gateway of this home listens that was started last, if it still does.
    #[must_use]
    pub fn find_running(home: &AgentHome) -> Option<SocketAddr> {
        run_file::RunFile::find_listening(home)
    }
}

impl Channel for HttpGateway {
    fn name(&self) -> &'static str {
        CHANNEL_NAME
    }

    type Error = GatewayError;

    /// Serves until it is told to end with a signal. Each turn opens a runtime of its own, on a thread of its own.
    fn start(&mut self, runtime: AgentRuntime) -> Result<(), GatewayError> {
        server::serve(self, runtime)
    }

    /// It is what the conversation's turn has waited for, and ends it.
    fn send(&mut self, conversation_id: &str, message: &str) {
        self.turns.finish(conversation_id, ChatOutcome::Answer(message.to_owned()));
    }

    /// To a client that takes events.
    fn supports_draft_updates(&self) -> bool {
        true
    }
}
