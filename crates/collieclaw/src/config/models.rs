//! Who can answer, as the configuration says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Who can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Providers {
    /// By name.
    pub models: BTreeMap<String, Model>,
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Model {
    /// A script, or a helpful stand-in.
    Mock {
        /// What the model is called.
        model: String,
        /// What it says.
        #[serde(skip_serializing_if = "Option::is_none")]
        fixture: Option<PathBuf>,
    },
    /// A server that speaks the common protocol.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible(Server),
    /// The first of several that answers.
    Reliable {
        /// Their names, in order.
        providers: Vec<String>,
    },
}

/// A server that speaks the common protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Server {
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
}

impl Model {
    /// What the model is called; empty where each member has its own.
    #[must_use]
    pub fn model(&self) -> &str {
        match self {
            Self::Mock { model, .. } | Self::OpenAiCompatible(Server { model, .. }) => model,
            Self::Reliable { .. } => "",
        }
    }

    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mock { .. } => "mock",
            Self::OpenAiCompatible(_) => "openai-compatible",
            Self::Reliable { .. } => "reliable",
        }
    }
}

fn maybe_in_words<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => super::in_words(duration, serializer),
        None => serializer.serialize_none(),
    }
}
