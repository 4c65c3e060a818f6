//! Who can answer, as the configuration says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_providers::RouteCondition;
use serde::{Serialize, Serializer};

use crate::usage::TokenPrice;

/// Who can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderTable {
    /// What prices are in; empty if nobody said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub currency: String,
    /// By name.
    pub models: BTreeMap<String, ProviderSettings>,
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProviderSettings {
    /// A script, or a helpful stand-in.
    Mock {
        /// What the model is called.
        model: String,
        /// What it says.
        #[serde(skip_serializing_if = "Option::is_none")]
        fixture: Option<PathBuf>,
        /// What it would cost.
        #[serde(flatten)]
        price: TokenPrice,
    },
    /// A server that speaks the common protocol.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible(ModelServerSettings),
    /// The first of several that answers.
    Reliable {
        /// Their names, in order.
        providers: Vec<String>,
        /// After so many failures in a row, one is asked last.
        failures: u32,
        /// For so long.
        #[serde(serialize_with = "super::in_words")]
        cool_down: Duration,
    },
    /// One of several, by what is asked.
    Router {
        /// Who, if no rule holds.
        default: String,
        /// The first that holds counts.
        rules: Vec<RoutingRule>,
    },
}

/// A rule of a router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoutingRule {
    /// Who answers.
    pub provider: String,
    /// If this holds.
    pub when: RouteCondition,
}

/// A server that speaks the common protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelServerSettings {
    /// Such as `http://localhost:1234/v1`.
    pub base_url: String,
    /// What the server calls it.
    pub model: String,
    /// The variable that holds the key; empty if there is none.
    pub api_key_env: String,
    /// Whether answers are asked for bit by bit.
    pub stream: bool,
    /// Of one answer, if it is not `limits.provider_timeout`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_in_words")]
    pub timeout: Option<Duration>,
    /// How long an answer may stop coming, if it is not `limits.stall_timeout`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_in_words")]
    pub stall_timeout: Option<Duration>,
    /// What it costs.
    #[serde(flatten)]
    pub price: TokenPrice,
}

impl ProviderSettings {
    /// What the model is called; empty where each member has its own.
    #[must_use]
    pub fn model(&self) -> &str {
        match self {
            Self::Mock { model, .. } | Self::OpenAiCompatible(ModelServerSettings { model, .. }) => model,
            Self::Reliable { .. } | Self::Router { .. } => "",
        }
    }

    /// The word for its kind.
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

fn maybe_in_words<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => super::in_words(duration, serializer),
        None => serializer.serialize_none(),
    }
}
