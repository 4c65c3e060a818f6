//! Several providers, of which the next answers when one can't (C4.4).
//!
//! What the next can't do better is not tried there: a refusal stays a refusal. Who fails again and again is asked last
//! for a while.

use std::rc::Rc;
use std::time::Instant;

use super::circuit::{CircuitBreakerSettings, CircuitBreakers};
use super::{
    AnsweredBy, ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck,
    ProviderError,
};
use crate::cancel::CancelFlag;

/// A provider with the model that it is asked for.
pub struct ProviderTarget {
    /// The provider.
    pub provider: Rc<dyn Provider>,
    /// Its model.
    pub model: String,
}

/// Is told what goes wrong.
pub trait FallbackObserver {
    /// One failed, and the next is asked.
    fn on_fallback(&self, from: &str, to: &str, error: &ProviderError);
    /// One has failed too often.
    fn on_circuit_open(&self, provider: &str, breaking: CircuitBreakerSettings);
}

/// Providers in their order.
pub struct ReliableProvider {
    name: String,
    members: Vec<ProviderTarget>,
    breaking: CircuitBreakerSettings,
    circuits: CircuitBreakers,
    observer: Box<dyn FallbackObserver>,
}

impl ProviderTarget {
    /// Asks it for its own model.
    pub(super) fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
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

impl ReliableProvider {
    /// Of the first that answers. Every change is told.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        members: Vec<ProviderTarget>,
        breaking: CircuitBreakerSettings,
        circuits: CircuitBreakers,
        concern: Box<dyn FallbackObserver>,
    ) -> Self {
        Self { name: name.into(), members, breaking, circuits, observer: concern }
    }

    fn try_in_order<T>(
        &self,
        mut ask: impl FnMut(&ProviderTarget) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let now = Instant::now();
        let mut order: Vec<&ProviderTarget> = self.members.iter().collect();
        // Whoever is left out is still better than nobody.
        order.sort_by_key(|member| self.circuits.is_open(member.provider.name(), now));
        let mut members = order.into_iter().peekable();
        while let Some(member) = members.next() {
            let answered = ask(member);
            self.record_outcome(member.provider.name(), &answered);
            match (answered, members.peek()) {
                (Err(error), Some(next)) if should_try_next(&error) => {
                    self.observer.on_fallback(member.provider.name(), next.provider.name(), &error);
                }
                (answered, _) => return answered,
            }
        }
        let detail = "it has no members".to_owned();
        Err(ProviderError::Invalid { provider: self.name.clone(), detail })
    }

    fn record_outcome<T>(&self, provider: &str, answered: &Result<T, ProviderError>) {
        match answered {
            Ok(_) | Err(ProviderError::Refused { .. }) => self.circuits.record_success(provider),
            Err(error) if should_try_next(error) => {
                if self.circuits.record_failure(provider, self.breaking, Instant::now()) {
                    self.observer.on_circuit_open(provider, self.breaking);
                }
            }
            // It says nothing about how it will answer the next.
            Err(_) => {}
        }
    }
}

fn should_try_next(error: &ProviderError) -> bool {
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

impl Provider for ReliableProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities::common_to(self.members.iter().map(|member| member.provider.capabilities()))
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        self.try_in_order(|member| {
            let mut heard = false;
            let mut pass_on = |draft: DraftEvent<'_>| {
                heard = draft != DraftEvent::Discard;
                listener(draft);
            };
            let answered = member.chat(request, &mut pass_on, cancel);
            if heard && answered.is_err() {
                listener(DraftEvent::Discard);
            }
            answered
        })
    }

    fn check(&self, _: &str, cancel: &CancelFlag) -> Result<ProviderCheck, ProviderError> {
        self.try_in_order(|member| member.provider.check(&member.model, cancel))
    }
}
