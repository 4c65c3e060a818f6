//! Who answers: a model somewhere, or a script that stands in for one.

mod chat;
mod error;

pub use chat::{ChatRequest, ChatResponse, Message, ProviderCapabilities, Role, ToolCall, ToolSchema, Usage};
pub use error::ProviderError;

use crate::cancel::Cancel;

/// A model, or what stands in for one (C4.1).
pub trait Provider {
    /// What the configuration calls it.
    fn name(&self) -> &str;
    /// What it can do.
    fn capabilities(&self) -> ProviderCapabilities;
    /// Asks it. Returns soon after `cancel` is raised.
    ///
    /// # Errors
    /// With what went wrong, in words for the operator.
    fn chat(&self, request: &ChatRequest, cancel: &Cancel) -> Result<ChatResponse, ProviderError>;
}
