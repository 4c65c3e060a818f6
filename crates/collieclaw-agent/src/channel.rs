//! The trait for channels: the ways in which people reach the agent.

use crate::events::AgentEvent;
use crate::runtime::AgentRuntime;

/// A way to reach the agent, such as the terminal or the gateway (C5.1).
pub trait Channel {
    type Error;

    /// Returns the channel's name in the configuration.
    fn name(&self) -> &'static str;

    /// Serves people until they leave.
    ///
    /// # Errors
    /// Fails if the channel can't start, or breaks off.
    fn start(&mut self, runtime: AgentRuntime) -> Result<(), Self::Error>;

    /// Sends a message of the agent to everyone who listens to a conversation.
    fn send(&mut self, conversation_id: &str, message: &str);

    /// Returns true if the channel can show an answer while it is being written.
    fn supports_draft_updates(&self) -> bool;
}

/// Emits the event that a channel has started.
pub fn emit_channel_started<C: Channel>(channel: &C, runtime: &AgentRuntime) {
    let (channel, drafts) = (channel.name(), channel.supports_draft_updates());
    runtime.tool_gateway.events.emit(AgentEvent::ChannelStarted { channel, drafts });
}
