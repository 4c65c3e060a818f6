//! CollieClaw's way to models and the web.
//!
//! A [`Provider`] answers: a model somewhere, or a script that stands in for one. [`net`] makes one HTTP exchange at a
//! time, which ends when its [`cancel`] flag is raised or its deadline passes. A [`secret`] is sent, and never shown.
//!
//! This crate knows no tools, no receipts and no configuration files, and reads no environment variables.

pub mod cancel;
pub mod secret;
pub mod text;

pub mod net;

mod chat;
mod circuit;
mod error;
pub mod estimate;

mod fixture;
mod mock;
mod openai;
mod reliable;
mod router;

use std::time::Duration;

pub use chat::{
    AnsweredBy, ChatMessage, ChatRequest, ChatResponse, ChatRole, DraftEvent, MOST_CALLS,
    ProviderCapabilities, TokenUsage, ToolCall, ToolSchema,
};
pub use circuit::{CircuitBreakerSettings, CircuitBreakers};
pub use error::ProviderError;
pub use fixture::{FixtureError, MockFixture};
pub use mock::MockProvider;
pub use openai::{OpenAiProvider, OpenAiSettings};
pub use reliable::{FallbackObserver, ProviderTarget, ReliableProvider};
pub use router::{RouteCondition, RouteObserver, RouterProvider, hint_metadata};

use crate::cancel::CancelFlag;

/// A model, or what stands in for one (C4.1).
pub trait Provider {
    /// What the configuration calls it.
    fn name(&self) -> &str;
    /// What it can do.
    fn capabilities(&self) -> ProviderCapabilities;
    /// Asks it. Returns soon after `cancel` is raised. Whoever answers bit by bit tells `listener` each bit; what was
    /// told and not taken back is the text of the answer that is returned, from its beginning.
    ///
    /// # Errors
    /// With what went wrong, in words for the operator.
    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError>;
    /// Looks whether it would answer, with as little work for it as possible.
    ///
    /// # Errors
    /// With what went wrong and what helps.
    fn check(&self, model: &str, cancel: &CancelFlag) -> Result<ProviderCheck, ProviderError>;
}

/// What a look at a provider found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCheck {
    /// The model that answered, as it calls itself.
    pub model: String,
    /// What it said, or what it is.
    pub reply: String,
    /// How long it took.
    pub elapsed: Duration,
}
