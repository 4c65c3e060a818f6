//! Who answers: a model somewhere, or a script that stands in for one.

mod chat;
mod circuit;
mod error;

mod fixture;
mod mock;
mod openai;
mod reliable;
mod router;

use std::time::Duration;

pub use chat::{
    AnsweredBy, ChatRequest, ChatResponse, Draft, MOST_CALLS, Message, ProviderCapabilities, Role, ToolCall,
    ToolSchema, Usage,
};
pub use circuit::{Breaking, Circuits};
pub use error::ProviderError;
pub use fixture::{Fixture, FixtureError};
pub use mock::Mock;
pub use openai::{OpenAi, OpenAiSettings};
pub use reliable::{Concern, Member, Reliable};
pub use router::{Chose, Router, When, hinted};

use crate::cancel::Cancel;

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
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError>;
    /// Looks whether it would answer, with as little work for it as possible.
    ///
    /// # Errors
    /// With what went wrong and what helps.
    fn check(&self, model: &str, cancel: &Cancel) -> Result<Checked, ProviderError>;
}

/// What a look at a provider found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The model that answered, as it calls itself.
    pub model: String,
    /// What it said, or what it is.
    pub said: String,
    /// How long it took.
    pub took: Duration,
}
