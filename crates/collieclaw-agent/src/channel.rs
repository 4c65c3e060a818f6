//! How people reach the agent.

use crate::events::AgentEvent;
use crate::runtime::AgentRuntime;

/// A way to the agent (C5.1).
pub trait Channel {
    /// Why the channel can't begin, or go on.
    type Error;

    /// What the configuration calls it.
    fn name(&self) -> &'static str;

    /// Serves people until they leave, with a runtime that works.
    ///
    /// # Errors
    /// When it can't begin, or go on.
    fn start(&mut self, runtime: AgentRuntime) -> Result<(), Self::Error>;

    /// Says the agent's words in a conversation, to whoever listens there.
    fn send(&mut self, conversation_id: &str, message: &str);

    /// Whether an answer can be shown while it is being written.
    fn supports_draft_updates(&self) -> bool;
}

/// Tells that a channel serves from now on.
pub fn emit_channel_started<C: Channel>(channel: &C, runtime: &AgentRuntime) {
    let (channel, drafts) = (channel.name(), channel.supports_draft_updates());
    runtime.tool_gateway.events.emit(AgentEvent::ChannelStarted { channel, drafts });
}
