//! A provider whose requests are recorded, and refused if a limit is reached.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Instant;

use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::{
    ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck, ProviderError,
    TokenUsage, estimate,
};
use jiff::Zoned;
use serde_json::Value;

use super::amount::TokenPrice;
use super::budget::UsageBudget;
use super::database::{CallRefusal, ProviderCallEnd, ProviderCallStart, UsageDatabase};
use super::error::UsageError;

/// The key in a request's metadata that contains its conversation.
pub const CONVERSATION_KEY: &str = "conversation";

/// The conversation under which `provider test` is recorded.
const CHECK_CONVERSATION: &str = "provider test";

/// A provider with usage records.
pub struct MeteredProvider {
    provider: Box<dyn Provider>,
    price: TokenPrice,
    budget: UsageBudget,
    path: PathBuf,
    database: OnceCell<UsageDatabase>,
    on_error: Box<dyn Fn(&UsageError)>,
}

impl MeteredProvider {
    /// Records requests in the file at `path`, which is opened for the first request. If no limit is set,
    /// errors of the records are passed to `on_error` and don't stop the request.
    #[must_use]
    pub fn new(
        provider: Box<dyn Provider>,
        price: TokenPrice,
        budget: UsageBudget,
        path: PathBuf,
        on_error: Box<dyn Fn(&UsageError)>,
    ) -> Self {
        Self { provider, price, budget, path, database: OnceCell::new(), on_error }
    }

    fn database(&self) -> Result<&UsageDatabase, UsageError> {
        match self.database.get() {
            Some(database) => Ok(database),
            None => {
                let opened = UsageDatabase::open(&self.path)?;
                Ok(self.database.get_or_init(|| opened))
            }
        }
    }

    /// Records the start of a request. Returns `None` if it couldn't be recorded and no limit is set.
    fn record_start(
        &self,
        conversation: &str,
        model: &str,
        tokens: u64,
    ) -> Result<Option<i64>, ProviderError> {
        let (provider, price) = (self.provider.name(), self.price);
        let call = ProviderCallStart { conversation, provider, model, prompt_tokens: tokens, price };
        let begun = self
            .database()
            .map_err(CallRefusal::Unusable)
            .and_then(|database| database.record_start(&call, &self.budget, &Zoned::now()));
        match begun {
            Ok(number) => Ok(Some(number)),
            Err(CallRefusal::Limit(reached)) => {
                Err(ProviderError::Limit { detail: reached.to_string(), retry_after: reached.seconds })
            }
            Err(CallRefusal::Unusable(error)) if self.budget.is_set() => {
                let detail = format!(
                    "limits are set, but usage could not be recorded: {}",
                    ward_diag::ErrorChain(&error)
                );
                Err(ProviderError::Limit { detail, retry_after: None })
            }
            Err(CallRefusal::Unusable(error)) => {
                (self.on_error)(&error);
                Ok(None)
            }
        }
    }

    fn record_end(&self, number: Option<i64>, ended: &ProviderCallEnd) {
        let Some((number, database)) = number.zip(self.database.get()) else { return };
        if let Err(error) = database.record_end(number, ended, self.price) {
            (self.on_error)(&error);
        }
    }
}

/// Returns true if the server counted the tokens. No request is empty, and a count of zero would bypass the
/// limits.
fn is_counted(usage: TokenUsage) -> bool {
    usage.prompt_tokens > 0
}

/// Returns true if the server may have processed a request that failed.
fn was_processed(error: &ProviderError, received: u64) -> bool {
    let before_any_work = matches!(
        error,
        ProviderError::Network { .. }
            | ProviderError::Auth { .. }
            | ProviderError::Insecure { .. }
            | ProviderError::Overloaded { .. }
            | ProviderError::Refused { .. }
            | ProviderError::Limit { .. }
    );
    received > 0 || !before_any_work
}

impl Provider for MeteredProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn capabilities(&self) -> ProviderCapabilities {
        self.provider.capabilities()
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        let conversation = request.metadata.get(CONVERSATION_KEY).and_then(Value::as_str).unwrap_or_default();
        let prompt_tokens = estimate::request(request);
        let number = self.record_start(conversation, &request.model, prompt_tokens)?;
        let begun = Instant::now();
        let mut received = 0;
        let mut listen = |draft: DraftEvent<'_>| {
            if let DraftEvent::Text(text) = draft {
                received += estimate::text(text);
            }
            listener(draft);
        };
        let answered = self.provider.chat(request, &mut listen, cancel);
        let estimated_usage = |completion_tokens| TokenUsage { prompt_tokens, completion_tokens };
        let (estimated, usage) = match &answered {
            Ok(ChatResponse { usage: Some(usage), .. }) if is_counted(*usage) => (false, *usage),
            Ok(response) => (true, estimated_usage(written_tokens(response))),
            Err(error) if was_processed(error, received) => (true, estimated_usage(received)),
            Err(_) => (false, TokenUsage::default()),
        };
        self.record_end(
            number,
            &ProviderCallEnd { failed: answered.is_err(), estimated, usage, took: begun.elapsed() },
        );
        answered
    }

    fn check(&self, model: &str, cancel: &CancelFlag) -> Result<ProviderCheck, ProviderError> {
        let number = self.record_start(CHECK_CONVERSATION, model, 0)?;
        let begun = Instant::now();
        let checked = self.provider.check(model, cancel);
        let completion_tokens = checked.as_ref().map_or(0, |checked| estimate::text(&checked.reply));
        let usage = TokenUsage { prompt_tokens: 0, completion_tokens };
        self.record_end(
            number,
            &ProviderCallEnd { failed: checked.is_err(), estimated: true, usage, took: begun.elapsed() },
        );
        checked
    }
}

fn written_tokens(response: &ChatResponse) -> u64 {
    let calls = response.tool_calls.iter().map(|call| estimate::text(&call.arguments.to_string()));
    calls.fold(estimate::text(&response.final_text), u64::saturating_add)
}
