//! The script that the mock follows, and how it is read. Its format is described in `docs/collieclaw-fixtures.md`.

mod from_json;
mod read;

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ward_diag::{FaultReport, MAX_SOURCE_BYTES, SourceText};

use super::TokenUsage;
use from_json::JsonFixtureError;

/// What a mock is to answer, round by round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockFixture {
    pub(super) rounds: Vec<FixtureRound>,
}

/// One request and the answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixtureRound {
    pub(super) expect: RequestExpectation,
    pub(super) delay: Duration,
    /// Told bit by bit before the reply, and how long it takes to the next.
    pub(super) draft: Vec<String>,
    pub(super) pause: Duration,
    pub(super) reply: ScriptedReply,
}

/// What the request must be like.
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

/// How a provider can fail, by the words of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptedFailure {
    Timeout,
    Network,
    Auth,
    Overloaded,
    Refused,
}

/// Why there is no fixture.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    /// The file can't be read.
    #[error("the fixture `{path}` can't be read: {fault}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        fault: std::io::Error,
    },
    /// It has faults, each with its place and its cure.
    #[error("{0}")]
    Faults(FaultReport),
    /// It is not JSON.
    #[error("{path}:{line}:{column}: this is not JSON: {fault}")]
    NotJson {
        /// The file.
        path: String,
        /// Where, counted from one.
        line: usize,
        /// Where, counted from one.
        column: usize,
        /// What the parser said.
        fault: String,
    },
}

impl MockFixture {
    /// Reads a fixture from a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// When the file can't be read, or with every fault in it.
    pub fn open(path: &Path) -> Result<Self, FixtureError> {
        let name = path.display().to_string();
        let fail = |fault| FixtureError::File { path: name.clone(), fault };
        // One byte more than is read tells a file that is too large.
        let most = u64::try_from(MAX_SOURCE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        std::fs::File::open(path).map_err(fail)?.take(most).read_to_end(&mut bytes).map_err(fail)?;
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("json") => Self::from_json(&name, &bytes),
            _ => Self::from_toml(SourceText::from_bytes(name.as_str(), &bytes)),
        }
    }

    /// Reads a fixture from TOML.
    ///
    /// # Errors
    /// With every fault in it.
    pub fn from_toml(source: SourceText) -> Result<Self, FixtureError> {
        ward_diag::read(source, read::read_fixture).map_err(FixtureError::Faults)
    }

    /// Reads a fixture from JSON: the same keys, and faults at the same places.
    ///
    /// # Errors
    /// With every fault in it.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<Self, FixtureError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() <= MAX_SOURCE_BYTES => text,
            // What is too large or no UTF-8, the other reader explains.
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
