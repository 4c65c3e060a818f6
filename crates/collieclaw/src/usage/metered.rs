//! A provider whose calls are counted, and refused when a limit is reached.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Instant;

use jiff::Zoned;
use serde_json::Value;

use super::accounts::{Accounts, Begun, Ended, Refusal};
use super::amount::Price;
use super::budget::Budget;
use super::error::UsageError;
use super::estimate;
use crate::cancel::Cancel;
use crate::providers::{
    ChatRequest, ChatResponse, Checked, Draft, Provider, ProviderCapabilities, ProviderError, Usage,
};

/// The key of a request's metadata that names its conversation.
pub const CONVERSATION: &str = "conversation";

/// What a look at a provider is counted as.
const CHECK: &str = "provider test";

/// A provider and its meter.
pub struct Metered {
    provider: Box<dyn Provider>,
    price: Price,
    budget: Budget,
    path: PathBuf,
    accounts: OnceCell<Accounts>,
    trouble: Box<dyn Fn(&UsageError)>,
}

impl Metered {
    /// Counts in the file at `path`, which is opened with the first call. Without a limit, accounts that can't be kept are
    /// told to `trouble` and stop nobody.
    #[must_use]
    pub fn new(
        provider: Box<dyn Provider>,
        price: Price,
        budget: Budget,
        path: PathBuf,
        trouble: Box<dyn Fn(&UsageError)>,
    ) -> Self {
        Self { provider, price, budget, path, accounts: OnceCell::new(), trouble }
    }

    fn accounts(&self) -> Result<&Accounts, UsageError> {
        match self.accounts.get() {
            Some(accounts) => Ok(accounts),
            None => {
                let opened = Accounts::open(&self.path)?;
                Ok(self.accounts.get_or_init(|| opened))
            }
        }
    }

    /// The number of the call; none, if it can't be counted and need not be.
    fn begin(&self, conversation: &str, model: &str, tokens: u64) -> Result<Option<i64>, ProviderError> {
        let (provider, price) = (self.provider.name(), self.price);
        let call = Begun { conversation, provider, model, prompt_tokens: tokens, price };
        let begun = self
            .accounts()
            .map_err(Refusal::Broken)
            .and_then(|accounts| accounts.begin(&call, &self.budget, &Zoned::now()));
        match begun {
            Ok(number) => Ok(Some(number)),
            Err(Refusal::Limit(reached)) => {
                Err(ProviderError::Limit { detail: reached.to_string(), retry_after: reached.seconds })
            }
            Err(Refusal::Broken(error)) if self.budget.is_set() => {
                let detail = format!("there are limits, and nobody can count: {}", ward_diag::Chain(&error));
                Err(ProviderError::Limit { detail, retry_after: None })
            }
            Err(Refusal::Broken(error)) => {
                (self.trouble)(&error);
                Ok(None)
            }
        }
    }

    fn end(&self, number: Option<i64>, ended: &Ended) {
        let Some((number, accounts)) = number.zip(self.accounts.get()) else { return };
        if let Err(error) = accounts.end(number, ended, self.price) {
            (self.trouble)(&error);
        }
    }
}

/// Whether a server has counted at all: no request is empty, and one that costs nothing would have no limit.
fn is_a_count(usage: Usage) -> bool {
    usage.prompt_tokens > 0
}

/// Whether a server has done any work for a call that failed.
fn was_worked_on(error: &ProviderError, heard: u64) -> bool {
    let before_any_work = matches!(
        error,
        ProviderError::Network { .. }
            | ProviderError::Auth { .. }
            | ProviderError::Insecure { .. }
            | ProviderError::Overloaded { .. }
            | ProviderError::Refused { .. }
            | ProviderError::Limit { .. }
    );
    heard > 0 || !before_any_work
}

impl Provider for Metered {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn capabilities(&self) -> ProviderCapabilities {
        self.provider.capabilities()
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(Draft<'_>),
        cancel: &Cancel,
    ) -> Result<ChatResponse, ProviderError> {
        let conversation = request.metadata.get(CONVERSATION).and_then(Value::as_str).unwrap_or_default();
        let prompt_tokens = estimate::request(request);
        let number = self.begin(conversation, &request.model, prompt_tokens)?;
        let begun = Instant::now();
        let mut heard = 0;
        let mut listen = |draft: Draft<'_>| {
            if let Draft::Text(text) = draft {
                heard += estimate::text(text);
            }
            listener(draft);
        };
        let answered = self.provider.chat(request, &mut listen, cancel);
        let guess = |completion_tokens| Usage { prompt_tokens, completion_tokens };
        let (estimated, usage) = match &answered {
            Ok(ChatResponse { usage: Some(usage), .. }) if is_a_count(*usage) => (false, *usage),
            Ok(response) => (true, guess(written(response))),
            Err(error) if was_worked_on(error, heard) => (true, guess(heard)),
            Err(_) => (false, Usage::default()),
        };
        self.end(number, &Ended { failed: answered.is_err(), estimated, usage, took: begun.elapsed() });
        answered
    }

    fn check(&self, model: &str, cancel: &Cancel) -> Result<Checked, ProviderError> {
        let number = self.begin(CHECK, model, 0)?;
        let begun = Instant::now();
        let checked = self.provider.check(model, cancel);
        let completion_tokens = checked.as_ref().map_or(0, |checked| estimate::text(&checked.said));
        let usage = Usage { prompt_tokens: 0, completion_tokens };
        self.end(number, &Ended { failed: checked.is_err(), estimated: true, usage, took: begun.elapsed() });
        checked
    }
}

fn written(response: &ChatResponse) -> u64 {
    let calls = response.tool_calls.iter().map(|call| estimate::text(&call.arguments.to_string()));
    calls.fold(estimate::text(&response.final_text), u64::saturating_add)
}
