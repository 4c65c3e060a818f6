//! Fixtures: scripts that the mock provider follows. `docs/collieclaw-fixtures.md` describes the format.

mod from_json;
mod read;

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ward_diag::{FaultReport, MAX_SOURCE_BYTES, SourceText};

use super::TokenUsage;
use from_json::JsonFixtureError;

/// The scripted answers of a mock provider, round by round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockFixture {
    pub(super) rounds: Vec<FixtureRound>,
}

/// An expected request and the scripted answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixtureRound {
    pub(super) expect: RequestExpectation,
    pub(super) delay: Duration,
    /// The pieces to stream before the reply, with a `pause` between two pieces.
    pub(super) draft: Vec<String>,
    pub(super) pause: Duration,
    pub(super) reply: ScriptedReply,
}

/// The conditions that a request must meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestExpectation {
    pub(super) last_message_contains: Option<String>,
    pub(super) tool_result_contains: Option<String>,
    pub(super) system_prompt_contains: Option<String>,
    pub(super) tools_include: Vec<String>,
    pub(super) tools_exclude: Vec<String>,
    pub(super) messages: Option<u64>,
    pub(super) model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptedReply {
    Answer { text: String, calls: Vec<ScriptedCall>, usage: Option<TokenUsage> },
    Fails { failure: ScriptedFailure, detail: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedCall {
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) id: Option<String>,
}

/// Failures that a fixture can script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptedFailure {
    Timeout,
    Network,
    Auth,
    Overloaded,
    Refused,
}

/// The reason why a fixture could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    #[error("could not read the fixture `{path}`: {fault}")]
    File { path: String, fault: std::io::Error },
    /// The fixture has mistakes; the report gives the place and the cure of each.
    #[error("{0}")]
    Faults(FaultReport),
    /// The file is not valid JSON.
    #[error("{path}:{line}:{column}: this is not JSON: {fault}")]
    NotJson {
        path: String,
        /// Counted from one.
        line: usize,
        /// Counted from one.
        column: usize,
        fault: String,
    },
}

impl MockFixture {
    /// Reads a fixture file: JSON if its name ends in `.json`, otherwise TOML.
    ///
    /// # Errors
    /// Fails if the file can't be read, and reports every mistake in it.
    pub fn open(path: &Path) -> Result<Self, FixtureError> {
        let name = path.display().to_string();
        let fail = |fault| FixtureError::File { path: name.clone(), fault };
        // Reading one byte more than the limit reveals a file that is too large.
        let most = u64::try_from(MAX_SOURCE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        std::fs::File::open(path).map_err(fail)?.take(most).read_to_end(&mut bytes).map_err(fail)?;
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("json") => Self::from_json(&name, &bytes),
            _ => Self::from_toml(SourceText::from_bytes(name.as_str(), &bytes)),
        }
    }

    /// Parses a fixture written in TOML.
    ///
    /// # Errors
    /// Reports every mistake in the text.
    pub fn from_toml(source: SourceText) -> Result<Self, FixtureError> {
        ward_diag::read(source, read::read_fixture).map_err(FixtureError::Faults)
    }

    /// Parses a fixture written in JSON, with the same keys as TOML. Mistakes are reported at their place in
    /// the JSON.
    ///
    /// # Errors
    /// Reports every mistake in the text.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<Self, FixtureError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() <= MAX_SOURCE_BYTES => text,
            // The TOML reader reports files that are too large or not UTF-8.
            _ => return Self::from_toml(SourceText::from_bytes(name, bytes)),
        };
        match from_json::json_to_toml(text) {
            Ok(toml) => Self::from_toml(SourceText::new(name, toml)),
            Err(JsonFixtureError { line, column, fault }) => {
                Err(FixtureError::NotJson { path: name.to_owned(), line, column, fault })
            }
        }
    }
}
