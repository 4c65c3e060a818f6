//! The mock provider: it follows a fixture, or answers a few demo commands for users without a model (C4.2).

mod demo_commands;
mod script;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::fixture::{FixtureRound, MockFixture, ScriptedFailure, ScriptedReply};
use super::{
    ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck, ProviderError,
};
use crate::cancel::CancelFlag;

pub(super) use script::PLACEHOLDERS;

/// The timeout that a scripted timeout reports if its round has no delay.
const PRETENDED_SECONDS: u64 = 60;

/// A provider without a model. Each request plays the next round of its fixture, for the lifetime of this
/// value.
#[derive(Debug)]
pub struct MockProvider {
    name: String,
    fixture: Option<MockFixture>,
    requests: AtomicUsize,
}

impl MockProvider {
    /// Creates a mock that follows a fixture, or answers demo commands if `fixture` is `None`.
    #[must_use]
    pub fn new(name: impl Into<String>, fixture: Option<MockFixture>) -> Self {
        Self { name: name.into(), fixture, requests: AtomicUsize::new(0) }
    }

    fn play_round(
        &self,
        fixture: &MockFixture,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(round) = fixture.rounds.get(number - 1) else {
            let rounds = count_rounds(fixture.rounds.len());
            return Err(self.invalid(format!(
                "the fixture has {rounds}, but this is request {number}; add a `[[round]]`"
            )));
        };
        script::check_expectation(&round.expect, request)
            .map_err(|fault| self.invalid(format!("round {number} of the fixture expected {fault}")))?;
        self.wait(round.delay, cancel)?;
        for (number, piece) in round.draft.iter().enumerate() {
            self.wait(if number == 0 { Duration::ZERO } else { round.pause }, cancel)?;
            listener(DraftEvent::Text(&script::fill_placeholders(piece, request)));
        }
        match &round.reply {
            ScriptedReply::Answer { text, calls, usage } => {
                Ok(ChatResponse { usage: *usage, ..script::build_response(text, calls, number, request) })
            }
            ScriptedReply::Fails { failure, detail } => Err(self.scripted_error(*failure, detail, round)),
        }
    }

    fn scripted_error(&self, failure: ScriptedFailure, detail: &str, round: &FixtureRound) -> ProviderError {
        let provider = self.name.clone();
        let detail = if detail.is_empty() { "scripted by the fixture" } else { detail }.to_owned();
        match failure {
            ScriptedFailure::Timeout => ProviderError::Timeout {
                provider,
                seconds: match round.delay.as_secs() {
                    0 => PRETENDED_SECONDS,
                    waited => waited,
                },
            },
            ScriptedFailure::Network => ProviderError::Network { provider, detail },
            ScriptedFailure::Auth => ProviderError::Auth { provider, detail },
            ScriptedFailure::Overloaded => ProviderError::Overloaded { provider, detail, retry_after: None },
            ScriptedFailure::Refused => ProviderError::Refused { provider, detail },
        }
    }

    fn invalid(&self, detail: String) -> ProviderError {
        ProviderError::Invalid { provider: self.name.clone(), detail }
    }

    fn wait(&self, delay: Duration, cancel: &CancelFlag) -> Result<(), ProviderError> {
        let end = Instant::now() + delay;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || cancel.reason().is_some() {
                break;
            }
            // A signal may interrupt `poll` before its handler raises the flag, so the loop checks again.
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let _ = poll(&mut [PollFd::new(cancel, PollFlags::IN)], Some(&timeout));
        }
        match cancel.reason() {
            Some(_) => Err(ProviderError::Cancelled { provider: self.name.clone() }),
            None => Ok(()),
        }
    }
}

fn count_rounds(rounds: usize) -> String {
    if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") }
}

impl Provider for MockProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities { tools: true, streaming: true }
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        match &self.fixture {
            Some(fixture) => self.play_round(fixture, request, listener, cancel),
            None => self.wait(Duration::ZERO, cancel).map(|()| demo_commands::respond(request)),
        }
    }

    fn check(&self, _: &str, _: &CancelFlag) -> Result<ProviderCheck, ProviderError> {
        let reply = match &self.fixture {
            Some(fixture) => format!("a fixture with {}", count_rounds(fixture.rounds.len())),
            None => "the built-in mock; it needs no key and no network".to_owned(),
        };
        Ok(ProviderCheck { model: "mock".to_owned(), reply, elapsed: Duration::ZERO })
    }
}
