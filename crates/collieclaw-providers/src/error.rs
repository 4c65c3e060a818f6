//! Errors of providers. The kind of error decides whether another provider is tried.

use thiserror::Error;

/// The reason why a request to a provider failed. No message contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProviderError {
    /// The server is unreachable, or the connection broke.
    #[error("the connection to provider `{provider}` failed: {detail}")]
    Network {
        provider: String,
        /// The cause and its cure.
        detail: String,
    },
    #[error("provider `{provider}` did not answer within {seconds} s")]
    Timeout { provider: String, seconds: u64 },
    /// The server rejected the API key, or wants a key and got none.
    #[error("provider `{provider}` refused the key: {detail}")]
    Auth {
        provider: String,
        /// The server's message, and the variable that holds the key.
        detail: String,
    },
    /// The key would have been sent unencrypted, so nothing was sent.
    #[error("nothing was sent to provider `{provider}`: {detail}")]
    Insecure {
        provider: String,
        /// The cause and its cure.
        detail: String,
    },
    /// The server is overloaded, or the client sent too many requests.
    #[error("provider `{provider}` is overloaded: {detail}{}", retry_advice(*retry_after))]
    Overloaded {
        provider: String,
        /// The server's message.
        detail: String,
        /// The number of seconds that the server asks to wait.
        retry_after: Option<u64>,
    },
    /// The server or the model refused this request.
    #[error("provider `{provider}` refused the request: {detail}")]
    Refused {
        provider: String,
        /// The server's message.
        detail: String,
    },
    /// The reply could not be used.
    #[error("provider `{provider}` sent an unusable reply: {detail}")]
    Invalid { provider: String, detail: String },
    /// The reply is larger than `max_response_bytes`.
    #[error("provider `{provider}` sent more than {limit} bytes (`limits.max_response_bytes`)")]
    TooLarge { provider: String, limit: usize },
    /// A limit of the configuration is used up, so the provider was not asked.
    #[error("{detail}")]
    Limit {
        /// The limit, and when it is reset.
        detail: String,
        /// The seconds until the limit is reset, if it resets by itself.
        retry_after: Option<u64>,
    },
    /// The request was cancelled.
    #[error("the request to `{provider}` was cancelled")]
    Cancelled { provider: String },
}

fn retry_advice(retry_after: Option<u64>) -> String {
    retry_after.map(|seconds| format!("; the server asks to wait {seconds} s")).unwrap_or_default()
}
