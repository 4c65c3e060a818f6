//! What it takes to find a program again.

use serde::{Deserialize, Serialize};

/// What a host needs to take a program back after a restart of the daemon (S5.2). Opaque to everybody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostSessionHandle(String);

impl HostSessionHandle {
    /// A handle from the text that a host made of it.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the store and for the host that made it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
