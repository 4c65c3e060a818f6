//! The reasons why an MCP server or the adapter can't be used.

use thiserror::Error;

/// The reason why a server or the adapter can't be used. A reason with a cure of its own has its own variant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum McpFailure {
    #[error("no such program `{0}`")]
    NoSuchProgram(String),
    /// Nothing listens at the server's address.
    #[error("{0}")]
    NothingListens(String),
    /// The server ended because it could not read a file, which is a sign that the sandbox hides the file.
    #[error("{0}")]
    FileNotReadable(String),
    /// `collieclaw-mcp` is missing or has another version.
    #[error("{0}")]
    AdapterUnusable(String),
    #[error("{0}")]
    Other(String),
}

impl From<String> for McpFailure {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}
