//! Several providers, of which the next answers when one can't (C4.4).
//!
//! What the next can't do better is not tried there: a refusal stays a refusal. Who fails again and again is asked last
//! for a while.

use std::rc::Rc;
use std::time::Instant;

use super::circuit::{Breaking, Circuits};
use super::{
    AnsweredBy, ChatRequest, ChatResponse, Checked, Draft, Provider, ProviderCapabilities, ProviderError,
};
use crate::cancel::Cancel;

/// A provider with the model that it is asked for.
pub struct Member {
    /// The provider.
    pub provider: Rc<dyn Provider>,
    /// Its model.
    pub model: String,
}

/// Is told what goes wrong.
pub trait Concern {
    /// One failed, and the next is asked.
    fn fell_back(&self, from: &str, to: &str, error: &ProviderError);
    /// One has failed too often.
    fn left_out(&self, provider: &str, breaking: Breaking);
}

/// Providers in their order.
pub struct Reliable {
    name: String,
    members: Vec<Member>,
    breaking: Breaking,
    circuits: Circuits,
    concern: Box<dyn Concern>,
}

impl Member {
    /// Asks it for its own model.
    pub(super) fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        let request = ChatRequest { model: self.model.clone(), ..request.clone() };
        let mut response = self.provider.chat(&request, listener, cancel)?;
        // One that asked others in its turn has said who it was.
        response.answered_by.get_or_insert_with(|| AnsweredBy {
            provider: self.provider.name().to_owned(),
            model: self.model.clone(),
        });
        Ok(response)
    }
}

impl Reliable {
    /// Of the first that answers. Every change is told.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        members: Vec<Member>,
        breaking: Breaking,
        circuits: Circuits,
        concern: Box<dyn Concern>,
    ) -> Self {
        Self { name: name.into(), members, breaking, circuits, concern }
    }

    fn first_of<T>(
        &self,
        mut ask: impl FnMut(&Member) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let now = Instant::now();
        let mut order: Vec<&Member> = self.members.iter().collect();
        // Whoever is left out is still better than nobody.
        order.sort_by_key(|member| self.circuits.is_left_out(member.provider.name(), now));
        let mut members = order.into_iter().peekable();
        while let Some(member) = members.next() {
            let answered = ask(member);
            self.remember(member.provider.name(), &answered);
            match (answered, members.peek()) {
                (Err(error), Some(next)) if is_worth_another(&error) => {
                    self.concern.fell_back(member.provider.name(), next.provider.name(), &error);
                }
                (answered, _) => return answered,
            }
        }
        let detail = "it has no members".to_owned();
        Err(ProviderError::Invalid { provider: self.name.clone(), detail })
    }

    fn remember<T>(&self, provider: &str, answered: &Result<T, ProviderError>) {
        match answered {
            Ok(_) | Err(ProviderError::Refused { .. }) => self.circuits.answered(provider),
            Err(error) if is_worth_another(error) => {
                if self.circuits.failed(provider, self.breaking, Instant::now()) {
                    self.concern.left_out(provider, self.breaking);
                }
            }
            // It says nothing about how it will answer the next.
            Err(_) => {}
        }
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
        | ProviderError::Limit { .. }
        | ProviderError::Cancelled { .. } => false,
    }
}

impl Provider for Reliable {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities::of_all(self.members.iter().map(|member| member.provider.capabilities()))
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        self.first_of(|member| {
            let mut heard = false;
            let mut pass_on = |draft: Draft<'_>| {
                heard = draft != Draft::Void;
                listener(draft);
            };
            let answered = member.chat(request, &mut pass_on, cancel);
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
