//! The HTTP gateway to the agent, for programs and browsers on this machine only (C5.3).
//!
//! The gateway listens on a loopback address only. Every request must name our host and, if a page sent it, our origin.
//! All paths except the page itself and `/health` need the token, which is stored in the home and readable only by its
//! owner. Each turn runs on its own thread with its own tool gateway, with the same gate, receipts and memory as a
//! turn in a separate process. Calls that need an approval wait under `/approvals` until the operator answers; a
//! timeout denies them.
//!
//! Start at `routes.rs` for the paths, `guard.rs` for access control, and `chat.rs` for turns.

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

pub use live_config::{ConfigFileStamp, LoadedConfig, check_not_truncated};
use remote_operator::ChatOutcome;
use turns::TurnRegistry;

/// The OpenAPI document of the gateway.
pub const OPENAPI: &str = include_str!("openapi.json");

/// A function that loads the configuration, or returns an error message.
type ConfigLoader = Box<dyn Fn() -> Result<LoadedConfig, String> + Send + Sync>;

/// A function that opens everything that a turn needs, as a new process would, or returns an error message.
type RuntimeOpener = Box<dyn Fn(&Config) -> Result<AgentRuntime, String> + Send + Sync>;

/// The name of the channel.
const CHANNEL_NAME: &str = "gateway";

/// A function that reports an event as the given configuration demands.
type EventReporter = Box<dyn Fn(&Config, AgentEvent<'_>) + Send + Sync>;

/// The dependencies of a gateway.
pub struct GatewayParts {
    /// The configuration at the start.
    pub initial_config: LoadedConfig,
    /// The state of the configuration file before it was read.
    pub config_stamp: Option<ConfigFileStamp>,
    /// The home, which holds the emergency stop.
    pub home: AgentHome,
    /// The token that every request must carry.
    pub token: AccessToken,
    /// Loads the configuration again.
    pub load_config: ConfigLoader,
    /// Opens the runtime of a turn.
    pub open_runtime: RuntimeOpener,
    /// Reports a configuration that has come into force.
    pub report_event: EventReporter,
    /// Called with the address once the gateway accepts requests.
    pub on_listening: Box<dyn Fn(SocketAddr) + Send + Sync>,
}

/// The channel `gateway`.
#[derive(Clone)]
pub struct HttpGateway {
    parts: Arc<GatewayParts>,
    turns: TurnRegistry,
}

/// A failure to start the gateway.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The port is in use.
    #[error("could not listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The system has no free thread or file descriptor.
    #[error("could not set up the gateway")]
    Setup(#[from] io::Error),
}

impl HttpGateway {
    /// Creates a gateway that can be started.
    #[must_use]
    pub fn new(parts: GatewayParts) -> Self {
        Self { parts: Arc::new(parts), turns: TurnRegistry::default() }
    }

    /// Returns the address of the running gateway of this home, if there is one.
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

    /// Serves until a signal ends the gateway. Each turn opens its own runtime on its own thread.
    fn start(&mut self, runtime: AgentRuntime) -> Result<(), GatewayError> {
        server::serve(self, runtime)
    }

    /// Delivers the answer, which ends the turn of the conversation.
    fn send(&mut self, conversation_id: &str, message: &str) {
        self.turns.finish(conversation_id, ChatOutcome::Answer(message.to_owned()));
    }

    /// Returns true: clients that accept events get streamed text.
    fn supports_draft_updates(&self) -> bool {
        true
    }
}
