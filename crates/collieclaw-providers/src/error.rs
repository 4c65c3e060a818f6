//! What can go wrong with a provider. The kind tells whether another one should be tried.

use thiserror::Error;

/// Why there is no answer. No text in it holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProviderError {
    /// It can't be reached, or the connection broke.
    #[error("provider `{provider}` can't be reached: {detail}")]
    Network {
        /// The provider.
        provider: String,
        /// What happened, and what helps.
        detail: String,
    },
    /// It took too long.
    #[error("provider `{provider}` did not answer within {seconds} s")]
    Timeout {
        /// The provider.
        provider: String,
        /// How long we waited.
        seconds: u64,
    },
    /// It doesn't know us.
    #[error("provider `{provider}` refused the key: {detail}")]
    Auth {
        /// The provider.
        provider: String,
        /// What it said, and which variable holds the key.
        detail: String,
    },
    /// The key would go where others can read it, so nothing was sent.
    #[error("nothing was sent to provider `{provider}`: {detail}")]
    Insecure {
        /// The provider.
        provider: String,
        /// What helps.
        detail: String,
    },
    /// It has too much to do, or we asked too often.
    #[error("provider `{provider}` is overloaded: {detail}{}", wish(*retry_after))]
    Overloaded {
        /// The provider.
        provider: String,
        /// What it said.
        detail: String,
        /// When it wants to be asked again, in seconds.
        retry_after: Option<u64>,
    },
    /// It refused this request.
    #[error("provider `{provider}` refused the request: {detail}")]
    Refused {
        /// The provider.
        provider: String,
        /// What it said.
        detail: String,
    },
    /// It answered something that can't be used.
    #[error("provider `{provider}` answered something that can't be used: {detail}")]
    Invalid {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The answer is larger than `max_response_bytes`.
    #[error("provider `{provider}` answered more than {limit} bytes (`limits.max_response_bytes`)")]
    TooLarge {
        /// The provider.
        provider: String,
        /// The limit.
        limit: usize,
    },
    /// Nothing is left of a limit in the configuration, so it was not asked.
    #[error("{detail}")]
    Limit {
        /// Of which, and when there is more again.
        detail: String,
        /// The same in seconds, where it comes by itself.
        retry_after: Option<u64>,
    },
    /// Somebody said stop.
    #[error("the request to `{provider}` was cancelled")]
    Cancelled {
        /// The provider.
        provider: String,
    },
}

fn wish(retry_after: Option<u64>) -> String {
    retry_after.map(|seconds| format!("; it asks to wait {seconds} s")).unwrap_or_default()
}
