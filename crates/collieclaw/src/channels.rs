//! How people reach the agent.

mod escape;
mod gateway;
mod repl;
mod streaming_operator;
mod terminal;

use thiserror::Error;

pub use escape::{escape_line, escape_lines};
pub use gateway::{
    AccessToken, ConfigFileStamp, GatewayError, GatewayParts, HttpGateway, LoadedConfig, OPENAPI,
};
pub use repl::Repl;
pub use terminal::{AbsentOperator, SpinnerAwareWriter, TerminalOperator, TerminalVerbosity};

use crate::events::AgentEvent;
use crate::runtime::{AgentRuntime, TurnError};

/// A way to the agent (C5.1).
pub trait Channel {
    /// What the configuration calls it.
    fn name(&self) -> &'static str;

    /// Serves people until they leave, with a runtime that works.
    ///
    /// # Errors
    /// When it can't begin, or go on.
    fn start(&mut self, runtime: AgentRuntime) -> Result<(), ChannelError>;

    /// Says the agent's words in a conversation, to whoever listens there.
    fn send(&mut self, conversation_id: &str, message: &str);

    /// Whether an answer can be shown while it is being written.
    fn supports_draft_updates(&self) -> bool;
}

/// Tells that a channel serves from now on.
fn emit_channel_started(channel: &dyn Channel, runtime: &AgentRuntime) {
    let (channel, drafts) = (channel.name(), channel.supports_draft_updates());
    runtime.tool_gateway.events.emit(AgentEvent::ChannelStarted { channel, drafts });
}

/// Why a channel can't go on.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// The terminal can't be used.
    #[error("the terminal can't be used")]
    Terminal(#[from] rustyline::error::ReadlineError),
    /// There is no gateway.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The machine gives no descriptor or thread.
    #[error("the channel can't be set up")]
    Setup(#[from] std::io::Error),
    /// A turn failed in a way that ends everything.
    #[error(transparent)]
    Turn(#[from] TurnError),
}
