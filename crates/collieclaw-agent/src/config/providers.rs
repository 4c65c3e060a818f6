//! Settings of the section `[providers]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_providers::RouteCondition;
use serde::{Serialize, Serializer};

use crate::usage::TokenPrice;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderTable {
    /// The currency of all prices, for display; empty if not set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub currency: String,
    pub models: BTreeMap<String, ProviderSettings>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProviderSettings {
    /// A provider without a model, for tests and for a first try. It plays a script or gives fixed answers.
    Mock {
        model: String,
        /// The script to play.
        #[serde(skip_serializing_if = "Option::is_none")]
        fixture: Option<PathBuf>,
        #[serde(flatten)]
        price: TokenPrice,
    },
    /// A server with an OpenAI-compatible API.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible(ModelServerSettings),
    /// A list of providers that are tried in order until one answers.
    Reliable {
        providers: Vec<String>,
        /// The number of failures in a row after which a provider is tried last.
        failures: u32,
        /// The time for which a failing provider is tried last.
        #[serde(serialize_with = "super::serialize_duration")]
        cool_down: Duration,
    },
    /// A provider that passes each request to another provider, chosen by rules.
    Router {
        /// The provider that answers if no rule matches.
        default: String,
        /// The rules, in order. The first match decides.
        rules: Vec<RoutingRule>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoutingRule {
    /// The provider that answers if the condition holds.
    pub provider: String,
    pub when: RouteCondition,
}

/// Connection settings of a server with an OpenAI-compatible API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelServerSettings {
    /// The URL of the API, such as `http://localhost:1234/v1`.
    pub base_url: String,
    /// The server's name for the model.
    pub model: String,
    /// The environment variable that holds the key; empty if the server needs no key.
    pub api_key_env: String,
    /// True if answers are streamed.
    pub stream: bool,
    /// The randomness of answers; the server's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<ModelTemperature>,
    /// The maximum time for one answer; `limits.provider_timeout` if absent.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_duration")]
    pub timeout: Option<Duration>,
    /// The maximum pause within an answer; `limits.stall_timeout` if absent.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_duration")]
    pub stall_timeout: Option<Duration>,
    #[serde(flatten)]
    pub price: TokenPrice,
}

/// The randomness of a model's answers, from 0 to 2, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTemperature {
    thousandths: u16,
}

impl ModelTemperature {
    /// The highest value that servers accept.
    pub const MAX: f64 = 2.0;

    /// Creates a temperature. Values outside of the range become the nearest bound.
    #[must_use]
    pub fn new(value: f64) -> Self {
        let scaled = (value.clamp(0.0, Self::MAX) * 1000.0).round();
        // The range is 0 to 2000, so a number that equals the scaled one exists.
        Self { thousandths: (0..=2000).find(|step| f64::from(*step) >= scaled).unwrap_or_default() }
    }

    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.thousandths) / 1000.0
    }
}

impl Serialize for ModelTemperature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl ProviderSettings {
    /// Returns the name of the model; empty for `reliable` and `router`, whose members have their own.
    #[must_use]
    pub fn model(&self) -> &str {
        match self {
            Self::Mock { model, .. } | Self::OpenAiCompatible(ModelServerSettings { model, .. }) => model,
            Self::Reliable { .. } | Self::Router { .. } => "",
        }
    }

    /// Returns the value of the key `kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mock { .. } => "mock",
            Self::OpenAiCompatible(_) => "openai-compatible",
            Self::Reliable { .. } => "reliable",
            Self::Router { .. } => "router",
        }
    }
}

fn serialize_optional_duration<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => super::serialize_duration(duration, serializer),
        None => serializer.serialize_none(),
    }
}
