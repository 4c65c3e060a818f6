//! Access to language models and to the web.
//!
//! A [`Provider`] answers chat requests: a model server, or a script that stands in for a model. [`net`]
//! makes HTTP requests that end when a [`cancel`] flag is raised or a deadline passes. A [`secret`] is sent
//! to its server and never printed.
//!
//! This crate doesn't know tools, receipts or configuration files, and it reads no environment variables.

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

/// A language model, or a stand-in for a language model (C4.1).
pub trait Provider {
    /// Returns the provider's name in the configuration.
    fn name(&self) -> &str;
    fn capabilities(&self) -> ProviderCapabilities;
    /// Sends a chat request and returns soon after `cancel` is raised. A provider that streams passes each
    /// piece of text to `listener`; the pieces that weren't discarded form the beginning of the returned
    /// text.
    ///
    /// # Errors
    /// Describes the failure in words for the operator.
    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError>;
    /// Checks that the provider answers, with as little work for the server as possible.
    ///
    /// # Errors
    /// Describes the failure and its cure.
    fn check(&self, model: &str, cancel: &CancelFlag) -> Result<ProviderCheck, ProviderError>;
}

/// The result of checking a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCheck {
    /// The model's name as the server reports it.
    pub model: String,
    /// The model's reply, or a description of the mock.
    pub reply: String,
    pub elapsed: Duration,
}
