//! A stand-in for a model: it follows a script, or helps someone who has no model yet (C4.2).

mod newcomer;
mod script;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::fixture::{Failure, Fixture, Reply, Round};
use super::{ChatRequest, ChatResponse, Checked, Draft, Provider, ProviderCapabilities, ProviderError};
use crate::cancel::Cancel;

pub(super) use script::PLACEHOLDERS;

/// What a scripted time-out says it waited for, if the script has no delay.
const PRETENDED_SECONDS: u64 = 60;

/// The mock. Each request takes the next round of its script, for as long as this value lives.
#[derive(Debug)]
pub struct Mock {
    name: String,
    fixture: Option<Fixture>,
    asked: AtomicUsize,
}

impl Mock {
    /// A mock with a script, or without one.
    #[must_use]
    pub fn new(name: impl Into<String>, fixture: Option<Fixture>) -> Self {
        Self { name: name.into(), fixture, asked: AtomicUsize::new(0) }
    }

    fn play(
        &self,
        fixture: &Fixture,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(round) = fixture.rounds.get(number - 1) else {
            let rounds = counted(fixture.rounds.len());
            return Err(self.invalid(format!(
                "the fixture has {rounds}, and this is request {number}; add a `[[round]]` to it"
            )));
        };
        script::check(&round.expect, request)
            .map_err(|fault| self.invalid(format!("round {number} of the fixture expected {fault}")))?;
        self.wait(round.delay, cancel)?;
        for (number, bit) in round.draft.iter().enumerate() {
            self.wait(if number == 0 { Duration::ZERO } else { round.pause }, cancel)?;
            listener(Draft::Text(&script::fill(bit, request)));
        }
        match &round.reply {
            Reply::Answer { text, calls, usage } => {
                Ok(ChatResponse { usage: *usage, ..script::answer(text, calls, number, request) })
            }
            Reply::Fails { failure, detail } => Err(self.failure(*failure, detail, round)),
        }
    }

    fn failure(&self, failure: Failure, detail: &str, round: &Round) -> ProviderError {
        let provider = self.name.clone();
        let detail = if detail.is_empty() { "the fixture says so" } else { detail }.to_owned();
        match failure {
            Failure::Timeout => ProviderError::Timeout {
                provider,
                seconds: match round.delay.as_secs() {
                    0 => PRETENDED_SECONDS,
                    waited => waited,
                },
            },
            Failure::Network => ProviderError::Network { provider, detail },
            Failure::Auth => ProviderError::Auth { provider, detail },
            Failure::Overloaded => ProviderError::Overloaded { provider, detail, retry_after: None },
            Failure::Refused => ProviderError::Refused { provider, detail },
        }
    }

    fn invalid(&self, detail: String) -> ProviderError {
        ProviderError::Invalid { provider: self.name.clone(), detail }
    }

    fn wait(&self, delay: Duration, cancel: &Cancel) -> Result<(), ProviderError> {
        let end = Instant::now() + delay;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || cancel.why().is_some() {
                break;
            }
            // A signal comes before the flag that it raises, and ends the wait for nobody.
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let _ = poll(&mut [PollFd::new(cancel, PollFlags::IN)], Some(&timeout));
        }
        match cancel.why() {
            Some(_) => Err(ProviderError::Cancelled { provider: self.name.clone() }),
            None => Ok(()),
        }
    }
}

fn counted(rounds: usize) -> String {
    if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") }
}

impl Provider for Mock {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities { tools: true, streaming: true }
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        match &self.fixture {
            Some(fixture) => self.play(fixture, request, listener, cancel),
            None => self.wait(Duration::ZERO, cancel).map(|()| newcomer::answer(request)),
        }
    }

    fn check(&self, _: &str, _: &Cancel) -> Result<Checked, ProviderError> {
        let said = match &self.fixture {
            Some(fixture) => format!("a script of {}", counted(fixture.rounds.len())),
            None => "the built-in mock; it needs no key and no network".to_owned(),
        };
        Ok(Checked { model: "mock".to_owned(), said, took: Duration::ZERO })
    }
}
