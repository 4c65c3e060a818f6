//! Several providers, of which the next answers when one can't (C4.4).
//!
//! What the next can't do better is not tried there: a refusal stays a refusal.

use super::{ChatRequest, ChatResponse, Checked, Draft, Provider, ProviderCapabilities, ProviderError};
use crate::cancel::Cancel;

/// A provider with the model that it is asked for.
pub struct Member {
    /// The provider.
    pub provider: Box<dyn Provider>,
    /// Its model.
    pub model: String,
}

/// Is told from whom to whom, and why.
pub type FellBack = Box<dyn Fn(&str, &str, &ProviderError)>;

/// Providers in their order.
pub struct Reliable {
    name: String,
    members: Vec<Member>,
    fell_back: FellBack,
}

impl Reliable {
    /// Of the first that answers. Every change is told.
    #[must_use]
    pub fn new(name: impl Into<String>, members: Vec<Member>, fell_back: FellBack) -> Self {
        Self { name: name.into(), members, fell_back }
    }

    fn first_of<T>(
        &self,
        mut ask: impl FnMut(&Member) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let mut members = self.members.iter().peekable();
        while let Some(member) = members.next() {
            match (ask(member), members.peek()) {
                (Err(error), Some(next)) if is_worth_another(&error) => {
                    (self.fell_back)(member.provider.name(), next.provider.name(), &error);
                }
                (answered, _) => return answered,
            }
        }
        let detail = "it has no members".to_owned();
        Err(ProviderError::Invalid { provider: self.name.clone(), detail })
    }
}

fn is_worth_another(error: &ProviderError) -> bool {
    match error {
        ProviderError::Network { .. }
        | ProviderError::Timeout { .. }
        | ProviderError::Auth { .. }
        | ProviderError::Insecure { .. }
        | ProviderError::Overloaded { .. } => true,
        ProviderError::Refused { .. }
        | ProviderError::Invalid { .. }
        | ProviderError::TooLarge { .. }
        | ProviderError::Cancelled { .. } => false,
    }
}

impl Provider for Reliable {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        let all = |can: fn(ProviderCapabilities) -> bool| {
            self.members.iter().all(|member| can(member.provider.capabilities()))
        };
        ProviderCapabilities { tools: all(|can| can.tools), streaming: all(|can| can.streaming) }
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        self.first_of(|member| {
            let request = ChatRequest { model: member.model.clone(), ..request.clone() };
            let mut heard = false;
            let mut pass_on = |draft: Draft<'_>| {
                heard = draft != Draft::Void;
                listener(draft);
            };
            let answered = member.provider.chat(&request, &mut pass_on, cancel);
            if heard && answered.is_err() {
                listener(Draft::Void);
            }
            answered
        })
    }

    fn check(&self, _: &str, cancel: &Cancel) -> Result<Checked, ProviderError> {
        self.first_of(|member| member.provider.check(&member.model, cancel))
    }
}
