//! A provider with fallbacks: if one member fails, the next member is asked (C4.4).
//!
//! A refusal is final, because another member would not do better. A member that keeps failing is asked last
//! for a while.

use std::rc::Rc;
use std::time::Instant;

use super::circuit::{CircuitBreakerSettings, CircuitBreakers};
use super::{
    AnsweredBy, ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck,
    ProviderError,
};
use crate::cancel::CancelFlag;

/// A provider and the model to request from it.
pub struct ProviderTarget {
    pub provider: Rc<dyn Provider>,
    pub model: String,
}

/// An observer of failures, for the audit trail.
pub trait FallbackObserver {
    /// Called when `from` failed and `to` is asked next.
    fn on_fallback(&self, from: &str, to: &str, error: &ProviderError);
    /// Called when a provider has failed so often that it is asked last for a while.
    fn on_circuit_open(&self, provider: &str, breaker: CircuitBreakerSettings);
}

/// A list of providers that are tried in order.
pub struct ReliableProvider {
    name: String,
    members: Vec<ProviderTarget>,
    breaker: CircuitBreakerSettings,
    circuits: CircuitBreakers,
    observer: Box<dyn FallbackObserver>,
}

impl ProviderTarget {
    /// Sends a request to the provider, with this target's model.
    pub(super) fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        let request = ChatRequest { model: self.model.clone(), ..request.clone() };
        let mut response = self.provider.chat(&request, listener, cancel)?;
        // A provider that chose among others has already recorded who answered.
        response.answered_by.get_or_insert_with(|| AnsweredBy {
            provider: self.provider.name().to_owned(),
            model: self.model.clone(),
        });
        Ok(response)
    }
}

impl ReliableProvider {
    /// Creates a provider that returns the first answer of its members and reports every fallback to
    /// `observer`.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        members: Vec<ProviderTarget>,
        breaker: CircuitBreakerSettings,
        circuits: CircuitBreakers,
        observer: Box<dyn FallbackObserver>,
    ) -> Self {
        Self { name: name.into(), members, breaker, circuits, observer }
    }

    fn try_in_order<T>(
        &self,
        mut ask: impl FnMut(&ProviderTarget) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let now = Instant::now();
        let mut order: Vec<&ProviderTarget> = self.members.iter().collect();
        // An open circuit moves a member to the end, because a doubtful member is better than none.
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
                if self.circuits.record_failure(provider, self.breaker, Instant::now()) {
                    self.observer.on_circuit_open(provider, self.breaker);
                }
            }
            // Other errors say nothing about the next request.
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
